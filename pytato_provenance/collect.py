"""
From the programs that were generated to a record.

.. autofunction:: make_record
.. autoclass:: SiteTable
"""

from __future__ import annotations

import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any

from pytato_provenance.annotation_options import DEFAULT, AnnotationOptions
from pytato_provenance.record import (
    FrameRecord,
    NodesRecord,
    ProgramRecord,
    Record,
    SiteRecord,
    StatementRecord,
    VariableRecord,
)
from pytato_provenance.sites import CreationSite


if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytato_provenance.lowering import Entry
    from pytato_provenance.lowering.origins import Origin
    from pytato_provenance.lowering.source import StatementText
    from pytato_provenance.path_names import PathNames
    from pytato_provenance.sites import Frame


_PACKAGES = ("pytato", "loopy", "arraycontext", "pyopencl", "pymbolic", "pytools",
             "islpy", "numpy", "pytato-provenance")


def package_versions() -> dict[str, str]:
    """
    :returns: the versions of what takes part and is installed.
    """
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


# {{{ sites

class SiteTable:
    """Numbers for sites, in the order of their coming.

    .. attribute:: records

        The sites by number, as plain data.

    .. attribute:: changed_files
    .. automethod:: numbers
    """

    def __init__(self, names: PathNames) -> None:
        self.records: list[SiteRecord] = []
        self.changed_files: set[str] = set()
        self._names = names
        # Sites and frames are interned; the values keep the keys' objects alive.
        self._numbers: dict[int, tuple[CreationSite, int]] = {}
        self._frames: dict[int, tuple[Frame, FrameRecord]] = {}
        self._by_content: dict[SiteRecord, int] = {}

    def numbers(self, sites: Iterable[CreationSite]) -> tuple[int, ...]:
        """
        :returns: the number of each site, of each member for a merged one.
        """
        return tuple(dict.fromkeys(
            self._number(member) for site in sites for member in site.all_sites))

    def _number(self, site: CreationSite) -> int:
        known = self._numbers.get(id(site))
        if known is None:
            record = SiteRecord(site.kind, self._stack(site.frames), site.region,
                                site.pass_name)
            number = self._by_content.setdefault(record, len(self.records))
            if number == len(self.records):
                self.records.append(record)
            known = self._numbers[id(site)] = site, number
        return known[1]

    def _stack(self, frames: tuple[Frame, ...]) -> tuple[FrameRecord, ...]:
        return tuple(self._frame(frame) for frame in frames)

    def _frame(self, frame: Frame) -> FrameRecord:
        known = self._frames.get(id(frame))
        if known is None:
            name = self._names.shown(frame.filename)
            if frame.source_state == "changed":
                self.changed_files.add(name)
            record = FrameRecord(
                name, frame.lineno, frame.end_lineno, frame.colno, frame.end_colno,
                frame.qualname, frame.line, frame.is_user)
            known = self._frames[id(frame)] = frame, record
        return known[1]

# }}}


# {{{ programs

def _name_of(t_unit: Any) -> str:
    return ", ".join(sorted(map(str, t_unit.entrypoints))) or "program"


def _program(entry: Entry, t_unit: Any, table: SiteTable, annotated: bool,
             comments: AnnotationOptions) -> ProgramRecord:
    from pytato_provenance.lowering.origins import Origin
    from pytato_provenance.lowering.source import annotated_source

    name = _name_of(t_unit)
    try:
        source = annotated_source(t_unit, comments)
    except Exception as error:
        # Such as a user's transformation that cannot be scheduled: the user has seen
        # the error, or never ran the program.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return ProgramRecord(name, nodes=_nodes(entry, table),
                             failure=f"its text could not be generated: {reason}")
    nobody = Origin("", frozenset())
    return ProgramRecord(
        name, None, source.text if annotated else source.plain,
        tuple(_statement(item, item.origin or nobody, table, annotated)
              for item in source.statements),
        tuple(VariableRecord(name, item.kind, table.numbers(_in_order(item.sites)))
              for name, item in source.variables.items()),
        _nodes(entry, table))


def _statement(item: StatementText, origin: Origin, table: SiteTable, annotated: bool
               ) -> StatementRecord:
    first, last = item.lines if annotated else item.plain_lines
    return StatementRecord(
        item.insn_id, origin.variable, first, last,
        table.numbers(_in_order(origin.sites)), origin.title, origin.by_loopy)


def _in_order(sites: Iterable[CreationSite]) -> list[CreationSite]:
    return sorted(sites, key=CreationSite.sort_key)


def _nodes(entry: Entry, table: SiteTable) -> tuple[NodesRecord, ...]:
    return tuple(NodesRecord(kind, number, table.numbers((site,)))
                 for (site, kind), number in entry.census.items())


def make_record(program: str, ended: str, entries: Iterable[Entry],
                names: PathNames, *, annotated: bool = True,
                comments: AnnotationOptions = DEFAULT, root: str = "",
                warnings: Iterable[str] = ()) -> Record:
    """
    :arg program: the name of what was run.
    :arg ended: how it ended.
    :arg entries: of a :class:`~pytato_provenance.lowering.Ledger`.
    :arg names: what files are called.
    :arg annotated: whether the texts have comments.
    :arg comments: what the comments look like.
    :arg root: in words, what names of files are relative to.
    :arg warnings: what went wrong in recording.
    """
    table = SiteTable(names)
    entries = [*entries]
    programs: list[ProgramRecord] = []
    for entry in entries:
        texts: set[str | None] = set()
        for t_unit in entry.programs:
            record = _program(entry, t_unit, table, annotated, comments)
            # Some hosts make a new executor for each call.
            if record.text is None or record.text not in texts:
                programs.append(record)
            texts.add(record.text)
    return Record(program, ended, root, platform.python_version(), package_versions(),
                  tuple(sorted(table.changed_files)), tuple(table.records),
                  tuple(programs), (*warnings, *(
                      "a program could not be compiled: "
                      + "; ".join(map(str.strip, failure.splitlines()))
                      for entry in entries for failure in entry.failures)))

# }}}
