"""
Source text as of creation.

.. autoclass:: SourceFile
.. autofunction:: source_file

When a file is first seen, its size and time stamp are noted (one ``stat``, no
reading); the text is read when somebody asks, and only given if it is still the
text that ran. Text that lives in memory (notebook cells, interactive input) is
kept by reference, so that a later cell of the same name does not replace it.
"""

from __future__ import annotations

import linecache
import os
import threading
import time
import tokenize
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import CodeType


_Stamp = tuple[int, int]

_STARTED = time.time_ns()

# Names that pieces of code share which have nothing to do with each other.
_SHARED_NAMES = frozenset({"<string>", "<stdin>", "<console>"})


def _stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def _absolute(filename: str) -> str:
    try:
        return os.path.abspath(filename)
    except OSError:  # the working directory is gone
        return filename


def _signature(code: CodeType) -> int:
    """A number that tells code from other code, wherever its text differs in more than
    white space and comments at the end of a line."""
    constants = tuple((type(constant), constant) for constant in code.co_consts
                      if not isinstance(constant, type(code)))
    return hash((code.co_name, code.co_firstlineno, code.co_code, code.co_linetable,
                 code.co_names, code.co_varnames, constants))


def _all_signatures(code: CodeType) -> Iterator[int]:
    yield _signature(code)
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from _all_signatures(constant)


def _compiles_to(lines: Sequence[str], filename: str,
                 signatures: Sequence[int]) -> bool:
    """Whether *lines* are the text of all code of these *signatures*."""
    try:
        code = compile("".join(lines), filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return {*signatures} <= {*_all_signatures(code)}


class SourceFile:
    """The text of one file, or of one piece of code without a file.

    .. attribute:: filename
    .. autoattribute:: state
    .. automethod:: line
    .. automethod:: ran
    """

    __slots__ = ("_lines", "_path", "_signatures", "_stamp", "_state", "filename")

    def __init__(self, filename: str, module_globals: Mapping[str, Any] | None) -> None:
        self.filename = filename
        self._lines: Sequence[str] | None = None
        self._state = "unread"
        # Filled for what was written after this program began: the text may not be
        # what ran.
        self._signatures: list[int] = []
        # The working directory may be another one when the text is read.
        self._path = filename if filename.startswith("<") else _absolute(filename)
        self._stamp = None if filename.startswith("<") else _stamp(self._path)
        if self._stamp is None:
            entry = linecache.cache.get(filename)
            if entry is not None and len(entry) == 4:
                self._lines = entry[2]
            elif module_globals is not None:
                # Zip archives and other loaders: the globals lead to the loader.
                linecache.lazycache(filename, dict(module_globals))

    @property
    def is_in_memory(self) -> bool:
        """Whether the text is not a file's."""
        return self._stamp is None

    def ran(self, code: CodeType) -> None:
        """Note that *code* is of this file, where it is not certain that its text is
        what the file holds."""
        if self._stamp is None:
            if self.filename in _SHARED_NAMES and self._lines is not None and (
                    not _compiles_to(self._lines, self.filename, [_signature(code)])):
                self._lines, self._state = (), "missing"
        elif self._stamp[1] > _STARTED:
            signature = _signature(code)
            self._signatures.append(signature)
            if self._state == "read" and not _compiles_to(
                    self._lines or (), self.filename, [signature]):
                self._lines, self._state = (), "changed"

    @property
    def state(self) -> str:
        """``"read"`` (the text that ran), ``"changed"`` (the file has changed since),
        ``"missing"``."""
        self._read()
        return self._state

    def _read(self) -> None:
        if self._state != "unread":
            return
        if self._lines is not None:
            self._state = "read"
        elif self._stamp is not None:
            self._lines, self._state = self._read_unchanged()
        else:
            self._lines, self._state = self._read_from_memory()

    def _read_from_memory(self) -> tuple[Sequence[str], str]:
        if not self.filename.startswith("<"):
            if _stamp(self._path) is not None:
                return (), "changed"
            if self.filename not in linecache.cache:
                # linecache would look for a file of that name all over sys.path.
                return (), "missing"
        lines = linecache.getlines(self.filename)
        return lines, "read" if lines else "missing"

    def _read_unchanged(self) -> tuple[Sequence[str], str]:
        if _stamp(self._path) != self._stamp:
            return (), "changed"
        try:
            with tokenize.open(self._path) as file:
                lines = file.readlines()
        except (OSError, SyntaxError, UnicodeDecodeError):
            return (), "missing"
        # A writer between the two looks would have left another stamp.
        if _stamp(self._path) != self._stamp or (
                self._signatures
                and not _compiles_to(lines, self.filename, self._signatures)):
            return (), "changed"
        return lines, "read"

    def line(self, lineno: int) -> str:
        """
        :arg lineno: a line number, from 1.
        :returns: the line as it was when the code ran, without its end, or ``""``
            if that is not known.
        """
        self._read()
        lines = self._lines
        if lines is None or not 1 <= lineno <= len(lines):
            return ""
        return lines[lineno - 1].rstrip("\r\n")


_files: dict[str, SourceFile] = {}
_lock = threading.RLock()


def _after_fork() -> None:
    global _lock
    # The thread that held it does not exist in the child.
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def source_file(filename: str, module_globals: Mapping[str, Any] | None = None,
                code: CodeType | None = None) -> SourceFile:
    """
    :arg filename: the file name of a code object.
    :arg module_globals: the globals of the code, which lead to its loader.
    :arg code: the code object, if one is at hand.
    :returns: the one :class:`SourceFile` of a file; a new one each time for a name
        like ``<stdin>``, which different texts share.
    """
    if filename.startswith("<") or _is_in_memory(filename):
        source = SourceFile(filename, module_globals)
    else:
        found = _files.get(filename)
        if found is None:
            with _lock:
                found = _files.setdefault(
                    filename, SourceFile(filename, module_globals))
        source = found
    if code is not None:
        source.ran(code)
    return source


def _is_in_memory(filename: str) -> bool:
    # Notebook cells have names like files; their text is registered without a time.
    entry = linecache.cache.get(filename)
    return entry is not None and len(entry) == 4 and entry[1] is None
