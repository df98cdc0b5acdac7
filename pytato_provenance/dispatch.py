"""
What runs in the host's place while its factories and mappers are patched.

.. autofunction:: created_at_seam
.. autofunction:: post_init_with_site
.. autofunction:: init_with_site
.. autofunction:: dataclass_init_with_site
.. autofunction:: container_with_site
.. autofunction:: result_inherits
.. autofunction:: dispatch_with_origin
.. autofunction:: function_under_origin

Each takes the original and returns the replacement.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from pytato_provenance import regions as _regions, scope as _scope_module
from pytato_provenance.carry import carry_of
from pytato_provenance.scope import current_scope, origin, tags_for_new_array
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
_NO_TAGS: frozenset[Tag] = frozenset()


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

    return _get_created_at_tag


def post_init_with_site(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """For arrays that the development host makes without asking for a tag."""
    def __post_init__(self: Any) -> None:
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
        if current_scope().record and not has_site(self):
            _complete(self)

    return __init__


def init_with_site(original: Callable[..., None]) -> Callable[..., None]:
    """The released host's one constructor of all arrays."""
    def __init__(self: Any, tags: frozenset[Tag] = _NO_TAGS) -> None:
        original(self, tags)
        # A set that has a site comes from the node that this one is a copy of.
        if type(tags) is not SitedTags:
            sited = tags_for_new_array(1)
            if sited is not None:
                self.tags = sited if not tags else SitedTags(tags, sited.created_at)  # type: ignore[attr-defined]

    return __init__


def container_with_site(original: Callable[..., None]) -> Callable[..., None]:
    """For calls of loopy kernels: their results are made later, wherever they are
    asked for, and are the call's."""
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
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

        return __getitem__

    return wrap


def dispatch_with_origin(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's ``Mapper.rec``: what is made beneath it is made in place of *expr*.

    Replaces the body rather than wrapping it: one more Python frame a node would halve
    the depth that a mapper reaches.
    """
    def rec(self: Any, expr: Any, *args: Any, **kwargs: Any) -> Any:
        method = getattr(self, getattr(expr, "_mapper_method", ""), None)
        scope = _scope_module._get_scope()
        if scope is None or scope.ended:
            scope = _scope_module._everywhere
        if not scope.record:
            # What has no method is for the host to judge: a base class's, or an error.
            return (original(self, expr, *args, **kwargs) if method is None
                    else method(expr, *args, **kwargs))
        merges = _is_transform(type(self))
        carry = None
        if merges or scope.history or scope.audit is not None:
            carry = carry_of(self)
            if not carry.active:
                with carry:
                    return carry.leave(
                        rec(self, carry.enter(expr, merges), *args, **kwargs), self)
        token = _set_origin(expr)
        try:
            result = (original(self, expr, *args, **kwargs) if method is None
                      else method(expr, *args, **kwargs))
        finally:
            _reset_origin(token)
        if scope.history and carry is not None and result is not expr:
            carry.inherit(result, expr, self)
        return result

    return rec


@cache
def _is_transform(cls: type) -> bool:
    """Whether mappers of class *cls* make arrays, and merge equal ones."""
    import pytato.transform as pt
    names = ("TransformMapper", "TransformMapperWithExtraArgs", "CopyMapper")
    return issubclass(cls, tuple(
        getattr(pt, name) for name in names if hasattr(pt, name)))


def function_under_origin(original: Callable[..., None]) -> Callable[..., None]:
    """For the mapper that applies the user's function to each node before it
    dispatches it: what the function makes is made in place of that node."""
    def __init__(self: Any, map_fn: Callable[[Any], Any], *args: Any,
                 **kwargs: Any) -> None:
        if not isinstance(map_fn, _UnderOrigin):
            map_fn = _UnderOrigin(map_fn)
        original(self, map_fn, *args, **kwargs)

    return __init__


class _UnderOrigin:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, expr: Any) -> Any:
        if not current_scope().record:
            return self.__wrapped__(expr)
        token = _set_origin(expr)
        try:
            return self.__wrapped__(expr)
        finally:
            _reset_origin(token)
