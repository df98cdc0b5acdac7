"""Run the development arraycontext's own test suite with wrapped contexts.

    python tools/array_context_suite.py [--without] CLONE/test [arguments of pytest]

CLONE is a clone of arraycontext's repository that the interpreter has installed. Every
lazy context that the tests make is wrapped as soon as it is made; ``--without`` leaves
them as they are. Either way the result has to be the same.

PoCL 3.0 crashes with shared virtual memory, which the contexts use by default where the
device has it: the tests run without, either way.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pyopencl.characterize
import pytest

from pytato_provenance import array_context
from pytato_provenance.new_contexts import wrap_new_array_contexts


class Wrapping:
    """The pytest plugin that wraps, and counts.

    :arg wrap: whether to
    """

    def __init__(self, *, wrap: bool) -> None:
        self.wrap = wrap
        self.wrapped = 0

    def pytest_configure(self) -> None:
        pyopencl.characterize.has_coarse_grain_buffer_svm = lambda device: False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> object:
        if not self.wrap:
            return (yield)
        from pytato_provenance import disable

        wrap_new_array_contexts()
        try:
            return (yield)
        finally:
            self.wrapped += bool(array_context._switched_on)
            disable()

    def pytest_report_header(self) -> str:
        return f"contexts: {'wrapped' if self.wrap else 'as they are'}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        counts = Counter({kind: len(found) for kind, found
                          in terminalreporter.stats.items() if kind})
        terminalreporter.write_line(
            f"wrapped a context: {self.wrapped} tests; {dict(sorted(counts.items()))}")


def main(arguments: list[str]) -> int:
    wrap = "--without" not in arguments
    arguments = [argument for argument in arguments if argument != "--without"]
    if not arguments:
        print(__doc__)
        return 2
    return int(pytest.main(["-p", "no:cacheprovider", "-W", "ignore", *arguments],
                           plugins=[Wrapping(wrap=wrap)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
