"""
The cheapest strategy: the user's frame only.

.. autoclass:: SiteStrategy
"""

from __future__ import annotations

from pytato_provenance.capture.stack import StackStrategy


class SiteStrategy(StackStrategy):
    """The innermost frame that is the user's when the array is made; where no frame is
    the user's, the whole stack.

    Other frames are not kept: what :func:`~pytato_provenance.register_library` says
    later does not change which frame it was.

    :arg compiled: as for :class:`~pytato_provenance.capture.stack.StackStrategy`.
    """

    name = "site"

    def __init__(self, *, compiled: bool | None = None) -> None:
        super().__init__(1, compiled=compiled)
