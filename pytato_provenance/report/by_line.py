"""
A record, turned round: what each source line made, and what became of it.

.. autofunction:: files_of
.. autoclass:: FileFindings
.. autoclass:: LineFindings
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pytato_provenance.record import Record, SiteRecord, StatementRecord


@dataclass
class LineFindings:
    """
    .. attribute:: line

        From 1; 0 for what has no line.

    .. attribute:: functions

        The functions that the line is part of, usually one.

    .. attribute:: text

        The line itself, ``""`` where that is unknown.

    .. attribute:: callers

        Where the user's code called that function from, with how many sites.

    .. attribute:: regions
    .. attribute:: nodes

        How many nodes the line made, by type.

    .. attribute:: stored

        For each program, by its position in the record: what statements store that
        evaluate something of the line, in the order of the statements.

    .. attribute:: inputs

        For each program: its inputs that the line made.

    .. attribute:: sites

        Each way in which the program came to the line.
    """

    line: int
    functions: dict[str, None] = field(default_factory=dict)
    text: str = ""
    callers: Counter[str] = field(default_factory=Counter)
    regions: set[str] = field(default_factory=set)
    nodes: Counter[str] = field(default_factory=Counter)
    stored: dict[int, dict[str, None]] = field(default_factory=dict)
    inputs: dict[int, dict[str, None]] = field(default_factory=dict)
    sites: list[SiteRecord] = field(default_factory=list)


@dataclass
class FileFindings:
    """
    .. attribute:: name
    .. attribute:: is_user
    .. attribute:: has_changed

        Whether the file was no longer what ran when the record was made.

    .. attribute:: lines

        In order.
    """

    name: str
    is_user: bool
    has_changed: bool = False
    lines: list[LineFindings] = field(default_factory=list)

    @property
    def number_of_nodes(self) -> int:
        """How many nodes its lines made."""
        return sum(sum(line.nodes.values()) for line in self.lines)


def _heading(site: SiteRecord) -> tuple[str, int, bool]:
    """Under which file and line a site is listed, and whether that is the user's."""
    frame = site.user_frame
    if frame is not None:
        return frame.file, frame.line, True
    if site.frames:
        return site.frames[0].file, site.frames[0].line, False
    if site.kind == "synthetic":
        return f"made by {site.made_by}", 0, False
    return "unknown", 0, False


def _add_site(line: LineFindings, site: SiteRecord) -> None:
    line.sites.append(site)
    frames = [frame for frame in site.frames if frame.is_user] or [*site.frames]
    if frames:
        line.functions[frames[0].function] = None
        line.text = line.text or frames[0].text
    if len(frames) > 1:
        line.callers[f"{frames[1].file}:{frames[1].line}"] += 1
    if site.region is not None:
        line.regions.add(site.region)


def _is_auxiliary(statement: StatementRecord) -> bool:
    return statement.by_loopy or statement.title.startswith("bound of")


def files_of(record: Record) -> list[FileFindings]:
    """
    :returns: the files of the user first, in alphabetical order; then libraries'; then
        what no line made.
    """
    lines: dict[tuple[str, int, bool], LineFindings] = {}
    by_site: list[LineFindings | None] = [None] * len(record.sites)

    def line_of(number: int) -> LineFindings:
        # What only variables or stacks refer to is not listed.
        line = by_site[number]
        if line is None:
            site = record.sites[number]
            heading = _heading(site)
            line = by_site[number] = lines.setdefault(heading, LineFindings(heading[1]))
            _add_site(line, site)
        return line

    for position, program in enumerate(record.programs):
        for nodes in program.nodes:
            # Merged nodes have several sites, perhaps of one line.
            for line in {id(line): line for line in map(line_of, nodes.sites)}.values():
                line.nodes[nodes.type] += nodes.count
        # What others serve comes first: those have all the sites.
        for statement in sorted(program.statements, key=_is_auxiliary):
            for number in statement.sites:
                stored = line_of(number).stored.setdefault(position, {})
                if not stored or not _is_auxiliary(statement):
                    stored[statement.variable or statement.id] = None
        for variable in program.variables:
            for number in variable.sites if variable.kind == "input" else ():
                inputs = line_of(number).inputs.setdefault(position, {})
                inputs[variable.name] = None

    files: dict[tuple[str, bool], FileFindings] = {}
    for (name, number, is_user), line in lines.items():
        file = files.setdefault((name, is_user), FileFindings(
            name, is_user, name in record.changed_files))
        file.lines.append(line)
        assert line.line == number
    for file in files.values():
        file.lines.sort(key=lambda line: line.line)
    return sorted(files.values(), key=lambda file: (
        not file.is_user, file.lines[0].line == 0, file.name))
