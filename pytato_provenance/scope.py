"""
Whether, and how, arrays made here and now are recorded.

.. autoclass:: Scope
.. autofunction:: current_scope
.. autofunction:: tags_for_new_array

A scope belongs to a thread and to an async task (it is a context variable); what
:func:`~pytato_provenance.enable` switches on is the default of all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytato_provenance.diagnostic import ProvenanceWarning
from pytato_provenance.sites import UNKNOWN, CreationSite
from pytato_provenance.tags import site_of, site_tags


if TYPE_CHECKING:
    from pytools.tag import Tag


@dataclass(frozen=True)
class Scope:
    """
    .. attribute:: record

        Whether arrays are recorded.

    .. attribute:: capture

        Gives the site of the call that is under way.

    .. attribute:: region

        The path of the innermost open region.

    .. attribute:: history

        Whether transforms leave a history on the nodes that they make.

    .. attribute:: audit

        ``"warn"``, ``"raise"`` or *None*: what happens when a transform loses sites.
    """

    record: bool = False
    capture: Callable[[], CreationSite] = lambda: UNKNOWN
    region: str | None = None
    history: bool = False
    audit: str | None = None


OFF = Scope()

_scope: ContextVar[Scope | None] = ContextVar("pytato_provenance_scope", default=None)
_everywhere: Scope = OFF
_get_scope = _scope.get

origin: ContextVar[Any] = ContextVar("pytato_provenance_origin", default=None)
"""The node that a mapper is replacing: new nodes inherit its site."""

_get_origin = origin.get


def current_scope() -> Scope:
    """
    :returns: the scope of this thread or task.
    """
    scope = _get_scope()
    return _everywhere if scope is None else scope


def set_everywhere(scope: Scope) -> None:
    """Make *scope* the default of all threads and tasks."""
    global _everywhere
    _everywhere = scope


def tags_for_new_array() -> frozenset[Tag] | None:
    """
    :returns: the tags that mark an array that is being made as created by the call
        that is under way, or in place of the node that a mapper is replacing; *None*
        if nothing records or the replaced node's site is not known.
    """
    scope = _get_scope()
    if scope is None:
        scope = _everywhere
    if not scope.record:
        return None
    try:
        replaced = _get_origin()
        if replaced is not None:
            site = site_of(replaced)
            if site is None:
                return None
        else:
            site = scope.capture()
            if scope.region is not None:
                site = site.in_region(scope.region)
        tags = site.tag_set
        return site_tags(site) if tags is None else tags  # type: ignore[no-any-return]
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> frozenset[Tag]:
    warn_once(error)
    return site_tags(UNKNOWN)


_warned: set[type[Exception]] = set()


def warn_once(error: Exception) -> None:
    """Say once, for each kind of *error*, that something could not be recorded."""
    if type(error) not in _warned:
        _warned.add(type(error))
        warnings.warn(
            f"a creation site could not be recorded ({type(error).__name__}: {error}); "
            "the program is unharmed, the array's site is unknown. Please report this.",
            ProvenanceWarning, stacklevel=4)
