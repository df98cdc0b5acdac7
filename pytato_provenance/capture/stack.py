"""
The default strategy: walk the stack when an array is made.

.. autoclass:: StackStrategy
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pytato_provenance.call_tree import (
    clear_when_stale,
    intern_stack,
    no_longer_clear,
)
from pytato_provenance.capture.paths import fastest_lookup, make_path_table
from pytato_provenance.diagnostic import UsageError
from pytato_provenance.frames import is_user_frame


if TYPE_CHECKING:
    from types import FrameType

    from pytato_provenance.capture.paths import PathTable
    from pytato_provenance.sites import CreationSite


class StackStrategy:
    """The whole stack, or the innermost user frame and some callers.

    The path (code object and position in it, frame by frame) is looked up in a table;
    only a path that was never seen before is interned.

    :arg max_frames: how many frames to keep: the innermost one that is the user's,
        and its callers. *None* for the whole stack, library frames beneath the user's
        included.
    :arg compiled: *True* or *False* to insist on the compiled or the Python table.
    """

    name = "stack"

    def __init__(self, max_frames: int | None = None, *,
                 compiled: bool | None = None) -> None:
        if max_frames is not None and (
                not isinstance(max_frames, int) or max_frames < 1):
            raise UsageError(f"max_frames={max_frames!r}: pass at least 1, or None for "
                             "the whole stack")
        self.max_frames = max_frames
        self.limit = max_frames or 0
        self.table: PathTable[CreationSite] = make_path_table(compiled)
        self.lookup = fastest_lookup(self.table, self.limit)

    def start(self) -> None:
        """Nothing to install in Python or the host."""
        clear_when_stale(self.table.clear)

    def stop(self) -> None:
        """Forget the paths that were seen; the sites stay."""
        no_longer_clear(self.table.clear)
        self.table.clear()

    def miss(self, skip: int) -> CreationSite:
        """
        :arg skip: how many frames above the caller the stack begins.
        :returns: the site of the call that is under way.
        """
        skip += 1
        frame = sys._getframe(skip)
        if self.max_frames is None:
            return self.table.add(skip, 0, intern_stack(frame))
        leading, user = self._pass_over(frame)
        if user is None:
            # No frame is the user's: nothing to count from.
            return intern_stack(frame)
        site = intern_stack(user, self.max_frames)
        return self.table.add(skip + leading, self.max_frames, site)

    def _pass_over(self, frame: FrameType) -> tuple[int, FrameType | None]:
        """Mark the code that is not the user's, down to the first frame that is.

        :returns: how many frames there are before it, and that frame.
        """
        count = 0
        user: FrameType | None = frame
        while user is not None and not is_user_frame(user):
            self.table.mark(user.f_code)
            count += 1
            user = user.f_back
        return count, user
