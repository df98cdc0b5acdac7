"""
From the current stack to a creation site: one strategy a file.

.. autoclass:: CaptureStrategy
.. autofunction:: make_strategy
.. autofunction:: strategy_names
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

from pytato_provenance.diagnostic import UsageError


if TYPE_CHECKING:
    from pytato_provenance.sites import CreationSite


class CaptureStrategy(Protocol):
    """What a strategy offers.

    .. attribute:: name
    .. automethod:: start
    .. automethod:: stop
    .. automethod:: capture
    """

    name: str

    def start(self) -> None:
        """Install what the strategy needs.

        :raises ~pytato_provenance.diagnostic.CaptureUnavailableError: if it cannot
            work here.
        """

    def stop(self) -> None:
        """Remove what :meth:`start` installed."""

    def capture(self) -> CreationSite:
        """
        :returns: the site of the user-facing call that is under way.
        """


_STRATEGIES: dict[str, tuple[str, str]] = {
    "stack": ("pytato_provenance.capture.stack", "StackStrategy"),
    "site": ("pytato_provenance.capture.site", "SiteStrategy"),
}


def strategy_names() -> tuple[str, ...]:
    """
    :returns: the names that :func:`make_strategy` takes.
    """
    return tuple(_STRATEGIES)


def make_strategy(name: str, **options: Any) -> CaptureStrategy:
    """
    :arg name: one of :func:`strategy_names`.
    :arg options: of the strategy, such as ``max_frames`` of ``"stack"``.
    :raises ~pytato_provenance.diagnostic.UsageError: for an unknown name or option.
    """
    try:
        module, cls = _STRATEGIES[name]
    except KeyError:
        raise UsageError(f"unknown capture strategy '{name}'; choose one of "
                         f"{', '.join(_STRATEGIES)}") from None
    factory = getattr(importlib.import_module(module), cls)
    try:
        return factory(**options)
    except TypeError as error:
        raise UsageError(f"capture strategy '{name}': {error}") from None
