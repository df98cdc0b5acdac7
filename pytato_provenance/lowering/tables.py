"""
What the kernels of a translation unit are tagged with, by name.

.. autoclass:: KernelSites
.. autoclass:: ProgramSites

Names outlive what tags do not: the caches of :mod:`loopy`, and its preprocessing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loopy import CallableKernel, LoopKernel, TranslationUnit

from pytato_provenance.annotation_options import DEFAULT, AnnotationOptions
from pytato_provenance.lowering.instruction_tags import (
    Sites,
    StatementSites,
    VariableSites,
    lost_statements,
    statement_sites,
    variable_sites,
)
from pytato_provenance.lowering.recorder import reductions_in


if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Reduction:
    """
    .. attribute:: sites

        Of the array operations that are evaluated in the reduction.

    .. attribute:: reducing

        Of the array operation that reduces.

    .. attribute:: statement

        The identifier of the statement that it is part of.
    """

    sites: Sites
    reducing: Sites
    statement: str


@dataclass(frozen=True)
class KernelSites:
    """
    .. attribute:: name
    .. attribute:: statements

        By the identifier of the instruction.

    .. attribute:: variables

        Arguments and temporaries, by name.

    .. attribute:: reductions

        By the name of a loop.

    .. attribute:: called_from

        For a hand-written kernel: the sites of its calls.
    """

    name: str
    statements: Mapping[str, StatementSites] = field(default_factory=dict)
    variables: Mapping[str, VariableSites] = field(default_factory=dict)
    reductions: Mapping[str, Reduction] = field(default_factory=dict)
    called_from: Sites = frozenset()

    def all_sites(self) -> Sites:
        """
        :returns: every site that occurs.
        """
        return frozenset().union(
            self.called_from,
            *(statement.sites for statement in self.statements.values()),
            *(statement.stored for statement in self.statements.values()),
            *(variable.sites for variable in self.variables.values()))


def _reductions_of(insn: Any, sites: StatementSites) -> dict[str, Reduction]:
    noted = sites.reductions
    if not noted:
        return {}
    current = reductions_in(getattr(insn, "expression", None))
    if len(current) != len(noted):
        # Transformed beyond recognition, or not expanded yet: by name.
        current = [inames for inames, _ in noted]
    reducing = sites.reducing or (frozenset(),)*len(noted)
    found: dict[str, Reduction] = {}
    for inames, (_, reduced), own in zip(current, noted, reducing, strict=True):
        for iname in inames:
            found[iname] = Reduction(
                reduced or sites.sites, own or reduced or sites.stored, insn.id)
    return found


def _kernel_sites(kernel: LoopKernel, called_from: Sites) -> KernelSites:
    statements: dict[str, StatementSites] = {}
    reductions: dict[str, Reduction] = {}
    for insn in kernel.instructions:
        sites = statement_sites(insn)
        if sites is not None:
            statements[insn.id] = sites
            reductions.update(_reductions_of(insn, sites))
    variables: dict[str, VariableSites] = {}
    for variable in (*kernel.args, *kernel.temporary_variables.values()):
        found = variable_sites(variable)
        if found is not None:
            variables[variable.name] = found
    inames = kernel.all_inames()
    reductions = {iname: reduction for iname, reduction in reductions.items()
                  if iname in inames}
    return KernelSites(kernel.name, statements, variables, reductions, called_from)


@dataclass(frozen=True)
class ProgramSites:
    """The kernels of a translation unit, by name.

    .. attribute:: kernels
    .. attribute:: entrypoints
    .. attribute:: lost

        Statements that transformations took away, by identifier.

    .. attribute:: options

        What comments look like, as far as the program says.

    .. automethod:: all_sites
    """

    kernels: Mapping[str, KernelSites]
    entrypoints: frozenset[str]
    lost: Mapping[str, StatementSites] = field(default_factory=dict)
    options: AnnotationOptions = DEFAULT

    @staticmethod
    def of(t_unit: TranslationUnit) -> ProgramSites:
        """
        :returns: what *t_unit* is tagged with.
        """
        kernels = {str(name): item.subkernel
                   for name, item in t_unit.callables_table.items()
                   if isinstance(item, CallableKernel)}
        calls: dict[str, Sites] = {}
        for kernel in kernels.values():
            for insn in kernel.instructions:
                sites = statement_sites(insn)
                if sites is not None and sites.kind == "call":
                    name = sites.variable
                    calls[name] = calls.get(name, frozenset()) | sites.stored
        found = {name: _kernel_sites(kernel, calls.get(name, frozenset()))
                 for name, kernel in kernels.items()}
        options = next((
            sites.program.options for kernel in found.values()
            for sites in kernel.statements.values() if sites.program is not None),
            DEFAULT)
        return ProgramSites(
            found, frozenset(map(str, t_unit.entrypoints)),
            lost_statements(insn for kernel in kernels.values()
                            for insn in kernel.instructions), options)

    def all_sites(self) -> Sites:
        """
        :returns: every site that occurs.
        """
        return frozenset().union(
            *(kernel.all_sites() for kernel in self.kernels.values()),
            *(statement.stored for statement in self.lost.values()))

    def kernel(self, name: str) -> KernelSites:
        """
        :returns: the sites of the kernel called *name*; none, if it is not known.
        """
        found = self.kernels.get(name)
        return KernelSites(name) if found is None else found
