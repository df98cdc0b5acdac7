"""
Who is told about generated programs.

.. autoclass:: Ledger
.. autoclass:: Entry
.. autofunction:: census_of
.. autofunction:: is_any_open

Nothing is kept unless somebody asks.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytato_provenance import scope as _scope
from pytato_provenance._host import Node, host
from pytato_provenance.lowering.instruction_tags import (
    Census,
    Program,
    statement_sites,
)
from pytato_provenance.sites import UNKNOWN
from pytato_provenance.tags import site_of


if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass
class Entry:
    """A program that was generated while a :class:`Ledger` was open.

    .. attribute:: number

        Counts the programs of this process, from 1.

    .. attribute:: generated

        The :class:`loopy.TranslationUnit` as :mod:`pytato` made it.

    .. attribute:: compiled

        What loopy was asked to compile for it, after the user's transformations: for
        each executor, in the order in which they were first called.

    .. attribute:: failures

        What hosts said when they could not compile it, with notes of ours.

    .. attribute:: census

        How many arrays it was generated from, by site and name of the type.

    .. autoattribute:: programs
    """

    number: int
    generated: Any
    compiled: list[Any] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    census: Census = field(default_factory=dict)

    @property
    def programs(self) -> list[Any]:
        """What to show: what was compiled, or else what was generated."""
        return self.compiled or [self.generated]


class Ledger:
    """Collects every program that is generated, in any thread, while it is open.

    A context manager.

    .. attribute:: entries

        A :class:`list` of :class:`Entry`, in the order of generation.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._by_number: dict[int, Entry] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> Ledger:
        global _open
        _open = (*_open, self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        global _open
        _open = tuple(ledger for ledger in _open if ledger is not self)

    def note(self, program: Program | None, t_unit: Any, *, compiled: bool) -> None:
        """
        :arg program: the run of ``generate_loopy`` that *t_unit* comes from.
        """
        number = 0 if program is None else program.number
        with self._lock:
            entry = self._by_number.get(number)
            if entry is None:
                entry = self._by_number[number] = Entry(
                    number, t_unit, census={} if program is None else program.census)
                self.entries.append(entry)
            if compiled and all(t_unit is not other for other in entry.compiled):
                entry.compiled.append(t_unit)

    def failed(self, program: Program | None, message: str) -> None:
        """
        :arg message: why the program could not be compiled.
        """
        with self._lock:
            entry = self._by_number.get(0 if program is None else program.number)
            if entry is not None and message not in entry.failures:
                entry.failures.append(message)


_open: tuple[Ledger, ...] = ()


def is_any_open() -> bool:
    """
    :returns: whether somebody waits for programs.
    """
    return bool(_open)


def census_of(nodes: Iterable[Node]) -> Census:
    """
    :returns: the numbers of arrays among *nodes*; nothing, if nobody asks.
    """
    if not _open:
        return {}
    array = host().array
    return Counter((site_of(node) or UNKNOWN, type(node).__name__)
                   for node in nodes if isinstance(node, array))


def program_of(t_unit: Any) -> Program | None:
    """
    :returns: the run of ``generate_loopy`` that made *t_unit*, where that is known.
    """
    for name in sorted(t_unit.entrypoints):
        for insn in t_unit[name].instructions:
            sites = statement_sites(insn)
            if sites is not None and sites.program is not None:
                return sites.program
    return None


def _announce(t_unit: Any, compiled: bool) -> None:
    if not _open:
        return
    try:
        program = program_of(t_unit)
        for ledger in _open:
            ledger.note(program, t_unit, compiled=compiled)
    except Exception as error:
        _scope.warn_once(error)


def announce_generated(bound: Any) -> None:
    """A bound program was made."""
    _announce(bound.program, compiled=False)


def announce_compiled(t_unit: Any) -> None:
    """An executor is going to compile *t_unit*."""
    _announce(t_unit, compiled=True)


def announce_failed(t_unit: Any, message: str, note: str) -> None:
    """*t_unit* could not be compiled."""
    for ledger in _open:
        ledger.failed(program_of(t_unit), f"{message}\n{note}".strip())
