"""
One call in the stack that led to an array.

.. autoclass:: Frame
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from pytato_provenance.frames import is_user_code, registry_version


if TYPE_CHECKING:
    from types import CodeType

    from pytato_provenance.source import SourceFile

PlainFrame = tuple[str, int, "int | None", "int | None", "int | None", str,
                   "str | None", str]


class Frame:
    """One call in the stack that led to an array.

    .. attribute:: filename
    .. attribute:: lineno

        From 1; 0 never occurs: code without line numbers has its first line.

    .. attribute:: end_lineno
    .. attribute:: qualname

        The qualified name of the function (before Python 3.11, its plain name).

    .. attribute:: module

        The ``__name__`` of the module, or *None*.

    .. autoattribute:: colno
    .. autoattribute:: end_colno
    .. autoattribute:: line
    .. autoattribute:: source_state
    .. autoattribute:: is_user
    """

    __slots__ = ("_columns", "_source", "_user", "end_lineno", "filename", "lineno",
                 "module", "qualname")

    _columns: tuple[int | None, int | None]
    _source: SourceFile | str

    def __init__(self, filename: str, lineno: int, end_lineno: int | None,
                 columns: tuple[int | None, int | None], qualname: str,
                 module: str | None, source: SourceFile | str) -> None:
        self.filename = filename
        self.lineno = lineno
        self.end_lineno = end_lineno
        self.qualname = qualname
        self.module = module
        self._columns = columns
        self._source = source
        self._user = (-1, False)

    @property
    def line(self) -> str:
        """The source line as it was when the code ran, ``""`` where unknown."""
        source = self._source
        return source if isinstance(source, str) else source.line(self.lineno)

    @property
    def source_state(self) -> str:
        """``"read"``, or ``"changed"`` (the file has changed since), ``"missing"``."""
        source = self._source
        if isinstance(source, str):
            return "read" if source else "missing"
        return source.state

    @property
    def colno(self) -> int | None:
        """The first column of the call, from 0, in characters of :attr:`line`; *None*
        before Python 3.11 and under ``-X no_debug_ranges``."""
        return self._characters(self._columns[0], self.line)

    @property
    def end_colno(self) -> int | None:
        """The column after the last one of the call, on line :attr:`end_lineno`."""
        if self.end_lineno in (None, self.lineno) or isinstance(self._source, str):
            text = self.line
        else:
            text = self._source.line(self.end_lineno or self.lineno)
        return self._characters(self._columns[1], text)

    @staticmethod
    def _characters(offset: int | None, text: str) -> int | None:
        # The compiler counts bytes of UTF-8.
        if offset is None or text.isascii():
            return offset
        return len(text.encode(errors="surrogatepass")[:offset].decode(errors="ignore"))

    @property
    def is_user(self) -> bool:
        """Whether the frame is the user's (see :mod:`pytato_provenance.frames`)."""
        version, answer = self._user
        if version != registry_version():
            version = registry_version()
            answer = is_user_code(self.filename, self.module)
            self._user = (version, answer)
        return answer

    @property
    def is_in_memory(self) -> bool:
        """Whether the source is no file: the name alone does not say which text it
        is."""
        if isinstance(self._source, str):
            return self.filename.startswith("<")
        return self._source.is_in_memory

    def plain_position(self) -> tuple[Any, ...]:
        """The frame as plain data, without the source line."""
        return (self.filename, self.lineno, self.end_lineno, *self._columns,
                self.qualname, self.module)

    def plain(self) -> PlainFrame:
        """The frame as plain data, the source line included."""
        return (*self.plain_position(), self.line)

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain_frame, (self.plain(),)

    def __str__(self) -> str:
        return f"{os.path.basename(self.filename)}:{self.lineno} in {self.qualname}"

    def __repr__(self) -> str:
        return f"<Frame {self}>"


def _plain_frame(plain: PlainFrame) -> Frame:
    (filename, lineno, end_lineno, colno, end_colno, qualname, module, line) = plain
    return Frame(filename, lineno, end_lineno, (colno, end_colno), qualname, module,
                 line)


def resolve_frame(code: CodeType, lasti: int, module: str | None,
                  source: SourceFile) -> Frame:
    """
    :arg lasti: the offset of the instruction that made the call.
    :returns: the frame of a call in *code*.
    """
    lineno, end_lineno, *columns = position(code, lasti)
    if lineno is None:
        lineno = code.co_firstlineno or 1
    return Frame(code.co_filename, lineno, end_lineno, (columns[0], columns[1]),
                 getattr(code, "co_qualname", code.co_name), module, source)


Position = tuple["int | None", "int | None", "int | None", "int | None"]


def position(code: CodeType, lasti: int) -> Position:
    """
    :returns: first line, last line, first and last column (byte offsets) of the
        instruction at *lasti*.
    """
    if sys.version_info >= (3, 11):
        from itertools import islice
        return next(islice(code.co_positions(), max(lasti, 0) // 2, None),
                    (None, None, None, None))
    # Before its first instruction, as a trace function sees it, a call is on the line
    # of the definition.
    lineno = code.co_firstlineno if lasti < 0 else None
    for start, end, line in code.co_lines():
        if start <= lasti < end:
            lineno = line
    return lineno, lineno, None, None
