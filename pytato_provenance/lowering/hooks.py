"""
What runs in the place of parts of :mod:`pytato`'s code generator while programs are
annotated.

.. autofunction:: preprocess_with_sites
.. autofunction:: recording_mapper
.. autofunction:: recording_expression_mapper
.. autofunction:: recording_store
.. autofunction:: announcing_bind

Each takes the original and returns the replacement. All are looked up by name while
code is generated, so that a ``generate_loopy`` that was imported early is covered.
"""

from __future__ import annotations

import inspect
import weakref
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytato_provenance import scope as _scope
from pytato_provenance._host import nodes_in_post_order
from pytato_provenance.capture import NO_CAPTURE
from pytato_provenance.lowering import ledger
from pytato_provenance.lowering.modes import current_mode
from pytato_provenance.lowering.notes import note_on_node, note_on_preprocessing
from pytato_provenance.lowering.recorder import Recorder, may_have_equal_nodes
from pytato_provenance.merging import spread_sites


if TYPE_CHECKING:
    from collections.abc import Callable


_ATTRIBUTE = "_provenance_recorder"

_preprocessed: ContextVar[weakref.ref[Any] | None] = ContextVar(
    "pytato_provenance_preprocessed", default=None)
"""What code is being generated for. The frame of ``generate_loopy`` keeps it alive."""


def preprocess_with_sites(original: Callable[..., Any]) -> Callable[..., Any]:
    """The step before code generation: equal nodes learn each other's sites, since it
    does not descend into the second of them, and new nodes inherit."""
    def preprocess(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        mode = current_mode()
        if mode is None:
            return original(outputs, *args, **kwargs)
        census: Any = {}
        try:
            nodes = nodes_in_post_order(outputs)
            census = ledger.census_of(nodes)
            if may_have_equal_nodes(nodes):
                outputs = spread_sites(outputs, nodes)
        except Exception as error:
            _scope.warn_once(error)
        # Also where nothing records by now.
        token = _scope._scope.set(replace(
            _scope.current_scope(), record=True, capture=NO_CAPTURE))
        try:
            result = original(outputs, *args, **kwargs)
        except Exception as error:
            note_on_preprocessing(error)
            raise
        finally:
            _scope._scope.reset(token)
        try:
            recorder = Recorder(
                result.outputs, embed=mode.embed, options=mode.options)
            recorder.program.census = census
            setattr(result, _ATTRIBUTE, recorder)
            _preprocessed.set(weakref.ref(result))
        except Exception as error:
            _scope.warn_once(error)
        return result

    return preprocess


def _recorder() -> Recorder | None:
    mode = current_mode()
    if mode is None:
        return None
    reference = _preprocessed.get()
    result = None if reference is None else reference()
    return getattr(result, _ATTRIBUTE, None) or Recorder(
        embed=mode.embed, options=mode.options)


def recording_mapper(original: type) -> type:
    """The mapper that implements arrays: notes how it implements which.

    Its ``rec`` replaces the host's body rather than wrapping it: one more Python frame
    a node would take away from the depth that code generation reaches.
    """
    class CodeGenMapper(original):  # type: ignore[valid-type,misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._provenance = _recorder()
            super().__init__(*args, **kwargs)
            self.exprgen_mapper._provenance = self._provenance

        def rec(self, expr: Any, *args: Any, **kwargs: Any) -> Any:
            method = getattr(self, getattr(expr, "_mapper_method", ""), None)
            if method is None:
                return super().rec(expr, *args, **kwargs)
            recorder = self._provenance
            if recorder is None:
                return method(expr, *args, **kwargs)
            outer = recorder.node
            recorder.node = expr
            try:
                result = method(expr, *args, **kwargs)
            except Exception as error:
                note_on_node(error, expr)
                raise
            recorder.node = outer
            try:
                recorder.implemented(expr, result)
            except Exception as error:
                _scope.warn_once(error)
            return result

        def map_loopy_call(self, expr: Any, state: Any) -> Any:
            recorder = self._provenance
            if recorder is None:
                return super().map_loopy_call(expr, state)
            known = {insn.id for insn in state.kernel.instructions}
            result = super().map_loopy_call(expr, state)
            try:
                recorder.called(expr, state, known)
            except Exception as error:
                _scope.warn_once(error)
            return result

    return _like(CodeGenMapper, original)


def recording_expression_mapper(original: type) -> type:
    """The mapper of scalar expressions: notes the loops of each reduction."""
    class InlinedExpressionGenMapper(original):  # type: ignore[valid-type,misc]
        _provenance: Recorder | None = None

        def map_reduce(self, expr: Any, *args: Any, **kwargs: Any) -> Any:
            result = super().map_reduce(expr, *args, **kwargs)
            recorder = self._provenance
            if recorder is not None:
                try:
                    recorder.reduced(tuple(result.inames), expr.inner_expr)
                except Exception as error:
                    _scope.warn_once(error)
            return result

    return _like(InlinedExpressionGenMapper, original)


def _like(cls: type, original: type) -> type:
    cls.__name__ = original.__name__
    cls.__qualname__ = original.__qualname__
    cls.__module__ = original.__module__
    cls.__doc__ = original.__doc__
    return cls


def recording_store(original: Callable[..., str]) -> Callable[..., str]:
    """The function that adds a statement."""
    signature = inspect.signature(original)
    has_bounds = "store_inames" in signature.parameters

    def add_store(*args: Any, **kwargs: Any) -> str:
        insn_id = original(*args, **kwargs)
        try:
            given = signature.bind(*args, **kwargs).arguments
            recorder = getattr(given["cgen_mapper"], "_provenance", None)
            if recorder is not None:
                recorder.stored(
                    given["name"], given["result"], given["state"], insn_id,
                    # Scalars within the loops of another statement.
                    is_bound=(has_bounds and given.get("store_inames") is not None
                              and given.get("tags") is None))
        except Exception as error:
            _scope.warn_once(error)
        return insn_id

    return add_store


def announcing_bind(original: Callable[..., Any]) -> Callable[..., Any]:
    """The last step of ``generate_loopy``."""
    def bind_program(self: Any, program: Any, bound_arguments: Any) -> Any:
        bound = original(self, program=program, bound_arguments=bound_arguments)
        if current_mode() is not None:
            ledger.announce_generated(bound)
        return bound

    return bind_program
