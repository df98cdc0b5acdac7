"""
What each statement of generated code evaluates.

.. autoclass:: Origins
.. autoclass:: Origin
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytato_provenance.lowering.def_use import Derived, derived_statements


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopy import LoopKernel

    from pytato_provenance.lowering.instruction_tags import Sites
    from pytato_provenance.lowering.tables import KernelSites, ProgramSites


@dataclass(frozen=True)
class Origin:
    """What a statement evaluates.

    .. attribute:: title

        What is special about it, in a few words.

    .. attribute:: sites
    .. attribute:: variable

        The array that it stores, if :mod:`pytato` asked for it.

    .. attribute:: by_loopy

        Whether :mod:`loopy` made it by itself.

    .. attribute:: stored

        Of *sites*, those of what it stores or, made by loopy, serves.

    .. attribute:: is_brief

        Whether it is not worth listing more than those.
    """

    title: str
    sites: Sites
    variable: str = ""
    by_loopy: bool = False
    stored: Sites = frozenset()
    is_brief: bool = False


_TITLES = {"call": "call of {}:", "copy": "copy of an array",
           "bound": "bound of a reduction:"}


class Origins:
    """
    .. automethod:: of
    .. automethod:: of_temporary
    """

    def __init__(self, sites: ProgramSites, kernels: Mapping[str, LoopKernel]) -> None:
        """
        :arg kernels: in the form that code was generated for, by name.
        """
        self._sites = sites
        self._kernels = kernels
        self._found: dict[str, dict[str, Derived]] = {}

    def _derived_in(self, kernel: KernelSites) -> dict[str, Derived]:
        found = self._found.get(kernel.name)
        if found is None:
            found = self._found[kernel.name] = derived_statements(
                self._kernels[kernel.name], kernel)
        return found

    def of(self, kernel_name: str, insn_id: str) -> Origin | None:
        """
        :returns: what a statement evaluates, where that is known.
        """
        kernel = self._sites.kernel(kernel_name)
        known = kernel.statements.get(insn_id)
        if known is not None:
            title = _TITLES.get(known.kind, "").format(known.variable)
            return Origin(title, known.sites, known.variable, stored=known.stored)
        derived = self._derived_in(kernel).get(insn_id)
        if derived is not None:
            return Origin(f"loopy: {derived.role} for", derived.sites, by_loopy=True,
                          stored=derived.subject, is_brief=derived.is_brief)
        if kernel.called_from:
            return Origin(f"statement of {kernel.name}, called from",
                          kernel.called_from, stored=kernel.called_from)
        return None

    def of_temporary(self, function: str, name: str) -> tuple[str, Sites]:
        """
        :arg function: the name of the function that declares the temporary *name*.
        :returns: what it is, in a few words, and the sites of what it is for; none,
            where they are not known.
        """
        names = [kernel for kernel, found in self._kernels.items()
                 if name in found.temporary_variables]
        for kernel_name in sorted(names, key=lambda kernel: kernel != function):
            kernel = self._sites.kernel(kernel_name)
            known = kernel.variables.get(name)
            if known is not None:
                is_bound = any(item.kind == "bound" and item.variable == name
                               for item in kernel.statements.values())
                return "bound for" if is_bound else known.kind, known.sites
            derived = [item for insn_id, item in self._derived_in(kernel).items()
                       if name in self._kernels[kernel_name].id_to_insn[insn_id]
                       .assignee_var_names()]
            if derived:
                is_sum = any("reduction" in item.role for item in derived)
                return (f"loopy: {'accumulator' if is_sum else 'temporary'} for",
                        frozenset().union(*(item.subject for item in derived)))
            writers = [kernel.statements[insn.id]
                       for insn in self._kernels[kernel_name].instructions
                       if name in insn.assignee_var_names()
                       and insn.id in kernel.statements]
            if writers:
                return "loopy: temporary for", frozenset().union(
                    *(item.stored for item in writers))
        return "", frozenset()
