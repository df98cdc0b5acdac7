"""The lazy array contexts that are installed, and a program that uses one."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import arraycontext
import numpy as np
import pytest

from pytato_provenance import created_at


if TYPE_CHECKING:
    from collections.abc import Callable

    from pytato_provenance import CreationSite


EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
if str(EXAMPLES) not in sys.path:
    sys.path.append(str(EXAMPLES))

IS_LAZY_LIBRARY = hasattr(arraycontext, "PytatoPyOpenCLArrayContext")


# {{{ contexts

def lazy_class() -> Any:
    """The class of contexts that runs on OpenCL."""
    if IS_LAZY_LIBRARY:
        return arraycontext.PytatoPyOpenCLArrayContext
    from lazy_array_context import LazyArrayContext
    return LazyArrayContext


def new(cls: Any, queue: Any) -> Any:
    """A context of class *cls*, which is or derives from :func:`lazy_class`."""
    if not IS_LAZY_LIBRARY:
        return cls(queue)
    # Not shared virtual memory, with which PoCL 3.0 crashes.
    from pyopencl.tools import ImmediateAllocator
    return cls(queue, allocator=ImmediateAllocator(queue))


def plain(queue: Any) -> Any:
    """arraycontext's own where it has one, or else the example's."""
    return new(lazy_class(), queue)


def transforming(queue: Any) -> Any:
    """A subclass of a user's with both transforms."""
    import pytato as pt

    class TransformingContext(lazy_class()):
        def transform_dag(self, dag: Any) -> Any:
            return pt.transform.CopyMapper()(super().transform_dag(dag))

        def transform_loopy_program(self, t_unit: Any) -> Any:
            import loopy as lp

            for name in sorted(t_unit.default_entrypoint.inames):
                if name.endswith("dim0"):
                    t_unit = lp.split_iname(t_unit, name, 4)
            return super().transform_loopy_program(t_unit)

    return new(TransformingContext, queue)


def jax(queue: Any) -> Any:
    """Of pytato's JAX target."""
    pytest.importorskip("jax")
    import jax

    jax.config.update("jax_enable_x64", True)
    return arraycontext.PytatoJAXArrayContext()


CONTEXTS: dict[str, Callable[[Any], Any]] = {
    "plain": plain, "transforming": transforming}
if hasattr(arraycontext, "PytatoJAXArrayContext"):
    CONTEXTS["jax"] = jax

# }}}


# {{{ lines

class Line(NamedTuple):
    """A line, and the function that it is in."""

    filename: str
    lineno: int
    function: str


def here() -> Line:
    """The line that calls this."""
    frame = traceback.extract_stack(limit=2)[0]
    return Line(frame.filename, frame.lineno or 0, frame.name)


def line_of(site: CreationSite | None) -> Line:
    """The user's line of *site*."""
    assert site is not None
    frame = site.user_frame
    assert frame is not None, site
    return Line(frame.filename, frame.lineno, frame.qualname.rpartition(".")[2])


def made_at(array: Any) -> Line:
    """The line of *array*, which has exactly one."""
    site = created_at(array)
    assert site is not None
    assert site.kind == "known"
    return line_of(site)

# }}}


def leaves(value: Any) -> list[Any]:
    """The arrays in a container, or *value* itself."""
    from arraycontext import serialize_container

    if isinstance(value, np.ndarray):
        is_container = value.dtype.char == "O"
    else:
        is_container = arraycontext.is_array_container_type(type(value))
    if is_container:
        return [leaf for _, item in serialize_container(value) for leaf in leaves(item)]
    return [value]
