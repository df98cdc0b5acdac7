"""
Sites on the statements and variables of :mod:`loopy` kernels.

.. autoclass:: StatementSites
.. autoclass:: VariableSites
.. autofunction:: statement_sites
.. autofunction:: variable_sites
.. autofunction:: lost_statements
.. autofunction:: without_sites
.. autofunction:: with_sites_from

They are tags, which loopy's transformations keep. A tag is part of the keys of loopy's
caches, so what is looked up or stored there is without them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from loopy import CallableKernel, LoopKernel, TranslationUnit
from pytools.tag import Tag, tag_dataclass

from pytato_provenance.annotation_options import DEFAULT, AnnotationOptions
from pytato_provenance.sites import CreationSite


Sites = frozenset[CreationSite]
Census = Mapping[tuple[CreationSite, str], int]
T = TypeVar("T")


class Program:
    """One run of ``generate_loopy``.

    .. attribute:: number

        Counts from 1 in this process.

    .. attribute:: embed

        Whether comments go into what is compiled.

    .. attribute:: census

        How many nodes of which site and type it was generated from, if somebody
        collects programs.

    .. attribute:: options

        What its comments look like, unless something else is asked for.

    .. attribute:: statements

        What each statement was tagged with, by its identifier.
    """

    __slots__ = ("__weakref__", "census", "embed", "number", "options", "statements")

    _numbers = itertools.count(1)

    def __init__(self, embed: bool = False, options: AnnotationOptions = DEFAULT
                 ) -> None:
        self.number = next(Program._numbers)
        self.embed = embed
        self.options = options
        self.census: Census = {}
        self.statements: dict[str, StatementSites] = {}


# {{{ tags

class _SitesTag(Tag):
    """Base class of our tags. Nothing of ours is ever pickled: a plain tag is, where
    the caches that we know do not take it out before."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Tag, ()

    def update_persistent_hash(self, key_hash: Any, key_builder: Any) -> None:
        key_builder.rec(key_hash, "sites")


@tag_dataclass
class StatementSites(_SitesTag):
    """What :mod:`pytato` fused into a statement.

    .. attribute:: sites

        Those of all array operations that the statement evaluates.

    .. attribute:: stored

        Those of the array that it stores.

    .. attribute:: kind

        ``"store"``, ``"copy"`` (of an array that is stored elsewhere), ``"bound"`` (of
        a reduction) or ``"call"`` (of a hand-written kernel).

    .. attribute:: variable

        The array that is stored; for a call the name of the kernel.

    .. attribute:: inames

        The loops that were made for the statement.

    .. attribute:: reductions

        For each reduction in the statement, in the order of the expression: its loops
        and the sites of what it evaluates.

    .. attribute:: reducing

        For each of them, the sites of the array operation that reduces.
    """

    sites: Sites
    stored: Sites
    kind: str
    variable: str
    inames: tuple[str, ...] = ()
    reductions: tuple[tuple[tuple[str, ...], Sites], ...] = ()
    reducing: tuple[Sites, ...] = ()
    program: Program | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"StatementSites({_brief(self.sites)})"


@tag_dataclass
class VariableSites(_SitesTag):
    """Where the array was created that an argument or a temporary holds.

    .. attribute:: sites
    .. attribute:: kind

        ``"input"``, ``"output"`` or ``"temporary"``.
    """

    sites: Sites
    kind: str

    def __repr__(self) -> str:
        return f"VariableSites({_brief(self.sites)})"


def _brief(sites: Sites) -> str:
    first = min(sites, key=CreationSite.sort_key, default=None)
    more = f" and {len(sites) - 1} more" if len(sites) > 1 else ""
    return f"{first}{more}"


def _tag_of_type(taggable: Any, cls: type[T]) -> list[T]:
    return [tag for tag in taggable.tags if isinstance(tag, cls)]


def statement_sites(insn: Any) -> StatementSites | None:
    """
    :returns: what an instruction was tagged with; the union, if several were.
    """
    tags = _tag_of_type(insn, StatementSites)
    if len(tags) < 2:
        return tags[0] if tags else None
    tags.sort(key=lambda tag: (tag.variable, tag.kind))
    return StatementSites(
        frozenset().union(*(tag.sites for tag in tags)),
        frozenset().union(*(tag.stored for tag in tags)),
        tags[0].kind, tags[0].variable,
        tuple(iname for tag in tags for iname in tag.inames),
        tuple(reduction for tag in tags for reduction in tag.reductions),
        tuple(sites for tag in tags for sites in tag.reducing),
        tags[0].program)


def variable_sites(variable: Any) -> VariableSites | None:
    """
    :returns: what an argument or a temporary was tagged with.
    """
    tags = _tag_of_type(variable, VariableSites)
    if len(tags) < 2:
        return tags[0] if tags else None
    return VariableSites(frozenset().union(*(tag.sites for tag in tags)), tags[0].kind)


def lost_statements(instructions: Iterable[Any]) -> dict[str, StatementSites]:
    """
    :arg instructions: all that are left of a program.
    :returns: those that transformations took away, by identifier.
    """
    tags = [tag for insn in instructions for tag in _tag_of_type(insn, StatementSites)]
    # Not by identifier: some transformations change that, and keep the tags.
    kept = {(tag.program, tag.kind, tag.variable) for tag in tags}
    programs = {tag.program: None for tag in tags if tag.program is not None}
    return {insn_id: tag for program in programs
            for insn_id, tag in program.statements.items()
            if (program, tag.kind, tag.variable) not in kept}


def add_tag(fresh: Any, tag: Tag) -> None:
    """Tag an object of loopy that was just made and that nobody else has seen."""
    object.__setattr__(fresh, "tags", frozenset((*fresh.tags, tag)))

# }}}


# {{{ taking out and putting back

class _IdentityMemo:
    """Remembers a value for an object as long as it lives, without hashing it."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, Any]] = {}

    def get(self, key: Any) -> Any:
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def put(self, key: Any, value: Any) -> None:
        identity = id(key)
        entries = self._entries
        entries[identity] = (
            weakref.ref(key, lambda _: entries.pop(identity, None)), value)


_plain_kernels = _IdentityMemo()


def _is_sited(taggable: Any) -> bool:
    tags = taggable.tags
    return bool(tags) and any(isinstance(tag, _SitesTag) for tag in tags)


def has_sites(program: LoopKernel | TranslationUnit) -> bool:
    """
    :returns: whether a kernel, or one of a translation unit, has tags of ours.
    """
    if isinstance(program, TranslationUnit):
        return any(isinstance(item, CallableKernel) and has_sites(item.subkernel)
                   for item in program.callables_table.values())
    return (any(map(_is_sited, program.args))
            or any(map(_is_sited, program.temporary_variables.values()))
            or any(map(_is_sited, program.instructions)))


def _bare(taggable: Any) -> Any:
    if not _is_sited(taggable):
        return taggable
    return taggable.copy(tags=frozenset(
        tag for tag in taggable.tags if not isinstance(tag, _SitesTag)))


def _map_kernel(kernel: LoopKernel, change: Callable[[str, Any], Any]) -> LoopKernel:
    return kernel.copy(
        instructions=[change("insn", insn) for insn in kernel.instructions],
        args=[change("arg", arg) for arg in kernel.args],
        temporary_variables={
            name: change("temp", temp)
            for name, temp in kernel.temporary_variables.items()})


def _plain_kernel(kernel: LoopKernel) -> LoopKernel:
    if not has_sites(kernel):
        return kernel
    plain = _plain_kernels.get(kernel)
    if plain is None:
        plain = _map_kernel(kernel, lambda _, item: _bare(item))
        _plain_kernels.put(kernel, plain)
    return plain


def without_sites(value: T) -> T:
    """
    :arg value: a kernel, a translation unit, or tuples and mappings with some in them.
    :returns: the same without our tags; *value* itself where there are none.
    """
    return _map_kernels(value, _plain_kernel)


def _map_kernels(value: Any, change: Callable[[LoopKernel], LoopKernel]) -> Any:
    if isinstance(value, LoopKernel):
        return change(value)
    if isinstance(value, CallableKernel):
        kernel = change(value.subkernel)
        return value if kernel is value.subkernel else value.copy(subkernel=kernel)
    if isinstance(value, TranslationUnit):
        table = _map_kernels(value.callables_table, change)
        return value if table is value.callables_table else (
            value.copy(callables_table=table))
    if type(value) is tuple:
        items = tuple(_map_kernels(item, change) for item in value)
        return value if all(map(_same, items, value)) else items
    if isinstance(value, Mapping):
        changed = {key: new for key, item in value.items()
                   if (new := _map_kernels(item, change)) is not item}
        # Of the very type: dict, or an immutable mapping that loopy wants.
        return value if not changed else type(value)({**value, **changed})  # type: ignore[call-arg]
    return value


def _same(first: object, second: object) -> bool:
    return first is second


def _kernels_in(value: Any) -> Iterable[LoopKernel]:
    if isinstance(value, LoopKernel):
        yield value
    elif isinstance(value, CallableKernel):
        yield value.subkernel
    elif isinstance(value, TranslationUnit):
        yield from _kernels_in(value.callables_table)
    elif type(value) is tuple:
        for item in value:
            yield from _kernels_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _kernels_in(item)


def with_sites_from(value: T, tagged: Any) -> T:
    """
    :arg value: what a cache gave: kernels or a translation unit without our tags.
    :arg tagged: what it was asked with.
    :returns: *value* with the tags of the instructions and variables of *tagged* that
        it still has, by kernel and name.
    """
    tags: dict[tuple[str, str, str], list[Tag]] = {}
    for kernel in _kernels_in(tagged):
        for kind, name, item in _items(kernel):
            if _is_sited(item):
                tags[kernel.name, kind, name] = _tag_of_type(item, _SitesTag)

    def restored(kernel: LoopKernel) -> LoopKernel:
        def change(kind: str, item: Any) -> Any:
            name = item.id if kind == "insn" else item.name
            found = tags.get((kernel.name, kind, name))
            return item if found is None else item.copy(
                tags=frozenset((*item.tags, *found)))

        return _map_kernel(kernel, change)

    return _map_kernels(value, restored)


def _items(kernel: LoopKernel) -> Iterable[tuple[str, str, Any]]:
    for insn in kernel.instructions:
        yield "insn", insn.id, insn
    for arg in kernel.args:
        yield "arg", arg.name, arg
    for name, temp in kernel.temporary_variables.items():
        yield "temp", name, temp

# }}}
