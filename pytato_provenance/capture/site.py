"""
The cheapest strategy: the user's frame only.

.. autoclass:: SiteStrategy
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytato_provenance.call_tree import intern_stack
from pytato_provenance.capture.stack import StackStrategy


if TYPE_CHECKING:
    from types import FrameType

    from pytato_provenance.sites import CreationSite


class SiteStrategy(StackStrategy):
    """The innermost frame that is the user's when the array is made.

    Where no frame is the user's, the whole stack. Other frames are not kept: what
    :func:`~pytato_provenance.register_library` says later does not change the sites
    that were taken before.

    :arg compiled: as for :class:`~pytato_provenance.capture.stack.StackStrategy`.
    """

    name = "site"

    def __init__(self, *, compiled: bool | None = None) -> None:
        super().__init__(1, compiled=compiled)

    def _intern(self, frame: FrameType, leading: int, user: FrameType) -> CreationSite:
        return intern_stack(user, 1)
