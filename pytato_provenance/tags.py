"""
The tag around a creation site, and the only place that knows where the host keeps it.

.. autoclass:: CreatedAt
.. autofunction:: created_at
.. autofunction:: site_of
.. autofunction:: history_of
.. autofunction:: with_site

The development pytato has tags that equality and hashing do not see; there the tag is
one of them. The released pytato has only tags that are part of equality; there the
site sits beside the elements of ``tags``, in a frozenset that is otherwise like any
other.
"""

from __future__ import annotations

import contextlib
import dataclasses
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytools.tag import Tag, UniqueTag

from pytato_provenance._host import Node, host
from pytato_provenance.diagnostic import NotAnArrayError
from pytato_provenance.history import NO_HISTORY, History
from pytato_provenance.sites import CreationSite, foreign_site
from pytato_provenance.tooltips import tooltip


if TYPE_CHECKING:
    import traceback
    from collections.abc import Iterable

    from pytato_provenance.call_frames import Frame


# {{{ the tag

_HostCreatedAt: Any = host().created_at or UniqueTag


class _Traceback:
    """A site in the form in which the development pytato keeps its stacks: outermost
    frame first."""

    __slots__ = ("_site",)

    def __init__(self, site: CreationSite) -> None:
        self._site = site

    @property
    def frames(self) -> tuple[_TracebackFrame, ...]:
        return tuple(_TracebackFrame(frame) for frame in reversed(self._site.frames))

    def to_stacksummary(self) -> traceback.StackSummary:
        from traceback import FrameSummary, StackSummary
        return StackSummary.from_list(
            [FrameSummary(frame.filename, frame.lineno, frame.qualname,
                          line=frame.line, lookup_line=False)
             for frame in reversed(self._site.frames)])

    def short_str(self, maxlen: int = 500) -> str:
        """The site in one line: what the development pytato shows as a tooltip."""
        text = tooltip(self._site)
        return text if len(text) <= maxlen else text[:maxlen - 3] + "..."

    def __repr__(self) -> str:
        return "".join(f"\n  {frame}" for frame in reversed(self._site.frames))


class _TracebackFrame:
    __slots__ = ("filename", "line", "lineno", "name")

    def __init__(self, frame: Frame) -> None:
        self.filename = frame.filename
        self.lineno = frame.lineno
        self.name = frame.qualname
        self.line = frame.line

    def short_str(self, maxlen: int = 100) -> str:
        text = f"{self.filename}:{self.lineno}, in {self.name}(): {self.line.strip()}"
        return text if len(text) <= maxlen else text[:maxlen - 3] + "..."

    def __repr__(self) -> str:
        return f"{self.filename}:{self.lineno}, in {self.name}(): {self.line.strip()}"


class CreatedAt(_HostCreatedAt):  # type: ignore[misc]
    """Where an array was created: a :class:`pytools.tag.UniqueTag`.

    .. attribute:: site

        A :class:`~pytato_provenance.CreationSite`.

    .. attribute:: history

        A :class:`~pytato_provenance.history.History`, empty unless it was asked for.
    """

    # One object a site: identity is equality, and hashing a stack costs microseconds.
    __slots__ = ("history", "site")
    __hash__ = object.__hash__

    site: CreationSite
    history: History

    def __init__(self, site: CreationSite, history: History = NO_HISTORY) -> None:
        object.__setattr__(self, "site", site)
        object.__setattr__(self, "history", history)

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def traceback(self) -> _Traceback:
        """The site in the form of the development pytato's own tag."""
        return _Traceback(self.site)

    def __reduce__(self) -> tuple[Any, ...]:
        return _tag_of, (self.site, self.history)

    def __repr__(self) -> str:
        return f"CreatedAt({self.site})"


@lru_cache(maxsize=4096)
def _tag_with_history(site: CreationSite, history: History) -> CreatedAt:
    return CreatedAt(site, history)


def _tag_of(site: CreationSite, history: History = NO_HISTORY) -> CreatedAt:
    if history or not host().has_non_equality_tags:
        return _tag_with_history(site, history)
    tag, = site_tags(site)
    assert isinstance(tag, CreatedAt)
    return tag

# }}}


# {{{ where the host keeps it

class SitedTags(frozenset):  # type: ignore[type-arg]
    """A frozenset of tags with a site beside its elements.

    Equal to, and hashed like, the plain set; the operations by which a host derives
    one set of tags from another keep the site.
    """

    __slots__ = ("created_at", "history")

    created_at: CreationSite
    history: History

    def __new__(cls, tags: Iterable[Tag], site: CreationSite,
                history: History = NO_HISTORY) -> SitedTags:
        self = super().__new__(cls, tags)
        self.created_at = site
        self.history = history
        return self

    def _derived(self, tags: Any) -> Any:
        return (tags if tags is NotImplemented
                else SitedTags(tags, self.created_at, self.history))

    def __or__(self, other: Any) -> Any:
        return self._derived(frozenset.__or__(self, other))

    def __ror__(self, other: Any) -> Any:
        return self._derived(frozenset.__or__(self, other))

    def __sub__(self, other: Any) -> Any:
        return self._derived(frozenset.__sub__(self, other))

    def __and__(self, other: Any) -> Any:
        return self._derived(frozenset.__and__(self, other))

    def union(self, *others: Iterable[Any]) -> Any:
        return self._derived(frozenset.union(self, *others))

    def difference(self, *others: Iterable[Any]) -> Any:
        return self._derived(frozenset.difference(self, *others))

    def copy(self) -> SitedTags:
        return self

    def __copy__(self) -> SitedTags:
        return self

    def __deepcopy__(self, memo: object) -> SitedTags:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return SitedTags, (tuple(self), self.created_at, self.history)

    def __repr__(self) -> str:
        return repr(frozenset(self))

    def update_persistent_hash(self, key_hash: Any, key_builder: Any) -> None:
        """Keys of on-disk caches are those of the plain set."""
        # Not by rec(), which hashes the hash of what it is given.
        key_builder.update_for_frozenset(key_hash, self)


_CONTAINER_SITE = "_provenance_site"


def site_tags(site: CreationSite) -> frozenset[Tag]:
    """
    :returns: what marks a node as created at *site*: the same object each time.
    """
    tags = site.tag_set
    if tags is None:
        tags = site.tag_set = (
            frozenset({CreatedAt(site)}) if host().has_non_equality_tags
            else SitedTags((), site))
    return tags  # type: ignore[no-any-return]


def site_of(node: Node) -> CreationSite | None:
    """
    :arg node: any node of the host, containers of arrays included.
    :returns: its site, or *None*. Checks nothing.
    """
    tags = getattr(node, "non_equality_tags", None)
    if tags is not None:
        for tag in tags:
            if isinstance(tag, _HostCreatedAt):
                return tag.site if isinstance(tag, CreatedAt) else foreign_site(
                    (f.filename, f.lineno, f.name, f.line)
                    for f in tag.traceback.frames)
    site = getattr(getattr(node, "tags", None), "created_at", None)
    if site is None:
        site = getattr(node, _CONTAINER_SITE, None)
    return site


def has_site(node: Node) -> bool:
    """Like :func:`site_of`, but only whether there is one."""
    return site_of(node) is not None


def set_site(node: Node, site: CreationSite) -> None:
    """Give a node that was just made its site; a site that it has stays.

    Not for nodes that somebody else may have seen.
    """
    replace_site(node, site)


def history_of(node: Node) -> History:
    """
    :arg node: any node of the host.
    :returns: what transforms did on the way to *node*, if that was recorded.
    :raises ~pytato_provenance.diagnostic.NotAnArrayError: for anything else.
    """
    if not isinstance(node, host().node_types):
        raise NotAnArrayError(
            f"history_of takes a pytato array, not '{type(node).__name__}'")
    for tag in getattr(node, "non_equality_tags", ()):
        if isinstance(tag, CreatedAt):
            return tag.history
    return getattr(getattr(node, "tags", None), "history", NO_HISTORY)


def replace_site(node: Node, site: CreationSite, history: History | None = None
                 ) -> None:
    """Set the site of a node that nobody else has seen, whatever it had.

    :arg history: replaces the history of the node if given.
    """
    if not isinstance(node, host().array):
        node.__dict__[_CONTAINER_SITE] = site
        return
    if history is None:
        history = history_of(node)
    if host().has_non_equality_tags:
        kept = frozenset(tag for tag in node.non_equality_tags
                         if not isinstance(tag, _HostCreatedAt))
        tags: frozenset[Tag] = site_tags(site)
        if history:
            tags = frozenset({_tag_with_history(site, history)})
        # A node may have, by construction, the tags of another.
        with contextlib.suppress(AttributeError):
            object.__setattr__(node, "non_equality_tags", tags | kept if kept else tags)
    else:
        node.tags = SitedTags(node.tags, site, history)


def with_site(node: Node, site: CreationSite) -> Node:
    """
    :returns: a copy of *node* (equal to it) that carries *site*, or *node* itself if it
        does so already.
    """
    if site_of(node) is site:
        return node
    copy = shallow_copy(node)
    replace_site(copy, site)
    return copy


def shallow_copy(node: Node, **changes: Any) -> Node:
    """
    :returns: a node of the same fields, with *changes*; what the host has memoised on
        *node* is not copied. Neither constructors nor hooks run.
    """
    copy = object.__new__(type(node))
    if dataclasses.is_dataclass(node):
        names: Iterable[str] = [field.name for field in dataclasses.fields(node)]
        names = [*names, _CONTAINER_SITE]
        copy.__dict__.update((name, value) for name in names
                             if (value := node.__dict__.get(name, _ABSENT))
                             is not _ABSENT)
    else:
        copy.__dict__.update((name, value) for name, value in vars(node).items()
                             if not name.startswith("_memoize_dic_"))
    copy.__dict__.update(changes)
    return copy


_ABSENT = object()

# }}}


def created_at(ary: Node) -> CreationSite | None:
    """
    :arg ary: a pytato array.
    :returns: where it was created, or *None* if nothing recorded at that time.
    :raises ~pytato_provenance.diagnostic.NotAnArrayError: for anything else.
    """
    if not isinstance(ary, host().array):
        hint = ""
        if isinstance(ary, host().container):
            hint = "; ask one of its arrays, as in created_at(result['name'])"
        elif hasattr(ary, "program"):
            hint = "; ask contributors(bound_program)"
        raise NotAnArrayError("created_at takes a pytato array, not "
                              f"'{type(ary).__name__}'{hint}")
    return site_of(ary)
