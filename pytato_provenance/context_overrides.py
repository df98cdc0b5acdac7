"""
What a wrapped array context does beside what its class does.

.. autofunction:: make_subclass
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from pytato_provenance import scope as _scope
from pytato_provenance._host import host
from pytato_provenance.auditing import pass_name_of
from pytato_provenance.frozen_programs import SharedPrograms
from pytato_provenance.regions import region
from pytato_provenance.scope import current_scope
from pytato_provenance.tags import (
    _CONTAINER_SITE as _SITE,
    replace_site,
    set_site,
    site_of,
)
from pytato_provenance.transform import through


if TYPE_CHECKING:
    from collections.abc import Callable


# {{{ frozen and thawed data

@cache
def _is_container(cls: type) -> bool:
    containers = importlib.import_module("arraycontext.container")
    return bool(containers.is_array_container_type(cls))


def _pass_on(source: Any, made: Any) -> None:
    """Let arrays know where those came from that they were made of, leaf by leaf."""
    if made is source:
        return
    if _is_container(type(source)):
        if _is_container(type(made)):
            serialize = importlib.import_module(
                "arraycontext.container").serialize_container
            parts = dict(serialize(made))
            for key, old in serialize(source):
                if key in parts:
                    _pass_on(old, parts[key])
        return
    if hasattr(source, "__dict__"):
        _single.add(type(source))
    site = site_of(source)
    if site is None:
        return
    if isinstance(made, host().array):
        # The line of the call that thawed it says less.
        if not isinstance(source, host().array):
            replace_site(made, site)
    elif hasattr(made, "__dict__") and site_of(made) is None:
        set_site(made, site)


_single: set[type] = set()
"""Types of frozen arrays: no containers, and no numbers."""


def _passed_on(source: Any, made: Any) -> Any:
    if current_scope().record:
        try:
            _pass_on(source, made)
        except Exception as error:
            _scope.warn_once(error)
    return made

# }}}


# {{{ compiled functions

class _InRegion:
    """A function that is to be compiled, in a region of its name."""

    # Stands for the function wherever the context, or what it calls back, looks at it.
    __slots__ = ("__weakref__", "__wrapped__")

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not current_scope().record:
            return self.__wrapped__(*args, **kwargs)
        with region(_region_name(self.__wrapped__)):
            return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        return bool(self.__wrapped__ == _without_region(other))

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def _region_name(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or not name.strip():
        return "anonymous"
    return name.replace("/", "_")


def _without_region(what: Any) -> Any:
    return what.__wrapped__ if isinstance(what, _InRegion) else what

# }}}


_OPTIONAL = ("clone", "compile", "transform_dag", "transform_loopy_program")


def make_subclass(cls: Any, when_cloned: Callable[[Any, Any], None]) -> type:
    """
    :arg cls: a class of array contexts.
    :arg when_cloned: is called with a clone and with what it is a clone of.
    :returns: a subclass of the same name, with no more methods than *cls* has.
    """
    # One base, no slots: what else would not have the layout of an instance of cls.
    class Recording(cls):
        __slots__ = ()

        def freeze(self, array: Any) -> Any:
            # The data know where the expression was built.
            return _passed_on(array, super().freeze(array))

        def thaw(self, array: Any) -> Any:
            made = super().thaw(array)
            # Once for each result of each call of a compiled function.
            if type(array) in _single and getattr(array, _SITE, None) is None:
                return made
            return _passed_on(array, made)

        def tag(self, tags: Any, array: Any) -> Any:
            # Copies frozen data.
            return _passed_on(array, super().tag(tags, array))

        def tag_axis(self, iaxis: int, tags: Any, array: Any) -> Any:
            return _passed_on(array, super().tag_axis(iaxis, tags, array))

        def clone(self, *args: Any, **kwargs: Any) -> Any:
            result = super().clone(*args, **kwargs)
            if result is not self and current_scope().record:
                when_cloned(result, self)
            return result

        def compile(self, f: Any, *args: Any, **kwargs: Any) -> Any:
            if current_scope().record and not isinstance(f, _InRegion):
                f = _InRegion(f)
            return super().compile(f, *args, **kwargs)

        def transform_dag(self, dag: Any, *args: Any, **kwargs: Any) -> Any:
            transform = super().transform_dag
            if current_scope().record and isinstance(dag, host().node_types):
                transform = through(transform)
            return transform(dag, *args, **kwargs)

        def transform_loopy_program(self, t_unit: Any, *args: Any,
                                    **kwargs: Any) -> Any:
            transform = super().transform_loopy_program
            result = transform(t_unit, *args, **kwargs)
            scope = current_scope()
            if not scope.record:
                return result
            from pytato_provenance.lowering.more_sites import carried_through
            return carried_through(t_unit, result, pass_name_of(transform), scope.audit)

        # The host's private attributes, as they are seen while the class is ours.

        @property
        def _compile_trace_callback(self) -> Any:
            try:
                callback = self.__dict__["_compile_trace_callback"]
            except KeyError:
                return super()._compile_trace_callback

            def call_back(what: Any, *args: Any) -> Any:
                return callback(_without_region(what), *args)

            return call_back

        @_compile_trace_callback.setter
        def _compile_trace_callback(self, callback: Any) -> None:
            self.__dict__["_compile_trace_callback"] = callback

        @property
        def _freeze_prg_cache(self) -> Any:
            try:
                programs = self.__dict__["_freeze_prg_cache"]
            except KeyError:
                return super()._freeze_prg_cache
            return SharedPrograms(programs) if current_scope().record else programs

        @_freeze_prg_cache.setter
        def _freeze_prg_cache(self, programs: Any) -> None:
            self.__dict__["_freeze_prg_cache"] = programs

    for name in _OPTIONAL:
        if not hasattr(cls, name):
            delattr(Recording, name)
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(Recording, name, getattr(cls, name))
    # What is abstract stays so, though we have a method of that name.
    setattr(Recording, "__abstractmethods__",  # noqa: B010
            getattr(cls, "__abstractmethods__", frozenset()))
    return Recording
