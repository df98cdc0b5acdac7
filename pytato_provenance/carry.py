"""
What a mapper must remember to carry sites from its input to its result.

.. autoclass:: Carry
.. autofunction:: carry_of
"""

from __future__ import annotations

from typing import Any

from pytato_provenance._host import Node, children_of, host, nodes_in_post_order
from pytato_provenance.history import HistoryStep
from pytato_provenance.merging import (
    differs_beyond_children,
    has_equal_nodes,
    spread_sites,
)
from pytato_provenance.scope import current_scope
from pytato_provenance.sites import CreationSite, site_of_code
from pytato_provenance.tags import history_of, replace_site, set_site, site_of


class Carry:
    """What one mapper has seen, over all calls of it. A context manager around the
    outermost call.

    .. automethod:: enter
    .. automethod:: inherit
    .. automethod:: leave
    """

    __slots__ = ("_before", "active", "seen")

    def __init__(self) -> None:
        self.active = False
        # Holds the nodes, as the mapper's own cache does: an identity stays theirs.
        self.seen: dict[int, Node] = {}
        self._before: list[Node] = []

    def __enter__(self) -> Carry:
        self.active = True
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.active = False
        self._before = []

    def enter(self, expr: Node, merges: bool = True) -> Node:
        """
        :arg expr: the input of the mapper.
        :arg merges: whether the mapper may merge equal nodes.
        :returns: *expr*, in which equal nodes know all their sites.
        """
        if not isinstance(expr, host().node_types):
            return expr
        if id(expr) not in self.seen:
            nodes = nodes_in_post_order(expr)
            if merges and has_equal_nodes(nodes):
                spread = spread_sites(expr, nodes)
                if spread is not expr:
                    expr = spread
                    nodes = nodes_in_post_order(expr)
            self.seen.update((id(node), node) for node in nodes)
        if current_scope().audit is not None:
            self._before = nodes_in_post_order(expr)
        return expr

    def inherit(self, result: Any, replaced: Node, mapper: Any) -> None:
        """Give *result*, and what was newly made beneath it, the site of *replaced*.

        :arg result: what a mapper returned for *replaced*: a node, or anything.
        :arg mapper: names the pass in the history, if that is recorded.
        """
        seen = self.seen
        if id(result) in seen or not isinstance(result, host().node_types):
            return
        site = site_of(replaced)
        seen[id(result)] = result
        scope = current_scope()
        if scope.record and not scope.history and (
                site is None or site_of(result) is not None):
            # The constructors were hooked: nothing beneath lacks what it can have.
            return
        pending = [result]
        while pending:
            node = pending.pop()
            if isinstance(node, host().array):
                if site is not None and site_of(node) is None:
                    set_site(node, site)
                if scope.history:
                    _add_step(node, replaced, mapper)
            for child in children_of(node):
                if id(child) not in seen:
                    seen[id(child)] = child
                    pending.append(child)

    def leave(self, result: Any, mapper: Any) -> Any:
        """Audit, if that was asked for.

        :arg result: what the outermost call of the mapper returns.
        :returns: *result*.
        """
        scope = current_scope()
        if scope.audit is not None:
            from pytato_provenance.auditing import check, compare, roots
            check(compare(self._before, nodes_in_post_order(*roots(result)),
                          type(mapper).__qualname__), scope.audit)
        return result


def _add_step(node: Node, replaced: Node, mapper: Any) -> None:
    if not differs_beyond_children(node, replaced):
        return
    site = site_of(node)
    if site is None:
        return
    old, new = type(replaced).__name__, type(node).__name__
    step = HistoryStep(type(mapper).__qualname__,
                       f"{old} -> {new}" if old != new else f"{old} rewritten",
                       _rewriting_code(mapper, replaced))
    replace_site(node, site, history_of(replaced).extended(step))


def _rewriting_code(mapper: Any, replaced: Node) -> CreationSite | None:
    """Where the user's code lies that a mapper runs for a node."""
    function = getattr(mapper, "map_fn", None)
    function = getattr(function, "__wrapped__", function)
    if function is None:
        function = getattr(type(mapper), getattr(replaced, "_mapper_method", ""), None)
    code = getattr(function, "__code__", None)
    return None if code is None else site_of_code(code, function.__module__)


_ATTRIBUTE = "_provenance_carry"


def carry_of(mapper: Any) -> Carry:
    """
    :returns: the one :class:`Carry` of *mapper*.
    """
    carry = mapper.__dict__.get(_ATTRIBUTE)
    if carry is None:
        carry = mapper.__dict__[_ATTRIBUTE] = Carry()
    return carry
