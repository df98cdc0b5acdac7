"""
The interned call tree behind creation sites.

.. autoclass:: CallNode
.. autoclass:: CodeRecord
.. autofunction:: intern_stack
.. autofunction:: end_stacks_at
.. autofunction:: forget_dead_code

Stored from the root down: a new site costs one node, however deep the stack.
Code objects are keyed by identity and held, so that an identity cannot come to
mean another code object (the equality of code objects ignores the file name); those
that nothing but this tree keeps alive are dropped by :func:`forget_dead_code`.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from pytato_provenance.call_frames import Frame, Position, position, resolve_frame
from pytato_provenance.frames import call_when_registry_changes, is_host_code
from pytato_provenance.sites import UNKNOWN, CreationSite
from pytato_provenance.source import source_file


if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


# Specialised instructions move f_lasti into their inline cache before 3.13.
_LASTI_IS_STABLE = sys.version_info >= (3, 13) or sys.version_info < (3, 11)

_SWEEP_AFTER = 1024
"""New code objects between two looks for dead ones: bounds what exec leaks."""


class CodeRecord:
    """What is remembered of one code object, shared by all calls in it."""

    __slots__ = ("_by_position", "_canonical", "code", "frames", "is_host", "module",
                 "source")

    def __init__(self, frame: FrameType) -> None:
        code = frame.f_code
        module = frame.f_globals.get("__name__")
        self.code = code
        self.module = module if isinstance(module, str) else None
        self.is_host = is_host_code(code.co_filename, self.module)
        self.source = source_file(code.co_filename, frame.f_globals, code)
        self.frames: dict[int, Frame] = {}
        self._canonical: dict[int, int] = {}
        self._by_position: dict[Position, int] = {}

    def canonical(self, lasti: int) -> int:
        if _LASTI_IS_STABLE:
            return lasti
        found = self._canonical.get(lasti)
        if found is None:
            # Looking up a position costs tens of microseconds.
            found = self._canonical[lasti] = self._by_position.setdefault(
                position(self.code, lasti), lasti)
        return found

    def frame(self, lasti: int) -> Frame:
        frame = self.frames.get(lasti)
        if frame is None:
            frame = self.frames[lasti] = resolve_frame(
                self.code, lasti, self.module, self.source)
        return frame


class CallNode:
    """A call, and by its parents the whole stack that led to it."""

    __slots__ = ("_sites", "children", "lasti", "parent", "record")

    def __init__(self, parent: CallNode | None, record: CodeRecord | None,
                 lasti: int) -> None:
        self.parent = parent
        self.record = record
        self.lasti = lasti
        self.children: dict[tuple[int, int], CallNode] = {}
        self._sites: dict[str | None, CreationSite] = {}

    def child(self, record: CodeRecord, lasti: int) -> CallNode:
        key = (id(record.code), lasti)
        node = self.children.get(key)
        if node is None:
            node = self.children[key] = CallNode(self, record, lasti)
        return node

    def frame(self) -> Frame:
        assert self.record is not None
        return self.record.frame(self.lasti)

    def site(self, region: str | None = None) -> CreationSite:
        site = self._sites.get(region)
        if site is None:
            site = self._sites.setdefault(
                region, CreationSite(path=self, region=region))
        return site


_root = CallNode(None, None, 0)
_records: dict[int, CodeRecord] = {}
_next_sweep = _SWEEP_AFTER
_lock = threading.RLock()
_caches: list[Callable[[], None]] = []


def clear_when_stale(clear: Callable[[], None]) -> None:
    """Have *clear* called whenever identities of code objects may become invalid, or
    code may have changed hands between the user and a library: for tables that map
    stacks to sites."""
    with _lock:
        _caches.append(clear)


def no_longer_clear(clear: Callable[[], None]) -> None:
    """Undo :func:`clear_when_stale`."""
    with _lock:
        if clear in _caches:
            _caches.remove(clear)


def _clear_caches() -> None:
    with _lock:
        for clear in _caches:
            clear()


call_when_registry_changes(_clear_caches)


def _after_fork() -> None:
    global _lock
    # The thread that held it does not exist in the child.
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _record_of(frame: FrameType) -> CodeRecord:
    code = frame.f_code
    record = _records.get(id(code))
    if record is None:
        record = _records[id(code)] = CodeRecord(frame)
    return record


_launchers: dict[int, CodeType] = {}


def end_stacks_at(code: CodeType) -> None:
    """Let no site have frames of *code*, or of what called it: it runs the program and
    is not part of it."""
    _launchers[id(code)] = code


def intern_stack(frame: FrameType | None, max_frames: int | None = None
                 ) -> CreationSite:
    """
    :arg frame: the innermost frame, which may be the host's: the uninterrupted run of
        host frames in which it lies is not part of the site.
    :arg max_frames: how many frames to look at, from *frame* on, *None* for all.
    :returns: the one site of this stack. No frame is kept.
    """
    with _lock:
        if len(_records) >= _next_sweep:
            forget_dead_code()
        stack: list[tuple[CodeRecord, int]] = []
        while (frame is not None and max_frames != 0
               and id(frame.f_code) not in _launchers):
            record = _record_of(frame)
            if stack or not record.is_host:
                stack.append((record, frame.f_lasti))
            frame = frame.f_back
            if max_frames is not None:
                max_frames -= 1
        if not stack:
            return UNKNOWN
        node = _root
        for record, lasti in reversed(stack):
            node = node.child(record, record.canonical(lasti))
        return node.site()


def forget_dead_code() -> int:
    """Drop code objects that nothing else keeps alive, and the calls in them. Sites
    that arrays still carry stay whole.

    :returns: how many code objects were dropped.
    """
    global _next_sweep
    with _lock:
        _clear_caches()
        # Two references: the record's and the argument's.
        dead = [key for key, record in _records.items()
                if sys.getrefcount(record.code) <= 2]
        doomed = {id(_records[key].code) for key in dead}
        if doomed:
            pending = [_root]
            while pending:
                node = pending.pop()
                for key in [key for key in node.children if key[0] in doomed]:
                    _dismantle(node.children.pop(key))
                pending.extend(node.children.values())
            for key in dead:
                del _records[key]
        _next_sweep = max(_SWEEP_AFTER, len(_records) + _SWEEP_AFTER)
        return len(dead)


def _dismantle(node: CallNode) -> None:
    """Break the cycles of dropped calls, so that they need no garbage collection. Sites
    that somebody has keep what leads to the root."""
    pending = [node]
    while pending:
        node = pending.pop()
        pending.extend(node.children.values())
        node.children.clear()
        for site in node._sites.values():
            site.tag_set = None
        node._sites.clear()


def code_is_host(code: CodeType) -> bool:
    """Whether *code* was seen to be the host's (cheap; for strategies' hot paths)."""
    record = _records.get(id(code))
    return record is not None and record.is_host
