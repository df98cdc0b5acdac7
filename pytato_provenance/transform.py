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
from pytato_provenance.auditing import check, compare, pass_name_of, roots
from pytato_provenance.carry import carry_of
from pytato_provenance.compilation.programs import contents_of_nodes
from pytato_provenance.compilation.stages import transform_stage
from pytato_provenance.diagnostic import NotAnArrayError
from pytato_provenance.instrument import recording
from pytato_provenance.merging import equal_classes, spread_sites
from pytato_provenance.scope import current_scope, origin
from pytato_provenance.sites import CreationSite, merge_sites, synthetic_site
from pytato_provenance.tags import replace_site, set_site, site_of


if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")

_set_origin = origin.set
_reset_origin = origin.reset


# {{{ mixin

_CACHED, _PLAIN, _FOREIGN = range(3)


@functools.cache
def _next_rec(cls: type) -> int:
    """Whose ``rec`` follows the mixin's in the MRO of *cls*."""
    mro = cls.__mro__
    after = mro[mro.index(PreserveCreatedAtMixin) + 1:]
    owner = next((base for base in after if "rec" in vars(base)), None)
    if owner is getattr(_pt, "CachedMapper", _pt.CopyMapper):
        return _CACHED
    return _PLAIN if owner is _pt.Mapper else _FOREIGN


class PreserveCreatedAtMixin:
    """Keeps creation sites through a mapper that makes arrays.

    To be placed before the base class, as in
    ``class MyMapper(PreserveCreatedAtMixin, CopyMapper)``. Every array that a ``map_*``
    method makes, however it makes it, has the site of the array that is mapped unless
    it has one already; equal arrays that the mapper merges know all their sites.
    Recording need not be on.

    .. automethod:: rec
    """

    def rec(self, expr: Any, *args: Any, **kwargs: Any) -> Any:
        """Like the base class's."""
        carry = carry_of(self)
        if not carry.active:
            with carry:
                return carry.leave(
                    self.rec(carry.enter(expr), *args, **kwargs), self)

        kind = _next_rec(type(self))
        if kind == _FOREIGN:
            # Somebody's own rec, which may call functions of its own on expr.
            token = _set_origin(expr)
            try:
                result = super().rec(expr, *args, **kwargs)  # type: ignore[misc]
            finally:
                _reset_origin(token)
            if result is not expr:
                carry.inherit(result, expr, self)
            return result

        # In the base's place, with its cache: one Python frame a node, not two.
        method = getattr(self, getattr(expr, "_mapper_method", ""), None)
        if method is None:
            return super().rec(expr, *args, **kwargs)  # type: ignore[misc]
        key: Any = None
        if kind == _CACHED:
            found, key = _retrieve(self, expr, args, kwargs)
            if found is not _ABSENT:
                return found
        token = _set_origin(expr)
        try:
            result = method(expr, *args, **kwargs)
        finally:
            _reset_origin(token)
        if result is not expr:
            carry.inherit(result, expr, self)
        return _add(self, key, result) if kind == _CACHED else result


_ABSENT = object()

if hasattr(_pt, "CachedMapper"):
    def _retrieve(mapper: Any, expr: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        inputs = mapper._make_cache_inputs(expr, *args, **kwargs)
        try:
            return mapper._cache_retrieve(inputs), inputs
        except KeyError:
            return _ABSENT, inputs

    def _add(mapper: Any, key: Any, result: Any) -> Any:
        return mapper._cache_add(key, result)
else:
    def _retrieve(mapper: Any, expr: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return mapper.cache.get(expr, _ABSENT), expr

    def _add(mapper: Any, key: Any, result: Any) -> Any:
        mapper.cache[key] = result
        return result

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
    """
    name = pass_name_of(transform)

    @functools.wraps(transform, updated=())
    def wrapper(dag: Any, *args: Any, **kwargs: Any) -> T:
        if not any(True for _ in roots(dag)):
            raise NotAnArrayError(
                f"through({name}) takes a DAG of pytato arrays, not "
                f"'{type(dag).__name__}'")
        if isinstance(dag, host().node_types):
            dag = spread_sites(dag)
        nodes = nodes_in_post_order(*roots(dag))
        made_here = synthetic_site(name)
        audit = current_scope().audit
        with recording() as owner:
            scope.enter(owner, capture=_MadeByTransform(made_here))
            try:
                with transform_stage(name, lambda: contents_of_nodes(nodes)):
                    result = transform(dag, *args, **kwargs)
            finally:
                scope.leave(owner)
        _adopt(nodes, result, made_here)
        if audit is not None:
            check(compare(nodes, nodes_in_post_order(*roots(result)), name), audit)
        return result

    return wrapper


def _adopt(before: list[Node], result: Any, made_here: CreationSite) -> None:
    """Give what was rebuilt by hand the site of the equal node of the input."""
    known = {id(node) for node in before}
    after = [node for node in nodes_in_post_order(*roots(result))
             if id(node) not in known]
    orphans = [node for node in after if isinstance(node, host().array)
               and site_of(node) in (None, made_here)]
    if not orphans:
        return
    classes = equal_classes([*before, *nodes_in_post_order(*roots(result))])
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
