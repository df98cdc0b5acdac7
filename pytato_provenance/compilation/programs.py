"""
Which program a kernel belongs to.

.. autoclass:: Program
.. autofunction:: contents_of_dag
.. autofunction:: contents_of_nodes
.. autofunction:: programs_of
.. autofunction:: belongs_to
.. autofunction:: carry
.. autofunction:: came_from_cache

A program is one run of ``generate_loopy``. Kernels are remembered by identity, and
every change of a kernel makes a new one from an old one by one and the same method: a
program is found again however long ago it was generated and whatever was done to it.
Nothing is kept alive.
"""

from __future__ import annotations

import itertools
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from loopy import CallableKernel, LoopKernel, TranslationUnit

from pytato_provenance._host import Node, host, nodes_in_post_order
from pytato_provenance.compilation.events import NOTHING_KNOWN, Contents
from pytato_provenance.tags import site_of
from pytato_provenance.weak_identity import WeakIdentityMap


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Program:
    """One run of ``generate_loopy``.

    .. attribute:: number

        Counts from 1 in this process.

    .. attribute:: contents
    """

    __slots__ = ("contents", "number")

    _numbers = itertools.count(1)

    def __init__(self, contents: Contents) -> None:
        self.number = next(Program._numbers)
        self.contents = contents


Programs = tuple[Program, ...]

_by_kernel: WeakIdentityMap[Programs] = WeakIdentityMap()


def contents_of_dag(*roots: Node) -> Contents:
    """
    :returns: what is known of the arrays that take part in computing *roots*.
    """
    return contents_of_nodes(nodes_in_post_order(*roots))


def contents_of_nodes(nodes: Iterable[Node]) -> Contents:
    """
    :returns: what is known of the arrays among *nodes*.
    """
    array, given = host().array, _class_of_inputs()
    return Contents.of(
        (site_of(node), isinstance(node, given)) for node in nodes
        # An entry of a dictionary is another name for its array.
        if isinstance(node, array) and type(node).__name__ != "NamedArray")


@cache
def _class_of_inputs() -> type:
    import pytato.array
    return pytato.array.InputArgumentBase  # type: ignore[no-any-return]


def entrypoint_kernels(t_unit: Any) -> Iterator[Any]:
    """
    :returns: the kernels that are called from outside; all where that is not said.
    """
    names = t_unit.entrypoints
    for name, item in t_unit.callables_table.items():
        kernel = getattr(item, "subkernel", None)
        if kernel is not None and (not names or name in names):
            yield kernel


def kernel_name(t_unit: Any) -> str:
    """
    :returns: how to call *t_unit*.
    """
    return ", ".join(sorted(map(str, t_unit.entrypoints))) or ", ".join(
        kernel.name for kernel in entrypoint_kernels(t_unit))


def instruction_count(t_unit: Any) -> int:
    """
    :returns: the number of statements in all kernels of *t_unit*.
    """
    return sum(len(item.subkernel.instructions)
               for item in t_unit.callables_table.values()
               if hasattr(item, "subkernel"))


def belongs_to(kernel: Any, programs: Programs) -> None:
    """Remember where *kernel* comes from; with none, that it is not known."""
    if programs:
        _by_kernel.put(kernel, programs)
    else:
        _by_kernel.pop(kernel)


def carry(kernel: Any, *origins: Any) -> None:
    """*kernel* was made from *origins*."""
    if _by_kernel:
        belongs_to(kernel, tuple(dict.fromkeys(
            program for origin in origins for program in _by_kernel.get(origin) or ())))


def programs_of(t_unit: Any) -> Programs:
    """
    :returns: the programs from which *t_unit* was made.
    """
    if not _by_kernel:
        return ()
    return tuple(dict.fromkeys(
        program for kernel in entrypoint_kernels(t_unit)
        for program in _by_kernel.get(kernel) or ()))


def contents_of(t_unit: Any, programs: Programs) -> Contents:
    """
    :arg programs: those of *t_unit*.
    :returns: what is known of the arrays in *t_unit*: by its programs, or else by what
        its statements carry where they were annotated.
    """
    if programs:
        return Contents.union(program.contents for program in programs)
    tags = sys.modules.get("pytato_provenance.lowering.instruction_tags")
    if tags is None:
        return NOTHING_KNOWN
    sites: dict[Any, int] = {}
    for kernel in entrypoint_kernels(t_unit):
        for insn in kernel.instructions:
            found = tags.statement_sites(insn)
            for site in found.sites if found is not None else ():
                sites[site] = sites.get(site, 0) + 1
    return Contents(sites, {}) if sites else NOTHING_KNOWN


def remember(t_unit: Any, programs: Programs) -> None:
    """*t_unit* came, by whatever way, from *programs*."""
    for kernel in entrypoint_kernels(t_unit):
        belongs_to(kernel, programs)


def came_from_cache(found: Any, key: Any) -> Any:
    """
    :arg found: what a cache has for *key*: kernels that were made from others, maybe
        in another process, or for somebody else's equal program.
    :returns: *found*, or a copy of it, as part of the programs of *key*.
    """
    if not _by_kernel or not isinstance(found, LoopKernel | TranslationUnit):
        return found
    programs = tuple(dict.fromkeys(_programs_in(key)))
    if isinstance(found, LoopKernel):
        if _by_kernel.get(found) not in (None, programs):
            found = found.copy()
        belongs_to(found, programs)
        return found
    if programs_of(found) not in ((), programs):
        table = found.callables_table
        found = found.copy(callables_table=type(table)({
            name: (item.copy(subkernel=item.subkernel.copy())
                   if isinstance(item, CallableKernel) else item)
            for name, item in table.items()}))
    remember(found, programs)
    return found


def _programs_in(key: Any) -> Iterator[Program]:
    if isinstance(key, TranslationUnit):
        yield from programs_of(key)
    elif isinstance(key, LoopKernel):
        yield from _by_kernel.get(key) or ()
    elif type(key) is tuple or type(key) is list:
        for item in key:
            yield from _programs_in(item)
    elif type(key) is dict:
        for item in key.values():
            yield from _programs_in(item)
