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
from collections.abc import Mapping, Sequence
from typing import Any


_Stamp = tuple[int, int]


def _stamp(filename: str) -> _Stamp | None:
    try:
        status = os.stat(filename)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


class SourceFile:
    """The text of one file, or of one piece of code without a file.

    .. attribute:: filename
    .. autoattribute:: state
    .. automethod:: line
    """

    __slots__ = ("_lines", "_stamp", "_state", "filename")

    def __init__(self, filename: str, module_globals: Mapping[str, Any] | None) -> None:
        self.filename = filename
        self._lines: Sequence[str] | None = None
        self._state = "unread"
        self._stamp = None if filename.startswith("<") else _stamp(filename)
        if self._stamp is None:
            entry = linecache.cache.get(filename)
            if entry is not None and len(entry) == 4:
                self._lines = entry[2]
            elif module_globals is not None:
                # Zip archives and other loaders: the globals lead to the loader.
                linecache.lazycache(filename, dict(module_globals))

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
        elif self._stamp is None:
            self._lines = linecache.getlines(self.filename)
            self._state = "read" if self._lines else "missing"
        else:
            self._lines, self._state = self._read_unchanged()

    def _read_unchanged(self) -> tuple[Sequence[str], str]:
        entry = linecache.cache.get(self.filename)
        if entry is not None and len(entry) == 4:
            size, mtime, lines, _ = entry
            if (size, mtime) == (self._stamp[0], self._stamp[1] / 1e9):  # type: ignore[index]
                return lines, "read"
        if _stamp(self.filename) != self._stamp:
            return (), "changed"
        import tokenize
        try:
            with tokenize.open(self.filename) as file:
                lines = file.readlines()
        except (OSError, SyntaxError, UnicodeDecodeError):
            return (), "missing"
        # A writer between the two looks would have left another stamp.
        if _stamp(self.filename) != self._stamp:
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
_lock = threading.Lock()


def source_file(
        filename: str, module_globals: Mapping[str, Any] | None = None) -> SourceFile:
    """
    :arg filename: the file name of a code object.
    :arg module_globals: the globals of the code, which lead to its loader.
    :returns: the one :class:`SourceFile` of a file; a new one each time for a name
        like ``<stdin>``, which different texts share.
    """
    if filename.startswith("<") or _is_in_memory(filename):
        return SourceFile(filename, module_globals)
    try:
        return _files[filename]
    except KeyError:
        with _lock:
            return _files.setdefault(filename, SourceFile(filename, module_globals))


def _is_in_memory(filename: str) -> bool:
    # Notebook cells have names like files; their text is registered without a time.
    entry = linecache.cache.get(filename)
    return entry is not None and len(entry) == 4 and entry[1] is None
