"""
What the installed pytato, loopy and arraycontext offer, found by probing.

.. autofunction:: host
.. autoclass:: Host
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator, Mapping
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

@cache
def _field_names(cls: type) -> tuple[str, ...] | None:
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls)
                     if field.name != "non_equality_tags")
    return None


def fields_of(node: Node) -> dict[str, Any]:
    """
    :returns: what *node* is made of, by name, without caches and without tags that
        equality does not see.
    """
    names = _field_names(type(node))
    if names is not None:
        return {name: getattr(node, name) for name in names}
    return {name: value for name, value in vars(node).items()
            if not name.startswith(("_memoize_dic_", "_provenance_"))}


def _nodes_in(value: Any, types: tuple[type, ...], parts: tuple[type, ...]
              ) -> Iterator[Node]:
    if isinstance(value, types):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _nodes_in(item, types, parts)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _nodes_in(item, types, parts)
    elif isinstance(value, parts):
        for item in fields_of(value).values():
            yield from _nodes_in(item, types, parts)


def children_of(node: Node) -> tuple[Node, ...]:
    """
    :returns: the nodes that *node* refers to directly, in the order of its fields, one
        entry a reference: operands, bindings, array-valued shapes and indices,
        containers, functions.
    """
    installed = host()
    types, parts = installed.node_types, installed.part_types
    return tuple(child for value in fields_of(node).values()
                 for child in _nodes_in(value, types, parts))


def nodes_in_post_order(*roots: Node) -> list[Node]:
    """
    :returns: every node reachable from *roots* once (by identity), children first.
        Iterative: a DAG may be deeper than the recursion limit.
    """
    order: list[Node] = []
    seen: set[int] = set()
    pending: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while pending:
        node, children_are_done = pending.pop()
        if children_are_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            pending.extend((child, False) for child in reversed(children_of(node))
                           if id(child) not in seen)
    return order

# }}}
