"""
What runs in the place of the stages of :mod:`loopy` and :mod:`pyopencl` while a log is
open.

.. autofunction:: executor_call
.. autofunction:: executor_compilation
.. autofunction:: executor_scheduling
.. autofunction:: preprocessing
.. autofunction:: linearization
.. autofunction:: code_generation
.. autofunction:: invoker
.. autofunction:: build
.. autofunction:: cache_lookup
.. autofunction:: cache_access

Each takes the original and returns the replacement.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any

from loopy.kernel import KernelState
from pytools import persistent_dict

from pytato_provenance.compilation import stages
from pytato_provenance.compilation.events import NOTHING_KNOWN, CompileEvent, Contents
from pytato_provenance.compilation.programs import (
    Programs,
    contents_of,
    instruction_count,
    kernel_name,
    programs_of,
)
from pytato_provenance.compilation.stages import Stage, anybody_listens
from pytato_provenance.scope import warn_once
from pytato_provenance.weak_identity import WeakIdentityMap


if TYPE_CHECKING:
    from collections.abc import Callable


# {{{ what is compiled

class _Subject:
    """A translation unit, with what loopy's own stages do not know of it.

    .. attribute:: is_building

        Whether its executor compiles.

    .. attribute:: ready_at

        When it could be enqueued for the first time; *None* before that, and again when
        that is done.
    """

    __slots__ = ("contents", "instructions", "is_building", "kernel", "programs",
                 "ready_at")

    def __init__(self, t_unit: Any) -> None:
        self.kernel = ""
        self.programs: Programs = ()
        self.contents: Contents = NOTHING_KNOWN
        self.instructions: int | None = None
        self.is_building = False
        self.ready_at: float | None = None
        try:
            self.kernel = kernel_name(t_unit)
            self.instructions = instruction_count(t_unit)
            self.programs = programs_of(t_unit)
            self.contents = contents_of(t_unit, self.programs)
        except Exception as error:
            warn_once(error)

    @property
    def program(self) -> int | None:
        return self.programs[0].number if self.programs else None

    def stage(self, name: str) -> Stage:
        stage = Stage(name, self.kernel, contents=self.contents, program=self.program)
        stage.instructions = self.instructions
        return stage

    def event(self, stage: str, origin: str, start: float, duration: float,
              contents: Contents | None = None) -> CompileEvent:
        return CompileEvent(
            stage, self.kernel, origin, start, duration, duration,
            contents or self.contents, self.program, self.instructions)

    def became(self, t_unit: Any, stage: Stage) -> None:
        """A stage has made *t_unit* of it."""
        try:
            self.instructions = stage.instructions = instruction_count(t_unit)
        except Exception as error:
            warn_once(error)


_subject: ContextVar[_Subject | None] = ContextVar(
    "pytato_provenance_subject", default=None)
_subjects: WeakIdentityMap[_Subject] = WeakIdentityMap()

frozen_contents: ContextVar[list[Contents] | None] = ContextVar(
    "pytato_provenance_frozen", default=None)
"""Of what an array context is freezing: it may run a program that was generated for
equal arrays."""


def _subject_of(executor: Any) -> _Subject:
    subject = _subjects.get(executor)
    if subject is None:
        subject = _Subject(executor.t_unit)
        _subjects.put(executor, subject)
    return subject


def _is_within(stage: str) -> bool:
    outer = stages.current_stage()
    return outer is not None and outer.name == stage

# }}}


# {{{ executors

def executor_call(original: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a program: compiles at first, then enqueues."""
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not anybody_listens():
            return original(self, *args, **kwargs)
        start = perf_counter()
        subject = _subject_of(self)
        token = _subject.set(subject)
        try:
            result = original(self, *args, **kwargs)
        finally:
            _subject.reset(token)
        ready, subject.ready_at = subject.ready_at, None
        if ready is not None:
            start = max(start, ready)
            event = subject.event("enqueue", "unknown", start, perf_counter() - start)
        else:
            frozen = frozen_contents.get()
            event = subject.event("enqueue", "reused", start, 0.0,
                                  frozen[-1] if frozen else None)
        stages.note(event)
        return result

    return __call__


def executor_compilation(original: Callable[..., Any]) -> Callable[..., Any]:
    """Everything between the translation unit and what can be enqueued. Remembered by
    the executor: most calls do nothing."""
    def translation_unit_info(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not anybody_listens():
            return original(self, *args, **kwargs)
        subject = _subject_of(self)
        token = _subject.set(subject)
        try:
            result = original(self, *args, **kwargs)
            if subject.is_building:
                subject.ready_at = perf_counter()
            return result
        finally:
            subject.is_building = False
            _subject.reset(token)

    return translation_unit_info


def executor_scheduling(original: Callable[..., Any]) -> Callable[..., Any]:
    """How an executor gets what it generates code for: from a cache that spares it
    preprocessing, or by way of that."""
    def get_typed_and_scheduled_translation_unit(self: Any, *args: Any,
                                                 **kwargs: Any) -> Any:
        if not anybody_listens() or _is_within("schedule"):
            return original(self, *args, **kwargs)
        subject = _subject.get() or _Subject(self.t_unit)
        subject.is_building = True
        with subject.stage("schedule") as stage:
            result = original(self, *args, **kwargs)
            subject.became(result, stage)
            if stage.was_found:
                stages.note(subject.event(
                    "loopy-preprocess", stage.found_by(), stage.start, 0.0))
        return result

    return get_typed_and_scheduled_translation_unit


def invoker(original: Callable[..., Any]) -> Callable[..., Any]:
    """The Python function that passes arguments and enqueues."""
    def get_invoker(self: Any, t_unit: Any, *args: Any, **kwargs: Any) -> Any:
        if not anybody_listens():
            return original(self, t_unit, *args, **kwargs)
        with (_subject.get() or _Subject(t_unit)).stage("invoker"):
            return original(self, t_unit, *args, **kwargs)

    return get_invoker

# }}}


# {{{ stages of loopy

def preprocessing(original: Callable[..., Any]) -> Callable[..., Any]:
    """loopy's preprocessing: done once for each kernel, and nothing after that."""
    def preprocess_program(t_unit: Any, *args: Any, **kwargs: Any) -> Any:
        if (not anybody_listens() or _is_within("loopy-preprocess")
                or t_unit.state >= KernelState.PREPROCESSED):
            return original(t_unit, *args, **kwargs)
        subject = _subject.get() or _Subject(t_unit)
        with subject.stage("loopy-preprocess") as stage:
            result = original(t_unit, *args, **kwargs)
            subject.became(result, stage)
        return result

    return preprocess_program


def linearization(original: Callable[..., Any]) -> Callable[..., Any]:
    """loopy's scheduling, where it is not part of what an executor does."""
    def linearize(t_unit: Any, *args: Any, **kwargs: Any) -> Any:
        if not anybody_listens() or _is_within("schedule"):
            return original(t_unit, *args, **kwargs)
        subject = _subject.get() or _Subject(t_unit)
        with subject.stage("schedule") as stage:
            result = original(t_unit, *args, **kwargs)
            subject.became(result, stage)
        return result

    return linearize


def code_generation(original: Callable[..., Any]) -> Callable[..., Any]:
    """loopy's code generator."""
    def generate_code_v2(t_unit: Any, *args: Any, **kwargs: Any) -> Any:
        if not anybody_listens() or _text_is_annotated() or _is_within("codegen"):
            return original(t_unit, *args, **kwargs)
        with (_subject.get() or _Subject(t_unit)).stage("codegen"):
            return original(t_unit, *args, **kwargs)

    return generate_code_v2


def _text_is_annotated() -> bool:
    """Whether the text is generated once more, for a reader."""
    seam = sys.modules.get("pytato_provenance.lowering.seam")
    return seam is not None and seam._marks.get() is not None

# }}}


# {{{ OpenCL

def build(original: Callable[..., Any]) -> Callable[..., Any]:
    """The driver's compiler. Of all the programs that are built, those that an executor
    builds; the rest are not made of arrays."""
    def build(self: Any, *args: Any, **kwargs: Any) -> Any:
        subject = _subject.get()
        if subject is None or not subject.is_building or not anybody_listens():
            return original(self, *args, **kwargs)
        with subject.stage("build") as stage:
            stage.origin = "unknown"
            result = original(self, *args, **kwargs)
            stage.origin = _origin_of_build(self)
        return result

    return build


def _origin_of_build(program: Any) -> str:
    """As pyopencl tells it, of its own cache. Most drivers have one besides and do not
    tell."""
    try:
        description, was_cached, _ = vars(program)["_build_duration_info"]
        if was_cached:
            return "disk"
        if "binary cache miss" in description:
            return "fresh"
    except (KeyError, TypeError, ValueError):
        pass
    return "unknown"

# }}}


# {{{ caches on disk

_asked_disk: ContextVar[list[bool] | None] = ContextVar(
    "pytato_provenance_asked_disk", default=None)


def _tells() -> bool:
    return hasattr(persistent_dict, "_PersistentDictBase") and hasattr(
        persistent_dict._PersistentDictBase, "_exec_sql_fn")


def cache_lookup(original: Callable[..., Any]) -> Callable[..., Any]:
    """A look-up in one of the caches that are dictionaries in memory before one on
    disk."""
    def fetch(self: Any, key: Any) -> Any:
        stage = stages.current_stage()
        if stage is None:
            return original(self, key)
        asked: list[bool] = []
        token = _asked_disk.set(asked)
        try:
            result = original(self, key)
        except KeyError:
            stage.looked_up(self, "fresh")
            raise
        finally:
            _asked_disk.reset(token)
        stage.looked_up(
            self, "unknown" if not _tells() else "disk" if asked else "memory")
        return result

    return fetch


def cache_access(original: Callable[..., Any]) -> Callable[..., Any]:
    """The disk part of such a cache."""
    def _exec_sql_fn(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked = _asked_disk.get()
        if asked is not None:
            asked.append(True)
        return original(self, *args, **kwargs)

    return _exec_sql_fn

# }}}


# {{{ array contexts

def freezing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Freezing in an array context."""
    def freeze(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not anybody_listens():
            return original(self, *args, **kwargs)
        token = frozen_contents.set([])
        try:
            return original(self, *args, **kwargs)
        finally:
            frozen_contents.reset(token)

    return freeze


def normalizing(original: Callable[..., Any]) -> Callable[..., Any]:
    """What arrays become before a program is looked up for them."""
    def _normalize_pt_expr(expr: Any, *args: Any, **kwargs: Any) -> Any:
        frozen = frozen_contents.get()
        if frozen is not None:
            from pytato_provenance.compilation.programs import contents_of_dag
            try:
                frozen.append(contents_of_dag(expr))
            except Exception as error:
                warn_once(error)
        return original(expr, *args, **kwargs)

    return _normalize_pt_expr

# }}}
