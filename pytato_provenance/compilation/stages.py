"""
The stage that is under way, and who is told when it has ended.

.. autoclass:: Stage
.. autofunction:: current_stage
.. autofunction:: note
.. autofunction:: paused
.. autofunction:: transform_stage

Imports no host.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING

from pytato_provenance.compilation.events import NOTHING_KNOWN, CompileEvent, Contents


if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType


Listener = "Callable[[CompileEvent], None]"

# Replaced, never changed: who is telling need not lock.
_listeners: tuple[Callable[[CompileEvent], None], ...] = ()
_lock = threading.RLock()


def listen(listener: Callable[[CompileEvent], None]) -> None:
    """Tell *listener* of every event from now on, of every thread."""
    global _listeners
    with _lock:
        _listeners = (*_listeners, listener)


def no_longer_listen(listener: Callable[[CompileEvent], None]) -> None:
    """Undo :func:`listen`."""
    global _listeners
    with _lock:
        _listeners = tuple(item for item in _listeners if item != listener)


def anybody_listens() -> bool:
    """
    :returns: whether anybody would be told here and now.
    """
    return bool(_listeners) and not _paused.get()


def note(event: CompileEvent) -> None:
    """Tell of *event*, which lies within the stage that is under way, if one is."""
    outer = _current.get()
    if outer is not None:
        outer.within += event.duration
    for listener in _listeners:
        listener(event)


class Stage:
    """A stage that is under way in this thread or task: a context manager.

    .. attribute:: contents
    .. attribute:: program
    .. attribute:: kernel
    .. attribute:: instructions
    .. attribute:: origin

        As for :class:`~pytato_provenance.compilation.events.CompileEvent`; to be set
        while it is open.

    .. attribute:: event

        What was told when it had ended.

    .. automethod:: looked_up
    .. automethod:: found_by
    .. autoattribute:: was_found
    """

    def __init__(self, name: str, kernel: str = "", *,
                 contents: Contents = NOTHING_KNOWN, program: int | None = None
                 ) -> None:
        self.name = name
        self.kernel = kernel
        self.contents = contents
        self.program = program
        self.instructions: int | None = None
        self.origin: str | None = None
        self.outer: Stage | None = None
        self.event: CompileEvent | None = None
        self.start = 0.0
        self.within = 0.0
        self._lookups: list[tuple[object, str]] = []

    def __enter__(self) -> Stage:
        self.outer = _current.get()
        _current.set(self)
        self.start = perf_counter()
        return self

    def __exit__(self, exc_type: type[BaseException] | None,
                 exc: BaseException | None, tb: TracebackType | None) -> None:
        duration = perf_counter() - self.start
        _current.set(self.outer)
        self.event = CompileEvent(
            self.name, self.kernel, self.origin or self.found_by(), self.start,
            duration, max(0.0, duration - self.within), self.contents, self.program,
            self.instructions, error=None if exc_type is None else exc_type.__name__)
        note(self.event)

    def looked_up(self, cache: object, origin: str) -> None:
        """Something was looked up in *cache*.

        :arg origin: where it was found; ``"fresh"`` if it was not.
        """
        self._lookups.append((cache, origin))

    @property
    def was_found(self) -> bool:
        """Whether the first look-up spared the stage everything else."""
        return len(self._lookups) == 1 and self._lookups[0][1] != "fresh"

    def found_by(self) -> str:
        """
        :returns: the origin of the result. Of several caches the last one decides: who
            does not find the whole in one looks for parts in the next.
        """
        if not self._lookups:
            return "fresh"
        last = self._lookups[-1][0]
        origins = {origin for cache, origin in self._lookups if cache is last}
        return next(origin for origin in ("fresh", "unknown", "disk", "memory")
                    if origin in origins)


_current: ContextVar[Stage | None] = ContextVar(
    "pytato_provenance_stage", default=None)
_paused: ContextVar[bool] = ContextVar("pytato_provenance_stages_paused", default=False)


def current_stage() -> Stage | None:
    """
    :returns: the innermost stage of this thread or task.
    """
    return _current.get()


@contextmanager
def paused() -> Generator[None]:
    """What runs within is nobody's compilation, such as a text that is made for a
    report."""
    token = _paused.set(True)
    try:
        yield
    finally:
        _paused.reset(token)


@contextmanager
def transform_stage(name: str, sites: Callable[[], Contents]) -> Generator[None]:
    """A transform of arrays runs within.

    :arg name: of the transform.
    :arg sites: gives what it is applied to; not asked unless somebody listens.
    """
    if not anybody_listens():
        yield
        return
    with Stage("transform", name, contents=sites()):
        yield
