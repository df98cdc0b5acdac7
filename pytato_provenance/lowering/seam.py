"""
Marks in the text that :mod:`loopy` generates, through the one function that all
targets of the C family share.

.. autofunction:: marking_result
.. autofunction:: bypassed_cache
.. autofunction:: generate_marked
.. autoclass:: Marks

The target object is not touched. A mark is a comment line of its own before and after
each statement, and at the top of each function; whoever collects replaces the marks.
"""

from __future__ import annotations

import copy
import secrets
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cgen import Block, Collection, Declarator, FunctionBody, Generable, Line


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Mark:
    """
    .. attribute:: kind

        ``"begin"`` or ``"end"`` of a statement, ``"top"`` of the body of a function,
        ``"declaration"`` of a temporary.

    .. attribute:: kernel

        The name of the kernel, or of the function for ``"top"`` and ``"declaration"``.

    .. attribute:: insn_id
    .. attribute:: declaration

        For ``"top"``: the declaration of the function.

    .. attribute:: variable

        The temporary that is declared.
    """

    kind: str
    kernel: str
    insn_id: str = ""
    declaration: str = ""
    variable: str = ""


class Marks:
    """The marks of one run of the code generator.

    .. automethod:: statement
    .. automethod:: find
    .. attribute:: kernels

        By name, each kernel in the form that code was generated for.
    """

    def __init__(self) -> None:
        self._token = f"//@{secrets.token_hex(8)}:"
        self._marks: list[Mark] = []
        self.kernels: dict[str, Any] = {}

    def _line(self, mark: Mark) -> Line:
        self._marks.append(mark)
        return Line(f"{self._token}{len(self._marks) - 1}")

    def statement(self, kernel: Any, insn_id: str, ast: Generable) -> Generable:
        """
        :returns: *ast* between two marks.
        """
        self.kernels.setdefault(kernel.name, kernel)
        begin = self._line(Mark("begin", kernel.name, insn_id))
        end = self._line(Mark("end", kernel.name, insn_id))
        if isinstance(ast, Block):
            # loopy dissolves blocks: what is around one would stay behind.
            marked = copy.copy(ast)
            marked.contents = [begin, *ast.contents, end]
            return marked
        return _Marked(begin, ast, end)

    def function(self, name: str, function: FunctionBody) -> None:
        """Put a mark at the top of the body of *function*, and one before each
        temporary that it declares."""
        temporaries = {temporary for kernel in self.kernels.values()
                       for temporary in kernel.temporary_variables}
        contents: list[Generable] = [
            self._line(Mark("top", name, declaration=str(function.fdecl)))]
        for item in function.body.contents:
            declared = str(getattr(item, "name", ""))
            if isinstance(item, Declarator) and declared in temporaries:
                contents.append(self._line(
                    Mark("declaration", name, variable=declared)))
            contents.append(item)
        function.body.contents[:] = contents

    def find(self, line: str) -> Mark | None:
        """
        :returns: the mark that *line* is, if it is one.
        """
        text = line.lstrip()
        if not text.startswith(self._token):
            return None
        return self._marks[int(text[len(self._token):])]


class _Marked(Generable):
    def __init__(self, *parts: Generable) -> None:
        self.parts = parts

    def generate(self, with_semicolon: bool = True) -> Iterator[str]:
        for part in self.parts:
            yield from part.generate()


_marks: ContextVar[Marks | None] = ContextVar("pytato_provenance_marks", default=None)


def marking_result(original: Callable[..., Any]) -> Callable[..., Any]:
    """Where loopy takes in the code of an instruction."""
    def to_codegen_result(codegen_state: Any, insn_id: str, domain: Any,
                          check_inames: Any, required_preds: Any, ast: Any) -> Any:
        marks = _marks.get()
        # Host programs are Python in some targets.
        if marks is not None and isinstance(ast, Generable):
            ast = marks.statement(codegen_state.kernel, insn_id, ast)
        return original(codegen_state, insn_id, domain, check_inames, required_preds,
                        ast)

    return to_codegen_result


class _Bypassed:
    """loopy's cache of generated code: not there while marks are made."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getitem__(self, key: Any) -> Any:
        if _marks.get() is not None:
            raise KeyError
        return self._cache[key]

    def store_if_not_present(self, key: Any, value: Any) -> None:
        if _marks.get() is None:
            self._cache.store_if_not_present(key, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


def bypassed_cache(original: Any) -> Any:
    """loopy's cache of generated code."""
    return _Bypassed(original)


def _functions_in(ast: Any) -> Iterator[FunctionBody]:
    if isinstance(ast, FunctionBody):
        yield ast
    elif isinstance(ast, Collection):
        for item in ast.contents:
            yield from _functions_in(item)


def generate_marked(t_unit: Any) -> tuple[str, Marks]:
    """
    :arg t_unit: a linearised translation unit, as the executor has it.
    :returns: the text of the device code with marks in it, and the marks.
    """
    from loopy.codegen import generate_code_v2

    marks = Marks()
    token = _marks.set(marks)
    try:
        generated = generate_code_v2(t_unit)
    finally:
        _marks.reset(token)
    for program in generated.device_programs:
        for function in _functions_in(program.ast):
            marks.function(program.name, function)
    return generated.device_code(), marks
