"""
What runs in the host's place while its factories and mappers are patched.

.. autofunction:: created_at_seam
.. autofunction:: post_init_with_site
.. autofunction:: init_with_site
.. autofunction:: dataclass_init_with_site
.. autofunction:: container_with_site
.. autofunction:: result_inherits
.. autofunction:: dispatch_with_origin
.. autofunction:: call_as_outermost
.. autofunction:: cached_rec
.. autofunction:: copy_as_one

Each takes the original and returns the replacement.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from pytato_provenance import regions as _regions, scope as _scope_module
from pytato_provenance._host import host
from pytato_provenance.absorbed import copying_methods
from pytato_provenance.capture.paths import compiled_seam
from pytato_provenance.carry import CARRY, carry_of, made_nodes, outermost
from pytato_provenance.mapper_kinds import (
    MERGING,
    kind_of_mapper,
    mapper_kinds as _mapper_kinds,
)
from pytato_provenance.scope import (
    current_scope,
    origin,
    origin_setters,
    tags_for_new_array,
)
from pytato_provenance.sites import UNKNOWN
from pytato_provenance.tags import (
    CreatedAt,
    SitedTags,
    has_site,
    set_site,
    site_tags,
)


if TYPE_CHECKING:
    from collections.abc import Callable

    from pytools.tag import Tag


_set_origin = origin.set
_get_origin = origin.get
_get_scope = _scope_module._scope.get
_reset_origin = origin.reset
_get_made = made_nodes.get
_NO_TAGS: frozenset[Tag] = frozenset()
_ABSENT = object()


def _compiled(slow: Callable[..., Any]) -> Callable[..., Any] | None:
    """The same as *slow*, without a frame of ours in the common case, if there is a
    compiled part."""
    seam = compiled_seam()
    return seam and seam(slow, _scope_module._scope, vars(_scope_module), origin,
                         vars(_regions))


def created_at_seam(original: Callable[..., frozenset[Tag]]) -> Callable[..., Any]:
    """The development host's own way to ask for the tag of a new array."""
    def _get_created_at_tag(stacklevel: int = 1) -> frozenset[Tag]:
        # Written out: each call in between would cost 2 percent of the array.
        quick = (_get_scope() or _scope_module._everywhere).quick
        if (quick is not None and not _regions.ever_opened
                and _get_origin() is None):
            lookup, limit = quick
            try:
                site = lookup(1, limit)
            except Exception:
                site = None  # answered for below
            if site is not None:
                tags = site.tag_set
                if tags is not None:
                    return tags  # type: ignore[no-any-return]
        elif quick is None and not current_scope().record:
            return original(stacklevel + 1)
        tags = tags_for_new_array(1)
        # None: under a mapper, in place of a node whose site is not known.
        return _NO_TAGS if tags is None else tags

    return _compiled(_get_created_at_tag) or _get_created_at_tag


def post_init_with_site(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """For arrays that the development host makes without asking for a tag."""
    def __post_init__(self: Any) -> None:
        made = _get_made()
        if made is not None:
            made.add(id(self))
        for tag in self.non_equality_tags:
            if tag.__class__ is CreatedAt:
                break
        else:
            if current_scope().record and not has_site(self):
                _complete(self)
        original(self)

    return __post_init__


def _set_non_equality_tags(node: Any, tags: frozenset[Tag]) -> None:
    try:  # noqa: SIM105  (a context manager would cost more than the rest)
        object.__setattr__(node, "non_equality_tags", tags)
    except AttributeError:
        # A node whose tags are, by construction, those of another.
        pass


def _complete(node: Any) -> None:
    tags = tags_for_new_array()
    if tags is None and getattr(
            sys.modules["pytato.array"], "_ENABLE_TRACEBACK_TAG", False):
        # In place of a node without a site: the host asserts that there is a tag.
        tags = site_tags(UNKNOWN)
    if tags is not None:
        _set_non_equality_tags(node, node.non_equality_tags | tags)


def dataclass_init_with_site(original: Callable[..., None]) -> Callable[..., None]:
    """Under ``python -O`` the development host's arrays have no ``__post_init__``."""
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        made = _get_made()
        if made is not None:
            made.add(id(self))
        if current_scope().record and not has_site(self):
            _complete(self)

    return __init__


def _tags_for_caller() -> frozenset[Tag] | None:
    return tags_for_new_array(1)


def init_with_site(original: Callable[..., None]) -> Callable[..., None]:
    """The released host's one constructor of all arrays."""
    tags_for_new_one = _compiled(_tags_for_caller) or tags_for_new_array

    def __init__(self: Any, tags: frozenset[Tag] = _NO_TAGS) -> None:
        original(self, tags)
        made = _get_made()
        if made is not None:
            made.add(id(self))
        # A set that has a site comes from the node that this one is a copy of.
        if type(tags) is not SitedTags:
            sited = tags_for_new_one()
            if sited is not None:
                self.tags = sited if not tags else SitedTags(tags, sited.created_at)  # type: ignore[attr-defined]

    return __init__


def container_with_site(original: Callable[..., None]) -> Callable[..., None]:
    """For calls of loopy kernels: their results are made later, wherever they are
    asked for, and are the call's."""
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        made = _get_made()
        if made is not None:
            made.add(id(self))
        if current_scope().record and not has_site(self):
            tags = tags_for_new_array()
            if tags is not None:
                site = getattr(tags, "created_at", None) or next(iter(tags)).site  # type: ignore[attr-defined]
                set_site(self, site)

    return wrapper


def result_inherits(origin_of: Callable[[Any, str], Any]
                    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """
    :arg origin_of: takes a container and a name, returns what the entry's site is.
    :returns: a wrapper for a container's ``__getitem__``.
    """
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def __getitem__(self: Any, name: str) -> Any:
            if not current_scope().record:
                return original(self, name)
            token = _set_origin(origin_of(self, name))
            try:
                return original(self, name)
            finally:
                _reset_origin(token)

        origin_setters.add(id(__getitem__.__code__))
        return __getitem__

    return wrap


def dispatch_with_origin(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's ``Mapper.rec``: what is made beneath it is made in place of *expr*.

    Replaces the body rather than wrapping it: one more Python frame a node would halve
    the depth that a mapper reaches.
    """
    copies = copying_methods()

    def rec(self: Any, expr: Any, *args: Any, **kwargs: Any) -> Any:
        method = getattr(self, getattr(expr, "_mapper_method", ""), None)
        scope = _scope_module._get_scope()
        if scope is None or scope.ended:
            scope = _scope_module._everywhere
        if not scope.record:
            # What has no method is for the host to judge: a base class's, or an error.
            return (original(self, expr, *args, **kwargs) if method is None
                    else method(expr, *args, **kwargs))
        kind = _mapper_kinds.get(self.__class__) or kind_of_mapper(self.__class__)
        if kind == MERGING or scope.history or scope.audit is not None:
            carry = self.__dict__.get(CARRY)
            if carry is None or not carry.active:
                return outermost(carry_of(self), self, partial(rec, self), expr, args,
                                 kwargs)
        token = _set_origin(expr)
        try:
            result = (original(self, expr, *args, **kwargs) if method is None
                      else method(expr, *args, **kwargs))
        finally:
            _reset_origin(token)
        if result is not expr:
            if scope.history:
                carry_of(self).inherit(result, expr)
            if kind == MERGING and getattr(method, "__func__", None) not in copies:
                carry_of(self).absorb(result, expr)
        return result

    origin_setters.add(id(rec.__code__))
    return rec


def call_as_outermost(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's ``Mapper.__call__``: where a transform begins and ends."""
    def __call__(self: Any, expr: Any, *args: Any, **kwargs: Any) -> Any:
        scope = current_scope()
        if scope.record and (kind_of_mapper(self.__class__) == MERGING or scope.history
                             or scope.audit is not None):
            carry = carry_of(self)
            if not carry.active:
                return outermost(carry, self, partial(original, self), expr, args,
                                 kwargs)
        return original(self, expr, *args, **kwargs)

    return __call__


def cached_rec(original: Callable[..., Any]) -> Callable[..., Any]:
    """The released host's ``CopyMapper.rec``: its cache takes equal nodes for one."""
    from pytato.transform import CopyMapper

    def rec(self: Any, expr: Any) -> Any:
        carry = self.__dict__.get(CARRY)
        result = self.cache.get(expr, _ABSENT)
        if result is not _ABSENT:
            if (carry is not None and id(expr) not in carry.visited
                    and carry.active and carry.tracks):
                carry.note_hit(expr)
            return result
        next_class: Any = super(CopyMapper, self)
        result = next_class.rec(expr)
        self.cache[expr] = result
        # Made by the outermost call, if this is it; that is over then.
        carry = self.__dict__.get(CARRY)
        if carry is not None and carry.active and carry.tracks:
            carry.visited[id(expr)] = expr, result
        return result

    return rec


def copy_as_one(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's ``copy_dict_of_named_arrays``: one call of the mapper, not one for
    each entry."""
    def copy_dict_of_named_arrays(source_dict: Any, copy_mapper: Any) -> Any:
        if current_scope().record and isinstance(copy_mapper, host().mapper):
            carry = carry_of(copy_mapper)
            if not carry.active:
                return outermost(carry, copy_mapper, original, source_dict,
                                 (copy_mapper,), {})
        return original(source_dict, copy_mapper)

    return copy_dict_of_named_arrays
