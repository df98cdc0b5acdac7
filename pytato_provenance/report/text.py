"""
A record as text, by source line.

.. autofunction:: render_text
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytato_provenance.report.by_line import FileFindings, LineFindings, files_of
from pytato_provenance.report.visible import counted, shortened, some_of, visible


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytato_provenance.record import ProgramRecord, Record


_WIDTH = 88
_MOST_VARIABLES = 8
_MOST_CALLERS = 4
_MOST_PROGRAMS = 10
_MOST_STACKS = 5
MOST_LINES = 5000
"""How many source lines a report shows at most."""


def render_text(record: Record, *, stacks: bool = False) -> str:
    """
    :arg record: a :class:`~pytato_provenance.record.Record`.
    :arg stacks: whether the stack of each call that made arrays is shown.
    :returns: what each line of the program made, in how many arrays, and in which
        statements of which programs they ended up.
    """
    return "\n".join(_report(record, stacks)) + "\n"


def summary(record: Record, files: list[FileFindings]) -> str:
    """
    :returns: the numbers of a record in one line.
    """
    arrays = sum(nodes.count for program in record.programs for nodes in program.nodes)
    lines = sum(len(file.lines) for file in files if file.is_user)
    parts = [counted(len(record.programs), "program")]
    if arrays:
        parts.append(counted(arrays, "array"))
    parts.append(counted(lines, "source line"))
    return ", ".join(parts)


def versions(record: Record) -> str:
    """
    :returns: what the program ran on, in one line.
    """
    packages = [f"{name} {version}" for name, version in record.packages.items()]
    return ", ".join([*([f"Python {record.python}"] if record.python else []),
                      *packages])


def _report(record: Record, stacks: bool) -> Iterator[str]:
    files = files_of(record)
    yield f"{visible(record.program)}: {summary(record, files)}"
    yield f"{visible(record.ended)}; {visible(versions(record))}"
    for warning in record.warnings:
        yield f"warning: {visible(warning)}"
    if record.programs:
        yield ""
        yield "Programs"
        yield ""
        for number, program in enumerate(record.programs, 1):
            yield from _program(number, program)
    remaining = MOST_LINES
    for file in files:
        yield ""
        yield from _file(file, remaining, stacks)
        remaining -= len(file.lines)
        if remaining <= 0:
            break
    if record.root:
        yield ""
        yield f"Names of files are relative to {visible(record.root)}."


def contents_of(program: ProgramRecord) -> str:
    """
    :returns: how much there is of what in a program.
    """
    parts = [counted(len(program.statements), "statement")]
    for kind in ("input", "output", "temporary"):
        number = sum(variable.kind == kind for variable in program.variables)
        if number:
            parts.append(f"{number:,} temporaries" if kind == "temporary" and number > 1
                         else counted(number, kind))
    nodes = sum(nodes.count for nodes in program.nodes)
    if nodes:
        parts.append(f"from {counted(nodes, 'array')}")
    return ", ".join(parts)


def _program(number: int, program: ProgramRecord) -> Iterator[str]:
    name = visible(program.name)
    where = f" ({visible(program.file)})" if program.file else ""
    yield f"{number:5d}  {name}{where}: {contents_of(program)}"
    if program.failure is not None:
        yield f"       {visible(program.failure)}"


def _file(file: FileFindings, most: int, stacks: bool) -> Iterator[str]:
    made = f", {counted(file.number_of_nodes, 'array')}" if file.number_of_nodes else ""
    if not file.lines[0].line:
        yield f"{_heading_without_line(file)}{made}"
    else:
        owner = "" if file.is_user else " (not the user's)"
        lines = counted(len(file.lines), "line")
        yield f"{visible(file.name)}{owner}: {lines}{made}"
    if file.has_changed:
        yield "       The file has changed since; its lines are not shown."
    yield ""
    for line in file.lines[:max(most, 0)]:
        yield from _line(line, stacks)
    if len(file.lines) > most:
        yield f"       {counted(len(file.lines) - most, 'more line')}: see the record"


def _heading_without_line(file: FileFindings) -> str:
    if file.name == "unknown":
        return "Of unknown origin"
    return visible(file.name[:1].upper() + file.name[1:])


def _line(line: LineFindings, stacks: bool) -> Iterator[str]:
    if line.line:
        text = line.text.strip() or "(source not available)"
        yield f"{line.line:5d}  {shortened(text, _WIDTH - 7)}"
    details = [*details_of(line), *(_stacks(line) if stacks else ())]
    for detail in details:
        yield f"       {detail}"


def details_of(line: LineFindings) -> Iterator[str]:
    """
    :returns: what is to be said of a line, in a few short lines.
    """
    about: list[str] = []
    functions = [visible(name) for name in line.functions if name != "<module>"]
    if functions:
        about.append(f"in {some_of(functions, 2)}")
    if line.callers:
        callers = [visible(caller) for caller in sorted(line.callers)]
        about.append(f"called from {some_of(callers, _MOST_CALLERS)}")
    if line.regions:
        about.append(f"region {some_of([*map(visible, sorted(line.regions))], 3)}")
    if about:
        yield "; ".join(about)
    made = [f"{number:,} {visible(kind)}" for kind, number in line.nodes.most_common()]
    if made:
        yield f"made {some_of(made, _MOST_VARIABLES)}"
    yield from _programs("input of", line.inputs)
    yield from _programs("evaluated in", line.stored)
    if line.nodes and not line.stored and not line.inputs:
        yield "not in any statement"


def _programs(verb: str, names: dict[int, dict[str, None]]) -> Iterator[str]:
    """Programs of which the same is to be said together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for position, variables in names.items():
        alike.setdefault((*variables,), []).append(str(position + 1))
    for variables, positions in alike.items():
        programs = "program" if len(positions) == 1 else "programs"
        yield (f"{verb} {programs} {some_of(positions, _MOST_PROGRAMS)}: "
               f"{some_of([*map(visible, variables)], _MOST_VARIABLES)}")


def _stacks(line: LineFindings) -> Iterator[str]:
    for site in line.sites[:_MOST_STACKS]:
        yield "stack:"
        for frame in site.frames:
            yield f"  {visible(str(frame))}"
    if len(line.sites) > _MOST_STACKS:
        yield f"and {counted(len(line.sites) - _MOST_STACKS, 'more stack')}"
