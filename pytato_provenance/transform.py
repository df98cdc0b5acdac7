"""
Provenance through transforms.

.. autoclass:: PreserveCreatedAtMixin
.. autoclass:: ProvenanceCopyMapper
.. autofunction:: through

A node that a transform makes in place of another inherits its site; a node that
exists keeps its own. Where equal nodes collapse, the survivor knows all sites.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import pytato.transform as _pt

from pytato_provenance import scope
from pytato_provenance._host import Node, host, nodes_in_post_order
from pytato_provenance.absorbed import copying_methods
from pytato_provenance.auditing import check, compare, pass_name_of, roots
from pytato_provenance.carry import CARRY, Carry, carry_of, made_nodes, outermost
from pytato_provenance.compilation.programs import contents_of_nodes
from pytato_provenance.compilation.stages import transform_stage
from pytato_provenance.diagnostic import NotAnArrayError, UsageError
from pytato_provenance.instrument import recording
from pytato_provenance.merging import equal_classes, merged_sites, rebuilt
from pytato_provenance.scope import current_scope, origin, origin_setters
from pytato_provenance.sites import CreationSite, merge_sites, synthetic_site
from pytato_provenance.tags import replace_site, set_site, site_of


if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")

_set_origin = origin.set
_reset_origin = origin.reset


# {{{ mixin

_CACHED, _PLAIN, _FOREIGN = range(3)


class _Plan:
    """How the mixin's ``rec`` goes about for a class of mappers.

    .. attribute:: kind

        Whose ``rec`` follows the mixin's in the method resolution order.

    .. attribute:: copies

        The methods of the host that make one node at most.
    """

    __slots__ = ("copies", "kind")

    def __init__(self, cls: type) -> None:
        mro = cls.__mro__
        after = mro[mro.index(PreserveCreatedAtMixin) + 1:]
        owner = next((base for base in after if "rec" in vars(base)), None)
        if owner is getattr(_pt, "CachedMapper", _pt.CopyMapper):
            self.kind = _CACHED
        else:
            self.kind = _PLAIN if owner is _pt.Mapper else _FOREIGN
        self.copies: frozenset[Any] = frozenset()
        if not any(_is_helper(base, name) for base in mro for name in vars(base)):
            self.copies = _copying_methods()


_HELPERS = ("rec_size_tuple", "rec_idx_tuple", "_map_index_base")


def _is_helper(cls: type, name: str) -> bool:
    """Whether a user's *cls* overrides what the host's methods are made of."""
    return name in _HELPERS and cls.__module__ != _pt.__name__


@functools.cache
def _copying_methods() -> frozenset[Any]:
    return copying_methods() | {
        method for name, method in vars(_CompleteCopyMethods).items()
        if name.startswith("map_")}


_plans: dict[type, _Plan] = {}
_ABSENT = object()
_CACHES_INPUTS = hasattr(_pt, "CachedMapper")
_SITED = "non_equality_tags" if host().has_non_equality_tags else "tags"


def _plan_for(cls: type) -> _Plan:
    plan = _plans[cls] = _Plan(cls)
    return plan


class PreserveCreatedAtMixin:
    """Keeps creation sites through a mapper that makes arrays.

    To be placed before the base class, as in
    ``class MyMapper(PreserveCreatedAtMixin, CopyMapper)``; after it, it is refused.
    Every array that a ``map_*`` method makes, however it makes it, has the site of the
    array that is mapped unless it has one already; equal arrays that the mapper merges
    know all their sites. Recording need not be on.

    .. automethod:: __call__
    .. automethod:: rec
    """

    _preserves_created_at = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[:cls.__mro__.index(PreserveCreatedAtMixin)]:
            if base.__module__.startswith("pytato."):
                raise UsageError(f"{cls.__name__}: place PreserveCreatedAtMixin before "
                                 f"{base.__name__} among the bases")
        rec = vars(cls).get("rec")
        if rec is not None:
            cls.rec = _own_rec(rec)  # type: ignore[method-assign]

    def __call__(self, expr: Any, *args: Any, **kwargs: Any) -> Any:
        """Like the base class's."""
        carry = carry_of(self)
        if carry.active:
            return super().__call__(expr, *args, **kwargs)  # type: ignore[misc]
        return outermost(carry, self, super().__call__,  # type: ignore[misc]
                         expr, args, kwargs)

    if _CACHES_INPUTS:
        def rec(self, expr: Any, *args: Any, **kwargs: Any) -> Any:
            """Like the base class's."""
            carry = self.__dict__.get(CARRY)
            if carry is None or not carry.active:
                return outermost(carry_of(self), self, self.rec, expr, args, kwargs)
            plan = _plans.get(self.__class__) or _plan_for(self.__class__)
            if plan.kind == _CACHED:
                inputs: Any = self._make_cache_inputs(  # type: ignore[attr-defined]
                    expr, *args, **kwargs)
                try:
                    return self._cache_retrieve(inputs)  # type: ignore[attr-defined]
                except KeyError:
                    pass
            # In the base's place: one Python frame a node, not two.
            method = (getattr(self, getattr(expr, "_mapper_method", ""), None)
                      if plan.kind != _FOREIGN else None
                      ) or super().rec  # type: ignore[misc]
            token = _set_origin(expr)
            try:
                result = method(expr, *args, **kwargs)
            finally:
                _reset_origin(token)
            if result is not expr:
                _inherit(carry, plan, method, result, expr)
            if plan.kind == _CACHED:
                return self._cache_add(inputs, result)  # type: ignore[attr-defined]
            return result
    else:
        def rec(self, expr: Any, *args: Any, **kwargs: Any) -> Any:
            """Like the base class's."""
            carry = self.__dict__.get(CARRY)
            if carry is None or not carry.active:
                return outermost(carry_of(self), self, self.rec, expr, args, kwargs)
            plan = _plans.get(self.__class__) or _plan_for(self.__class__)
            if plan.kind == _CACHED:
                found = self.cache.get(expr, _ABSENT)  # type: ignore[attr-defined]
                if found is not _ABSENT:
                    if id(expr) not in carry.visited:
                        carry.note_hit(expr)
                    return found
            elif plan.kind == _FOREIGN:
                _note_hit(self, carry, expr)
            method = (getattr(self, getattr(expr, "_mapper_method", ""), None)
                      if plan.kind != _FOREIGN else None
                      ) or super().rec  # type: ignore[misc]
            token = _set_origin(expr)
            try:
                result = method(expr, *args, **kwargs)
            finally:
                _reset_origin(token)
            # Written out for what this host's mappers do with every node.
            if (getattr(method, "__func__", None) not in plan.copies
                    or result.__dict__.get("tags") is not expr.__dict__.get("tags")):
                _inherit(carry, plan, method, result, expr)
            if plan.kind == _CACHED:
                self.cache[expr] = result  # type: ignore[attr-defined]
            carry.visited.setdefault(id(expr), (expr, result))
            return result


origin_setters.add(id(PreserveCreatedAtMixin.rec.__code__))


def _inherit(carry: Carry, plan: _Plan, method: Any, result: Any, expr: Any) -> None:
    if getattr(method, "__func__", None) not in plan.copies:
        carry.inherit(result, expr)
        if plan.kind != _FOREIGN:
            carry.absorb(result, expr)
    elif result.__dict__.get(_SITED) is expr.__dict__.get(_SITED):
        # A copy, with what it was given.
        carry.seen.add(id(result))
    else:
        carry.inherit(result, expr, alone=True)


def _note_hit(mapper: Any, carry: Carry, expr: Any) -> None:
    """Somebody's own ``rec`` is about to look into the released host's cache."""
    if carry.tracks and id(expr) not in carry.visited and expr in mapper.cache:
        carry.note_hit(expr)


def _own_rec(rec: Callable[..., Any]) -> Callable[..., Any]:
    """A ``rec`` that a class with the mixin defines itself: what it makes of the
    result of the base class's is made in place of *expr*, too."""
    @functools.wraps(rec)
    def with_origin(self: Any, expr: Any, *args: Any, **kwargs: Any) -> Any:
        carry = carry_of(self)
        if not carry.active:
            return outermost(carry, self, functools.partial(with_origin, self), expr,
                             args, kwargs)
        token = _set_origin(expr)
        try:
            result = rec(self, expr, *args, **kwargs)
        finally:
            _reset_origin(token)
        if result is not expr:
            carry.inherit(result, expr)
        return result

    origin_setters.add(
        id(with_origin.__code__))  # pyright: ignore[reportAttributeAccessIssue]
    return with_origin

# }}}


# {{{ copy mapper

class _CompleteCopyMethods:
    """What the released host's ``CopyMapper`` lacks, and the tags that it drops."""

    rec: Callable[..., Any]

    def _rec_shape(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.rec(dim) if isinstance(dim, host().array) else dim
                     for dim in shape)

    def map_reshape(self, expr: Any) -> Any:
        return type(expr)(self.rec(expr.array), newshape=self._rec_shape(expr.newshape),
                          order=expr.order, tags=expr.tags)

    def map_concatenate(self, expr: Any) -> Any:
        return type(expr)(arrays=tuple(self.rec(array) for array in expr.arrays),
                          axis=expr.axis, tags=expr.tags)

    def map_einsum(self, expr: Any) -> Any:
        return type(expr)(expr.access_descriptors,
                          tuple(self.rec(arg) for arg in expr.args), tags=expr.tags)

    def map_named_array(self, expr: Any) -> Any:
        return type(expr)(self.rec(expr._container), expr.name, tags=expr.tags)

    def map_loopy_call(self, expr: Any) -> Any:
        return type(expr)(
            translation_unit=expr.translation_unit,
            bindings={
                name: self.rec(value) if isinstance(value, host().array) else value
                for name, value in expr.bindings.items()},
            entrypoint=expr.entrypoint)


_complete_copy_mapper: Any = (
    _pt.CopyMapper if hasattr(_pt.CopyMapper, "map_reshape")
    else type("CopyMapper", (_CompleteCopyMethods, _pt.CopyMapper), {}))


class ProvenanceCopyMapper(PreserveCreatedAtMixin, _complete_copy_mapper):
    """A ``CopyMapper`` that keeps creation sites, complete on every host: to derive
    rewriting mappers from."""

# }}}


# {{{ through

class _MadeByTransform:
    """Takes for the site of every array that it was made by a transform."""

    name = "transform"
    limit = 0

    def __init__(self, site: CreationSite) -> None:
        self._site = site

    def start(self) -> None:
        """Nothing to install."""

    def stop(self) -> None:
        """Nothing to remove."""

    def lookup(self, skip: int, limit: int) -> CreationSite:
        return self._site

    def miss(self, skip: int) -> CreationSite:
        return self._site


def through(transform: Callable[..., T]) -> Callable[..., T]:
    """Let the result of a transform keep the creation sites.

    :arg transform: a mapper, or a function, from a DAG (an array, a container of
        arrays, a traced function, or a dictionary or sequence of these) to whatever.
        What it makes under a mapper's dispatch inherits from the dispatched node; what
        it rebuilds by hand inherits from the equal node of its input; what it makes
        besides is marked as synthetic, with its name.
    :returns: a function of the arguments of *transform*.
    :raises ~pytato_provenance.diagnostic.UsageError: if *transform* cannot be called.
    """
    name = pass_name_of(transform)

    @functools.wraps(transform, updated=())
    def wrapper(dag: Any, *args: Any, **kwargs: Any) -> T:
        if not any(True for _ in roots(dag)):
            raise NotAnArrayError(
                f"through({name}) takes a DAG of pytato arrays, not "
                f"'{type(dag).__name__}'")
        nodes = nodes_in_post_order(*roots(dag))
        merged = merged_sites(nodes)
        if merged:
            dag = _with_nodes_replaced(dag, rebuilt(nodes, merged))
            nodes = nodes_in_post_order(*roots(dag))
        made_here = synthetic_site(name)
        audit = current_scope().audit
        made: set[int] = set()
        with recording() as owner:
            scope.enter(owner, capture=_MadeByTransform(made_here))
            token = made_nodes.set(made)
            try:
                with transform_stage(name, lambda: contents_of_nodes(nodes)):
                    result = transform(dag, *args, **kwargs)
            finally:
                made_nodes.reset(token)
                scope.leave(owner)
        _adopt(nodes, result, made, made_here)
        if audit is not None:
            check(compare(nodes, nodes_in_post_order(*roots(result)), name), audit)
        return result

    return wrapper


def _with_nodes_replaced(dag: Any, replaced: dict[int, Node]) -> Any:
    if isinstance(dag, host().node_types):
        return replaced.get(id(dag), dag)
    if type(dag) is dict:
        return {key: _with_nodes_replaced(item, replaced) for key, item in dag.items()}
    if type(dag) in (list, tuple):
        return type(dag)(_with_nodes_replaced(item, replaced) for item in dag)
    return dag


def _adopt(before: list[Node], result: Any, made: set[int], made_here: CreationSite
           ) -> None:
    """Give what was rebuilt by hand the site of the equal node of the input."""
    after = nodes_in_post_order(*roots(result))
    orphans = [node for node in after if id(node) in made
               and isinstance(node, host().array)
               and site_of(node) in (None, made_here)]
    if not orphans:
        return
    classes = equal_classes([*before, *after])
    sites: dict[int, list[CreationSite | None]] = {}
    for node in before:
        sites.setdefault(classes[id(node)], []).append(site_of(node))
    for node in orphans:
        site = merge_sites(sites.get(classes[id(node)], ()))
        if site.kind != "unknown":
            replace_site(node, site)
        elif classes[id(node)] not in sites:
            set_site(node, made_here)

# }}}
