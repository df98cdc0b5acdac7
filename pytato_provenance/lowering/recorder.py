"""
Which array operations go into which statement, noted while :mod:`pytato` generates a
:mod:`loopy` kernel.

.. autoclass:: Recorder

The code generator implements every array by a *result*: stored under a name, or an
expression that is inlined wherever it is used. Here a graph of the results is kept, by
identity; when a statement is added, everything is collected that it reaches without
passing a stored result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pymbolic.primitives as prim

from pytato_provenance._host import Node, host, nodes_in_post_order
from pytato_provenance.annotation_options import DEFAULT, AnnotationOptions
from pytato_provenance.lowering.instruction_tags import (
    Program,
    Sites,
    StatementSites,
    VariableSites,
    add_tag,
    statement_sites,
    variable_sites,
)
from pytato_provenance.merging import has_equal_nodes, merged_sites
from pytato_provenance.sites import UNKNOWN, CreationSite
from pytato_provenance.tags import site_of


Result = Any
"""How the code generator implements an array."""


# {{{ names in scalar expressions

@cache
def _fields(cls: type) -> tuple[str, ...]:
    names = getattr(cls, "__dataclass_fields__", None)
    if names is not None and cls.__name__ != "Reduce":
        return tuple(names)
    if cls.__name__ == "Reduce":
        # Bounds are those of a loop, like a shape; they are not evaluated here.
        return ("inner_expr",)
    return tuple(getattr(cls, "init_arg_names", ()))


def parts_of(expr: Any) -> Iterator[Any]:
    """
    :returns: what a scalar expression is directly made of, in order.
    """
    if isinstance(expr, tuple):
        yield from expr
    elif isinstance(expr, Mapping):
        yield from expr.values()
    else:
        for name in _fields(type(expr)):
            yield getattr(expr, name)


_LEAVES = (str, int, float, complex, type(None))


def variables_in(expr: Any) -> set[str]:
    """
    :returns: the names of the variables that are evaluated with *expr*.
    """
    names: set[str] = set()
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, _LEAVES):
            continue
        if isinstance(part, prim.Variable):
            names.add(part.name)
        elif isinstance(part, prim.Call):
            # Zero times an array: the host drops the array.
            if getattr(part.function, "name", None) != "pytato.zero":
                pending.extend(parts_of(part))
        else:
            pending.extend(parts_of(part))
    return names


def bound_variables_in(expr: Any) -> set[str]:
    """
    :returns: the names of the variables in the bounds of the reductions in *expr*.
    """
    names: set[str] = set()
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, _LEAVES):
            continue
        if type(part).__name__ == "Reduce":
            names |= variables_in(tuple(part.bounds.values()))
        pending.extend(parts_of(part))
    return names


def reductions_in(expr: Any) -> list[tuple[str, ...]]:
    """
    :returns: the loops of each of loopy's reductions in *expr*, in the order of the
        expression.
    """
    found: list[tuple[str, ...]] = []
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, _LEAVES):
            continue
        if type(part).__name__ == "Reduction":
            found.append(tuple(part.inames))
        pending.extend(reversed(list(parts_of(part))))
    return found

# }}}


def may_have_equal_nodes(nodes: list[Node]) -> bool:
    """
    :arg nodes: nodes, children first.
    :returns: whether some may be equal, as far as that is known for nothing: the
        released host's hash is recursive, remembers nothing and is exponential.
    """
    return not host().has_non_equality_tags or has_equal_nodes(nodes)


@dataclass
class _Entry:
    """A result, kept alive so that its identity stays its own."""

    result: Result
    node: Node
    inlined: tuple[Result, ...] = ()
    reductions: list[tuple[tuple[str, ...], tuple[Result, ...]]] = (
        field(default_factory=list))


class Recorder:
    """What one run of ``generate_loopy`` does.

    .. automethod:: implemented
    .. automethod:: stored
    .. automethod:: called
    """

    def __init__(self, outputs: Node | None = None, *, embed: bool = False,
                 options: AnnotationOptions = DEFAULT) -> None:
        """
        :arg outputs: what code is generated for, in the form that the code generator
            sees. Sites of equal nodes are united, where it is given.
        """
        self.program = Program(embed, options)
        self.node: Node = None
        self._entries: dict[int, _Entry] = {}
        self._latest: dict[int, Result] = {}
        self._nodes: dict[int, Node] = {}
        self._merged: dict[int, CreationSite] = {}
        self._reductions: dict[int, list[tuple[tuple[str, ...], set[str]]]] = {}
        self._arguments: dict[str, VariableSites] = {}
        self._temporaries: dict[str, VariableSites] = {}
        if outputs is not None:
            nodes = nodes_in_post_order(outputs)
            if may_have_equal_nodes(nodes):
                self._merged = merged_sites(nodes)

    # {{{ the graph of results

    def sites_of(self, node: Node) -> tuple[CreationSite, ...]:
        """
        :returns: the sites of *node* and of all nodes equal to it.
        """
        site = self._merged.get(id(node)) or site_of(node)
        return (UNKNOWN,) if site is None else site.all_sites

    def implemented(self, node: Node, result: Result) -> None:
        """
        :arg result: how *node* is implemented from now on.
        """
        if result is None:
            return
        self._latest[id(node)] = result
        self._nodes[id(node)] = node
        if id(result) in self._entries:
            return
        entry = self._entries[id(result)] = _Entry(result, node)
        if _is_stored(result):
            if node._mapper_method in ("map_placeholder", "map_size_param"):
                self._arguments[result.name] = VariableSites(
                    frozenset(self.sites_of(node)), "input")
        else:
            self._uses(entry)

    def _uses(self, entry: _Entry) -> None:
        bindings = getattr(entry.node, "bindings", None)
        if bindings is None:
            return
        expr = getattr(entry.node, "expr", None)
        entry.inlined = self._results(bindings, variables_in(expr))
        entry.reductions = [
            (inames, self._results(bindings, names))
            for inames, names in self._reductions.pop(id(entry.node), ())]

    def _results(self, bindings: Mapping[str, Node], names: Iterable[str]
                 ) -> tuple[Result, ...]:
        found = (self._latest.get(id(bindings[name]))
                 for name in sorted(names) if name in bindings)
        return tuple(result for result in found if result is not None)

    def reduced(self, inames: tuple[str, ...], expr: Any) -> None:
        """
        :arg inames: the loops that were made for a reduction.
        :arg expr: what it evaluates, an expression of the node at hand.
        """
        self._reductions.setdefault(id(self.node), []).append(
            (inames, variables_in(expr)))

    def _fused(self, node: Node, inlined: Iterable[Result]
               ) -> tuple[set[CreationSite], list[_Entry]]:
        sites = set(self.sites_of(node))
        visited: list[_Entry] = []
        seen: set[int] = set()
        pending = list(inlined)
        while pending:
            result = pending.pop()
            if id(result) in seen or _is_stored(result):
                continue
            seen.add(id(result))
            entry = self._entries.get(id(result))
            if entry is not None:
                visited.append(entry)
                sites.update(self.sites_of(entry.node))
                pending.extend(entry.inlined)
        return sites, visited

    # }}}

    # {{{ statements

    def stored(self, name: str, result: Result, state: Any, insn_id: str, *,
               is_bound: bool = False) -> None:
        """A statement was added that evaluates *result* and stores it.

        :arg name: the variable that is stored.
        :arg state: the state of the code generator.
        :arg insn_id: of the statement.
        :arg is_bound: whether it stores a bound of a reduction.
        """
        entry = self._entries.get(id(result))
        if entry is None:
            # Stored while its node is under way: nobody else uses the expression.
            entry = _Entry(result, self.node)
            if is_bound:
                entry.inlined = self._results(
                    self.node.bindings, bound_variables_in(self.node.expr))
            elif not _is_stored(result):
                self._uses(entry)
        own = frozenset(self.sites_of(entry.node))
        kind = "bound" if is_bound else "store"
        if _is_stored(result):
            sites, visited = own, []
            kind = "copy"
        else:
            fused, visited = self._fused(entry.node, entry.inlined)
            sites = frozenset(fused)
        self._tag_variables(state.kernel, name, own)
        insn = state.kernel.instructions[-1] if state.kernel.instructions else None
        if insn is None or insn.id != insn_id:
            # An empty array needs no statement.
            return
        self._tag_statement(insn, StatementSites(
            sites, own, kind, name, tuple(sorted(insn.within_inames)),
            *self._reductions_of(insn, [entry, *visited]), program=self.program))

    def _tag_statement(self, insn: Any, tag: StatementSites) -> None:
        add_tag(insn, tag)
        self.program.statements[insn.id] = tag

    def _reductions_of(self, insn: Any, entries: list[_Entry]
                       ) -> tuple[tuple[tuple[tuple[str, ...], Sites], ...],
                                  tuple[Sites, ...]]:
        by_inames = {inames: (entry, inlined) for entry in entries
                     for inames, inlined in entry.reductions}
        if not by_inames:
            return (), ()
        shown = reductions_in(insn.expression)
        # Those of substitution rules are not in the expression yet.
        rest = [inames for inames in by_inames if inames not in shown]
        reductions: list[tuple[tuple[str, ...], Sites]] = []
        reducing: list[Sites] = []
        for inames in [*shown, *rest]:
            entry, inlined = by_inames.get(inames, (None, ()))
            reductions.append((inames, frozenset() if entry is None else frozenset(
                self._fused(entry.node, inlined)[0])))
            reducing.append(frozenset() if entry is None else frozenset(
                self.sites_of(entry.node)))
        return tuple(reductions), tuple(reducing)

    def _tag_variables(self, kernel: Any, name: str, own: Sites) -> None:
        temporary = kernel.temporary_variables.get(name)
        if temporary is not None:
            self._tag_temporary(temporary, own)
        else:
            self._arguments[name] = VariableSites(own, "output")
        if self._arguments:
            for arg in kernel.args:
                tag = self._arguments.pop(arg.name, None)
                if tag is not None:
                    add_tag(arg, tag)

    def _tag_temporary(self, temporary: Any, own: Sites) -> None:
        tag = self._temporaries[temporary.name] = VariableSites(own, "temporary")
        add_tag(temporary, tag)

    def called(self, call: Node, state: Any, known: set[str]) -> None:
        """Statements were added that call a hand-written kernel.

        :arg call: the node of the call.
        :arg known: the identifiers of the statements that were there before.
        """
        site = site_of(call)
        own = frozenset((UNKNOWN,) if site is None else site.all_sites)
        scalars = [self._latest.get(id(binding)) for binding in call.bindings.values()
                   if not isinstance(binding, _LEAVES)
                   and getattr(binding, "shape", None) == ()]
        fused = own.union(*(
            self._fused(entry.node, [result])[0]
            for result in scalars
            if result is not None and not _is_stored(result)
            and (entry := self._entries.get(id(result))) is not None))
        kernel = state.kernel
        temporaries = kernel.temporary_variables
        for insn in kernel.instructions:
            if insn.id not in known and statement_sites(insn) is None:
                self._tag_statement(insn, StatementSites(
                    fused, own, "call", call.entrypoint, program=self.program))
                for name in insn.assignee_var_names():
                    if name in temporaries and name not in self._temporaries:
                        self._tag_temporary(temporaries[name], own)
        # The host makes some temporaries twice.
        for name, tag in self._temporaries.items():
            if name in temporaries and variable_sites(temporaries[name]) is None:
                add_tag(temporaries[name], tag)

    # }}}


@cache
def _is_class_of_stored(cls: type) -> bool:
    # By name: this module is loaded before the host's code generator.
    return any(base.__name__ == "StoredResult" for base in cls.__mro__)


def _is_stored(result: Result) -> bool:
    return _is_class_of_stored(type(result))
