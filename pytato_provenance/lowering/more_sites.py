"""
Sites that a program gains, or is about to lose, after it was generated.

.. autoclass:: MoreSites
.. autofunction:: with_more_sites
.. autofunction:: set_sites
.. autofunction:: carried_through
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

from loopy import CallableKernel, TranslationUnit

from pytato_provenance.diagnostic import ProvenanceLostError, ProvenanceWarning
from pytato_provenance.lowering import ledger
from pytato_provenance.lowering.instruction_tags import (
    Sites,
    StatementSites,
    VariableSites,
    has_sites,
    statement_sites,
    variable_sites,
    with_sites_from,
)


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loopy import LoopKernel

    from pytato_provenance.sites import CreationSite


# {{{ more sites

def _joined(sites: Sites, more: Mapping[CreationSite, Sites]) -> Sites:
    found = set(sites)
    for site in sites:
        for member in (site, *site.all_sites):
            found.update(more.get(member, ()))
    return sites if len(found) == len(sites) else frozenset(found)


def _with_more(value: Any, more: Mapping[CreationSite, Sites]) -> Any:
    """
    :arg value: of a field of a tag: sites, or tuples with some in them, or anything.
    """
    if isinstance(value, frozenset):
        return _joined(value, more)
    if isinstance(value, tuple):
        return tuple(_with_more(item, more) for item in value)
    return value


def _tag_with_more(tag: Any, more: Mapping[CreationSite, Sites]) -> Any:
    if not isinstance(tag, StatementSites | VariableSites):
        return tag
    return dataclasses.replace(tag, **{
        item.name: _with_more(getattr(tag, item.name), more)
        for item in dataclasses.fields(tag)})


@dataclasses.dataclass
class MoreSites:
    """For a site of an array, those of arrays that are computed in its place.

    .. attribute:: anywhere
    .. attribute:: by_output

        For each output of a program, by name: of the arrays that it is computed from.
    """

    anywhere: Mapping[CreationSite, Sites]
    by_output: Mapping[str, Mapping[CreationSite, Sites]] = dataclasses.field(
        default_factory=dict)

    def for_variable(self, name: str | None) -> Mapping[CreationSite, Sites]:
        """
        :returns: what holds for the statements that store *name*.
        """
        return self.anywhere if name is None else (
            self.by_output.get(name, self.anywhere))


def with_more_sites(t_unit: TranslationUnit, more: MoreSites) -> TranslationUnit:
    """
    :returns: *t_unit*; whatever names a site in it names the others beside it.
    """
    def changed(item: Any, name: str | None) -> Any:
        tags = frozenset(
            _tag_with_more(tag, more.for_variable(
                tag.variable if isinstance(tag, StatementSites) else name))
            for tag in item.tags)
        return item if tags == item.tags else item.copy(tags=tags)

    return _map_kernels(t_unit, lambda kernel: kernel.copy(
        instructions=[changed(insn, None) for insn in kernel.instructions],
        args=[changed(arg, arg.name) for arg in kernel.args],
        temporary_variables={name: changed(temp, None) for name, temp
                             in kernel.temporary_variables.items()}))


def _map_kernels(t_unit: TranslationUnit, change: Callable[[LoopKernel], LoopKernel]
                 ) -> TranslationUnit:
    for kernel in _kernels(t_unit):
        t_unit = t_unit.with_kernel(change(kernel))
    return t_unit


def _kernels(t_unit: TranslationUnit) -> Iterator[LoopKernel]:
    for item in t_unit.callables_table.values():
        if isinstance(item, CallableKernel):
            yield item.subkernel


def set_sites(executor: Any, t_unit: TranslationUnit, more: MoreSites) -> None:
    """Let the text of a program that is compiled, and is reused, name further sites.

    :arg executor: of loopy, for which the caches hold nothing with sites.
    :arg t_unit: as it was when the program was made.
    """
    if not has_sites(t_unit):
        return
    old = executor.t_unit
    new = executor.t_unit = with_more_sites(t_unit, more)
    for book in ledger._open:
        for entry in book.entries:
            entry.compiled[:] = [new if item is old else item
                                 for item in entry.compiled]

# }}}


# {{{ a transformation of the user's

def _by_name(t_unit: TranslationUnit) -> dict[tuple[str, str, str], bool]:
    """For each statement and variable, whether it has sites."""
    found: dict[tuple[str, str, str], bool] = {}
    for kernel in _kernels(t_unit):
        for insn in kernel.instructions:
            found[kernel.name, "insn", insn.id] = statement_sites(insn) is not None
        for variable in (*kernel.args, *kernel.temporary_variables.values()):
            found[kernel.name, "variable", variable.name] = (
                variable_sites(variable) is not None)
    return found


def _statements(t_unit: TranslationUnit) -> dict[tuple[str, str], Sites]:
    return {(kernel.name, insn.id): sites.sites
            for kernel in _kernels(t_unit) for insn in kernel.instructions
            if (sites := statement_sites(insn)) is not None}


def carried_through(before: TranslationUnit, after: Any, name: str, audit: str | None
                    ) -> Any:
    """
    :arg before: what a transformation was given.
    :arg after: what it returned.
    :arg name: of the transformation.
    :arg audit: ``"warn"`` or ``"raise"`` says which statements are gone, and their
        sites with them; *None* says nothing.
    :returns: *after*; what has the name of a statement or variable of *before*, but
        was made without its tags, has them. What is new inherits when the text is
        written, through definitions and uses.
    """
    if after is before or not isinstance(after, TranslationUnit) or (
            not has_sites(before)):
        return after
    known = _by_name(before)
    if any(known.get(key) and not sited for key, sited in _by_name(after).items()):
        after = with_sites_from(after, before)
    if audit is not None:
        _check(before, after, name, audit)
    return after


def _check(before: TranslationUnit, after: TranslationUnit, name: str, audit: str
           ) -> None:
    kept = _statements(after)
    remaining = frozenset[Any]().union(*kept.values())
    lost = sorted(insn_id for key, sites in _statements(before).items()
                  if key not in kept and not sites <= remaining
                  for insn_id in (key[1],))
    if not lost:
        return
    shown = ", ".join(f"'{insn_id}'" for insn_id in lost[:_MOST_SHOWN])
    more = f" and {len(lost) - _MOST_SHOWN} more" if len(lost) > _MOST_SHOWN else ""
    message = (f"'{name}' took away {shown}{more}, and no other statement has their "
               "creation sites; a transformation that keeps the statements, or copies "
               "their tags to what replaces them, keeps the sites")
    if audit == "raise":
        raise ProvenanceLostError(message)
    warnings.warn(message, ProvenanceWarning, stacklevel=4)


_MOST_SHOWN = 4

# }}}
