"""
Copies that stand for nodes of the host, so that these need not be changed.

.. autofunction:: known_copy
.. autofunction:: note_host_copy
.. autofunction:: are_one_node
.. autofunction:: exist
.. autofunction:: call_when_copied
.. autofunction:: forgiving_retrieve
.. autofunction:: forgiving_post_visit

A node of which there is a copy is, for the program, one node with it: the same copy is
given each time, and where the host refuses two equal nodes, these two are let pass.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pytato_provenance._host import Node, children_of
from pytato_provenance.tags import site_of
from pytato_provenance.weak_identity import WeakIdentityMap


if TYPE_CHECKING:
    from collections.abc import Callable


class _Family:
    """A node and its copies, the copies of these included."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members: list[weakref.ref[Node]] = []


FORGAVE = "_provenance_forgave"
"""The attribute of a host's cache that has taken two nodes for one."""

_families: WeakIdentityMap[_Family] = WeakIdentityMap()


def _family_of(node: Node) -> _Family:
    family = _families.get(node)
    if family is None:
        family = _Family()
        _add(node, family)
    return family


_when_copied: list[Callable[[], None]] = []


def call_when_copied(callback: Callable[[], None]) -> None:
    """Have *callback* called after each copy that is made."""
    _when_copied.append(callback)


def exist() -> bool:
    """
    :returns: whether there is a copy that lives.
    """
    return bool(_families)


def _add(node: Node, family: _Family) -> None:
    family.members.append(weakref.ref(node))
    _families.put(node, family)


def known_copy(node: Node, copy: Node) -> Node:
    """
    :arg copy: a new copy of *node*, that may have other children and another site.
    :returns: what there is of *node* with these, or else *copy*.
    """
    family = _family_of(node)
    site = site_of(copy)
    children = [id(child) for child in children_of(copy)]
    alive: list[weakref.ref[Node]] = []
    for reference in family.members:
        known = reference()
        if known is not None:
            if (site_of(known) is site and type(known) is type(copy)
                    and [id(child) for child in children_of(known)] == children):
                return known
            alive.append(reference)
    family.members = alive
    _add(copy, family)
    for callback in _when_copied:
        callback()
    return copy


def note_host_copy(node: Node, copy: Node) -> None:
    """
    :arg copy: an equal node, that the host has made in place of *node* for the sake of
        nodes beneath it that are one for the program.
    """
    if _families.get(copy) is None:
        _add(copy, _family_of(node))


def are_one_node(one: Node, other: Node) -> bool:
    """
    :returns: whether one of two equal nodes is a copy that stands for the other.
    """
    family = _families.get(one)
    return family is not None and family is _families.get(other)


def forgiving_retrieve(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's caches, which refuse equal nodes that are not one object."""
    import pytato.transform as host_module
    collision: Any = host_module.CacheCollisionError  # type: ignore[attr-defined]

    def retrieve(self: Any, inputs: Any) -> Any:
        try:
            return original(self, inputs)
        except collision:
            if are_one_node(inputs.expr, self._input_key_to_expr[inputs.key]):
                setattr(self, FORGAVE, True)
                return self._input_key_to_result[inputs.key]
            raise

    return retrieve


def forgiving_post_visit(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's check of names, which refuses two inputs of one name."""
    from pytato.diagnostic import NameClashError

    def post_visit(self: Any, expr: Any) -> Any:
        try:
            return original(self, expr)
        except NameClashError:
            if are_one_node(expr, self.name_to_input[expr.name]):
                return None
            raise

    return post_visit
