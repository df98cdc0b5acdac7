"""
Do something as soon as a module has been imported.

.. autofunction:: call_when_imported

A program that is run from the command line is to import the host itself, when it sees
fit: what it sets before (environment variables that numpy, loopy or PoCL read when they
are imported) counts.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Watcher(MetaPathFinder):
    """Finds nothing itself; has the loader of one module call back once."""

    def __init__(self, name: str, callback: Callable[[], None]) -> None:
        self._name = name
        self._callback = callback

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        for finder in tuple(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec: ModuleSpec | None = find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            # The loader is left as it was found: programs look at it.
            if loader.__dict__.get("exec_module") is exec_module:
                del loader.exec_module
            execute(module)
            if module.__name__ == self._name and self in sys.meta_path:
                sys.meta_path.remove(self)
                self._callback()

        loader.exec_module = exec_module


def call_when_imported(name: str, callback: Callable[[], None]) -> None:
    """
    :arg name: of a module; it need not exist.
    :arg callback: is called once: right now if the module has been imported, or else
        when it has, before the import statement returns. What it raises comes out of
        that statement.
    """
    if name in sys.modules:
        callback()
    else:
        sys.meta_path.insert(0, _Watcher(name, callback))


