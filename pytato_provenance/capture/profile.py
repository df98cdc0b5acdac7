"""
A strategy on ``sys.setprofile``: the location is noted when the host is entered.

.. autoclass:: ProfileStrategy
"""

from __future__ import annotations

import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

from pytato_provenance.capture.entries import EntryStrategy
from pytato_provenance.diagnostic import CaptureUnavailableError, ProvenanceWarning


if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


class ProfileStrategy(EntryStrategy):
    """A profile function sees every call of the program, and notes the user's location
    when one enters the host.

    Every call of the program costs several times what it did. Threads that run already
    are profiled from Python 3.12 on; before that, and wherever an entry into the host
    was not seen, the stack is walked when the array is made.

    :arg max_frames: as for :class:`~pytato_provenance.capture.stack.StackStrategy`.
    """

    name = "profile"

    def __init__(self, max_frames: int | None = 4) -> None:
        super().__init__(max_frames)
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
        super().start()
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
        super().stop()

    def _on_event(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            is_host = self._is_host
            if is_host(frame):
                caller = frame.f_back
                if caller is not None and not is_host(caller):
                    if self._active:
                        self.note_entry(frame, caller)
                    else:
                        # A thread that ran when recording was switched off.
                        sys.setprofile(None)
        elif event == "return":
            self.note_return(frame)
