"""
From the current stack to a creation site: one strategy a file.

.. autoclass:: CaptureStrategy
.. autofunction:: make_strategy
.. autofunction:: strategy_names
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, Protocol

from pytato_provenance.diagnostic import CaptureUnavailableError, UsageError
from pytato_provenance.sites import UNKNOWN


if TYPE_CHECKING:
    from collections.abc import Callable

    from pytato_provenance.sites import CreationSite


class CaptureStrategy(Protocol):
    """What a strategy offers.

    The site of a call is ``lookup(skip, limit)``, or where that is *None*
    ``miss(skip)``: in two steps, so that the first one can be a compiled function
    that is called without a Python frame in between.

    .. attribute:: name
    .. attribute:: limit

        To be passed to :attr:`lookup`.

    .. automethod:: start
    .. automethod:: stop
    .. autoproperty:: lookup
    .. automethod:: miss
    """

    name: str
    limit: int

    def start(self) -> None:
        """Install what the strategy needs.

        :raises ~pytato_provenance.diagnostic.CaptureUnavailableError: if it cannot
            work here.
        """
        ...

    def stop(self) -> None:
        """Remove what :meth:`start` installed."""
        ...

    @property
    def lookup(self) -> Callable[[int, int], CreationSite | None]:
        """
        Takes how many frames above the caller the stack begins, which may be the
        host's, and :attr:`limit`.

        Returns the site of the user-facing call that is under way, if it is known.
        """
        ...

    def miss(self, skip: int) -> CreationSite:
        """
        :arg skip: how many frames above the caller the stack begins.
        :returns: the site, after :attr:`lookup` gave none.
        """
        ...


class _NoCapture:
    """Where nothing has been chosen: every site is unknown."""

    name = "none"
    limit = 0

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def lookup(self, skip: int, limit: int, /) -> CreationSite | None:
        return UNKNOWN

    def miss(self, skip: int) -> CreationSite:
        return UNKNOWN


NO_CAPTURE: CaptureStrategy = _NoCapture()


_STRATEGIES: dict[str, tuple[str, str]] = {
    "stack": ("pytato_provenance.capture.stack", "StackStrategy"),
    "site": ("pytato_provenance.capture.site", "SiteStrategy"),
    "profile": ("pytato_provenance.capture.profile", "ProfileStrategy"),
    "monitoring": ("pytato_provenance.capture.monitoring", "MonitoringStrategy"),
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
    :raises ~pytato_provenance.diagnostic.CaptureUnavailableError: in a subinterpreter.
    """
    if _in_subinterpreter():
        raise CaptureUnavailableError(
            "creation sites cannot be recorded in a subinterpreter, for code objects "
            "and compiled parts belong to one interpreter: record in the main one")
    if not isinstance(name, str) or name not in _STRATEGIES:
        raise UsageError(f"unknown capture strategy {name!r}; choose one of "
                         f"{', '.join(_STRATEGIES)}")
    module, cls = _STRATEGIES[name]
    factory = getattr(importlib.import_module(module), cls)
    known = list(inspect.signature(factory).parameters)
    for option in options:
        if option not in known:
            raise UsageError(f"capture strategy '{name}' has no option '{option}'; "
                             f"it has {' and '.join(known) or 'none'}")
    return factory(**options)


def _in_subinterpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        # An identifier, or since 3.13 a tuple that begins with one.
        current, main = interpreters.get_current(), interpreters.get_main()
        return bool(current != main)
    return False
