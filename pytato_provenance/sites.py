"""
Where an array was created.

.. autoclass:: CreationSite
.. autofunction:: merge_sites
.. autofunction:: synthetic_site
.. autofunction:: lost_site
.. autodata:: UNKNOWN

A site is interned: one object for each distinct way in which the program came to
the call (and, within regions, for each region). It holds code objects and positions
in them, never a frame, a local variable or an array, and becomes files and lines
when somebody reads it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from pytato_provenance.call_frames import Frame
from pytato_provenance.frames import is_host_code, is_user_code
from pytato_provenance.source import source_file


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType

    from pytato_provenance.call_tree import CallNode

# {{{ site

_lock = threading.RLock()


def _after_fork() -> None:
    global _lock
    # The thread that held it does not exist in the child.
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_by_content: weakref.WeakValueDictionary[Any, CreationSite] = (
    weakref.WeakValueDictionary())


class CreationSite:
    """Where an array was created. Immutable; compared by identity.

    .. autoattribute:: frames
    .. autoattribute:: user_frame
    .. autoattribute:: user_frames
    .. autoattribute:: also
    .. autoattribute:: all_sites
    .. attribute:: region

        The path of the innermost named region that was open, or *None*.

    .. autoattribute:: regions
    .. attribute:: kind

        ``"known"``, ``"merged"`` (several sites, after equal nodes became one),
        ``"synthetic"`` (a transform made the node for itself) or ``"unknown"``.
    """

    __slots__ = ("__weakref__", "_frames", "_members", "_path", "_sort_key", "kind",
                 "pass_name", "region", "tag_set")

    def __init__(self, *, kind: str = "known", path: CallNode | None = None,
                 frames: tuple[Frame, ...] | None = None, region: str | None = None,
                 members: frozenset[CreationSite] | None = None,
                 pass_name: str | None = None) -> None:
        """Not to be called directly: sites are interned."""
        self.kind = kind
        self.region = region
        self.pass_name = pass_name
        self._path = path
        self._frames = frames
        self._members: Any = members
        self._sort_key: Any = None
        # Filled by tags.py: made once a site, so that tagging costs an attribute.
        self.tag_set: Any = None

    # {{{ reading

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The whole stack, innermost first, without the host's own frames beneath the
        user-facing call."""
        if self._frames is None:
            if self._members is not None:
                return self.all_sites[0].frames
            path = self._path
            frames = []
            while path is not None and path.record is not None:
                frames.append(path.frame())
                path = path.parent
            self._frames = tuple(frames)
        return self._frames

    @property
    def user_frames(self) -> tuple[Frame, ...]:
        """The frames that are the user's, innermost first."""
        return tuple(frame for frame in self.frames if frame.is_user)

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame that is the user's."""
        return next((frame for frame in self.frames if frame.is_user), None)

    @property
    def all_sites(self) -> tuple[CreationSite, ...]:
        """The site itself, or after a merge all of them in canonical order."""
        if self._members is None:
            return (self,)
        if isinstance(self._members, frozenset):
            self._members = tuple(sorted(self._members, key=CreationSite.sort_key))
        return self._members

    @property
    def also(self) -> tuple[CreationSite, ...]:
        """After a merge: the sites beside the first."""
        return self.all_sites[1:]

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions of all sites, sorted."""
        return tuple(sorted({site.region for site in self.all_sites
                             if site.region is not None}))

    def sort_key(self) -> tuple[Any, ...]:
        """A key for the canonical order: file, line, column, then the callers'."""
        if self._sort_key is None:
            frame = self.user_frame
            frames = (() if frame is None else (frame,), self.frames)
            self._sort_key = (
                self.kind == "unknown",
                tuple((f.filename, f.lineno, -1 if f._columns[0] is None
                       else f._columns[0], f.qualname) for fs in frames for f in fs),
                self.region or "", self.pass_name or "",
                frame.line if frame is not None and frame.is_in_memory else "")
        return self._sort_key

    # }}}

    def in_region(self, region: str | None) -> CreationSite:
        """The site of the same call, made within *region*."""
        if region is None or self._path is None:
            return self
        return self._path.site(region)

    def _content(self) -> tuple[Any, ...]:
        # Without the text of files, which their names and lines stand for.
        return (self.kind, tuple(
            (*frame.plain_position(), frame.line if frame.is_in_memory else "")
            for frame in self.frames), self.region, self.pass_name)

    def _canonical(self) -> CreationSite:
        """The one site of this content: code that is compiled once more, such as a
        notebook's cell, has new code objects and so a site of its own."""
        return _interned(self._content(), lambda: self)

    def __reduce__(self) -> tuple[Any, ...]:
        if self is UNKNOWN:
            return _unknown, ()
        if self._members is not None:
            return merge_sites, (self.all_sites,)
        self._canonical()
        return _from_plain, (self.kind, self.frames, self.region, self.pass_name)

    def __copy__(self) -> CreationSite:
        return self

    def __deepcopy__(self, memo: object) -> CreationSite:
        return self

    def __str__(self) -> str:
        if self.kind == "unknown":
            return ("unknown" if self.pass_name is None
                    else f"unknown (lost by {self.pass_name})")
        if self.kind == "synthetic":
            return f"synthetic (made by {self.pass_name})"
        shown = [site._str_single() for site in self.all_sites[:_MOST_SHOWN]]
        more = len(self.all_sites) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")

    def _str_single(self) -> str:
        if self.kind != "known":
            return str(self)
        frame = self.user_frame or (self.frames[0] if self.frames else None)
        return "unknown" if frame is None else str(frame)

    def __repr__(self) -> str:
        return f"<CreationSite {self}>"


_MOST_SHOWN = 3

UNKNOWN = CreationSite(kind="unknown", frames=())
"""The site of what was created while nothing recorded, or where recording failed."""


def _unknown() -> CreationSite:
    return UNKNOWN


def _interned(content: Any, make: Callable[[], CreationSite]) -> CreationSite:
    with _lock:
        site = _by_content.get(content)
        if site is None:
            site = _by_content[content] = make()
        return site


def _from_plain(kind: str, frames: tuple[Frame, ...], region: str | None,
                pass_name: str | None) -> CreationSite:
    made = CreationSite(kind=kind, frames=frames, region=region, pass_name=pass_name)
    return _interned(made._content(), lambda: made)


def foreign_site(frames: Iterable[tuple[str, int, str, str | None]]) -> CreationSite:
    """
    :arg frames: file name, line number, function and source line of each call,
        outermost first, as somebody else recorded them.
    :returns: their site, without the host's own frames.
    """
    stack = [Frame(filename, lineno, None, (None, None), name, None, line or "")
             for filename, lineno, name, line in frames]
    while stack and is_host_code(stack[-1].filename):
        stack.pop()
    return _from_plain("known", tuple(reversed(stack)), None, None)


def site_of_code(code: CodeType, module: str | None) -> CreationSite | None:
    """
    :returns: where a function is defined, or *None* if it is a library's.
    """
    if not is_user_code(code.co_filename, module):
        return None
    source = source_file(code.co_filename, None)
    frame = Frame(code.co_filename, code.co_firstlineno, None, (None, None),
                  getattr(code, "co_qualname", code.co_name), module, source)
    return _from_plain("known", (frame,), None, None)


def lost_site(pass_name: str) -> CreationSite:
    """
    :arg pass_name: what made the node in place of one whose site was known.
    :returns: the unknown site of a node that a transform made and gave none.
    """
    return _from_plain("unknown", (), None, pass_name)


def synthetic_site(pass_name: str) -> CreationSite:
    """
    :arg pass_name: what made the node.
    :returns: the site of a node that a transform made for itself, in place of none.
    """
    return _from_plain("synthetic", (), None, pass_name)


def merge_sites(sites: Iterable[CreationSite | None]) -> CreationSite:
    """The union of *sites*, in whatever order and however nested they come.

    :arg sites: sites; *None* and :data:`UNKNOWN` add nothing to known ones.
    :returns: one site: the only one there is, or a merged one.
    """
    members: set[CreationSite] = set()
    for site in sites:
        if site is not None and site.kind != "unknown":
            members.update(site.all_sites)
    if any(site.kind == "known" for site in members):
        members = {site for site in members if site.kind == "known"}
    if len(members) < 2:
        return next(iter(members), UNKNOWN)
    return _interned(frozenset(members), lambda: _merged(members))


def _merged(sites: set[CreationSite]) -> CreationSite:
    union = frozenset(site._canonical() for site in sites)
    if len(union) == 1:
        return next(iter(union))
    return _interned(union, lambda: CreationSite(kind="merged", members=union,
                                                 region=_only_region(union)))


def _only_region(sites: frozenset[CreationSite]) -> str | None:
    regions = {site.region for site in sites}
    return regions.pop() if len(regions) == 1 else None

# }}}
