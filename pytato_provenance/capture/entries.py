"""
What strategies share that take the location when the host is entered.

.. autoclass:: EntryStrategy
.. autoclass:: HostFrames
"""

from __future__ import annotations

import os
import threading
from sys import _getframe
from typing import TYPE_CHECKING

from pytato_provenance.capture.stack import StackStrategy
from pytato_provenance.frames import is_host_code


if TYPE_CHECKING:
    from types import FrameType

    from pytato_provenance.sites import CreationSite


_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep


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


class _Latest(threading.local):
    """The latest entry into the host in this thread: the identities of its frame and of
    its caller's code, the caller's position, the site. Always replaced as a whole: a
    signal may be handled between any two reads."""

    entry: tuple[int, int, int, CreationSite] | None = None


class EntryStrategy:
    """The site is taken when the host is entered from outside, for all arrays that are
    made until that call returns.

    What was noted is used only if it belongs to the very call that the array is made
    in, which a look at the host's own frames tells. Otherwise (a signal was handled, a
    debugger is in charge, the host called back) the stack is walked.

    :arg max_frames: as for :class:`~pytato_provenance.capture.stack.StackStrategy`.
    """

    limit = 0

    def __init__(self, max_frames: int | None = 4) -> None:
        self._walk = StackStrategy(max_frames)
        self._is_host = HostFrames()
        self._latest = _Latest()

    def start(self) -> None:
        """Get ready to note entries."""
        self._walk.start()

    def stop(self) -> None:
        """Forget what was noted; the sites stay."""
        self._walk.stop()
        self._latest = _Latest()

    def note_entry(self, frame: FrameType, caller: FrameType) -> None:
        """
        To be called by a callback: the frames beneath *frame* are that callback's and
        this method's.

        :arg frame: of a function of the host that has just started.
        :arg caller: its caller, which is not the host's.
        """
        if frame.f_code.co_filename.startswith(_OURS):
            # Not a user's call of the host. And after a fork our own hooks run before
            # the lock that noting takes is anybody's again.
            return
        try:
            site = self._walk.lookup(3, self._walk.limit)
            if site is None:
                site = self._walk.miss(3)
        except Exception:
            return  # an error here would be raised in the user's code
        self._latest.entry = (id(frame), id(caller.f_code), caller.f_lasti, site)

    def note_return(self, frame: FrameType) -> None:
        """
        :arg frame: of a function that returns: another may get its identity.
        """
        latest = self._latest
        entry = latest.entry
        if entry is not None and entry[0] == id(frame):
            latest.entry = None

    def lookup(self, skip: int, limit: int, /) -> CreationSite | None:
        """
        :returns: what was noted at the entry of the call that is under way, if it was.
        """
        entry = self._latest.entry
        if entry is None:
            return None
        frame = _getframe(skip + 1)
        is_host = self._is_host
        caller = frame.f_back
        while caller is not None and is_host(caller):
            frame = caller
            caller = frame.f_back
        if (entry[0] == id(frame) and caller is not None
                and entry[2] == caller.f_lasti and entry[1] == id(caller.f_code)):
            return entry[3]
        return None

    def miss(self, skip: int) -> CreationSite:
        """
        :arg skip: how many frames above the caller the stack begins.
        :returns: the site of the call that is under way, by walking the stack.
        """
        site = self._walk.lookup(skip + 1, self._walk.limit)
        return self._walk.miss(skip + 1) if site is None else site
