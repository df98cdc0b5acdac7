"""
Comments in what is compiled, on request.

.. autofunction:: expect
.. autofunction:: embedding_code

The text is swapped after loopy has generated its own, and loopy's caches hold that:
the comments are never stale. The OpenCL driver's cache is keyed by the text.
"""

from __future__ import annotations

import dataclasses
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from loopy.codegen import TranslationUnitCodeGenerationResult

from pytato_provenance import scope as _scope
from pytato_provenance.lowering.ledger import program_of


if TYPE_CHECKING:
    from collections.abc import Callable


_expected: ContextVar[tuple[weakref.ref[Any], Any] | None] = ContextVar(
    "pytato_provenance_expected", default=None)


def expect(linearized: Any, tagged: Any) -> None:
    """An executor is going to ask for the code of *linearized*, which stems from
    *tagged*."""
    program = program_of(tagged)
    if program is not None and program.embed:
        _expected.set((weakref.ref(linearized), tagged))


@dataclasses.dataclass(frozen=True)
class _Embedded(TranslationUnitCodeGenerationResult):
    text: str = ""

    def device_code(self) -> str:
        return self.text


def embedding_code(original: Callable[..., Any]) -> Callable[..., Any]:
    """loopy's code generator: the text that an executor hands on is annotated."""
    def generate_code_v2(t_unit: Any) -> Any:
        result = original(t_unit)
        expected = _expected.get()
        if expected is None or expected[0]() is not t_unit:
            return result
        _expected.set(None)
        try:
            from pytato_provenance.lowering.source import annotate
            source = annotate(expected[1], t_unit)
            if source.plain != result.device_code():
                raise AssertionError("generated code differs")
            return _Embedded(**{field.name: getattr(result, field.name)
                                for field in dataclasses.fields(result)},
                             text=source.text)
        except Exception as error:
            _scope.warn_once(error)
            return result

    return generate_code_v2
