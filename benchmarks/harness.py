"""
Interleaved measurement, and stacks of a chosen depth.

.. autoclass:: Variant
.. autoclass:: Row
.. autofunction:: interleave
.. autofunction:: at_depth
.. autofunction:: ratio_row
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import random
import statistics
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PAIRS = 21


@dataclass(frozen=True)
class Variant:
    """
    .. attribute:: name
    .. attribute:: state

        A context manager: what is switched on while the variant is measured.
    """

    name: str
    state: Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass
class Row:
    """One line of the table.

    .. attribute:: quartiles

        Lower quartile, median, upper quartile of *unit*.

    .. attribute:: target

        At most (or with *at_least* at least) this; *None* where nothing is promised.
    """

    name: str
    quartiles: tuple[float, float, float]
    unit: str = "ratio"
    target: float | None = None
    at_least: bool = False
    note: str = ""
    samples: int = PAIRS
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the median is within the target, to the precision it is given in."""
        if self.target is None:
            return None
        median = self.quartiles[1]
        return median >= self.target if self.at_least else median <= self.target

    def plain(self) -> dict[str, Any]:
        """
        :returns: the row for JSON.
        """
        return {**asdict(self), "met": self.met}


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """
    :returns: lower quartile, median, upper quartile.
    """
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high


def ratio_row(name: str, values: Sequence[float], base: Sequence[float],
              **options: Any) -> Row:
    """
    :returns: a row of the ratios of *values* to *base*, pair by pair.
    """
    ratios = [value / other for value, other in zip(values, base, strict=True)]
    added = statistics.median(v - b for v, b in zip(values, base, strict=True))
    return Row(name, quartiles(ratios), samples=len(ratios),
               extra={"base_us": statistics.median(base) * 1e6,
                      "added_us": added * 1e6,
                      # What a machine without other work would show, or nearly.
                      "fastest": min(values) / min(base)}, **options)


def interleave(variants: Sequence[Variant], works: Mapping[Any, Callable[[], float]],
               pairs: int = PAIRS) -> dict[str, dict[Any, list[float]]]:
    """
    Measure every work under every variant, *pairs* times, in an order that changes.

    :arg works: each returns the seconds of one operation.
    :returns: by variant and work, the times in the order of the pairs.
    """
    times: dict[str, dict[Any, list[float]]] = {
        variant.name: {work: [] for work in works} for variant in variants}
    order = list(variants)
    chance = random.Random(15)
    for _ in range(pairs):
        chance.shuffle(order)
        for variant in order:
            with variant.state():
                for name, work in works.items():
                    times[variant.name][name].append(work())
    return times


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """Without garbage collections, which hit whom they hit."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def timed(loop: Callable[[int], None], count: int) -> float:
    """
    :arg loop: does the operation as often as it is told.
    :returns: the seconds of one operation, after a warm-up: patches make CPython
        specialise code anew, which is none of what lasts.
    """
    loop(count)
    # Of this thread: what else runs on the machine does not count.
    start = time.thread_time()
    loop(count)
    return (time.thread_time() - start) / count


def at_depth(depth: int, work: Callable[[], Any]) -> Any:
    """
    :arg depth: how many Python frames the stack has in *work*, its own included.
    :returns: the result of *work*, run in a thread that begins with an empty stack.
    """
    result: list[Any] = []
    error: list[BaseException] = []
    done = _thread.allocate_lock()

    def descend(levels: int) -> None:
        if levels > 1:
            descend(levels - 1)
        else:
            result.append(work())

    def top(levels: int) -> None:
        # The outermost frame.
        try:
            descend(levels)
        except BaseException as problem:
            error.append(problem)
        finally:
            done.release()

    done.acquire()
    _thread.start_new_thread(top, (depth - 2,))
    done.acquire()
    if error:
        raise error[0]
    return result[0]
