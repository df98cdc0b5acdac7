"""
What a mapper must remember to carry sites from its input to its result.

.. autoclass:: Carry
.. autofunction:: carry_of
"""

from __future__ import annotations

from typing import Any

from pytato_provenance._host import Node, children_of, host, nodes_in_post_order
from pytato_provenance.merging import has_equal_nodes, spread_sites
from pytato_provenance.tags import set_site, site_of


class Carry:
    """What one mapper has seen, over all calls of it. A context manager around the
    outermost call.

    .. automethod:: enter
    .. automethod:: inherit
    """

    __slots__ = ("active", "seen")

    def __init__(self) -> None:
        self.active = False
        # Holds the nodes, as the mapper's own cache does: an identity stays theirs.
        self.seen: dict[int, Node] = {}

    def __enter__(self) -> Carry:
        self.active = True
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.active = False

    def enter(self, expr: Node) -> Node:
        """
        :arg expr: the input of the mapper.
        :returns: *expr*, in which equal nodes know all their sites.
        """
        if id(expr) in self.seen or not isinstance(expr, host().node_types):
            return expr
        nodes = nodes_in_post_order(expr)
        if has_equal_nodes(nodes):
            spread = spread_sites(expr, nodes)
            if spread is not expr:
                expr = spread
                nodes = nodes_in_post_order(expr)
        self.seen.update((id(node), node) for node in nodes)
        return expr

    def inherit(self, result: Any, replaced: Node) -> None:
        """Give *result*, and what was newly made beneath it, the site of *replaced*.

        :arg result: what a mapper returned for *replaced*: a node, or anything.
        """
        seen = self.seen
        if id(result) in seen or not isinstance(result, host().node_types):
            return
        site = site_of(replaced)
        seen[id(result)] = result
        pending = [result]
        while pending:
            node = pending.pop()
            if site is not None and site_of(node) is None and (
                    isinstance(node, host().array)):
                set_site(node, site)
            for child in children_of(node):
                if id(child) not in seen:
                    seen[id(child)] = child
                    pending.append(child)


_ATTRIBUTE = "_provenance_carry"


def carry_of(mapper: Any) -> Carry:
    """
    :returns: the one :class:`Carry` of *mapper*.
    """
    carry = mapper.__dict__.get(_ATTRIBUTE)
    if carry is None:
        carry = mapper.__dict__[_ATTRIBUTE] = Carry()
    return carry  # type: ignore[no-any-return]
