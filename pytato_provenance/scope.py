"""
Whether, and how, arrays made here and now are recorded.

.. autoclass:: Scope
.. autofunction:: current_scope
.. autofunction:: enter
.. autofunction:: leave
.. autofunction:: end_all_scopes
.. autofunction:: tags_for_new_array

A scope belongs to a thread and to an async task (it is a context variable); what
:func:`~pytato_provenance.enable` switches on is the default of all of them.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytato_provenance import regions as _regions
from pytato_provenance._host import host
from pytato_provenance.capture import NO_CAPTURE, CaptureStrategy
from pytato_provenance.diagnostic import ProvenanceWarning
from pytato_provenance.frames import is_user_frame
from pytato_provenance.sites import UNKNOWN
from pytato_provenance.tags import site_of, site_tags


if TYPE_CHECKING:
    from collections.abc import Callable

    from pytools.tag import Tag

    from pytato_provenance.sites import CreationSite


@dataclass(eq=False)
class Scope:
    """Not changed once it is entered, except by :func:`end_all_scopes`.

    .. attribute:: record

        Whether arrays are recorded.

    .. attribute:: capture

        The strategy that gives the site of the call that is under way.

    .. attribute:: history

        Whether transforms leave a history on the nodes that they make.

    .. attribute:: audit

        ``"warn"``, ``"raise"`` or *None*: what happens when a transform loses sites.

    .. attribute:: owner

        What the scope was entered for.

    .. attribute:: outer

        The scope around this one, in the same thread or task.

    .. attribute:: was_left

        Whether it is no more than a link to :attr:`outer`: scopes of generators need
        not be left in the order in which they were entered.

    .. attribute:: ended

        Whether recording was switched off altogether while the scope was open.

    .. attribute:: quick

        What to call for the site of an array and the argument to pass, *None* where
        nothing records: all that the common case has to look at.
    """

    record: bool = False
    capture: CaptureStrategy = NO_CAPTURE
    history: bool = False
    audit: str | None = None
    owner: object = None
    outer: Scope | None = None
    was_left: bool = False
    ended: bool = False
    quick: tuple[Callable[[int, int], CreationSite | None], int] | None = field(
        init=False, default=None)

    def __post_init__(self) -> None:
        self.has_changed()

    def has_changed(self) -> None:
        """To be called after :attr:`record` or :attr:`capture` was set."""
        self.quick = ((self.capture.lookup, self.capture.limit)
                      if self.record and not self.ended else None)


OFF = Scope()

_scope: ContextVar[Scope | None] = ContextVar("pytato_provenance_scope", default=None)
_everywhere: Scope = OFF
_get_scope = _scope.get

origin: ContextVar[Any] = ContextVar("pytato_provenance_origin", default=None)
"""The node that a mapper is replacing: new nodes inherit its site."""

_get_origin = origin.get

origin_setters: set[int] = set()
"""The identities of the code objects of functions that set :data:`origin`."""


def current_scope() -> Scope:
    """
    :returns: the scope of this thread or task.
    """
    scope = _get_scope()
    return _everywhere if scope is None or scope.ended else scope


def everywhere() -> Scope:
    """
    :returns: the default of all threads and tasks.
    """
    return _everywhere


def set_everywhere(scope: Scope) -> None:
    """Make *scope* the default of all threads and tasks."""
    global _everywhere
    _everywhere = scope


_lock = threading.RLock()
# Also those that were left: a task that was started within a scope goes on in it.
_scopes: weakref.WeakSet[Scope] = weakref.WeakSet()


def enter(owner: object, **changes: Any) -> Scope:
    """Open a scope within the current one, in this thread or task.

    :arg owner: what :func:`leave` finds it by.
    :arg changes: the attributes in which it differs from the current one.
    """
    scope = replace(current_scope(), owner=owner, outer=_get_scope(), was_left=False,
                    **changes)
    with _lock:
        _scopes.add(scope)
    _scope.set(scope)
    return scope


def leave(owner: object) -> None:
    """Leave the innermost scope of this thread or task that *owner* entered, whatever
    was entered since. Where there is none, as when a generator is finalised in another
    thread, nothing happens."""
    scope = _get_scope()
    while scope is not None and (scope.owner is not owner or scope.was_left):
        scope = scope.outer
    if scope is None:
        return
    scope.was_left = True
    innermost = _get_scope()
    while innermost is not None and innermost.was_left:
        innermost = innermost.outer
    _scope.set(innermost)


def end_all_scopes() -> None:
    """Let no scope of any thread or task record any more."""
    with _lock:
        for scope in tuple(_scopes):
            if scope.record:
                scope.record = False
                scope.ended = True
                scope.has_changed()


def capture_with(capture: CaptureStrategy) -> None:
    """Have all open scopes take their sites by *capture* from now on."""
    with _lock:
        for scope in tuple(_scopes):
            scope.capture = capture
            scope.has_changed()


def tags_for_new_array(skip: int = 0) -> frozenset[Tag] | None:
    """
    :arg skip: how many callers, beside this function, the walk of the stack may pass
        over: frames of ours that are the same for every array.
    :returns: the tags that mark an array that is being made as created by the call
        that is under way, or in place of the node that a mapper is replacing; *None*
        if nothing records or the replaced node's site is not known.
    """
    scope = _get_scope()
    if scope is None or scope.ended:
        scope = _everywhere
    if not scope.record:
        return None
    try:
        replaced = _get_origin()
        if replaced is not None:
            site = site_of(_innermost_mapped(replaced))
            if site is None:
                return None
        else:
            capture = scope.capture
            site = capture.lookup(skip + 1, capture.limit)
            if site is None:
                site = capture.miss(skip + 1)
            if _regions.ever_opened:
                region = _regions.current_region()
                if region is not None:
                    site = site.in_region(region)
        tags = site.tag_set
        return site_tags(site) if tags is None else tags
    except Exception as error:
        try:
            return _failed(error)
        except RecursionError:
            return UNKNOWN.tag_set  # type: ignore[no-any-return]


def _innermost_mapped(replaced: Any) -> Any:
    """The node that is being mapped, by a mapper's own ``rec`` if that is innermost:
    what it makes before or after the dispatch is made in place of its argument.

    :arg replaced: the value of :data:`origin`.
    """
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if id(code) in origin_setters:
            break
        if code.co_name == "rec" and code.co_argcount > 1:
            mapper, node = (frame.f_locals.get(name) for name in code.co_varnames[:2])
            if isinstance(mapper, host().mapper) and isinstance(
                    node, host().node_types):
                return node
        frame = frame.f_back
    return replaced


def _failed(error: Exception) -> frozenset[Tag]:
    warn_once(error)
    return site_tags(UNKNOWN)


_warned: set[type[Exception]] = set()


def warn_once(error: Exception) -> None:
    """Say once, for each kind of *error*, at the user's line, that something could not
    be recorded. Never raises."""
    if type(error) in _warned:
        return
    _warned.add(type(error))
    try:
        frame = sys._getframe(1)
        while frame.f_back is not None and not is_user_frame(frame):
            frame = frame.f_back
        warnings.warn_explicit(
            f"a creation site could not be recorded ({type(error).__name__}: {error}); "
            "the program is unharmed, the array's site is unknown. Please report this.",
            ProvenanceWarning, frame.f_code.co_filename, frame.f_lineno)
    except Exception:
        # Warnings may be errors, or the stack exhausted: not the program's concern.
        pass
