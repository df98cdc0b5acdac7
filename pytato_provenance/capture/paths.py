"""
Tables from call paths to values: the compiled one and the same in Python.

A *call path* is the sequence of ``(code object, f_lasti)`` of the frames on the
current stack, innermost first. Code objects count by identity: their equality
ignores the file they come from, and their hash is structural and not cached.

.. autoclass:: PathTable
.. autoclass:: PurePathTable
.. autofunction:: compiled_path_table
.. autofunction:: compiled_seam
.. autofunction:: make_path_table
.. autofunction:: fastest_lookup
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from sys import _getframe
from types import CodeType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from pytato_provenance.diagnostic import CaptureUnavailableError


if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ValueT = TypeVar("ValueT")

# Of all tables. Readers take no lock: one dictionary look-up is atomic in every build.
# Re-entrant: a collection that starts inside may capture in a finaliser.
_lock = threading.RLock()


def _after_fork() -> None:
    global _lock
    # The thread that held it does not exist in the child.
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class PathTable(Protocol[ValueT]):
    """
    What both tables offer.

    *skip* counts Python frames above the caller of the method: with 0 the path
    starts with the caller itself. If *max_frames* is positive, the path is cut off
    after that many frames. A stack with no frame left after *skip* has the empty path.

    A table owns the code objects in its paths, so that no other code object can take
    their place in memory. It holds no frame. All methods may be called from several
    threads.
    """

    def lookup(self, skip: int, max_frames: int = 0, /) -> ValueT | None:
        """
        With *max_frames*, frames of marked code at the beginning are passed over.

        :returns: the value kept for the current call path.
        """
        ...

    def add(self, skip: int, max_frames: int, value: ValueT, /) -> ValueT:
        """
        Keep *value* for the current call path unless one is kept already.

        Marks have no meaning here: another thread may clear them.

        :returns: the value that is kept, the same one for all threads.
        """
        ...

    def mark(self, code: CodeType, /) -> None:
        """Have :meth:`lookup` with *max_frames* pass over *code* at the beginning."""
        ...

    def clear(self) -> None:
        """Drop all entries and marks."""
        ...

    def __len__(self) -> int: ...

    def __sizeof__(self) -> int:
        """:returns: bytes, without the values and the code objects."""
        ...


class PurePathTable(Generic[ValueT]):
    """The table in Python. About 0.12 microseconds for each frame of a lookup."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, ...], ValueT] = {}
        self._codes: dict[int, CodeType] = {}
        self._marks: dict[int, CodeType] = {}

    def lookup(self, skip: int, max_frames: int = 0, /) -> ValueT | None:
        if skip < 0 or max_frames < 0:
            raise ValueError("lookup: negative number of frames")
        try:
            frame = _getframe(skip + 1)
        except ValueError:
            return self._values.get(())
        # What a frame costs here is what capture costs: no call that can be saved.
        if max_frames:
            return self._lookup_few(frame, max_frames)
        key: list[int] = []
        append = key.append
        while frame is not None:
            append(id(frame.f_code))
            append(frame.f_lasti)
            frame = frame.f_back
        return self._values.get(tuple(key))

    def _lookup_few(self, frame: FrameType | None, max_frames: int) -> ValueT | None:
        marks = self._marks
        while frame is not None and id(frame.f_code) in marks:
            frame = frame.f_back
        key: list[int] = []
        while frame is not None and max_frames:
            key += (id(frame.f_code), frame.f_lasti)
            frame = frame.f_back
            max_frames -= 1
        return self._values.get(tuple(key))

    def written_out(
        self, max_frames: int
    ) -> Callable[[int, int], ValueT | None] | None:
        """
        :returns: what does the same as :meth:`lookup` with this *max_frames* at half
            its cost, for the numbers that the documentation recommends.
        """
        # The dictionaries are never replaced.
        find, marks, lookup = self._values.get, self._marks, self.lookup

        def lookup_one(skip: int, max_frames: int, /) -> ValueT | None:
            frame: Any = _getframe(skip + 1)
            try:
                while (address := id(frame.f_code)) in marks:
                    frame = frame.f_back
            except AttributeError:  # the end of the stack
                return lookup(skip + 1, max_frames)
            return find((address, frame.f_lasti))

        def lookup_four(skip: int, max_frames: int, /) -> ValueT | None:
            one: Any = _getframe(skip + 1)
            try:
                while (address := id(one.f_code)) in marks:
                    one = one.f_back
                two = one.f_back
                three = two.f_back
                four = three.f_back
                return find((
                    address, one.f_lasti, id(two.f_code), two.f_lasti,
                    id(three.f_code), three.f_lasti, id(four.f_code), four.f_lasti))
            except AttributeError:  # the end of the stack
                return lookup(skip + 1, max_frames)

        return {1: lookup_one, 4: lookup_four}.get(max_frames)

    def add(self, skip: int, max_frames: int, value: ValueT, /) -> ValueT:
        if skip < 0 or max_frames < 0:
            raise ValueError("add: negative number of frames")
        try:
            frame = _getframe(skip + 1)
        except ValueError:
            frame = None
        key: list[int] = []
        codes: list[CodeType] = []
        while frame is not None and (not max_frames or len(codes) < max_frames):
            code = frame.f_code
            codes.append(code)
            key += (id(code), frame.f_lasti)
            frame = frame.f_back
        with _lock:
            # The codes first: a reader must not find a path without an owner.
            for code in codes:
                self._codes[id(code)] = code
            return self._values.setdefault(tuple(key), value)

    def mark(self, code: CodeType, /) -> None:
        if not isinstance(code, CodeType):
            raise TypeError("mark: not a code object")
        with _lock:
            self._marks[id(code)] = code

    def clear(self) -> None:
        with _lock:
            # In this order: a reader must not find a path without an owner.
            self._values.clear()
            self._codes.clear()
            self._marks.clear()

    def __len__(self) -> int:
        return len(self._values)

    def __sizeof__(self) -> int:
        with _lock:
            # An address does not fit a small integer; most offsets do.
            address = sys.getsizeof(1 << 47)
            return (
                object.__sizeof__(self)
                + sys.getsizeof(self._values)
                + sys.getsizeof(self._codes)
                + sys.getsizeof(self._marks)
                + sum(
                    sys.getsizeof(key) + len(key) // 2 * address
                    for key in self._values
                )
            )


def _compiled(name: str) -> Any:
    if os.environ.get("PYTATO_PROVENANCE_NO_EXTENSION", "") not in {"", "0"}:
        return None
    try:
        module = importlib.import_module("pytato_provenance.capture._walk")
    except ImportError:
        return None
    return getattr(module, name, None)


def compiled_path_table() -> Callable[[], PathTable[Any]] | None:
    """
    Find the compiled table.

    :returns: its class, or *None* where it was not built, cannot be loaded (in a
        subinterpreter), or is switched off by ``PYTATO_PROVENANCE_NO_EXTENSION=1`` in
        the environment.
    """
    return cast("Callable[[], PathTable[Any]] | None", _compiled("PathTable"))


def compiled_seam() -> Callable[..., Any] | None:
    """
    Find what answers the common case of a new array without a Python frame.

    :returns: a class, whose instances are called in place of the function that they
        are made with, or *None* as for :func:`compiled_path_table`.
    """
    return cast("Callable[..., Any] | None", _compiled("Seam"))


def make_path_table(compiled: bool | None = None) -> PathTable[Any]:
    """
    :arg compiled: *True* or *False* for one of the two tables, *None* for the compiled
        one if there is one.
    :raises ~pytato_provenance.diagnostic.CaptureUnavailableError: if there is none.
    """
    cls = None if compiled is False else compiled_path_table()
    if cls is None and compiled:
        raise CaptureUnavailableError(
            "the compiled part of the capture was not built: install with a C compiler "
            "and Python's headers, or leave out compiled=True"
        )
    return PurePathTable() if cls is None else cls()


def fastest_lookup(
    table: PathTable[ValueT], max_frames: int
) -> Callable[[int, int], ValueT | None]:
    """
    :returns: a function that may be called in place of ``table.lookup`` with this very
        *max_frames*.
    """
    if isinstance(table, PurePathTable):
        return table.written_out(max_frames) or table.lookup
    return table.lookup
