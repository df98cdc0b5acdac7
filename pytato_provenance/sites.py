"""
Where an array was created.

.. autoclass:: CreationSite
.. autoclass:: Frame
.. autofunction:: merge_sites
.. autofunction:: synthetic_site
.. autodata:: UNKNOWN

A site is interned: one object for each distinct way in which the program came to
the call (and, within regions, for each region). It holds code objects and positions
in them, never a frame, a local variable or an array, and becomes files and lines
when somebody reads it.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pytato_provenance.frames import is_host_code, is_user_code, registry_version
from pytato_provenance.source import SourceFile, source_file


if TYPE_CHECKING:
    from types import CodeType

    from pytato_provenance.call_tree import CallNode

PlainFrame = tuple[str, int, "int | None", "int | None", "int | None", str,
                   "str | None", str]


# {{{ frame

class Frame:
    """One call in the stack that led to an array.

    .. attribute:: filename
    .. attribute:: lineno

        From 1; 0 never occurs: code without line numbers has its first line.

    .. attribute:: end_lineno
    .. attribute:: qualname

        The qualified name of the function (before Python 3.11, its plain name).

    .. attribute:: module

        The ``__name__`` of the module, or *None*.

    .. autoattribute:: colno
    .. autoattribute:: end_colno
    .. autoattribute:: line
    .. autoattribute:: source_state
    .. autoattribute:: is_user
    """

    __slots__ = ("_columns", "_source", "_user", "end_lineno", "filename", "lineno",
                 "module", "qualname")

    _columns: tuple[int | None, int | None]
    _source: SourceFile | str

    def __init__(self, filename: str, lineno: int, end_lineno: int | None,
                 columns: tuple[int | None, int | None], qualname: str,
                 module: str | None, source: SourceFile | str) -> None:
        self.filename = filename
        self.lineno = lineno
        self.end_lineno = end_lineno
        self.qualname = qualname
        self.module = module
        self._columns = columns
        self._source = source
        self._user = (-1, False)

    @property
    def line(self) -> str:
        """The source line as it was when the code ran, ``""`` where unknown."""
        source = self._source
        return source if isinstance(source, str) else source.line(self.lineno)

    @property
    def source_state(self) -> str:
        """``"read"``, or ``"changed"`` (the file has changed since), ``"missing"``."""
        source = self._source
        if isinstance(source, str):
            return "read" if source else "missing"
        return source.state

    @property
    def colno(self) -> int | None:
        """The first column of the call, from 0, in characters of :attr:`line`; *None*
        before Python 3.11 and under ``-X no_debug_ranges``."""
        return self._characters(self._columns[0], self.line)

    @property
    def end_colno(self) -> int | None:
        """The column after the last one of the call, on line :attr:`end_lineno`."""
        if self.end_lineno in (None, self.lineno) or isinstance(self._source, str):
            text = self.line
        else:
            text = self._source.line(self.end_lineno or self.lineno)
        return self._characters(self._columns[1], text)

    @staticmethod
    def _characters(offset: int | None, text: str) -> int | None:
        # The compiler counts bytes of UTF-8.
        if offset is None or text.isascii():
            return offset
        return len(text.encode(errors="surrogatepass")[:offset].decode(errors="ignore"))

    @property
    def is_user(self) -> bool:
        """Whether the frame is the user's (see :mod:`pytato_provenance.frames`)."""
        version, answer = self._user
        if version != registry_version():
            version = registry_version()
            answer = is_user_code(self.filename, self.module)
            self._user = (version, answer)
        return answer

    def plain(self) -> PlainFrame:
        """The frame as plain data, the source line included."""
        return (self.filename, self.lineno, self.end_lineno, *self._columns,
                self.qualname, self.module, self.line)

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain_frame, (self.plain(),)

    def __str__(self) -> str:
        return f"{os.path.basename(self.filename)}:{self.lineno} in {self.qualname}"

    def __repr__(self) -> str:
        return f"<Frame {self}>"


def _plain_frame(plain: PlainFrame) -> Frame:
    (filename, lineno, end_lineno, colno, end_colno, qualname, module, line) = plain
    return Frame(filename, lineno, end_lineno, (colno, end_colno), qualname, module,
                 line)


def resolve_frame(code: CodeType, lasti: int, module: str | None,
                  source: SourceFile) -> Frame:
    """
    :arg lasti: the offset of the instruction that made the call.
    :returns: the frame of a call in *code*.
    """
    lineno, end_lineno, *columns = position(code, lasti)
    if lineno is None:
        lineno = code.co_firstlineno or 1
    return Frame(code.co_filename, lineno, end_lineno, (columns[0], columns[1]),
                 getattr(code, "co_qualname", code.co_name), module, source)


Position = tuple["int | None", "int | None", "int | None", "int | None"]


def position(code: CodeType, lasti: int) -> Position:
    """
    :returns: first line, last line, first and last column (byte offsets) of the
        instruction at *lasti*.
    """
    if sys.version_info >= (3, 11):
        from itertools import islice
        return next(islice(code.co_positions(), max(lasti, 0) // 2, None),
                    (None, None, None, None))
    # Before its first instruction, as a trace function sees it, a call is on the line
    # of the definition.
    lineno = code.co_firstlineno if lasti < 0 else None
    for start, end, line in code.co_lines():
        if start <= lasti < end:
            lineno = line
    return lineno, lineno, None, None

# }}}


# {{{ site

_lock = threading.RLock()
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
                self.region or "", self.pass_name or "")
        return self._sort_key

    # }}}

    def in_region(self, region: str | None) -> CreationSite:
        """The site of the same call, made within *region*."""
        if region is None or self._path is None:
            return self
        return self._path.site(region)

    def _content(self) -> tuple[Any, ...]:
        return (self.kind, tuple(frame.plain()[:7] for frame in self.frames),
                self.region, self.pass_name)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.kind == "unknown":
            return _unknown, ()
        if self._members is not None:
            return merge_sites, (self.all_sites,)
        with _lock:
            # What comes back into this process is to be the very same object.
            _by_content.setdefault(self._content(), self)
        return _from_plain, (self.kind, self.frames, self.region, self.pass_name)

    def __copy__(self) -> CreationSite:
        return self

    def __deepcopy__(self, memo: object) -> CreationSite:
        return self

    def __str__(self) -> str:
        if self.kind == "unknown":
            return "unknown"
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
    union = frozenset(members)
    return _interned(union, lambda: CreationSite(kind="merged", members=union,
                                                 region=_only_region(union)))


def _only_region(sites: frozenset[CreationSite]) -> str | None:
    regions = {site.region for site in sites}
    return regions.pop() if len(regions) == 1 else None

# }}}
