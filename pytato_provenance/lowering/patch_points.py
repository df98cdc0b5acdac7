"""
What of the hosts is patched while programs are annotated, and why.

.. autodata:: LOWERING_POINTS
.. autodata:: SEAM_POINTS
.. autofunction:: install
.. autofunction:: restore
.. autofunction:: generating
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from importlib import util
from typing import TYPE_CHECKING

from pytato_provenance._patching import PatchPoint, PatchSet
from pytato_provenance.lowering import (
    caches,
    embedding,
    hooks,
    notes,
    python_target,
    seam,
)


if TYPE_CHECKING:
    from collections.abc import Generator


SEAM_POINTS = (
    PatchPoint(
        "loopy.codegen.instruction", "to_codegen_result", seam.marking_result,
        "every statement of every target of the C family passes here"),
    PatchPoint(
        "loopy.codegen", "code_gen_cache", seam.bypassed_cache,
        "marked code is generated anew and never stored"),
)
"""What :func:`~pytato_provenance.kernel_source` needs."""

_CODEGEN = "pytato.target.loopy.codegen"

_PYTHON = "pytato.target.python.numpy_like"


def _has_python_target() -> bool:
    return util.find_spec("pytato.target") is not None and (
        util.find_spec("pytato.target.python") is not None)


LOWERING_POINTS = (
    PatchPoint(
        _CODEGEN, "preprocess", hooks.preprocess_with_sites,
        "equal nodes learn each other's sites before the host drops all but one"),
    PatchPoint(
        _CODEGEN, "CodeGenMapper", hooks.recording_mapper,
        "says which array a result implements"),
    PatchPoint(
        _CODEGEN, "InlinedExpressionGenMapper", hooks.recording_expression_mapper,
        "says which loops a reduction gets"),
    PatchPoint(
        _CODEGEN, "add_store", hooks.recording_store,
        "adds every statement but the calls of hand-written kernels"),
    PatchPoint(
        "pytato.target.loopy", "LoopyPyOpenCLTarget.bind_program",
        hooks.announcing_bind,
        "the end of generate_loopy, for whoever collects programs"),
    PatchPoint(
        "loopy.target.execution",
        "ExecutorBase.get_typed_and_scheduled_translation_unit",
        caches.scheduling_without_sites,
        "from here on loopy works without our tags: keys and entries of caches are "
        "those of a plain run"),
    PatchPoint(
        "loopy.target.pyopencl_execution", "PyOpenCLExecutor.translation_unit_info",
        notes.noting_compilation,
        "errors of loopy and of the driver's compiler get a note"),
    PatchPoint(
        "pytools.persistent_dict", "WriteOncePersistentDict.fetch",
        caches.fetch_without_sites,
        "the same for what users schedule and generate by hand"),
    PatchPoint(
        "pytools.persistent_dict", "WriteOncePersistentDict.store",
        caches.store_without_sites,
        "no class of ours is pickled into a cache"),
    PatchPoint(
        "loopy.codegen", "generate_code_v2", embedding.embedding_code,
        "hands annotated text on, where comments are embedded"),
    *(PatchPoint(
        module, "generate_numpy_like", python_target.recording_generation,
        "programs in Python, and the name by which those for JAX are made",
        _has_python_target)
      for module in (_PYTHON, "pytato.target.python.jax")),
    PatchPoint(
        _PYTHON, "NumpyCodegenMapper", python_target.naming_mapper,
        "says which variable holds an array", _has_python_target),
)
"""What annotated programs need while they are generated and run."""


class _Counted:
    """Patches that stay in as long as somebody needs them."""

    def __init__(self, points: tuple[PatchPoint, ...]) -> None:
        self._patches = PatchSet(points)
        self._users = 0
        self._lock = threading.RLock()

    def acquire(self) -> None:
        with self._lock:
            if self._users == 0:
                self._patches.install()
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._patches.restore()


_seam = _Counted(SEAM_POINTS)
_lowering = PatchSet(LOWERING_POINTS)
_lock = threading.RLock()


def install() -> None:
    """Patch the hosts. Twice is once."""
    with _lock:
        if not _lowering.installed:
            _lowering.install()
            _seam.acquire()


def restore() -> None:
    """Put back what was there."""
    with _lock:
        if _lowering.installed:
            _seam.release()
            _lowering.restore()


@contextmanager
def generating() -> Generator[None]:
    """While it is open marked code can be generated, whether programs are annotated or
    not."""
    _seam.acquire()
    try:
        yield
    finally:
        _seam.release()
