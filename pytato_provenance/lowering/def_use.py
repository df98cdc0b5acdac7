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
    """

    sites: Sites
    role: str
    serves: tuple[str, ...]


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

    def next_of(self, insn_id: str, forward: bool) -> Iterable[str]:
        names = self.writes[insn_id] if forward else self.reads[insn_id]
        others = self.readers if forward else self.writers
        return {other for name in names for other in others[name]} - {insn_id}

    def is_update(self, insn_id: str) -> bool:
        return bool(self.writes[insn_id] & self.reads[insn_id])


def _reads(insn: InstructionBase) -> frozenset[str]:
    return frozenset(insn.read_dependency_names())


def _reached(flow: _Flow, start: str, known: Mapping[str, object], *, forward: bool
             ) -> set[str]:
    """The nearest statements of the program that *start* leads to."""
    found: set[str] = set()
    seen = {start}
    pending = [start]
    while pending:
        for other in flow.next_of(pending.pop(), forward):
            if other in known:
                found.add(other)
            elif other not in seen:
                seen.add(other)
                pending.append(other)
    return found


def derived_statements(kernel: LoopKernel, sites: KernelSites) -> dict[str, Derived]:
    """
    :arg kernel: a kernel, preprocessed and possibly linearised.
    :arg sites: what is known of it by name.
    :returns: by identifier, for each instruction that is not known but serves one that
        is.
    """
    known = sites.statements
    flow = _Flow(kernel)
    found: dict[str, Derived] = {}
    accumulators: dict[str, Sites] = {}
    fresh = [insn_id for insn_id in flow.insns if insn_id not in known]
    served: dict[str, set[str]] = {}
    for insn_id in fresh:
        writes_program = bool(flow.writes[insn_id] & sites.variables.keys())
        serves = _reached(flow, insn_id, known, forward=not writes_program)
        if not serves:
            serves = _reached(flow, insn_id, known, forward=writes_program)
        served[insn_id] = serves
        if flow.is_update(insn_id):
            narrowed = _narrowed(flow.insns[insn_id], sites, serves)
            for name in flow.writes[insn_id]:
                accumulators[name] = accumulators.get(name, frozenset()) | narrowed
    for insn_id in fresh:
        serves = served[insn_id]
        if not serves:
            continue
        of_reduction: Sites = frozenset().union(
            *(accumulators.get(name, frozenset()) for name in flow.writes[insn_id]))
        found[insn_id] = Derived(
            of_reduction or frozenset().union(*(known[name].sites for name in serves)),
            _role(flow, insn_id, sites, accumulators), tuple(sorted(serves)))
    return found


def _narrowed(insn: InstructionBase, sites: KernelSites, serves: set[str]) -> Sites:
    """The reductions within whose loops *insn* lies, as far as they are served."""
    reductions = [sites.reductions[iname] for iname in insn.within_inames
                  if iname in sites.reductions]
    return frozenset().union(*(reduction.sites for reduction in reductions
                               if reduction.statement in serves))


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
