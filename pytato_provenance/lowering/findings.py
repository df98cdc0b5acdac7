"""
Who contributed to what, as data.

.. autofunction:: contributors
.. autoclass:: Contributors
.. autoclass:: IntroducedBy
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytato_provenance.lowering.def_use import Derived, derived_statements
from pytato_provenance.lowering.python_target import (
    contributors_of_python,
    is_python_program,
)
from pytato_provenance.lowering.tables import KernelSites, ProgramSites
from pytato_provenance.sites import CreationSite


if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytato_provenance.lowering.instruction_tags import Sites


@dataclass(frozen=True)
class IntroducedBy:
    """Why there is a loop.

    .. attribute:: kind

        ``"store"`` or ``"reduction"``.

    .. attribute:: statement

        The identifier of the instruction.

    .. attribute:: sites
    """

    kind: str
    statement: str
    sites: tuple[CreationSite, ...]


@dataclass(frozen=True)
class Contributors:
    """
    .. attribute:: statements

        For each instruction, by its identifier, the sites of all array operations that
        are fused into it, in source order. In a program in Python statements go by
        the variables that they make.

    .. attribute:: arguments
    .. attribute:: temporaries

        By name, the sites of the array.

    .. attribute:: inames

        By name, the store or the reduction that introduced a loop: a mapping to
        :class:`IntroducedBy`.

    .. attribute:: derived

        For each instruction that :mod:`loopy` made by itself, what it does.

    .. attribute:: lost

        For each instruction that transformations took away, the sites of what was fused
        into it. What there is in its place does not name them.
    """

    statements: Mapping[str, tuple[CreationSite, ...]]
    arguments: Mapping[str, tuple[CreationSite, ...]]
    temporaries: Mapping[str, tuple[CreationSite, ...]]
    inames: Mapping[str, IntroducedBy]
    derived: Mapping[str, str]
    lost: Mapping[str, tuple[CreationSite, ...]]


def _ordered(sites: Sites) -> tuple[CreationSite, ...]:
    return tuple(sorted(sites, key=CreationSite.sort_key))


def _inames(kernel: Any, sites: KernelSites) -> dict[str, IntroducedBy]:
    found: dict[str, IntroducedBy] = {}
    for insn_id, statement in sites.statements.items():
        for iname in statement.inames:
            found[iname] = IntroducedBy("store", insn_id, _ordered(statement.stored))
    for iname, reduction in sites.reductions.items():
        found[iname] = IntroducedBy("reduction", reduction.statement,
                                    _ordered(reduction.sites))
    return {iname: why for iname, why in found.items() if iname in kernel.all_inames()}


def contributors(program: Any) -> Contributors:
    """
    :arg program: as for :func:`kernel_source`.
    :returns: who contributed to the statements, variables and loops of its kernel, as
        it is now: after transformations, of the program that they made.
    :raises ~pytato_provenance.diagnostic.UsageError: for anything else, or if there
        are several kernels to choose from.
    """
    from pytato_provenance.lowering.source import translation_unit_of

    if is_python_program(program):
        found = contributors_of_python(program)
        arguments = {name: found.pop(name) for name in [*found]
                     if name in program.expected_arguments}
        return Contributors(found, arguments, {}, {}, {}, {})
    t_unit = translation_unit_of(program)
    kernel = t_unit.default_entrypoint
    program = ProgramSites.of(t_unit)
    sites = program.kernel(kernel.name)
    derived: Mapping[str, Derived] = derived_statements(kernel, sites)
    statements = {insn_id: _ordered(statement.sites)
                  for insn_id, statement in sites.statements.items()}
    statements.update((insn_id, _ordered(item.sites))
                      for insn_id, item in derived.items())
    return Contributors(
        statements,
        {arg.name: _ordered(sites.variables[arg.name].sites) for arg in kernel.args
         if arg.name in sites.variables},
        {name: _ordered(sites.variables[name].sites)
         for name in kernel.temporary_variables if name in sites.variables},
        _inames(kernel, sites),
        {insn_id: item.role for insn_id, item in derived.items()},
        {insn_id: _ordered(item.sites) for insn_id, item in program.lost.items()})
