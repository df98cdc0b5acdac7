"""
What statements serve that :mod:`loopy` made by itself.

.. autoclass:: Derived
.. autofunction:: derived_statements

Reductions, prefetches and other transformations add statements without tags. They
inherit through definitions and uses: from the statements that read what they write,
or, where they write an array of the program, from those that write what they read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from loopy import CallInstruction
from loopy.symbolic import TypeCast
from pymbolic.primitives import Subscript, Variable


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loopy import LoopKernel
    from loopy.kernel.instruction import InstructionBase

    from pytato_provenance.lowering.instruction_tags import Sites
    from pytato_provenance.lowering.tables import KernelSites


@dataclass(frozen=True)
class Derived:
    """
    .. attribute:: sites

        Of the array operations that are served.

    .. attribute:: role

        What the statement does, in a few words.

    .. attribute:: serves

        The identifiers of the statements that it was inherited from, sorted.

    .. attribute:: subject

        Of *sites*, those that say best what is served: the operation that reduces, or
        what the statements store.

    .. attribute:: is_brief

        Whether the statement evaluates nothing of the program, but moves or prepares
        values.
    """

    sites: Sites
    role: str
    serves: tuple[str, ...]
    subject: Sites
    is_brief: bool


class _Flow:
    """Definitions and uses of the variables of a kernel."""

    def __init__(self, kernel: LoopKernel) -> None:
        self.insns = {insn.id: insn for insn in kernel.instructions}
        inames = kernel.all_inames()
        self.writes = {insn_id: frozenset(insn.assignee_var_names())
                       for insn_id, insn in self.insns.items()}
        self.reads = {insn_id: _reads(insn) - inames
                      for insn_id, insn in self.insns.items()}
        self.writers: dict[str, set[str]] = defaultdict(set)
        self.readers: dict[str, set[str]] = defaultdict(set)
        for insn_id in self.insns:
            for name in self.writes[insn_id]:
                self.writers[name].add(insn_id)
            for name in self.reads[insn_id]:
                self.readers[name].add(insn_id)

    def next_of(self, insn_id: str, names: Iterable[str], forward: bool
                ) -> Iterable[str]:
        others = self.readers if forward else self.writers
        return {other for name in names for other in others[name]} - {insn_id}

    def is_update(self, insn_id: str) -> bool:
        return bool(self.writes[insn_id] & self.reads[insn_id])


def _reads(insn: InstructionBase) -> frozenset[str]:
    return frozenset(insn.read_dependency_names())


def _reached(flow: _Flow, start: str, sites: KernelSites, *, forward: bool
             ) -> tuple[set[str], set[str]]:
    """The nearest statements of the program that *start* leads to, and its arrays that
    are written on the way."""
    found: set[str] = set()
    arrays: set[str] = set()
    seen = {start}
    pending = [start]
    while pending:
        current = pending.pop()
        names = flow.writes[current] if forward else flow.reads[current]
        # What comes before or after an array of the program is not for its sake.
        ends = names & sites.variables.keys()
        if forward:
            arrays |= ends
        for other in flow.next_of(current, names - ends, forward):
            if other in sites.statements:
                found.add(other)
            elif other not in seen:
                seen.add(other)
                pending.append(other)
    return found, arrays


@dataclass
class _Served:
    statements: set[str]
    arrays: set[str]

    def sites(self, known: KernelSites) -> Sites:
        return self._of(known, [known.statements[name].sites
                                for name in self.statements])

    def stored(self, known: KernelSites) -> Sites:
        return self._of(known, [known.statements[name].stored
                                for name in self.statements])

    def _of(self, known: KernelSites, found: list[Sites]) -> Sites:
        return frozenset().union(*found, *(
            known.variables[name].sites for name in self.arrays))


def _served(flow: _Flow, insn_id: str, sites: KernelSites) -> _Served:
    written = flow.writes[insn_id] & sites.variables.keys()
    forward = not written
    statements, arrays = _reached(flow, insn_id, sites, forward=forward)
    if not (statements or arrays):
        statements, arrays = _reached(flow, insn_id, sites, forward=not forward)
    return _Served(statements, arrays or (set() if statements else {*written}))


def derived_statements(kernel: LoopKernel, sites: KernelSites) -> dict[str, Derived]:
    """
    :arg kernel: a kernel, preprocessed and possibly linearised.
    :arg sites: what is known of it by name.
    :returns: by identifier, for each instruction that is not known but serves one that
        is.
    """
    flow = _Flow(kernel)
    found: dict[str, Derived] = {}
    accumulators: dict[str, tuple[Sites, Sites]] = {}
    served = {insn_id: _served(flow, insn_id, sites) for insn_id in flow.insns
              if insn_id not in sites.statements}
    nothing: tuple[Sites, Sites] = (frozenset(), frozenset())
    for insn_id, serves in served.items():
        if flow.is_update(insn_id):
            narrowed = _narrowed(flow.insns[insn_id], sites, serves.statements)
            for name in flow.writes[insn_id]:
                former = accumulators.get(name, nothing)
                accumulators[name] = former[0] | narrowed[0], former[1] | narrowed[1]
    for insn_id, serves in served.items():
        if not (serves.statements or serves.arrays):
            continue
        reductions = [accumulators.get(name, nothing) for name in flow.writes[insn_id]]
        all_sites = frozenset().union(*(reduction[0] for reduction in reductions))
        reducing = frozenset().union(*(reduction[1] for reduction in reductions))
        role = _role(flow, insn_id, sites, accumulators)
        found[insn_id] = Derived(
            all_sites or serves.sites(sites), role, tuple(sorted(serves.statements)),
            reducing or serves.stored(sites), _is_move(flow.insns[insn_id]))
    return found


def _is_move(insn: InstructionBase) -> bool:
    """Whether *insn* evaluates nothing: a constant or an element goes somewhere."""
    expression = getattr(insn, "expression", None)
    while isinstance(expression, TypeCast):
        expression = expression.child
    return not isinstance(insn, CallInstruction) and (
        expression is None or is_constant(expression)
        or isinstance(expression, Variable | Subscript))


def is_constant(expression: object) -> bool:
    return isinstance(expression, int | float | complex | np.generic)


def _narrowed(insn: InstructionBase, sites: KernelSites, serves: set[str]
              ) -> tuple[Sites, Sites]:
    """The reductions within whose loops *insn* lies, as far as they are served: what
    they evaluate, and what reduces."""
    reductions = [sites.reductions[iname] for iname in insn.within_inames
                  if iname in sites.reductions]
    reductions = [reduction for reduction in reductions
                  if reduction.statement in serves]
    # One that is evaluated within another lies within the loops of both.
    reductions = [reduction for reduction in reductions
                  if not any(other.sites < reduction.sites for other in reductions)]
    return (frozenset().union(*(reduction.sites for reduction in reductions)),
            frozenset().union(*(reduction.reducing for reduction in reductions)))


def _role(flow: _Flow, insn_id: str, sites: KernelSites,
          accumulators: Mapping[str, object]) -> str:
    writes, reads = flow.writes[insn_id], flow.reads[insn_id]
    if not writes:
        return "statement"
    if flow.is_update(insn_id):
        return "step of the reduction"
    if writes & accumulators.keys() and not reads:
        return "start of the reduction"
    if writes & sites.variables.keys():
        return "store of " + ", ".join(sorted(writes & sites.variables.keys()))
    fetched = sorted(reads & sites.variables.keys())
    if fetched:
        return "fetch of " + ", ".join(fetched)
    return "helper"
