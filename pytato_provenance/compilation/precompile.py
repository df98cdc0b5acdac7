"""
Compiling before it counts.

.. autofunction:: precompile
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from pytato_provenance.compilation.log import compile_log
from pytato_provenance.diagnostic import ProvenanceWarning, UsageError


if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytato_provenance.compilation.log import CompileEvents


def precompile(program: Any, *sample_args: Any, **sample_kwargs: Any) -> CompileEvents:
    """Run all stages of a program now, one enqueue included, and wait for that. The
    next call with arguments of the same types and shapes compiles nothing.

    :arg program: what keeps what it has built: an executor of :mod:`loopy`, an
        executable (``bound_program.bind_to_context(context)``), or a function that an
        array context compiles (``actx.compile(f)``). A bound program of
        :mod:`pytato` is run and warned of: it builds again at each call, from whatever
        the caches have by then.
    :arg sample_args: what it will be called with: the arguments of a compiled function,
        a queue for the others. What the program writes is written.
    :arg sample_kwargs: the same.
    :returns: what was compiled, as by :class:`~pytato_provenance.compile_log`.
    :raises ~pytato_provenance.diagnostic.UsageError: if *program* is none of these.
    """
    keeps = _keeps_what_it_built(program)
    if keeps is None:
        raise UsageError(
            "precompile takes an executor, an executable that is bound to a context, "
            f"or a compiled function, not '{type(program).__name__}'")
    if not keeps:
        warnings.warn(
            "a bound program builds again whenever it is called; precompile "
            "bound_program.program.executor(context) and call that",
            ProvenanceWarning, stacklevel=2)
    with compile_log() as log:
        program(*sample_args, **sample_kwargs)
        for queue in _queues(program, sample_args, sample_kwargs):
            queue.finish()
    return log


def _class_of(module: str, *names: str) -> tuple[type, ...]:
    # What was never imported is not what we were given.
    loaded = sys.modules.get(module)
    return tuple(cls for name in names
                 if isinstance(cls := getattr(loaded, name, None), type))


def _keeps_what_it_built(program: Any) -> bool | None:
    keeping = (
        *_class_of("loopy.target.execution", "ExecutorBase"),
        *_class_of("pytato.target.loopy", "BoundPyOpenCLExecutable"),
        *_class_of("arraycontext.impl.pytato.compile",
                   "BaseLazilyCompilingFunctionCaller"))
    if isinstance(program, keeping):
        return True
    building = (*_class_of("pytato.target", "BoundProgram"),
                *_class_of("loopy", "TranslationUnit"))
    return False if isinstance(program, building) else None


def _queues(program: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> list[Any]:
    candidates = [getattr(getattr(program, "actx", None), "queue", None),
                  kwargs.get("queue"), *args]
    types = _class_of("pyopencl", "CommandQueue")
    return [item for item in candidates if isinstance(item, types)]
