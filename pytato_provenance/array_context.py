"""
An array context whose arrays know their creation sites and whose kernels show them.

.. autofunction:: wrap_array_context
.. autofunction:: unwrap_array_context
.. autofunction:: provenance_array_context

A wrapped context is of a real subclass of its class, of the same name: what the
application checks by ``isinstance`` holds, and so does its identity, by which
containers compare contexts.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import weakref
from typing import Any, TypeVar

from pytato_provenance import instrument, scope
from pytato_provenance._host import host
from pytato_provenance.context_overrides import make_subclass
from pytato_provenance.diagnostic import HostMissingError, UsageError
from pytato_provenance.frames import register_library


ContextT = TypeVar("ContextT")

_lock = threading.RLock()

# Contexts that were switched in place, by identity: they are not hashable.
_in_place: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

# The scope in which everything is recorded because a context was wrapped.
_switched_on: scope.Scope | None = None


# {{{ which contexts

def _library() -> Any:
    try:
        return importlib.import_module("arraycontext")
    except ImportError as error:
        raise HostMissingError(
            f"arraycontext cannot be imported ({error}); without it there is no array "
            "context to wrap: enable() records what is made by pytato") from error


_EAGER = ("PyOpenCLArrayContext", "NumpyArrayContext", "EagerJAXArrayContext")


def _check_context(actx: Any) -> None:
    if isinstance(actx, type):
        raise UsageError("an array context is needed, not a class; "
                         "provenance_array_context() takes classes")
    if not isinstance(actx, _library().ArrayContext):
        raise UsageError(f"an array context is needed, not '{type(actx).__name__}'")


def _check_lazy(cls: type, types: tuple[type, ...] = ()) -> None:
    """
    :arg types: of arrays, where a context says which it handles.
    """
    library = _library()
    eager = tuple(found for name in _EAGER
                  if (found := getattr(library, name, None)) is not None)
    if issubclass(cls, eager) or (
            types and not any(issubclass(item, host().array) for item in types)):
        raise UsageError(
            f"'{cls.__name__}' computes at once: there is nothing to record, and no "
            "kernel to annotate. Use a context that builds pytato expressions, such as "
            "PytatoPyOpenCLArrayContext")


def _register_implementation(cls: type) -> None:
    """Where a context does not build on one of arraycontext's, the module that
    implements it stands in its place: between the application and its arrays."""
    library = _library()
    lineage = [base for base in cls.__mro__
               if issubclass(base, library.ArrayContext)
               and base is not library.ArrayContext]
    modules = [base.__module__ for base in lineage]
    if any(module.partition(".")[0] == "arraycontext" for module in modules):
        return
    if modules[-1] != "__main__":
        # A module that was made up has no place.
        with contextlib.suppress(UsageError):
            register_library(modules[-1])

# }}}


# {{{ the subclass

_subclasses: weakref.WeakKeyDictionary[type, weakref.ref[type]] = (
    weakref.WeakKeyDictionary())
_wrapped: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()
"""From the classes that we made to those that they stand for."""


def _is_recording(cls: type) -> bool:
    return any(base in _wrapped for base in cls.__mro__)


def _subclass_of(cls: type) -> type:
    with _lock:
        known = _subclasses.get(cls)
        made = None if known is None else known()
        if made is None:
            made = make_subclass(cls, _wrap_clone)
            _subclasses[cls] = weakref.ref(made)
            _wrapped[made] = cls
            _register_implementation(cls)
        return made

# }}}


# {{{ switching

def _switch_on(annotate: bool | str, options: dict[str, Any]) -> bool:
    """
    :returns: whether nothing was recorded everywhere before.
    """
    was_off = not scope.everywhere().record
    if was_off or options:
        instrument.enable(annotate=annotate, **options)
    elif annotate:
        from pytato_provenance.lowering import annotate_programs, modes
        if modes.current_mode() is None:
            annotate_programs("embed" if annotate == "embed" else "beside")
    return was_off


def _set_class(actx: Any, cls: type) -> None:
    try:
        object.__setattr__(actx, "__class__", cls)
    except TypeError as error:
        raise UsageError(
            f"a '{type(actx).__name__}' cannot be wrapped in place ({error}); make the "
            "context from provenance_array_context(cls)") from error


def _wrap_clone(clone: Any, original: Any) -> None:
    with _lock:
        if isinstance(clone, _library().ArrayContext):
            if not _is_recording(type(clone)):
                _set_class(clone, _subclass_of(type(clone)))
                _in_place[id(clone)] = clone
                instrument.when_disabled(_unwrap_all)
            elif _in_place.get(id(original)) is original:
                _in_place[id(clone)] = clone


def wrap_array_context(actx: ContextT, *, annotate: bool | str = True,
                       **options: Any) -> ContextT:
    """Let everything that is computed by means of an array context be recorded and
    annotated.

    Recording is switched on for the whole program, as :func:`enable` does, unless it
    is: arrays are also made by operators, between calls of the context's methods. Each
    array has the application's line. Kernels that ``compile``, ``freeze`` and
    ``to_numpy`` generate have annotated text; what a compiled function computes is in a
    region (see :class:`~pytato_provenance.region`) of its name. ``transform_dag`` runs
    by :func:`through`, so that its result keeps the sites, and with *audit* says what
    it loses; so does ``transform_loopy_program``. Data that is frozen and thawed again
    has the site of the expression that was frozen. Where the context reuses a program
    to evaluate an equal expression from other lines, its text names those as well.
    Contexts that ``clone()`` returns are wrapped.

    :arg actx: an array context that builds pytato expressions. It stays the object that
        it is; its class becomes a subclass. Twice is once.
    :arg annotate: as for :func:`enable`.
    :arg options: further options of :func:`enable`, such as *audit*.
    :returns: *actx*.
    :raises ~pytato_provenance.diagnostic.UsageError: if *actx* is not an array context,
        or computes at once. Nothing is changed then.
    :raises ~pytato_provenance.diagnostic.HostMissingError: without arraycontext.

    :func:`unwrap_array_context` and :func:`disable` take it back.
    """
    global _switched_on
    _check_context(actx)
    _check_lazy(type(actx), getattr(actx, "array_types", ()))
    with _lock:
        cls = type(actx)
        wrapped = not _is_recording(cls)
        if wrapped:
            _set_class(actx, _subclass_of(cls))
        try:
            was_off = _switch_on(annotate, options)
        except BaseException:
            if wrapped:
                _set_class(actx, cls)
            raise
        if was_off:
            _switched_on = scope.everywhere()
        if wrapped:
            _in_place[id(actx)] = actx
        instrument.when_disabled(_unwrap_all)
    return actx


def unwrap_array_context(actx: ContextT) -> ContextT:
    """Give an array context its class back.

    If recording was switched on by :func:`wrap_array_context`, and no other context is
    wrapped, it is switched off, as by :func:`disable`.

    :arg actx: what :func:`wrap_array_context` was given, a clone of it, or an instance
        of a class from :func:`provenance_array_context`. Any other context is left as
        it is.
    :returns: *actx*.
    :raises ~pytato_provenance.diagnostic.UsageError: if *actx* is not an array context.
    """
    _check_context(actx)
    with _lock:
        base = _wrapped.get(type(actx))
        if base is not None:
            _set_class(actx, base)
            _in_place.pop(id(actx), None)
            if not _in_place and _switched_on is not None and (
                    scope.everywhere() is _switched_on):
                instrument.disable()
    return actx


def _unwrap_all() -> None:
    global _switched_on
    with _lock:
        _switched_on = None
        for actx in list(_in_place.values()):
            base = _wrapped.get(type(actx))
            if base is not None:
                _set_class(actx, base)
        _in_place.clear()


def provenance_array_context(cls: type[ContextT], *, annotate: bool | str = True,
                             **options: Any) -> type[ContextT]:
    """Like :func:`wrap_array_context`, for all contexts of a class that are made by
    calling what this returns.

    :arg cls: a class of array contexts that build pytato expressions.
    :arg annotate: as for :func:`enable`.
    :arg options: further options of :func:`enable`.
    :returns: a subclass of *cls* of the same name; each time the same one. Its
        instances are of this class for good; after :func:`disable` they do what those
        of *cls* do.
    :raises ~pytato_provenance.diagnostic.UsageError: if *cls* is not a class of array
        contexts, or of ones that compute at once. Nothing is changed then.
    :raises ~pytato_provenance.diagnostic.HostMissingError: without arraycontext.
    """
    if not isinstance(cls, type):
        raise UsageError("a class of array contexts is needed, not "
                         f"'{type(cls).__name__}'; wrap_array_context() takes contexts")
    if not issubclass(cls, _library().ArrayContext):
        raise UsageError(f"'{cls.__name__}' is not a class of array contexts")
    _check_lazy(cls)
    made = cls if _is_recording(cls) else _subclass_of(cls)
    _switch_on(annotate, options)
    return made

# }}}
