"""
What a mapper must remember to carry sites from its input to its result.

.. autoclass:: Carry
.. autofunction:: carry_of
.. autofunction:: outermost
.. autodata:: made_nodes
"""

from __future__ import annotations

import dataclasses
import sys
from contextvars import ContextVar, Token
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytato_provenance._host import Node, children_of, host, nodes_in_post_order
from pytato_provenance.absorbed import absorb
from pytato_provenance.copies import FORGAVE
from pytato_provenance.frames import is_host_code
from pytato_provenance.mapper_kinds import MERGING, kind_of_mapper, merges_silently
from pytato_provenance.scope import current_scope, origin, origin_setters, warn_once
from pytato_provenance.steps import record_step
from pytato_provenance.tags import set_site, site_of


if TYPE_CHECKING:
    from collections.abc import Callable

made_nodes: ContextVar[set[int] | None] = ContextVar(
    "pytato_provenance_made_nodes", default=None)
"""The identities of the arrays that were made since the outermost call of a mapper
began: nobody else has seen them. Filled by the hooks of constructors, so only while
recording. Identities suffice: whatever lives and has one of them was made since."""

_active: ContextVar[tuple[Carry, ...]] = ContextVar(
    "pytato_provenance_active_mappers", default=())


class Carry:
    """What one mapper has seen, over all calls of it.

    .. attribute:: mapper

        The mapper while a call of it is under way, else *None*.

    .. attribute:: active

        Whether a call of the mapper is under way.

    .. attribute:: tracks

        Whether it takes equal nodes of its input for one without a word, so that it
        has to be noticed here.

    .. attribute:: visited

        While it does: what was mapped to what, by the identity of the former; and
        equal nodes that were met, mapped to nothing.

    .. attribute:: collapsed

        Pairs of equal nodes that were made in place of different ones: the one that
        stays, and the one that is dropped.

    .. attribute:: found_duplicates

        Whether equal nodes of the input were met.

    .. attribute:: returned

        What the calls before this one have returned.

    .. automethod:: inherit
    .. automethod:: note_hit
    .. automethod:: mapped
    """

    __slots__ = ("_begin", "_inputs", "_made_for_host", "_new_roots", "_root",
                 "_watched", "active", "collapsed", "found_duplicates", "mapper",
                 "part_of", "parts", "returned", "seen", "tracks", "visited")

    def __init__(self) -> None:
        self.mapper: Any = None
        self.active = False
        self.tracks = False
        # Of what the mapper keeps alive itself: an identity stays theirs.
        self.visited: dict[int, tuple[Node, Any]] = {}
        self.seen: set[int] = set()
        self.collapsed: list[tuple[Any, Any]] = []
        self.found_duplicates = False
        self.returned: list[Any] = []
        self.part_of: Carry | None = None
        self.parts: list[Carry] = []
        self._begin = 0
        self._root: Node = None
        self._new_roots: list[Node] = []
        self._inputs: dict[int, Node] = {}
        self._made_for_host: set[int] = set()
        self._watched: list[tuple[Any, str]] = []

    # {{{ what happens on the way

    def note_hit(self, expr: Node) -> None:
        """The mapper has a result for *expr* already. If *expr* is not what the result
        was made for, it is equal to that."""
        if id(expr) not in self.visited:
            self.visited[id(expr)] = expr, None
            self.whole().found_duplicates = True

    def whole(self) -> Carry:
        """
        :returns: the carry of the mapper that this one's was cloned from for the body
            of a function, or this one.
        """
        carry = self
        while carry.part_of is not None:
            carry = carry.part_of
        return carry

    def mapped(self) -> list[tuple[Node, Any]]:
        """
        :returns: what was mapped to what in this call, in order.
        """
        return [pair for part in (self, *self.parts)
                for pair in islice(part.visited.values(), part._begin, None)
                if pair[1] is not None]

    def inherit(self, result: Any, replaced: Node, *, alone: bool = False) -> None:
        """Give *result*, and what was newly made beneath it, the site of *replaced*.

        :arg result: what the mapper returned for *replaced*: a node, or anything.
        :arg alone: whether nothing beneath *result* can be new.
        """
        if id(result) in self.seen or not isinstance(result, host().node_types):
            return
        try:
            self._inherit(result, replaced, alone)
        except Exception as error:
            warn_once(error)
        self.seen.add(id(result))

    def _inherit(self, result: Node, replaced: Node, alone: bool) -> None:
        site = site_of(replaced)
        scope = current_scope()
        if scope.history:
            record_step(self._new_nodes(result, made_nodes.get() or ()), replaced,
                        self.mapper)
        if site is not None and (not scope.record or site_of(result) is None):
            # Where constructors are hooked, nothing beneath lacks what it can have.
            for node in (result,) if alone else self._new_nodes(result):
                if site_of(node) is None and self._is_new(node):
                    set_site(node, site)

    def absorb(self, result: Any, replaced: Node) -> None:
        """Give *result* also the sites of nodes beneath *replaced* that it stands
        for."""
        made = made_nodes.get() if current_scope().record else None

        def is_new(node: Node) -> bool:
            if made is not None:
                return id(node) in made
            return ((node is result or id(node) not in self.seen)
                    and self._is_new(node))

        try:
            absorb(self.mapper, replaced, result, is_new)
        except Exception as error:
            warn_once(error)

    def _new_nodes(self, result: Node, made: Any = None) -> list[Node]:
        """The nodes at and beneath *result* that the mapper has not come upon, or of
        these those in *made*."""
        new: list[Node] = []
        pending = [result]
        entered = {id(result)}
        while pending:
            node = pending.pop()
            if not (self._is_new(node) if made is None else id(node) in made):
                continue
            new.append(node)
            for child in children_of(node):
                key = id(child)
                if key not in entered and key not in self.seen:
                    entered.add(key)
                    pending.append(child)
        return new

    def _is_new(self, node: Node) -> bool:
        inputs = self._inputs
        pending = self._new_roots
        while pending:
            each = pending.pop()
            if id(each) not in inputs:
                inputs[id(each)] = each
                pending.extend(children_of(each))
        return id(node) not in inputs

    # }}}

    # {{{ the outermost call

    def enter(self, mapper: Any, expr: Node, called_by_host: bool
              ) -> Token[set[int] | None] | None:
        """The outermost call of the mapper begins.

        :arg called_by_host: whether it is the host's own code that calls it, so that
            the user does not get to see what the mapper returns.
        :returns: what :meth:`exit` is to be given.
        """
        self.mapper = mapper
        self.active = True
        self._root = expr
        if isinstance(expr, host().node_types):
            self._new_roots.append(expr)
        self.tracks = (kind_of_mapper(type(mapper)) == MERGING
                       and merges_silently(mapper))
        around = _active.get()
        functions = getattr(mapper, "_function_cache", None)
        self.part_of = None if functions is None else next(
            (carry for carry in around
             if getattr(carry.mapper, "_function_cache", None) is functions), None)
        self.parts.clear()
        if self.part_of is not None:
            self.whole().parts.append(self)
        _active.set((*around, self))
        for name in ("_cache", "_function_cache"):
            self._watch(getattr(mapper, name, None))
        if not called_by_host:
            self._made_for_host = set()
            self._begin = len(self.visited)
        if made_nodes.get() is not None:
            return None
        return made_nodes.set(self._made_for_host)

    def exit(self, token: Token[set[int] | None] | None) -> None:
        """The outermost call of the mapper ends, with or without a result."""
        for watched, name in self._watched:
            watched.__dict__.pop(name, None)
        self._watched.clear()
        if token is not None:
            made_nodes.reset(token)
        _active.set(tuple(carry for carry in _active.get() if carry is not self))
        self.active = False
        # No circle is to be left.
        self.mapper = self._root = self.part_of = None
        self.parts.clear()
        self.collapsed.clear()
        self.found_duplicates = False

    def leave(self, result: Any) -> Any:
        """Let the survivors of merges know all their sites.

        :arg result: what the outermost call of the mapper returns.
        :returns: *result*, or what is to be returned in its place.
        """
        if self.part_of is not None:
            return result
        if self.collapsed or self.found_duplicates:
            from pytato_provenance.survivors import settled
            try:
                result = settled(self, self._root, result)
            except Exception as error:
                warn_once(error)
        self.returned.append(result)
        return result

    def _watch(self, host_cache: Any) -> None:
        """Have a cache of the mapper say what goes in, and what is found in it."""
        if not hasattr(host_cache, "__dict__"):
            return
        for name, watched in (("add", _watched_add), ("retrieve", _watched_retrieve)):
            original = getattr(host_cache, name, None)
            if (original is not None and name not in host_cache.__dict__
                    and (name == "add" or self.tracks)):
                host_cache.__dict__[name] = watched(self, original, host_cache)
                self._watched.append((host_cache, name))

    # }}}


def _watched_add(carry: Carry, add: Callable[..., Any], host_cache: Any
                 ) -> Callable[..., Any]:
    tracks = carry.tracks
    attributes = host_cache.__dict__

    def watched_add(inputs: Any, result: Any) -> Any:
        kept = add(inputs, result)
        if kept is not result:
            carry.whole().collapsed.append((node_in(kept), node_in(result)))
        if tracks:
            carry.visited[id(inputs.expr)] = inputs.expr, node_in(kept)
        if result is not inputs.expr:
            if current_scope().history:
                carry.inherit(result, inputs.expr)
            if FORGAVE in attributes:
                from pytato_provenance.survivors import note_if_one
                try:
                    note_if_one(inputs.expr, node_in(kept))
                except Exception as error:
                    warn_once(error)
        return kept

    return watched_add


def _watched_retrieve(carry: Carry, retrieve: Callable[..., Any], host_cache: Any
                      ) -> Callable[..., Any]:
    def watched_retrieve(inputs: Any) -> Any:
        result = retrieve(inputs)
        carry.note_hit(inputs.expr)
        return result

    return watched_retrieve


def node_in(result: Any) -> Any:
    """The node that a mapper's result is about, where that is a record around it."""
    return (getattr(result, "expr", result)
            if not isinstance(result, host().node_types)
            and dataclasses.is_dataclass(result) else result)


def outermost(carry: Carry, mapper: Any, function: Callable[..., Any], expr: Node,
              args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """
    :arg carry: that of *mapper*.
    :arg function: what maps, in the outermost call of *mapper*.
    :returns: what it returns for *expr*, survivors of merges knowing all their sites,
        audited if that was asked for.
    """
    audit = current_scope().audit
    before = nodes_in_post_order(expr) if audit is not None and isinstance(
        expr, host().node_types) else []
    token = carry.enter(mapper, expr, _is_called_by_host())
    audited = carry.part_of is None
    made = made_nodes.get()
    origin_token = origin.set(expr)
    try:
        result = carry.leave(function(expr, *args, **kwargs))
    finally:
        origin.reset(origin_token)
        carry.exit(token)
    if audit is not None and audited:
        from pytato_provenance.auditing import audit_mapper
        audit_mapper(mapper, before, result, made or set(), audit)
    return result


origin_setters.add(id(outermost.__code__))


def _is_called_by_host() -> bool:
    frame = sys._getframe(2)
    while True:
        code = frame.f_code
        if not (code.co_filename.startswith(_OUR_FOLDER)
                or (code.co_name in ("rec", "__call__")
                    and is_host_code(code.co_filename))):
            return is_host_code(code.co_filename)
        if frame.f_back is None:
            return False
        frame = frame.f_back


_OUR_FOLDER = __file__.rpartition("carry.py")[0]


CARRY = "_provenance_carry"
"""The attribute of a mapper that holds its :class:`Carry`."""


def carry_of(mapper: Any) -> Carry:
    """
    :returns: the one :class:`Carry` of *mapper*.
    """
    carry: Carry | None = mapper.__dict__.get(CARRY)
    if carry is None:
        carry = mapper.__dict__[CARRY] = Carry()
    return carry

