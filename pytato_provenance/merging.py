"""
Which nodes are equal, and what equal nodes know of each other's sites.

.. autofunction:: equal_classes
.. autofunction:: has_equal_nodes
.. autofunction:: merged_sites
.. autofunction:: spread_sites
.. autofunction:: rebuilt
.. autofunction:: corresponding_nodes

Never by the host's ``==``, which the released host answers in exponential time:
classes are interned bottom-up by type, fields and the classes of the children, in
linear time and without recursion.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytato_provenance._host import (
    FIELDS_WITHOUT_NODES,
    Node,
    children_of,
    fields_of,
    host,
    map_children,
    nodes_in_post_order,
)
from pytato_provenance.copies import known_copy
from pytato_provenance.sites import CreationSite, merge_sites
from pytato_provenance.tags import replace_site, shallow_copy, site_of


# Begins what stands for a node in a key.
_NODE = object()


def _described(value: Any, classes: Mapping[int, int]) -> Any:
    """What *value* adds to a key: nodes by their class."""
    if isinstance(value, tuple | list):
        return tuple(item if type(item) is int else _described(item, classes)
                     for item in value)
    if isinstance(value, host().node_types):
        return _NODE, classes[id(value)]
    if isinstance(value, Mapping):
        return frozenset((key, _described(item, classes))
                         for key, item in value.items())
    if isinstance(value, host().part_types):
        return (type(value), *(_described(item, classes)
                               for item in fields_of(value).values()))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def compares_by_identity(node: Node) -> bool:
    """
    :returns: whether *node* is equal to no other node, a copy of it included.
    """
    cls = type(node)
    answer = _by_identity.get(cls)
    if answer is None:
        import pytato.array

        host_class = (pytato.array.DataWrapper if host().has_non_equality_tags
                      else pytato.array.InputArgumentBase)
        answer = _by_identity[cls] = issubclass(cls, host_class)
    return answer


_by_identity: dict[type, bool] = {}


def _key(node: Node, classes: Mapping[int, int]) -> Any:
    if compares_by_identity(node):
        return type(node), id(node)
    return (type(node), *(
        value if name in FIELDS_WITHOUT_NODES and value.__hash__
        else _described(value, classes) for name, value in fields_of(node).items()))


def differs_beyond_children(one: Node, other: Node) -> bool:
    """
    :returns: whether two nodes differ in more than the nodes that they refer to.
    """
    if type(one) is not type(other):
        return True
    same = defaultdict[int, int](int)
    mine, others = fields_of(one), fields_of(other)
    return any(value is not others.get(name) and
               _described(value, same) != _described(others.get(name), same)
               for name, value in mine.items())


def equal_classes(nodes: Iterable[Node]) -> dict[int, int]:
    """
    :arg nodes: nodes, children first, as from ``nodes_in_post_order``.
    :returns: a mapping of the identity of each node to the number of its class. Nodes
        of a class are equal in the host's sense.
    """
    numbers: dict[Any, int] = {}
    classes: dict[int, int] = {}
    for node in nodes:
        key = _key(node, classes)
        classes[id(node)] = numbers.setdefault(key, len(numbers))
    return classes


def _classes_by_hash(nodes: list[Node]) -> dict[int, int]:
    """Like :func:`equal_classes`, asking the host for its hashes first: what no other
    node's hash is equal to is not looked at. For nodes that a mapper is to hash
    anyway."""
    # Children first: the host's recursive hash finds them cached.
    hashes = [hash(node) for node in nodes]
    counts = Counter(hashes)
    numbers: dict[Any, int] = {}
    classes: dict[int, int] = {}
    for node, value in zip(nodes, hashes, strict=True):
        if counts[value] == 1:
            classes[id(node)] = -1 - len(classes)
        else:
            key = _key(node, classes)
            classes[id(node)] = numbers.setdefault(key, len(numbers))
    return classes


def _namespaces(nodes: Iterable[Node], classes: Mapping[int, int]) -> dict[int, int]:
    """The class of the traced function in whose body a node lies: equal nodes of two
    namespaces are never merged."""
    definition = host().function_definition
    spaces: dict[int, int] = {}
    if definition is None:
        return spaces
    for function in nodes:
        if isinstance(function, definition):
            pending = list(children_of(function))
            while pending:
                node = pending.pop()
                if id(node) not in spaces and not isinstance(node, definition):
                    spaces[id(node)] = classes[id(function)]
                    pending.extend(children_of(node))
    return spaces


def has_equal_nodes(nodes: Iterable[Node]) -> bool:
    """
    :arg nodes: nodes, children first.
    :returns: whether some may be equal (by their hashes, which mappers ask for anyway):
        *False* is certain.
    """
    count = 0
    hashes: set[int] = set()
    for count, node in enumerate(nodes, start=1):  # noqa: B007
        # Children first: the host's recursive hash finds them cached.
        hashes.add(hash(node))
    return len(hashes) < count


def merged_sites(nodes: Iterable[Node]) -> dict[int, CreationSite]:
    """
    :arg nodes: nodes, children first, that a mapper of the host has hashed or will.
    :returns: by identity, for each node with an equal one of another site, the union.
    """
    nodes = list(nodes)
    classes = _classes_by_hash(nodes)
    spaces = _namespaces(nodes, classes)
    groups: dict[tuple[int | None, int], list[Node]] = defaultdict(list)
    for node in nodes:
        number = classes[id(node)]
        if number >= 0:
            groups[spaces.get(id(node)), number].append(node)
    merged: dict[int, CreationSite] = {}
    for group in groups.values():
        if len(group) > 1:
            sites = {site_of(node) for node in group}
            if len(sites) > 1:
                union = merge_sites(sites)
                merged.update((id(node), union) for node in group)
    return merged


# Where the hosts keep the hash of a node. Copies are equal, so theirs is the same.
_HASH_CACHES = ("_hash_value", "_memoize_dic___hash__")


def rebuilt(nodes: Iterable[Node], sites: Mapping[int, CreationSite]
            ) -> dict[int, Node]:
    """
    :arg nodes: nodes, children first.
    :arg sites: by identity, the sites that some of *nodes* are to have.
    :returns: by identity, what is to stand for a node: copies, equal to what they are
        copies of, that have their *sites*, and copies of what refers to these; the same
        ones each time. Inputs that compare by identity are never copied.
    """
    replaced: dict[int, Node] = {}

    def replacement(child: Node) -> Node:
        return replaced.get(id(child), child)

    for node in nodes:
        if compares_by_identity(node):
            continue
        changes = {}
        for name, value in fields_of(node).items():
            new = map_children(node, value, replacement)
            if new is not value:
                changes[name] = new
        site = sites.get(id(node))
        if getattr(node, "_mapper_method", None) == "map_named_call_result":
            # Its site is that of the function's result, and the host relies on there
            # being one object for a call and a name.
            if changes:
                replaced[id(node)] = known_copy(
                    node, changes["_container"][node.name])
        elif changes or (site is not None and site_of(node) is not site):
            new_node = shallow_copy(node, **changes)
            for name in _HASH_CACHES:
                if name in node.__dict__:
                    new_node.__dict__[name] = node.__dict__[name]
            if site is not None:
                replace_site(new_node, site)
            replaced[id(node)] = known_copy(node, new_node)
    return replaced


def spread_sites(root: Node, nodes: Iterable[Node] | None = None) -> Node:
    """Let equal nodes know all their sites, whichever of them survives later.

    :arg root: a node of the host.
    :arg nodes: the nodes of *root*, children first, where they are at hand.
    :returns: *root*, with the members of each class of equal nodes, and what refers to
        them, replaced by copies that carry the union of the sites. As many nodes as
        before, equal to what they were; the input is not changed.
    """
    nodes = nodes_in_post_order(root) if nodes is None else list(nodes)
    merged = merged_sites(nodes)
    return rebuilt(nodes, merged).get(id(root), root) if merged else root


def corresponding_nodes(one: Node, other: Node) -> Iterator[tuple[Node, Node]]:
    """
    :arg one: a node.
    :arg other: a node that is equal to it.
    :returns: the pairs of distinct nodes that stand at the same place in both.
    """
    entered: set[tuple[int, int]] = set()
    pending = [(one, other)]
    while pending:
        pair = pending.pop()
        key = id(pair[0]), id(pair[1])
        if key[0] == key[1] or key in entered:
            continue
        entered.add(key)
        yield pair
        mine, others = (fields_of(node) for node in pair)
        for name, value in mine.items():
            _add_pairs(value, others.get(name), pending)


def _add_pairs(one: Any, other: Any, pairs: list[tuple[Node, Node]]) -> None:
    if one is other or type(one) is not type(other):
        return
    if isinstance(one, host().node_types):
        pairs.append((one, other))
    elif isinstance(one, tuple | list):
        for mine, others in zip(one, other, strict=False):
            _add_pairs(mine, others, pairs)
    elif isinstance(one, Mapping):
        # Equal mappings may have been filled in different orders.
        for key, mine in one.items():
            _add_pairs(mine, other.get(key), pairs)
    elif isinstance(one, host().part_types):
        _add_pairs(fields_of(one), fields_of(other), pairs)
