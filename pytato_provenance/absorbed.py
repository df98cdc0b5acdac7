"""
One node in place of several.

.. autofunction:: absorb
.. autofunction:: copying_methods

A rewrite that fuses nodes maps what lies beneath them, and never the inner ones. What
it makes stands for all of them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pytato_provenance._host import Node, children_of, host
from pytato_provenance.sites import merge_sites
from pytato_provenance.tags import replace_site, site_of


if TYPE_CHECKING:
    from collections.abc import Callable


_ABSENT = object()
_MOST = 256
"""How many nodes one rewrite is taken to fuse, at most."""


@cache
def copying_methods() -> frozenset[Any]:
    """
    :returns: the host's mapper methods that copy a node: they fuse none.
    """
    import pytato.transform as pt
    classes = (pt.CopyMapper, getattr(pt, "CopyMapperWithExtraArgs", object))
    return frozenset(method for cls in classes for name, method in vars(cls).items()
                     if name.startswith("map_"))


def absorb(mapper: Any, replaced: Node, result: Node,
           is_new: Callable[[Node], bool]) -> None:
    """Give *result* the sites of all the nodes that it stands for: of *replaced*, and
    of those between it and what *result* is made of that were not mapped themselves.

    :arg mapper: which mapped *replaced* to *result*.
    :arg is_new: whether a node was made since the mapper began.
    """
    site = site_of(replaced)
    if site is None or not is_new(result):
        return
    inner, beneath = _inner_nodes(mapper, replaced)
    if not inner:
        return
    new, used = _new_and_used(result, is_new, set(beneath.values()))
    # Mapped all the same, by a `rec` that does not tell the cache.
    mapped = {site_of(node) for node in new} - {site}
    leading = {key for key, found in beneath.items() if key in used or found in used}
    absorbed: list[Node] = []
    for node in inner:
        if any(id(child) in leading for child in children_of(node)):
            leading.add(id(node))
            if site_of(node) not in mapped:
                absorbed.append(node)
    if absorbed:
        union = merge_sites([site, *(site_of(node) for node in absorbed)])
        for node in new:
            if isinstance(node, host().array) and site_of(node) is site:
                replace_site(node, union)


def _inner_nodes(mapper: Any, replaced: Node) -> tuple[list[Node], dict[int, int]]:
    """The nodes beneath *replaced* that are not mapped, children first; and the
    identity of each that is, with that of its result."""
    inner: list[Node] = []
    beneath: dict[int, int] = {}
    entered = {id(replaced)}
    pending = [(child, False) for child in children_of(replaced)]
    while pending and len(entered) <= _MOST:
        node, children_are_done = pending.pop()
        if children_are_done:
            inner.append(node)
        elif id(node) not in entered:
            entered.add(id(node))
            found = _result(mapper, node)
            if found is _ABSENT:
                pending.append((node, True))
                pending.extend((child, False) for child in children_of(node))
            else:
                beneath[id(node)] = id(found)
    return inner, beneath


def _new_and_used(result: Node, is_new: Callable[[Node], bool], mapped: set[int]
                  ) -> tuple[list[Node], set[int]]:
    """The nodes at and beneath *result* that were made in place of the replaced one,
    and the identities of the others that they refer to."""
    new: list[Node] = []
    used: set[int] = set()
    entered = {id(result)}
    pending = [result]
    while pending:
        node = pending.pop()
        new.append(node)
        for child in children_of(node):
            if id(child) in mapped or not is_new(child):
                used.add(id(child))
            elif id(child) not in entered:
                entered.add(id(child))
                pending.append(child)
    return new, used


def _result(mapper: Any, node: Node) -> Any:
    """What *mapper* has for *node*."""
    results = getattr(getattr(mapper, "_cache", None), "_input_key_to_result", None)
    try:
        if results is not None:
            return results.get(mapper.get_cache_key(node), _ABSENT)
        return mapper.cache.get(node, _ABSENT)
    except (AttributeError, NotImplementedError, TypeError):
        # No cache, or one that asks for arguments of the call: nothing is known.
        return None
