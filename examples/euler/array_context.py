"""The lazy array context to run on: arraycontext's own, or the one beside this."""
# One of the two is not installed.
# pyright: reportMissingImports=none, reportRedeclaration=none
# pyright: reportUntypedBaseClass=none

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import arraycontext
from arraycontext import CommonSubexpressionTag


if TYPE_CHECKING:
    import loopy as lp
    import pyopencl as cl
    import pytato as pt


if hasattr(arraycontext, "PytatoPyOpenCLArrayContext"):
    from arraycontext import PytatoPyOpenCLArrayContext
    from pyopencl.tools import ImmediateAllocator, MemoryPool
    from pytato.array import InputArgumentBase
    from pytato.tags import ImplStored
    from pytato.transform import map_and_copy

    def store_if_common(node: Any) -> Any:
        """Return *node*, to be stored if it is tagged as a common subexpression."""
        if isinstance(node, InputArgumentBase) or not (
            hasattr(node, "tags_of_type") and node.tags_of_type(CommonSubexpressionTag)
        ):
            return node
        return node.tagged(ImplStored())

    class SimulationArrayContext(PytatoPyOpenCLArrayContext):
        """Stores common subexpressions and otherwise leaves programs as they are.

        :arg queue: where the programs run
        """

        def __init__(self, queue: cl.CommandQueue) -> None:
            # By default this is shared virtual memory wherever the device has it,
            # with which PoCL 3.0 crashes or computes nonsense.
            super().__init__(queue, allocator=MemoryPool(ImmediateAllocator(queue)))

        def transform_dag(self, dag: pt.DictOfNamedArrays) -> pt.DictOfNamedArrays:
            """Mark what is to be stored."""
            return map_and_copy(dag, store_if_common)

        def transform_loopy_program(
            self, t_unit: lp.TranslationUnit
        ) -> lp.TranslationUnit:
            """Leave the loops in order, which is what a CPU likes."""
            return t_unit

else:
    from lazy_array_context import LazyArrayContext

    class SimulationArrayContext(LazyArrayContext):
        """Stores common subexpressions, which the base class does already."""
