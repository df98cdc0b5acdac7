"""
Rows: compiled functions and frozen expressions of array contexts.

.. autofunction:: context_rows

The program is the Euler solver of the examples. ``python -m benchmarks.array_context``
measures it alone.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

import pytato_provenance as pp
from benchmarks.harness import (
    PAIRS,
    Row,
    Variant,
    interleave,
    no_collections,
    ratio_row,
)


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def _works(actx: Any, queue: Any, elements: int) -> dict[str, Callable[[], float]]:
    """A right-hand side of four results, on *elements* squared elements of 16 nodes."""
    import vortex
    from euler.discretization import Discretization
    from euler.operators import Operators
    from euler.physics import Euler

    discretization = Discretization(3, elements, vortex.LENGTH)
    euler = Euler(Operators(actx, discretization))
    state = actx.from_numpy(vortex.vortex(*discretization.coordinates, time=0))
    rate = actx.compile(euler.rate)

    def call() -> Any:
        result = rate(state)
        queue.finish()
        return result

    def freeze() -> Any:
        return actx.freeze(state.mass + euler.pressure(state))

    def timed(work: Callable[[], Any], count: int,
              clock: Callable[[], float] = time.perf_counter) -> float:
        work()
        times: list[float] = []
        with no_collections():
            for _ in range(count):
                start = clock()
                work()
                times.append(clock() - start)
        # What else runs on the machine hits some of them.
        return sorted(times)[count // 4]

    size = f"{elements}x{elements} elements"
    works = {
        f"call, {size}": lambda: timed(call, 40),
        # Of this thread alone: neither the kernel nor what else the machine does.
        f"call, its host side, {size}": lambda: timed(call, 40, time.thread_time)}
    if hasattr(actx, "_freeze_prg_cache"):
        works[f"freeze of an equal expression, host side, {size}"] = (
            lambda: timed(freeze, 20, time.thread_time))
    for work in works.values():
        work()
    return works


def context_rows(pairs: int = PAIRS) -> list[Row]:
    """
    :returns: the ratio of wrapped to plain, for what is done again and again.
    """
    sys.path.insert(0, str(EXAMPLES))
    try:
        from euler.array_context import SimulationArrayContext
    finally:
        sys.path.remove(str(EXAMPLES))
    sys.path.append(str(EXAMPLES))
    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    actx: Any = SimulationArrayContext(queue)

    @contextlib.contextmanager
    def wrapped() -> Iterator[None]:
        pp.wrap_array_context(actx)
        try:
            yield
        finally:
            pp.disable()

    variants = [Variant("plain", contextlib.nullcontext), Variant("wrapped", wrapped)]
    works: dict[str, Callable[[], float]] = {}
    with wrapped():
        for elements in (2, 16, 48):
            works.update(_works(actx, queue, elements))
    times = interleave(variants, works, pairs)
    return [ratio_row(f"array context: {name}", times["wrapped"][name],
                      times["plain"][name]) for name in works]


def main() -> None:
    """Print the rows."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    pp.mend_released_pytato()
    for row in context_rows():
        print(f"{row.name}: {' '.join(f'{value:.3f}' for value in row.quartiles)}, "
              f"{row.extra['base_us']:.0f} us {row.extra['added_us']:+.1f}, "
              f"fastest {row.extra['fastest']:.3f}")


if __name__ == "__main__":
    main()
