"""Run the released pytato's own test suite with recording on.

    python tools/host_suite.py [--without] [arguments of pytest]

Fetches the source distribution from the package index into ``build/host-suite``, where
it is kept, and runs its tests against the installed pytato: mended, and with recording
on from before the first of them is collected. ``--without`` leaves recording off.
Either way the result has to be the same.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest


VERSION = "2021.2"
EXPECTED = {"passed": 243, "skipped": 7, "xfailed": 2}
BUILD = Path(__file__).resolve().parent.parent / "build" / "host-suite"


def fetch() -> Path:
    """The folder with the tests of pytato's source distribution."""
    tests = BUILD / f"pytato-{VERSION}" / "test"
    if not tests.is_dir():
        BUILD.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(BUILD), f"pytato=={VERSION}"]
        subprocess.run(command, check=True)
        with tarfile.open(BUILD / f"pytato-{VERSION}.tar.gz") as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(BUILD, filter="data")
            else:
                archive.extractall(BUILD)
    return tests


class Recording:
    """The pytest plugin that mends the host, switches recording on, and counts."""

    def __init__(self, *, record: bool) -> None:
        self.record = record
        self.counts: Counter[str] = Counter()

    def pytest_configure(self) -> None:
        import pytato_provenance

        pytato_provenance.mend_released_pytato()
        if self.record:
            pytato_provenance.enable()

    def pytest_report_header(self) -> str:
        return f"recording: {'on' if self.record else 'off'}"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        import pytato_provenance

        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        self.counts.update({kind: len(got) for kind, got in reporter.stats.items()})
        assert pytato_provenance.is_enabled() == self.record


def main(arguments: list[str]) -> int:
    record = "--without" not in arguments
    arguments = [argument for argument in arguments if argument != "--without"]
    try:
        tests = fetch()
    except subprocess.CalledProcessError:
        print(f"pip could not fetch the source distribution of pytato {VERSION}.")
        return 2

    # Its own ini file keeps ours, further up, out of it.
    ini = BUILD / "pytest.ini"
    ini.write_text("[pytest]\n")
    plugin = Recording(record=record)
    options = ["-c", str(ini), "-p", "no:cacheprovider", "-W", "ignore"]
    status = pytest.main([*options, str(tests), *arguments], plugins=[plugin])
    if arguments:
        return int(status)
    got = {kind: plugin.counts[kind] for kind in ("failed", "error", *EXPECTED)}
    if got != {"failed": 0, "error": 0, **EXPECTED}:
        print(f"Expected {EXPECTED}, got {got}.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
