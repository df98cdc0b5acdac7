"""
What the installed pytato, loopy and arraycontext offer, found by probing.

.. autofunction:: host
.. autoclass:: Host
"""

from __future__ import annotations

import dataclasses
import importlib
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from pytato_provenance.diagnostic import HostMissingError


Node = Any
"""An array, or a container of named arrays, or a function definition, of the host."""


@dataclass(frozen=True)
class Host:
    """The installed pytato.

    .. attribute:: array
    .. attribute:: container

        The base classes of arrays and of containers of named arrays.

    .. autoattribute:: has_non_equality_tags
    .. autoattribute:: name
    """

    array: type
    container: type

    @cached_property
    def has_non_equality_tags(self) -> bool:
        """Whether nodes have tags that equality and hashing do not see."""
        return any("non_equality_tags" in getattr(cls, "__dataclass_fields__", {})
                   for cls in self.array_types)

    @property
    def name(self) -> str:
        """How to call it: ``"development"`` or ``"released"``."""
        return "development" if self.has_non_equality_tags else "released"

    @cached_property
    def array_types(self) -> tuple[type, ...]:
        """All classes of arrays that are defined by now."""
        return tuple(_subclasses(self.array))

    @cached_property
    def function_definition(self) -> type | None:
        """The class of traced functions, where the host has them."""
        return _optional("pytato.function", "FunctionDefinition")

    @cached_property
    def node_types(self) -> tuple[type, ...]:
        """The base classes of everything that a mapper visits."""
        function = self.function_definition
        return (self.array, self.container) + ((function,) if function else ())

    @cached_property
    def part_types(self) -> tuple[type, ...]:
        """Classes that are no nodes but hold some: sparse matrices, sends."""
        parts = (_optional("pytato.array", "SparseMatrix"),
                 _optional("pytato.distributed.nodes", "DistributedSend"))
        return tuple(part for part in parts if part is not None)

    @cached_property
    def mapper(self) -> type:
        """The base class of mappers."""
        cls: type = importlib.import_module("pytato.transform").Mapper
        return cls

    @cached_property
    def created_at(self) -> type | None:
        """The host's own creation tag, where it has one."""
        return _optional("pytato.tags", "CreatedAt")


def _optional(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def _subclasses(cls: type) -> Iterator[type]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _subclasses(subclass)


@cache
def host() -> Host:
    """
    :returns: what is installed.
    :raises ~pytato_provenance.diagnostic.HostMissingError: if pytato is not there or
        lacks what every supported one has.
    """
    try:
        array = importlib.import_module("pytato.array")
    except ImportError as error:
        raise HostMissingError(
            f"pytato cannot be imported ({error}); install it with "
            f"'{sys.executable} -m pip install pytato \"islpy<2026\"'") from error
    try:
        return Host(array.Array, array.AbstractResultWithNamedArrays)
    except AttributeError as error:
        raise HostMissingError(
            f"this pytato is too old ({error}); install 2021.2 or later") from error


# {{{ reading nodes

_LEAF, _NODE, _SEQUENCE, _MAPPING, _PART = range(5)
_kinds: dict[type, int] = {}
_names: dict[type, tuple[str, ...]] = {}
_read: dict[type, Callable[[Any], tuple[Any, ...]] | None] = {}

FIELDS_WITHOUT_NODES = frozenset({
    "access_descriptors", "axes", "axis_permutation", "dtype", "entrypoint", "name",
    "non_equality_tags", "redn_axis_to_redn_descr", "reduction_axis", "tags",
    "translation_unit", "var_to_reduction_descr"})
"""What the host fills with descriptions, never with nodes."""


def _kind_of(cls: type) -> int:
    if issubclass(cls, host().node_types):
        kind = _NODE
    elif issubclass(cls, host().part_types):
        kind = _PART
    elif issubclass(cls, tuple | list):
        kind = _SEQUENCE
    elif issubclass(cls, Mapping):
        kind = _MAPPING
    else:
        kind = _LEAF
    # Whether a class is a mapping costs microseconds to ask.
    _kinds[cls] = kind
    return kind


def _field_names(node: Node) -> tuple[str, ...]:
    cls = type(node)
    names = _names.get(cls)
    if names is None:
        if not dataclasses.is_dataclass(cls):
            return tuple(name for name in vars(node) if not name.startswith(_PRIVATE))
        names = _names[cls] = tuple(field.name for field in dataclasses.fields(cls)
                                    if field.name != "non_equality_tags")
    return names


_PRIVATE = ("_memoize_dic_", "_provenance_")


def fields_of(node: Node) -> dict[str, Any]:
    """
    :returns: what *node* is made of, by name, without caches and without tags that
        equality does not see.
    """
    return {name: getattr(node, name) for name in _field_names(node)}


def _reader(cls: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """
    :returns: what reads the fields of a node that may hold nodes; *None* where each
        node has to be asked for its attributes.
    """
    reader: Callable[[Any], tuple[Any, ...]] | None = None
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)
                 if field.name not in FIELDS_WITHOUT_NODES]
        # Of one name alone, an attrgetter would not make a tuple.
        reader = (operator.attrgetter(*names) if len(names) > 1 else
                  lambda node: tuple(getattr(node, name) for name in names))
    _read[cls] = reader
    return reader


def children_of(node: Node) -> list[Node]:
    """
    :returns: the nodes that *node* refers to directly, in the order of its fields, one
        entry a reference: operands, bindings, array-valued shapes and indices,
        containers, functions.
    """
    cls = type(node)
    try:
        reader = _read[cls]
    except KeyError:
        reader = _reader(cls)
    values: Iterable[Any]
    if reader is not None:
        values = reader(node)
    else:
        values = [value for name, value in vars(node).items()
                  if _kinds.get(type(value)) != _LEAF
                  and name not in FIELDS_WITHOUT_NODES
                  and not name.startswith(_PRIVATE)]
    children: list[Node] = []
    for value in values:
        kind = _kinds.get(type(value))
        if kind == _LEAF:
            continue
        if kind == _NODE:
            children.append(value)
        elif kind in (_SEQUENCE, _MAPPING):
            # Written out: this is where most of a traversal's time goes.
            for item in value if kind == _SEQUENCE else value.values():
                kind = _kinds.get(type(item))
                if kind == _NODE:
                    children.append(item)
                elif kind != _LEAF:
                    _add_nodes_in(item, children)
        else:
            _add_nodes_in(value, children)
    return children


def _add_nodes_in(value: Any, found: list[Node]) -> None:
    cls = type(value)
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kind_of(cls)
    if kind == _NODE:
        found.append(value)
        return
    if kind == _SEQUENCE:
        items = value
    elif kind == _MAPPING:
        items = value.values()
    elif kind == _PART:
        items = fields_of(value).values()
    else:
        return
    for item in items:
        kind = _kinds.get(type(item))
        if kind == _LEAF:
            continue
        if kind == _NODE:
            found.append(item)
        else:
            _add_nodes_in(item, found)


def map_children(node: Node, value: Any, function: Callable[[Node], Any]) -> Any:
    """
    :arg value: the value of a field of *node*.
    :returns: *value* with *function* applied to the nodes in it, or *value* itself if
        that changes nothing.
    """
    kind = _kinds.get(type(value))
    if kind is None:
        kind = _kind_of(type(value))
    if kind == _LEAF:
        return value
    if kind == _NODE:
        return function(value)
    if kind == _SEQUENCE:
        items = [map_children(node, item, function) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(items)
    if kind == _MAPPING:
        entries = {key: map_children(node, item, function)
                   for key, item in value.items()}
        if all(entries[key] is item for key, item in value.items()):
            return value
        return type(value)(entries)
    changed = {name: map_children(node, item, function)
               for name, item in fields_of(value).items()}
    if all(changed[name] is getattr(value, name) for name in changed):
        return value
    return dataclasses.replace(value, **changed)


def nodes_in_post_order(*roots: Node) -> list[Node]:
    """
    :returns: every node reachable from *roots* once (by identity), children first.
        Iterative: a DAG may be deeper than the recursion limit.
    """
    order: list[Node] = []
    entered: set[int] = set()
    left: set[int] = set()
    pending: list[Node] = list(reversed(roots))
    while pending:
        node = pending[-1]
        key = id(node)
        if key not in entered:
            entered.add(key)
            children = children_of(node)
            if children:
                children.reverse()
                pending.extend([child for child in children
                                if id(child) not in entered])
                continue
        pending.pop()
        if key not in left:
            left.add(key)
            order.append(node)
    return order

# }}}
