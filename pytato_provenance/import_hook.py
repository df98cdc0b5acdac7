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


_OWN = __name__.rpartition(".")[0] + "."


class _Watcher(MetaPathFinder):
    """Finds nothing itself; has the loaders of some modules call back once each.

    The program may import the host by importing a module of ours. That one is not
    complete then, nor are those that it was importing: the call comes after the
    outermost of them.
    """

    def __init__(self) -> None:
        self._callbacks: dict[str, Callable[[], None]] = {}
        self._due: list[str] = []
        self._own_under_way = 0

    def add(self, name: str, callback: Callable[[], None]) -> None:
        self._callbacks[name] = callback
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in self._callbacks and not fullname.startswith(_OWN):
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
            is_own = module.__name__.startswith(_OWN)
            self._own_under_way += is_own
            try:
                execute(module)
            finally:
                self._own_under_way -= is_own
            if module.__name__ in self._callbacks:
                self._due.append(module.__name__)
            self._call()

        loader.exec_module = exec_module

    def _call(self) -> None:
        while self._due and not self._own_under_way:
            callback = self._callbacks.pop(self._due.pop(0), None)
            if not self._callbacks and self in sys.meta_path:
                sys.meta_path.remove(self)
            if callback is not None:
                callback()


_watcher = _Watcher()


def call_when_imported(name: str, callback: Callable[[], None]) -> None:
    """
    :arg name: of a module; it need not exist.
    :arg callback: is called once: right now if the module has been imported, or else
        when it has, before the import statement returns (that of the program, if it
        imports a module of this package which imports that one). What it raises comes
        out of that statement.
    """
    if name in sys.modules:
        callback()
    else:
        _watcher.add(name, callback)


