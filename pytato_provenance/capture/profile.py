"""
A strategy on ``sys.setprofile``: the location is noted when the host is entered.

.. autoclass:: ProfileStrategy
.. autoclass:: HostFrames
"""

from __future__ import annotations

import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

from pytato_provenance.capture.stack import StackStrategy
from pytato_provenance.diagnostic import CaptureUnavailableError, ProvenanceWarning
from pytato_provenance.frames import is_host_code


if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from pytato_provenance.sites import CreationSite


class HostFrames(dict[str, bool]):
    """By file name: whether code is the host's. Names of generated code do not say."""

    def __missing__(self, filename: str) -> bool:
        answer = self[filename] = is_host_code(filename)
        return answer

    def __call__(self, frame: FrameType) -> bool:
        """
        :returns: whether *frame* runs the host's code.
        """
        filename = frame.f_code.co_filename
        if filename.startswith("<"):
            module = frame.f_globals.get("__name__")
            return is_host_code(filename, module if isinstance(module, str) else None)
        return self[filename]


class _Entries(threading.local):
    """The calls from outside into the host that this thread is in, innermost last."""

    def __init__(self) -> None:
        self.stack: list[tuple[int, CreationSite]] = []


class ProfileStrategy:
    """A profile function sees every call of the program. When one enters the host from
    outside, the user's location is taken, and each array made until that call returns
    has it.

    Every call of the program costs several times what it did. Threads that run already
    are profiled from Python 3.12 on; before that, and wherever an entry into the host
    was not seen, the stack is walked when the array is made.

    :arg max_frames: as for :class:`~pytato_provenance.capture.stack.StackStrategy`.
    """

    name = "profile"
    limit = 0

    def __init__(self, max_frames: int | None = 4) -> None:
        self._walk = StackStrategy(max_frames)
        self._is_host = HostFrames()
        self._entries = _Entries()
        self._active = False
        # One object: a bound method would be another one each time.
        self._profile: Callable[[FrameType, str, Any], None] = self._on_event

    def start(self) -> None:
        """
        :raises ~pytato_provenance.diagnostic.CaptureUnavailableError: if another
            profile function is installed.
        """
        for installed in (sys.getprofile(), threading.getprofile()):
            if installed is not None:
                name = getattr(installed, "__qualname__", type(installed).__qualname__)
                raise CaptureUnavailableError(
                    f"capture strategy 'profile': another profiler is installed "
                    f"({name}); switch it off, or choose 'stack'")
        self._walk.start()
        self._active = True
        if sys.version_info >= (3, 12):
            threading.setprofile_all_threads(self._profile)
        else:
            threading.setprofile(self._profile)
            sys.setprofile(self._profile)

    def stop(self) -> None:
        """Remove the profile function, unless somebody has put theirs in its place."""
        self._active = False
        if sys.getprofile() is self._profile:
            sys.setprofile(None)
        elif sys.getprofile() is not None:
            warnings.warn(
                "another profiler was installed while capture='profile' was on; it is "
                "left alone", ProvenanceWarning, stacklevel=3)
        if threading.getprofile() is self._profile:
            if sys.version_info >= (3, 12) and sys.getprofile() is None:
                threading.setprofile_all_threads(None)
            else:
                threading.setprofile(None)
        self._walk.stop()

    def _on_event(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            is_host = self._is_host
            if is_host(frame):
                back = frame.f_back
                if back is None or not is_host(back):
                    self._enter(frame)
        elif event == "return":
            stack = self._entries.stack
            if stack and stack[-1][0] == id(frame):
                stack.pop()

    def _enter(self, frame: FrameType) -> None:
        if not self._active:
            # A thread that was running when recording was switched off.
            sys.setprofile(None)
            return
        try:
            site = self._walk.lookup(3, self._walk.limit)
            if site is None:
                site = self._walk.miss(3)
        except Exception:
            return  # an error here would be raised in the user's code
        self._entries.stack.append((id(frame), site))

    def lookup(self, skip: int, limit: int, /) -> CreationSite | None:
        """
        :returns: what was noted at the entry into the host, if it was seen.
        """
        # While a debugger or somebody else's profiler is in charge, nothing is seen.
        if sys.getprofile() is not self._profile:
            return None
        stack = self._entries.stack
        return stack[-1][1] if stack else None

    def miss(self, skip: int) -> CreationSite:
        """
        :arg skip: how many frames above the caller the stack begins.
        :returns: the site of the call that is under way, by walking the stack.
        """
        site = self._walk.lookup(skip + 1, self._walk.limit)
        return self._walk.miss(skip + 1) if site is None else site
