"""
What the survivors of a mapper's merges are to know.

.. autofunction:: settled
.. autofunction:: note_if_one

A mapper takes equal nodes for one in two ways. Of equal nodes of its input it maps the
first, and never looks beneath the others; of equal results it keeps the first. In both,
what stays is to know the sites of what was dropped.

What the mapper has made itself is completed in place. What it has passed through is a
node of the input, which is not to be changed: a copy takes its place, in all that the
mapper returns and keeps. A copy that would be one more among equal nodes is not made:
then the site of what was dropped is known to the audit only. That is so for inputs that
compare by identity, and for what an earlier call of the same mapper has returned.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from pytato_provenance._host import Node, children_of, host, nodes_in_post_order
from pytato_provenance.copies import are_one_node, note_host_copy
from pytato_provenance.merging import (
    compares_by_identity,
    corresponding_nodes,
    differs_beyond_children,
    merged_sites,
    rebuilt,
)
from pytato_provenance.scope import current_scope
from pytato_provenance.sites import CreationSite, merge_sites
from pytato_provenance.steps import record_merge
from pytato_provenance.tags import replace_site, site_of


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytato_provenance.carry import Carry


class _More:
    """The sites that nodes are to know beside their own."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}
        self._sites: dict[int, set[CreationSite | None]] = {}

    def add(self, node: Node, site: CreationSite | None) -> None:
        self._nodes[id(node)] = node
        self._sites.setdefault(id(node), set()).add(site)

    def unions(self) -> Iterator[tuple[Node, CreationSite]]:
        """The nodes that do not know all yet, with all that they are to know."""
        for key, node in self._nodes.items():
            known = site_of(node)
            union = merge_sites({known, *self._sites[key]})
            if union is not known and union.kind != "unknown":
                yield node, union


def settled(carry: Carry, root: Node, result: Any) -> Any:
    """
    :arg carry: of a mapper that has merged.
    :arg root: the mapper's input.
    :arg result: its result.
    :returns: *result*, or an equal one, in which the survivors know all their sites.
    """
    from pytato_provenance.carry import made_nodes

    more = _More()
    if carry.found_duplicates:
        _add_equal_inputs(more, carry.mapped(), root)
    for kept, dropped in carry.collapsed:
        for node, other in corresponding_nodes(kept, dropped):
            more.add(node, site_of(other))

    made = made_nodes.get() or ()
    history = current_scope().history
    to_copy: dict[int, tuple[Node, CreationSite]] = {}
    for node, site in more.unions():
        if id(node) not in made:
            if not compares_by_identity(node):
                to_copy[id(node)] = node, site
        elif history and isinstance(node, host().array):
            record_merge(node, node, site, carry.mapper)
        else:
            replace_site(node, site)
    return _with_copies(carry, result, to_copy) if to_copy else result


def _add_equal_inputs(more: _More, mapped: list[tuple[Node, Any]], root: Node) -> None:
    types = host().node_types
    nodes = nodes_in_post_order(
        root, *(expr for expr, _ in mapped if isinstance(expr, types)))
    unions = merged_sites(nodes)
    if not unions:
        return
    inputs = {id(node) for node in nodes}
    results = {id(result) for _, result in mapped}
    for expr, result in mapped:
        union = unions.get(id(expr))
        if union is not None and isinstance(result, types):
            for node in _made_for(expr, result, inputs, results):
                more.add(node, union)


def _made_for(expr: Node, result: Node, inputs: set[int], results: set[int]
              ) -> Iterator[Node]:
    """The nodes at and beneath *result* that have the site of *expr* from it."""
    site = site_of(expr)
    pending = [result]
    entered = {id(result)}
    while pending:
        node = pending.pop()
        if id(node) in inputs and node is not expr:
            continue
        if site_of(node) is site:
            yield node
        for child in children_of(node):
            if id(child) not in entered and id(child) not in results:
                entered.add(id(child))
                pending.append(child)


def _with_copies(carry: Carry, result: Any,
                 to_copy: dict[int, tuple[Node, CreationSite]]) -> Any:
    from pytato_provenance.auditing import roots
    from pytato_provenance.carry import made_nodes, node_in

    types = host().node_types
    tables = list(_tables(carry.mapper))
    if not isinstance(node_in(result), types) or not tables:
        return result
    if carry.returned:
        for node in nodes_in_post_order(*roots(carry.returned)):
            to_copy.pop(id(node), None)
    for expr, value in carry.mapped():
        note_if_one(expr, node_in(value))
    kept = (node_in(value) for table in tables for value in table.values())
    replaced = rebuilt(
        nodes_in_post_order(*(node for node in kept if isinstance(node, types)),
                            node_in(result)),
        {key: site for key, (_, site) in to_copy.items()})

    def replacement(value: Any) -> Any:
        old = node_in(value)
        new = replaced.get(id(old), old)
        if new is old:
            return value
        return new if old is value else dataclasses.replace(value, expr=new)

    # By identity, with what has that identity.
    records: dict[int, tuple[Any, Any]] = {id(result): (result, replacement(result))}
    for table in tables:
        for key, value in table.items():
            if id(value) not in records:
                records[id(value)] = value, replacement(value)
            table[key] = records[id(value)][1]
    for key, (expr, value) in carry.visited.items():
        if id(node_in(value)) in replaced:
            carry.visited[key] = expr, replacement(value)
    made = made_nodes.get()
    if made is not None:
        made.update(id(node) for node in replaced.values())
    if current_scope().history:
        for key, (survivor, site) in to_copy.items():
            node = replaced.get(key)
            if node is not None and isinstance(node, host().array):
                record_merge(node, survivor, site, carry.mapper)
    return records[id(result)][1]


def note_if_one(expr: Node, result: Any) -> None:
    """Note that the host has made *result* in place of *expr* for the sake of nodes
    beneath it that are one for the program, if that is so."""
    if (result is not expr and isinstance(result, host().node_types)
            and _have_one_nodes_beneath(expr, result)
            and not differs_beyond_children(expr, result)):
        note_host_copy(expr, result)


def _have_one_nodes_beneath(one: Node, other: Node) -> bool:
    mine, others = children_of(one), children_of(other)
    return len(mine) == len(others) and all(
        child is counterpart or are_one_node(child, counterpart)
        for child, counterpart in zip(mine, others, strict=True))


def _tables(mapper: Any) -> Iterator[dict[Any, Any]]:
    """The dictionaries in which a mapper of the host keeps its results."""
    for cache in (getattr(mapper, "_cache", None),
                  getattr(mapper, "_function_cache", None)):
        for name in ("_input_key_to_result", "_result_to_cached_result",
                     "_result_key_to_result"):
            table = getattr(cache, name, None)
            if isinstance(table, dict):
                yield table
    table = getattr(mapper, "cache", None)
    if isinstance(table, dict):
        yield table
