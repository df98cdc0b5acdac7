"""
Places in the program's source, as comments show them.

.. autoclass:: Places
.. autoclass:: Place
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytato_provenance.annotation_options import DEFAULT, AnnotationOptions
from pytato_provenance.lowering.text import one_line
from pytato_provenance.path_names import PathNames
from pytato_provenance.sites import CreationSite


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytato_provenance.sites import Frame


# The name of the file, the line and the function.
_Key = tuple[str, int, str]

# First line, first column, last line, column after the last one.
_Span = tuple[int, int, int, int]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MOST_CALLS = 3
_MOST_CALLERS = 4
# How far out callers are told apart: recursion has long stacks.
_DEEPEST = 500


def frame_of(site: CreationSite) -> Frame | None:
    """
    :returns: the frame that stands for *site*.
    """
    frame = site.user_frame
    if frame is None and site.frames:
        frame = site.frames[0]
    return frame


def _key(frame: Frame) -> _Key:
    return frame.filename, frame.lineno, frame.qualname


# {{{ names of files

def _shortest(files: Iterable[str]) -> dict[str, str]:
    """The shortest names that tell *files* apart."""
    parts = {name: name.replace(os.sep, "/").split("/") for name in sorted({*files})}
    length = dict.fromkeys(parts, 1)
    while True:
        short = {name: "/".join(parts[name][-length[name]:]) for name in parts}
        seen: dict[str, list[str]] = {}
        for name, brief in short.items():
            seen.setdefault(brief, []).append(name)
        longer = [name for names in seen.values() if len(names) > 1 for name in names
                  if length[name] < len(parts[name])]
        if not longer:
            return short
        for name in longer:
            length[name] += 1

# }}}


# {{{ callers

def _call(frame: Frame) -> tuple[str, int, str, int | None]:
    return (*_key(frame), frame.colno)


def _distinguishing_calls(sites: list[CreationSite]
                          ) -> dict[CreationSite, tuple[Frame, ...]]:
    """For sites of one line, the calls at which the ways to them part."""
    found: dict[CreationSite, tuple[Frame, ...]] = dict.fromkeys(sites, ())
    stacks = {site: site.user_frames[1:_DEEPEST] for site in sites}
    pending = [(sites, 0)]
    while pending:
        group, depth = pending.pop()
        parts: defaultdict[object, list[CreationSite]] = defaultdict(list)
        for site in group:
            stack = stacks[site]
            parts[_call(stack[depth]) if depth < len(stack) else None].append(site)
        for key, part in parts.items():
            if key is None:
                continue
            if len(parts) > 1:
                for site in part:
                    found[site] = (*found[site], stacks[site][depth])
            if len(part) > 1:
                pending.append((part, depth + 1))
    return found

# }}}


# {{{ text

def _outermost(spans: Iterable[_Span]) -> list[_Span]:
    found: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span[:2], (-span[2], -span[3]))):
        if not found or span[2:] > found[-1][2:]:
            found.append(span)
    return found


def _line(frame: Frame, lineno: int) -> str:
    source = frame._source
    if isinstance(source, str):
        return source if lineno == frame.lineno else ""
    return source.line(lineno)


def _excerpt(frame: Frame, span: _Span) -> str:
    """The expression, on a line."""
    first, start, last, end = span
    if first == last:
        return _line(frame, first)[start:end]
    lines = [_line(frame, number) for number in range(first, last + 1)]
    return _joined([lines[0][start:], *lines[1:-1], lines[-1][:end]])


def _joined(lines: Iterable[str]) -> str:
    text = " ".join(line.strip() for line in lines)
    for bracket in "([{":
        text = text.replace(f"{bracket} ", bracket)
    for bracket in ")]}":
        text = text.replace(f" {bracket}", bracket)
    return text


def _source_text(frame: Frame, here: Iterable[_Span], everywhere: Iterable[_Span],
                 width: int) -> str:
    line = frame.line
    spans = _outermost(here)
    if not line or not spans:
        return one_line(line, width)
    if spans == _outermost(everywhere):
        # All of the line: what the result is called is worth seeing.
        last = max(span[2] for span in spans)
        whole = _joined(_line(frame, number)
                        for number in range(frame.lineno, last + 1))
        if len(whole) <= width:
            return one_line(whole)
    return one_line("; ".join(_excerpt(frame, span) for span in spans), width)

# }}}


@dataclass
class Place:
    """A line of the program, in a function.

    .. attribute:: file
    .. attribute:: lineno

        0 where there is none.

    .. attribute:: columns
    .. attribute:: where

        The function, and the regions.

    .. attribute:: text
    .. attribute:: callers

        Calling lines, where the line was reached from several.

    .. attribute:: stacks

        All of them, as a set in order.
    """

    file: str
    lineno: int
    where: str
    text: str = ""
    columns: str = ""
    callers: tuple[str, ...] = ()
    stacks: dict[str, None] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, str]:
        """What is one place, however it was reached."""
        return self.file, self.lineno, self.where


class Places:
    """What a program's sites look like.

    .. automethod:: of
    .. autoattribute:: files
    .. attribute:: regions

        All of them, sorted.
    """

    def __init__(self, sites: Iterable[CreationSite],
                 options: AnnotationOptions = DEFAULT) -> None:
        """
        :arg sites: all that occur in the program.
        """
        self.options = options
        by_line: dict[_Key, list[CreationSite]] = {}
        spans: dict[_Key, set[_Span]] = {}
        regions: set[str | None] = set()
        members = {member for site in sites for member in site.all_sites}
        for site in sorted(members, key=CreationSite.sort_key):
            regions.add(site.region)
            frame = frame_of(site)
            if frame is not None:
                by_line.setdefault(_key(frame), []).append(site)
                spans.setdefault(_key(frame), set()).update(_spans(frame))
        self.regions = sorted(region for region in regions if region is not None)
        self._has_one_region = len(regions) == 1
        self._spans = spans
        self._calls: dict[CreationSite, tuple[Frame, ...]] = {}
        if options.callers:
            for group in by_line.values():
                if len(group) > 1:
                    self._calls.update(_distinguishing_calls(group))
        self._own_files = sorted({key[0] for key in by_line})
        self._name_files(
            {*self._own_files, *(call.filename for calls in self._calls.values()
                                 for call in calls)})

    # {{{ names

    def _name_files(self, files: set[str]) -> None:
        options = self.options
        self._paths = PathNames(options.root or os.curdir,
                                absolute=options.paths == "absolute")
        self._names: Mapping[str, str] = (
            _shortest(files) if options.paths == "short"
            else {name: self._paths.shown(name) for name in files})

    def file(self, filename: str) -> str:
        """
        :returns: a name for *filename*, harmless in a comment.
        """
        name = self._names.get(filename)
        if name is None:
            name = (os.path.basename(filename) if self.options.paths == "short"
                    else self._paths.shown(filename))
        return one_line(name)

    def path(self, filename: str) -> str:
        """
        :returns: a path to *filename*, relative or absolute.
        """
        return self._paths.shown(filename)

    @property
    def files(self) -> list[str]:
        """The names of the files of all sites, sorted."""
        return sorted(map(self.file, self._own_files))

    # }}}

    def of(self, sites: Iterable[CreationSite],
           among: Iterable[CreationSite] | None = None) -> list[Place]:
        """
        :arg sites: what to show.
        :arg among: all that is evaluated with them.
        :returns: each line once, in source order; what is unknown last.
        """
        members = {member for site in sites for member in site.all_sites}
        spans: defaultdict[_Key, set[_Span]] = defaultdict(set)
        for site in members if among is None else {*members, *among}:
            frame = frame_of(site)
            if frame is not None:
                spans[_key(frame)].update(_spans(frame))
        groups: dict[_Key | str, list[CreationSite]] = {}
        for site in sorted(members, key=CreationSite.sort_key):
            frame = frame_of(site)
            groups.setdefault(
                str(site) if frame is None else _key(frame), []).append(site)
        found: list[Place] = []
        rest: list[Place] = []
        for key, group in groups.items():
            if isinstance(key, str):
                rest.append(Place("", 0, one_line(key)))
            else:
                found.append(self._place(group, spans[key]))
        found.sort(key=lambda place: (place.file, place.lineno))
        return found + rest

    def _place(self, group: list[CreationSite], spans: set[_Span]) -> Place:
        options = self.options
        frame = frame_of(group[0])
        assert frame is not None
        where = one_line(frame.qualname)
        regions = sorted({site.region for site in group if site.region is not None})
        if regions and not self._has_one_region:
            where += f" [{', '.join(map(one_line, regions))}]"
        text = columns = ""
        if options.text:
            text = _source_text(frame, spans, self._spans[_key(frame)], options.width)
        if options.columns:
            columns = _columns(_outermost(spans))
        place = Place(self.file(frame.filename), frame.lineno, where, text, columns,
                      self._callers(group))
        if options.stacks:
            place.stacks.update(dict.fromkeys(
                stack for site in group if (stack := self._stack(site, frame))))
        return place

    # {{{ callers

    def _callers(self, group: list[CreationSite]) -> tuple[str, ...]:
        labels = dict.fromkeys(
            self._label(calls) for site in group if (calls := self._calls.get(site)))
        if len(labels) > _MOST_CALLERS:
            shown = [*labels][:_MOST_CALLERS - 1]
            return (*shown, f"{len(labels) - len(shown)} more")
        return tuple(labels)

    def _label(self, calls: tuple[Frame, ...]) -> str:
        shown = [f"{self.file(call.filename)}:{call.lineno}"
                 for call in calls[:_MOST_CALLS]]
        if len(calls) > _MOST_CALLS:
            shown.append("...")
        return " < ".join(shown)

    def _stack(self, site: CreationSite, place: Frame) -> str:
        """The calls that led to the place of *site*, innermost first."""
        frames = iter(site.frames)
        own = frame_of(site)
        callers: list[str] = []
        for frame in frames:
            if frame is own:
                break
        for caller in frames:
            if caller.filename.startswith(_PACKAGE):
                # The command line that runs the program.
                break
            callers.append(f"{self.file(caller.filename)}:{caller.lineno} "
                           f"in {one_line(caller.qualname)}")
        return ", ".join(callers)

    # }}}


def _spans(frame: Frame) -> list[_Span]:
    start, end, last = frame.colno, frame.end_colno, frame.end_lineno
    if start is None or end is None or last is None:
        return []
    return [(frame.lineno, start, last, end)]


def _columns(spans: list[_Span]) -> str:
    return ",".join(
        f"{start + 1}-{end}" if first == last else f"{start + 1}-{last}:{end}"
        for first, start, last, end in spans)
