"""
What of the hosts is patched for regions and the log, and why.

.. autodata:: PROGRAM_POINTS
.. autodata:: STAGE_POINTS
.. autodata:: LATE_POINTS
.. autofunction:: recording_started
.. autofunction:: log_opened
.. autofunction:: log_closed
.. autofunction:: program_begins
.. autofunction:: stop_all
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from pytato_provenance._patching import PatchPoint, PatchSet
from pytato_provenance.compilation import hooks, marks, stages
from pytato_provenance.instrument import when_disabled
from pytato_provenance.patch_points import has


if TYPE_CHECKING:
    from collections.abc import Callable

    from pytato_provenance.compilation.events import CompileEvent


_CODEGEN = "pytato.target.loopy.codegen"
_CONTEXTS = "arraycontext.impl.pytato"

PROGRAM_POINTS = (
    PatchPoint(
        _CODEGEN, "preprocess", marks.preprocess_with_program,
        "the first step of generate_loopy, which sees the arrays"),
    PatchPoint(
        _CODEGEN, "get_initial_codegen_state", marks.initial_state_of_program,
        "makes the kernel of which all later ones are copies"),
    PatchPoint(
        "pytato.target.loopy", "LoopyPyOpenCLTarget.bind_program",
        marks.bind_of_program, "the last step of generate_loopy"),
    PatchPoint(
        "loopy", "LoopKernel.copy", marks.carrying_copy,
        "how every transformation makes a kernel from another"),
    PatchPoint(
        "loopy", "LoopKernel._with_new_tags", marks.carrying_copy,
        "the same for the tags of a kernel", has("loopy", "LoopKernel._with_new_tags")),
    PatchPoint(
        "loopy.transform.fusion", "_fuse_two_kernels", marks.carrying_fusion,
        "makes a kernel from two", has("loopy.transform.fusion", "_fuse_two_kernels")),
    PatchPoint(
        "pytools.persistent_dict", "WriteOncePersistentDict.fetch",
        marks.fetch_of_programs, "gives a kernel in the place of a copy"),
)
"""What finds the program of a kernel, while recording is on or a log is open."""

STAGE_POINTS = (
    PatchPoint(
        "loopy.target.pyopencl_execution", "PyOpenCLExecutor.__call__",
        hooks.executor_call, "the first enqueue, and what is reused after that"),
    PatchPoint(
        "loopy.target.pyopencl_execution", "PyOpenCLExecutor.translation_unit_info",
        hooks.executor_compilation, "everything that an executor does only once"),
    PatchPoint(
        "loopy.target.execution",
        "ExecutorBase.get_typed_and_scheduled_translation_unit",
        hooks.executor_scheduling, "a cache may spare preprocessing and scheduling"),
    PatchPoint(
        "loopy.target.execution", "ExecutorBase.get_invoker", hooks.invoker,
        "the Python function that passes arguments and enqueues"),
    *(PatchPoint(module, name, wrapper, "a stage of loopy, and the name by which users "
                 "call it")
      for name, home, wrapper in (
          ("preprocess_program", "loopy.preprocess", hooks.preprocessing),
          ("linearize", "loopy.schedule", hooks.linearization),
          ("generate_code_v2", "loopy.codegen", hooks.code_generation))
      for module in (home, "loopy")),
    PatchPoint(
        "pyopencl", "Program.build", hooks.build, "the driver's compiler"),
    PatchPoint(
        "pytools.persistent_dict", "WriteOncePersistentDict.fetch", hooks.cache_lookup,
        "loopy's caches: whether there was a result"),
    PatchPoint(
        "pytools.persistent_dict", "_PersistentDictBase._exec_sql_fn",
        hooks.cache_access, "whether it came from the disk",
        has("pytools.persistent_dict", "_PersistentDictBase._exec_sql_fn")),
    PatchPoint(
        "pytato.target.loopy", "BoundPyOpenCLProgram.with_transformed_program",
        marks.transformed_program, "a user's transformation of loopy",
        has("pytato.target.loopy", "BoundPyOpenCLProgram.with_transformed_program")),
    PatchPoint(
        "pytato.target.loopy",
        "BoundPyOpenCLExecutable.with_transformed_translation_unit",
        marks.transformed_program, "the same, as array contexts apply it",
        has("pytato.target.loopy",
            "BoundPyOpenCLExecutable.with_transformed_translation_unit")),
)
"""What times the stages, while a log is open."""

LATE_POINTS = (
    PatchPoint(
        _CONTEXTS, "PytatoPyOpenCLArrayContext.freeze", hooks.freezing,
        "runs a program that was generated for equal arrays",
        has(_CONTEXTS, "PytatoPyOpenCLArrayContext.freeze")),
    PatchPoint(
        f"{_CONTEXTS}.utils", "_normalize_pt_expr", hooks.normalizing,
        "sees the arrays that are frozen",
        has(f"{_CONTEXTS}.utils", "_normalize_pt_expr")),
)
"""The same, of what is not imported for the sake of a log."""

_programs = PatchSet(PROGRAM_POINTS)
_stages = PatchSet(STAGE_POINTS)
_late = PatchSet(LATE_POINTS)
_lock = threading.RLock()
_records = False
_logs: tuple[Callable[[CompileEvent], None], ...] = ()


def _update() -> None:
    if _records or _logs:
        _programs.install()
    if _logs:
        _stages.install()
        if _CONTEXTS in sys.modules:
            _late.install()
    else:
        _late.restore()
        _stages.restore()
        if not _records:
            _programs.restore()


def recording_started() -> None:
    """Arrays are recorded from now on."""
    global _records
    when_disabled(stop_all)
    with _lock:
        _records = True
        _update()


def log_opened(listener: Callable[[CompileEvent], None]) -> None:
    """Tell *listener* of every event from now on."""
    global _logs
    # Not within the lock: recording starts within its own.
    when_disabled(stop_all)
    with _lock:
        _logs = (*_logs, listener)
        _update()
        stages.listen(listener)


def log_closed(listener: Callable[[CompileEvent], None]) -> None:
    """Undo :func:`log_opened`."""
    global _logs
    with _lock:
        stages.no_longer_listen(listener)
        _logs = tuple(item for item in _logs if item != listener)
        _update()


def program_begins() -> None:
    """Code is going to be generated; its libraries have been imported by now."""
    if _logs and not _late.installed and _CONTEXTS in sys.modules:
        with _lock:
            _update()


def stop_all() -> None:
    """Put back every attribute of the hosts. Logs that are open get nothing more."""
    global _logs, _records
    with _lock:
        for listener in _logs:
            stages.no_longer_listen(listener)
        _logs = ()
        _records = False
        _update()
