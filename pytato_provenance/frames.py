"""
Which code is the user's, decided by where it really lies.

.. autofunction:: register_library
.. autofunction:: register_user
.. autofunction:: is_user_code
.. autofunction:: is_user_frame
.. autofunction:: is_host_code

Inclusion (:func:`register_user`) beats exclusion (:func:`register_library`).
A library is a place: a directory with its separator attached, or one file; a
user's package of similar name, or in a folder of that name, stays the user's.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import sysconfig
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from pytato_provenance.diagnostic import UsageError


if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


# What runs beneath a user-facing call of the host: never part of a site.
_HOST_MODULES = ("pytato", "pytools", "pymbolic", "loopy", "constantdict",
                 "dataclasses", "functools", "contextlib", "pytato_provenance")

_LIBRARY_MODULES = (*_HOST_MODULES, "arraycontext", "numpy", "pyopencl", "islpy",
                    "mpi4py", "pytest", "_pytest", "pluggy", "IPython", "ipykernel",
                    "traitlets", "tornado", "jax", "jaxlib")

# Generated code that has no file: by the beginning of its name.
_LIBRARY_PSEUDO_FILES = ("<frozen ", "<container arithmetic", "<dataclass augment",
                         "<generated code", "<__array_function__", "<attrs generated",
                         "<module code", "<mapper optimizer")

Location = tuple[str, bool]
"""A place: a path, and whether everything beneath it is meant."""


def _normalized(path: str) -> str:
    # Names of code objects may be anything: NUL, halves of surrogate pairs.
    with contextlib.suppress(OSError, ValueError):
        path = os.path.realpath(path)
    return os.path.normcase(path)


@cache
def _real(filename: str) -> str:
    return _normalized(filename)


def _module_locations(name: str) -> tuple[Location, ...]:
    """Where module or package *name* lies, without importing it if possible; several
    places for a namespace package."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if spec is None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = None
    if spec is not None:
        if spec.submodule_search_locations:
            return tuple((path, True) for path in spec.submodule_search_locations)
        if spec.has_location and spec.origin:
            return ((spec.origin, False),)
    filename = getattr(module, "__file__", None)
    return ((filename, False),) if filename else ()


def _stdlib_locations() -> tuple[Location, ...]:
    paths = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"),
             os.path.dirname(os.__file__)}
    return tuple((path, True) for path in paths if path)


def _site_packages() -> tuple[str, ...]:
    names = ("site-packages", "dist-packages")
    return tuple(_normalized(os.path.join(path, name)) + os.sep
                 for path, _ in _stdlib_locations() for name in names)


class _Places:
    """A set of places; knows which files lie in one of them."""

    def __init__(self) -> None:
        self.directories: tuple[str, ...] = ()
        self.files: frozenset[str] = frozenset()

    def add(self, location: Location) -> None:
        path, beneath = location
        if beneath:
            # The separator belongs to the place: "pytato" is not "pytato_mine".
            prefix = _normalized(path).rstrip(os.sep) + os.sep
            self.directories = tuple({*self.directories, prefix})
        else:
            self.files = self.files | {_normalized(path)}

    def __contains__(self, filename: str) -> bool:
        return filename in self.files or filename.startswith(self.directories)


class _Registry:
    def __init__(self) -> None:
        self.version = 0
        self.listeners: list[Callable[[], None]] = []
        self._host = _Places()
        self._libraries = _Places()
        self._standard_library = _Places()
        self._users = _Places()
        self._site_packages = _site_packages()
        # What was found of the well-known libraries. One may be installed, or turn out
        # to be imported from elsewhere, later.
        self._found: dict[str, tuple[Location, ...]] = {}
        for location in _stdlib_locations():
            self._standard_library.add(location)
        for name in _LIBRARY_MODULES:
            self._find(name)

    def _find(self, name: str) -> None:
        """Find a well-known library, if there is news of it."""
        locations = _module_locations(name)
        if locations and locations != self._found.get(name):
            self._found[name] = locations
            for location in locations:
                self._libraries.add(location)
                if name in _HOST_MODULES:
                    self._host.add(location)

    def register(self, what: ModuleType | str | os.PathLike[str], *,
                 user: bool) -> None:
        for location in _locate(what):
            (self._users if user else self._libraries).add(location)
        self.version += 1
        for listener in self.listeners:
            listener()

    def is_host(self, filename: str, module: str | None) -> bool:
        top = (module or "").partition(".")[0]
        if filename.startswith("<"):
            return (filename.startswith(_LIBRARY_PSEUDO_FILES[2:])
                    or top in _HOST_MODULES)
        path = _real(filename)
        if path not in self._host and top in _HOST_MODULES:
            self._find(top)
        return path in self._host

    def is_user(self, filename: str, module: str | None) -> bool:
        top = (module or "").partition(".")[0]
        if filename.startswith("<"):
            if filename.startswith(_LIBRARY_PSEUDO_FILES):
                return False
            # Code that a library generated carries that library's globals.
            return top not in _LIBRARY_MODULES and not self._is_library_module(module)
        path = _real(filename)
        if path in self._users:
            return True
        if path not in self._libraries and top in _LIBRARY_MODULES:
            self._find(top)
        if path in self._libraries:
            return False
        return (path not in self._standard_library
                or path.startswith(self._site_packages))

    def _is_library_module(self, module: str | None) -> bool:
        if not module or module == "__main__":
            return False
        locations = _module_locations(module)
        if not locations or locations[0][0].startswith("<"):
            return module.partition(".")[0] in sys.stdlib_module_names
        path, beneath = locations[0]
        return not self.is_user(
            os.path.join(path, "__init__.py") if beneath else path, None)


def _locate(what: ModuleType | str | os.PathLike[str]) -> tuple[Location, ...]:
    if isinstance(what, ModuleType):
        what = what.__name__
    text = os.fspath(what) if isinstance(what, str | os.PathLike) else None
    if not isinstance(text, str):
        raise UsageError(f"pass a module, its dotted name or a path, not {what!r}")
    if os.sep in text or text.endswith(".py") or text in (os.curdir, os.pardir):
        if not os.path.exists(text):
            raise UsageError(f"no such file or directory: '{text}'; pass a path that "
                             "exists or the dotted name of a module")
        return ((text, os.path.isdir(text)),)
    # A module before a directory: many a checkout is called like what is in it.
    locations = _module_locations(text) if text else ()
    if not locations and text and os.path.exists(text):
        return ((text, os.path.isdir(text)),)
    if not locations:
        raise UsageError(f"no module named '{text}' is installed; pass a dotted module "
                         "name that can be imported, or a path")
    return locations


_registry = _Registry()


def register_library(module_or_path: ModuleType | str | os.PathLike[str]) -> None:
    """Treat the code of a module, package, file or directory as a library's.

    Sites taken before are shown differently from now on: filtering happens when a
    site is read.

    :arg module_or_path: a module, its dotted name (it need not be imported), or a
        path. A package and a directory stand for everything beneath them.
    :raises ~pytato_provenance.diagnostic.UsageError: if there is no such thing.
    """
    _registry.register(module_or_path, user=False)


def register_user(module_or_path: ModuleType | str | os.PathLike[str]) -> None:
    """Treat the code of a module, package, file or directory as the user's, even
    within what :func:`register_library` names.

    :arg module_or_path: as for :func:`register_library`.
    :raises ~pytato_provenance.diagnostic.UsageError: if there is no such thing.
    """
    _registry.register(module_or_path, user=True)


def registry_version() -> int:
    """A number that changes whenever the registry does: a key for caches."""
    return _registry.version


def call_when_registry_changes(listener: Callable[[], None]) -> None:
    """Have *listener* called after each change of the registry."""
    _registry.listeners.append(listener)


def is_user_code(filename: str, module: str | None = None) -> bool:
    """
    :arg filename: the file name of a code object.
    :arg module: the ``__name__`` in the code's globals, where known; decides for
        generated code, which has no file.
    :returns: whether the code is the user's rather than a library's.
    """
    return _registry.is_user(filename, module)


def is_user_frame(frame: FrameType) -> bool:
    """
    :arg frame: a frame of the running program.
    :returns: whether its code is the user's.
    """
    module = frame.f_globals.get("__name__")
    return is_user_code(frame.f_code.co_filename,
                        module if isinstance(module, str) else None)


def is_host_code(filename: str, module: str | None = None) -> bool:
    """
    :arg filename: as in :func:`is_user_code`.
    :arg module: as in :func:`is_user_code`.
    :returns: whether the code belongs to what runs beneath a user-facing call of
        pytato: pytato itself and what it is made of.
    """
    return _registry.is_host(filename, module)
