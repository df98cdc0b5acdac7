"""
Sites as the lines of comments.

.. autoclass:: FileNames
.. autofunction:: site_lines
.. autofunction:: header_lines
.. autofunction:: variable_lines
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytato_provenance.lowering.text import HEADER, one_line
from pytato_provenance.sites import CreationSite, Frame


if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytato_provenance.lowering.instruction_tags import Sites, VariableSites


_MOST_LINES = 12
_WIDEST_PLACE = 60
_WIDEST_TEXT = 80
_MOST_STACKS = 5
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _frame_of(site: CreationSite) -> Frame | None:
    frame = site.user_frame
    if frame is None and site.frames:
        frame = site.frames[0]
    return frame


class FileNames:
    """Files by the shortest names that tell them apart: no absolute paths.

    .. automethod:: short
    .. autoattribute:: files
    .. attribute:: stacks

        Whether the stack that led to each place is shown.
    """

    def __init__(self, sites: Iterable[CreationSite], *, stacks: bool = False) -> None:
        self.stacks = stacks
        files = {frame.filename for site in sites
                 if (frame := _frame_of(site)) is not None}
        self._short = _shortest(sorted(files))

    def short(self, filename: str) -> str:
        """
        :returns: a name for *filename*, harmless in a comment.
        """
        name = self._short.get(filename)
        return one_line(os.path.basename(filename) if name is None else name)

    @property
    def files(self) -> list[str]:
        """The short names, sorted."""
        return sorted(map(one_line, self._short.values()))


def _shortest(files: list[str]) -> dict[str, str]:
    parts = {name: name.replace(os.sep, "/").split("/") for name in files}
    length = dict.fromkeys(files, 1)
    while True:
        short = {name: "/".join(parts[name][-length[name]:]) for name in files}
        seen: dict[str, list[str]] = {}
        for name, brief in short.items():
            seen.setdefault(brief, []).append(name)
        longer = [name for names in seen.values() if len(names) > 1 for name in names
                  if length[name] < len(parts[name])]
        if not longer:
            return short
        for name in longer:
            length[name] += 1


@dataclass(frozen=True)
class _Place:
    file: str
    lineno: int
    where: str
    text: str
    stacks: dict[str, None] = field(default_factory=dict)


def _stack_of(site: CreationSite, names: FileNames) -> str:
    """The calls that led to the place of *site*, innermost first."""
    frames = iter(site.frames)
    place = _frame_of(site)
    callers: list[str] = []
    for frame in frames:
        if frame is place:
            break
    for caller in frames:
        if caller.filename.startswith(_PACKAGE):
            # The command line that runs the program.
            break
        callers.append(f"{names.short(caller.filename)}:{caller.lineno} "
                       f"in {one_line(caller.qualname)}")
    return ", ".join(callers)


def _places(sites: Sites, names: FileNames) -> list[_Place]:
    """Each line once, in source order; unknown ones last."""
    found: dict[tuple[str, int, str], _Place] = {}
    rest: list[_Place] = []
    for site in sorted(sites, key=CreationSite.sort_key):
        frame = _frame_of(site)
        if frame is None:
            rest.append(_Place("", 0, one_line(str(site)), ""))
            continue
        key = frame.filename, frame.lineno, frame.qualname
        if key not in found:
            file = names.short(frame.filename)
            where = f"{file}:{frame.lineno} in {one_line(frame.qualname)}"
            if site.region is not None:
                where += f" [{one_line(site.region)}]"
            found[key] = _Place(file, frame.lineno, where,
                                one_line(frame.line, _WIDEST_TEXT))
        stack = _stack_of(site, names) if names.stacks else ""
        if stack:
            found[key].stacks[stack] = None
    return [*sorted(found.values(), key=lambda place: (place.file, place.lineno)),
            *rest]


def site_lines(sites: Sites, names: FileNames, *, most: int = _MOST_LINES
               ) -> list[str]:
    """
    :returns: a line for each place of *sites*, in source order and grouped by file:
        file and line, function, the text of the line; beneath it the stacks, if they
        are asked for.
    """
    places = _places(sites, names)
    shown = places if len(places) <= most + 1 else places[:most]
    width = min(max((len(place.where) for place in shown if place.text), default=0),
                _WIDEST_PLACE)
    lines: list[str] = []
    for place in shown:
        lines.append(f"{place.where:<{width}} | {place.text}" if place.text
                     else place.where)
        stacks = [*place.stacks]
        lines.extend(f"  from {stack}" for stack in stacks[:_MOST_STACKS])
        if len(stacks) > _MOST_STACKS:
            lines.append(f"  and {len(stacks) - _MOST_STACKS} more stacks")
    if len(shown) < len(places):
        lines.append(f"and {len(places) - len(shown)} more")
    return lines


def header_lines(kernels: Iterable[str], names: FileNames, marker: str) -> list[str]:
    """
    :returns: what stands above a program.
    """
    title = ", ".join(map(one_line, kernels)) or "a program"
    files = names.files
    if not files:
        return [f"{HEADER} {title}: no creation sites are known (it was generated "
                "while annotating was off, or its arrays while nothing was recorded)"]
    return [
        f"{HEADER} {title}, made in {', '.join(files)}",
        "Above each statement: the lines of all array operations that it evaluates.",
        f"Lines that begin with {marker} are not loopy's; "
        "strip_annotations(text) takes them out.",
    ]


def variable_lines(variables: Iterable[tuple[str, VariableSites]], names: FileNames
                   ) -> list[str]:
    """
    :returns: a line for each argument and global temporary.
    """
    rows: list[tuple[str, str]] = []
    for name, variable in variables:
        lines = site_lines(variable.sites, names, most=3)
        rows.extend((f"{variable.kind:<9} {name}" if i == 0 else "", line)
                    for i, line in enumerate(lines))
    width = max((len(label) for label, _ in rows), default=0)
    return [f"{label:<{width}}  {line}" for label, line in rows]
