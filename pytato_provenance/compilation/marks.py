"""
What runs in the host's place so that a kernel is known to belong to a program.

.. autofunction:: preprocess_with_program
.. autofunction:: initial_state_of_program
.. autofunction:: bind_of_program
.. autofunction:: carrying_copy
.. autofunction:: carrying_fusion
.. autofunction:: fetch_of_programs
.. autofunction:: transformed_program

Each takes the original and returns the replacement. They are in while recording is on
or a log is open, and do nothing where neither a log nor any region was ever opened.
"""

from __future__ import annotations

from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytato_provenance import regions
from pytato_provenance.compilation import programs as _programs, stages
from pytato_provenance.compilation.events import CompileEvent
from pytato_provenance.compilation.programs import (
    Program,
    contents_of_dag,
    instruction_count,
    kernel_name,
    programs_of,
    remember,
)
from pytato_provenance.scope import warn_once


if TYPE_CHECKING:
    from collections.abc import Callable


class _Generation:
    """A run of ``generate_loopy`` that is under way."""

    __slots__ = ("preprocessing", "program", "start")

    def __init__(self, program: Program, preprocessing: CompileEvent | None) -> None:
        self.program = program
        self.preprocessing = preprocessing
        self.start = perf_counter()


_generation: ContextVar[_Generation | None] = ContextVar(
    "pytato_provenance_generation", default=None)


def preprocess_with_program(original: Callable[..., Any]) -> Callable[..., Any]:
    """The first step of ``generate_loopy``."""
    def preprocess(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        listening = stages.anybody_listens()
        if not listening and not regions.ever_opened:
            _generation.set(None)
            return original(outputs, *args, **kwargs)
        try:
            from pytato_provenance.compilation import patch_points
            patch_points.program_begins()
            program = Program(contents_of_dag(outputs))
        except Exception as error:
            warn_once(error)
            _generation.set(None)
            return original(outputs, *args, **kwargs)
        event = None
        if listening:
            with stages.Stage("pytato-preprocess", contents=program.contents,
                              program=program.number) as stage:
                result = original(outputs, *args, **kwargs)
            event = stage.event
        else:
            result = original(outputs, *args, **kwargs)
        _generation.set(_Generation(program, event))
        return result

    return preprocess


def initial_state_of_program(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes the empty kernel, of which all later ones are copies."""
    def get_initial_codegen_state(*args: Any, **kwargs: Any) -> Any:
        state = original(*args, **kwargs)
        generation = _generation.get()
        if generation is not None:
            try:
                t_unit = getattr(state, "t_unit", None) or state.program
                remember(t_unit, (generation.program,))
            except Exception as error:
                warn_once(error)
        return state

    return get_initial_codegen_state


def bind_of_program(original: Callable[..., Any]) -> Callable[..., Any]:
    """The last step of ``generate_loopy``."""
    def bind_program(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = original(self, *args, **kwargs)
        generation = _generation.get()
        if generation is None:
            return bound
        _generation.set(None)
        try:
            program = generation.program
            if stages.anybody_listens() and program in programs_of(bound.program):
                duration = perf_counter() - generation.start
                name = kernel_name(bound.program)
                if generation.preprocessing is not None:
                    # Nobody knew by then.
                    generation.preprocessing.kernel = name
                stages.note(CompileEvent(
                    "generate", name, "fresh", generation.start, duration, duration,
                    program.contents, program.number, instruction_count(bound.program)))
        except Exception as error:
            warn_once(error)
        return bound

    return bind_program


def carrying_copy(original: Callable[..., Any]) -> Callable[..., Any]:
    """How every transformation of loopy makes a kernel from another."""
    table = _programs._by_kernel

    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if table:
            found = table.get(self)
            if found is not None:
                table.put(result, found)
        return result

    return copy


def carrying_fusion(original: Callable[..., Any]) -> Callable[..., Any]:
    """The exception: makes a kernel from two."""
    def fuse_two_kernels(kernela: Any, kernelb: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(kernela, kernelb, *args, **kwargs)
        try:
            _programs.carry(result[0] if isinstance(result, tuple) else result,
                            kernela, kernelb)
        except Exception as error:
            warn_once(error)
        return result

    return fuse_two_kernels


def fetch_of_programs(original: Callable[..., Any]) -> Callable[..., Any]:
    """What loopy, and users by its decorator, keep on disk of a transformation."""
    table = _programs._by_kernel

    def fetch(self: Any, key: Any) -> Any:
        found = original(self, key)
        if table:
            try:
                return _programs.came_from_cache(found, key)
            except Exception as error:
                warn_once(error)
        return found

    return fetch


def transformed_program(original: Callable[..., Any]) -> Callable[..., Any]:
    """How the development host, and array contexts, apply a transformation of loopy to
    a program."""
    def with_transformed(self: Any, f: Callable[[Any], Any]) -> Any:
        if not stages.anybody_listens():
            return original(self, f)
        t_unit = getattr(self.program, "t_unit", self.program)
        with stages.Stage("transform", _name_of(f)) as stage:
            _describe(stage, t_unit)
            result = original(self, f)
            stage.instructions = instruction_count(
                getattr(result.program, "t_unit", result.program))
        return result

    return with_transformed


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def _describe(stage: stages.Stage, t_unit: Any) -> None:
    try:
        found = programs_of(t_unit)
        stage.contents = _programs.contents_of(t_unit, found)
        stage.program = found[0].number if found else None
    except Exception as error:
        warn_once(error)
