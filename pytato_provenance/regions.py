"""
Named regions of a program, which travel with the arrays that are made in them.

.. autoclass:: region
.. autofunction:: current_region
.. autofunction:: matches
.. autofunction:: check_pattern

Which region is open is a context variable: it belongs to a thread or an async task,
whether anything records there or not.

Context variables do not know generators: what a generator sets stays set while it is
suspended, and is gone when its consumer has left a block of its own meanwhile. A region
that a generator opens by a ``with`` block is therefore kept by the generator's frame,
and is in force for whatever runs beneath that frame.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from pytato_provenance.decoration import decorated
from pytato_provenance.diagnostic import UsageError


if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType

F = TypeVar("F", bound=Callable[..., Any])

ever_opened = False
"""Whether any region was ever opened in this process: until then nothing asks."""


# {{{ what is open

class _Open:
    """An open region.

    .. attribute:: owner

        What opened it; *None* once that has left it.

    .. attribute:: path

        ``""`` in what is excluded.

    .. attribute:: within

        The innermost region beneath which it was opened that a generator keeps.
    """

    __slots__ = ("outer", "owner", "path", "within")

    def __init__(self, owner: region | None, path: str, outer: _Open | None,
                 within: _Kept | None) -> None:
        self.owner = owner
        self.path = path
        self.outer = outer
        self.within = within


class _Kept(_Open):
    """One that a generator keeps."""

    __slots__ = ("code",)

    def __init__(self, owner: region, path: str, outer: _Open | None,
                 code: CodeType) -> None:
        super().__init__(owner, path, outer, None)
        self.code = code


_innermost: ContextVar[_Open | None] = ContextVar(
    "pytato_provenance_region", default=None)
_get_innermost = _innermost.get
_set_innermost = _innermost.set

# By the identity of the frame, which lives as long as the block in it is open: no
# frame is kept. The code tells a frame apart from a later one in the same place, for
# blocks that are never left.
_in_generators: dict[int, _Kept] = {}

_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_CONTEXTLIB = vars(contextlib)


def _kept_by_generator(frame: FrameType | None) -> _Kept | None:
    """The innermost region that a generator beneath which *frame* runs keeps."""
    while frame is not None:
        found = _in_generators.get(id(frame))
        if found is not None and found.code is frame.f_code:
            return found
        frame = frame.f_back
    return None


def current_region() -> str | None:
    """
    :returns: the path of the innermost region that is open here, or *None*.
    """
    innermost = _get_innermost()
    if _in_generators:
        kept = _kept_by_generator(sys._getframe(1))
        if kept is not None and (innermost is None or innermost.within is not kept):
            innermost = kept
    return None if innermost is None else innermost.path or None


def _generator_of_block(frame: FrameType | None) -> FrameType | None:
    """The generator's frame in which the ``with`` statement stands, if one does.

    A function under :func:`contextlib.contextmanager` is a generator, but opens on
    behalf of the block that it serves.
    """
    while frame is not None:
        if frame.f_globals is not _CONTEXTLIB:
            if not frame.f_code.co_flags & _GENERATOR:
                return None
            caller = frame.f_back
            if caller is None or caller.f_globals is not _CONTEXTLIB:
                return frame
        frame = frame.f_back
    return None

# }}}


class region:  # noqa: N801
    """A named part of a program. Arrays that are made in it, and recorded, carry its
    name; so does everything that is compiled for them, however late
    (see :func:`~pytato_provenance.compile_log`).

    A context manager, which can be entered again, nested and shared between threads,
    and a decorator for functions, coroutine functions and generator functions of both
    kinds. Regions nest to paths: ``region("flux")`` within ``region("rhs")`` is
    ``rhs/flux``.

    What a generator yields is not made in its regions, and its consumer's arrays are
    not either; functions under :func:`contextlib.contextmanager` open for the block
    that they serve. Tasks that are started in a region are in it, threads are not.

    :arg name: not empty; ``/`` separates the parts of a path, none of which may be
        empty.
    :arg record: *False* excludes: what is made inside belongs to no region, neither to
        this one, nor to those around it, nor to those opened inside. For set-up.
    :raises ~pytato_provenance.diagnostic.UsageError: for a bad name.
    """

    __slots__ = ("_name", "_record")

    def __init__(self, name: str, *, record: bool = True) -> None:
        if not isinstance(name, str):
            raise UsageError(
                f"a region's name is a string, not '{type(name).__name__}'")
        if not name.strip() or (
                "/" in name and not all(map(str.strip, name.split("/")))):
            raise UsageError(
                f"region({name!r}): a name, or several separated by '/', none empty")
        self._name = name
        self._record = record

    def __enter__(self) -> region:
        global ever_opened
        ever_opened = True
        frame = sys._getframe(1)
        if (_in_generators or frame.f_code.co_flags & _GENERATOR
                or frame.f_globals is _CONTEXTLIB):
            self._open_beneath(frame, _generator_of_block(frame))
            return self
        outer = _get_innermost()
        path = self._name if outer is None and self._record else self._path(outer)
        _set_innermost(_Open(self, path, outer, None))
        return self

    def _open_beneath(self, frame: FrameType, block: FrameType | None) -> None:
        """
        :arg block: the frame of the generator that is to keep the region, if one is.
        """
        outer = _get_innermost()
        within = _kept_by_generator(frame) if _in_generators else None
        path = self._path(_innermost_of(outer, within))
        if block is None:
            _set_innermost(_Open(self, path, outer, within))
        else:
            _in_generators[id(block)] = _Kept(
                self, path, _in_generators.get(id(block)), block.f_code)

    def _path(self, outer: _Open | None) -> str:
        if not self._record:
            return ""
        if outer is None:
            return self._name
        return outer.path and f"{outer.path}/{self._name}"

    def __exit__(self, exc_type: type[BaseException] | None,
                 exc: BaseException | None, tb: TracebackType | None) -> None:
        innermost = _get_innermost()
        if innermost is not None and innermost.owner is self and not _in_generators:
            outer = innermost.outer
            if outer is None or outer.owner is not None:
                _set_innermost(outer)
                return
        frame = sys._getframe(1)
        if frame.f_code.co_flags & _GENERATOR or frame.f_globals is _CONTEXTLIB:
            block = _generator_of_block(frame)
            if block is not None and _leave_generator(id(block), self):
                return
        if not _leave(self):
            # A stack of context managers that was handed on.
            any(_leave_generator(key, self) for key in tuple(_in_generators))

    def __call__(self, function: F) -> F:
        if not callable(function) or isinstance(function, type):
            raise UsageError(
                f"region({self._name!r}) decorates functions, not "
                f"'{type(function).__name__}'")
        return decorated(function, lambda: _Step(self._name, record=self._record))

    def __repr__(self) -> str:
        more = "" if self._record else ", record=False"
        return f"region({self._name!r}{more})"


def _innermost_of(innermost: _Open | None, kept: _Kept | None) -> _Open | None:
    if kept is None or (innermost is not None and innermost.within is kept):
        return innermost
    return kept


def _without(innermost: _Open | None, owner: region) -> tuple[_Open | None, bool]:
    """What is innermost when *owner* has left the innermost region that it opened,
    whatever was opened since; and whether it had opened one."""
    found = innermost
    while found is not None and found.owner is not owner:
        found = found.outer
    if found is None:
        return innermost, False
    found.owner = None
    while innermost is not None and innermost.owner is None:
        innermost = innermost.outer
    return innermost, True


def _leave(owner: region) -> bool:
    innermost, was_open = _without(_get_innermost(), owner)
    if was_open:
        _set_innermost(innermost)
    return was_open


def _leave_generator(key: int, owner: region) -> bool:
    kept, was_open = _without(_in_generators.get(key), owner)
    if was_open:
        if isinstance(kept, _Kept):
            _in_generators[key] = kept
        else:
            del _in_generators[key]
    return was_open


class _Step(region):
    """For one call of a decorated function, or one step of a decorated generator: the
    block is never open while a generator is suspended."""

    __slots__ = ()

    def __enter__(self) -> region:
        global ever_opened
        ever_opened = True
        self._open_beneath(sys._getframe(1), None)
        return self

    def __exit__(self, exc_type: type[BaseException] | None,
                 exc: BaseException | None, tb: TracebackType | None) -> None:
        _leave(self)


# {{{ patterns

def check_pattern(pattern: str) -> str:
    """
    :returns: *pattern*.
    :raises ~pytato_provenance.diagnostic.UsageError: if it cannot select a region.
    """
    if not isinstance(pattern, str) or not pattern:
        raise UsageError(f"region={pattern!r}: pass the path of a region, such as "
                         "'rhs/flux', or a pattern, such as 'rhs*'")
    return pattern


def matches(path: str, pattern: str) -> bool:
    """
    :arg path: of a region.
    :arg pattern: a path, or a pattern with ``*``, ``?``, ``[...]`` as in
        :mod:`fnmatch`.
    :returns: whether the region is selected, or one around it is.
    """
    end = len(path)
    while end >= 0:
        around = path[:end]
        if around == pattern or fnmatchcase(around, pattern):
            return True
        end = path.rfind("/", 0, end)
    return False

# }}}
