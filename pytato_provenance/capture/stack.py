"""
The default strategy: walk the stack when an array is made.

.. autoclass:: StackStrategy
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pytato_provenance.call_tree import clear_when_code_dies, intern_stack


if TYPE_CHECKING:
    from pytato_provenance.sites import CreationSite


class StackStrategy:
    """The whole stack, or its innermost *max_frames* frames.

    The path (code object and position in it, frame by frame) is looked up in a table;
    only a path that was never seen before is interned.
    """

    name = "stack"

    def __init__(self, max_frames: int | None = None) -> None:
        self.max_frames = max_frames
        self._paths: dict[tuple[int, ...], CreationSite] = {}
        clear_when_code_dies(self._paths.clear)

    def start(self) -> None:
        """Nothing to install."""

    def stop(self) -> None:
        """Nothing to remove."""

    def capture(self) -> CreationSite:
        """
        :returns: the site of the call that is under way.
        """
        frame = sys._getframe(1)
        key: list[int] = []
        push = key.append
        walk = frame
        while walk is not None:
            push(id(walk.f_code))
            push(walk.f_lasti)
            walk = walk.f_back  # type: ignore[assignment]
        path = tuple(key)
        try:
            return self._paths[path]
        except KeyError:
            site = self._paths[path] = intern_stack(frame, self.max_frames)
            return site
