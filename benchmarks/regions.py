"""
Rows: what regions and the log of what is compiled cost.

.. autofunction:: region_rows
.. autofunction:: log_rows
"""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import TYPE_CHECKING, Any

import loopy as lp
import pytato as pt

import pytato_provenance as pp
from benchmarks.creation import DTYPE, add_loop, make_loop
from benchmarks.harness import (
    PAIRS,
    Row,
    Variant,
    interleave,
    no_collections,
    quartiles,
    ratio_row,
    timed,
)
from pytato_provenance import regions


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# {{{ regions

def _enter_loop(count: int) -> None:
    region = pp.region
    for _ in range(count):
        with region("rhs"):
            pass


def _enter_nested_loop(count: int) -> None:
    with pp.region("step"):
        _enter_loop(count)


def _nothing_loop(count: int) -> None:
    nothing = contextlib.nullcontext
    for _ in range(count):
        with nothing():
            pass


@contextlib.contextmanager
def _never_opened() -> Iterator[None]:
    opened, regions.ever_opened = regions.ever_opened, False
    try:
        yield
    finally:
        regions.ever_opened = opened


@contextlib.contextmanager
def _opened_before() -> Iterator[None]:
    with pp.region("rhs"):
        pass
    yield


def region_rows(pairs: int = PAIRS) -> list[Row]:
    """
    :returns: what it takes to enter and leave a region, and what an array costs more
        when regions were opened before, or one is open.
    """
    rows: list[Row] = []
    with no_collections():
        for name, loop in (("enter and leave a region", _enter_loop),
                           ("enter and leave a nested region", _enter_nested_loop),
                           ("the same of contextlib.nullcontext", _nothing_loop)):
            times = [timed(loop, 20_000) * 1e6 for _ in range(pairs)]
            rows.append(Row(
                name, quartiles(times), unit="us", samples=pairs,
                target=None if loop is _nothing_loop else 1.5))
        works: dict[Any, Callable[[], float]] = {
            "make_placeholder": lambda: timed(make_loop, 1000),
            "x + y": lambda: timed(add_loop, 500)}
        pp.enable()
        try:
            times_of = interleave(
                [Variant("never", _never_opened), Variant("before", _opened_before),
                 Variant("open", lambda: pp.region("rhs"))], works, pairs)
        finally:
            pp.disable()
    for work in works:
        for variant, title in (("before", "regions opened before"),
                               ("open", "in a region")):
            rows.append(ratio_row(f"{work}, {title}", times_of[variant][work],
                                  times_of["never"][work], target=1.02))
    return rows

# }}}


# {{{ log

_constants = itertools.count(1.5)


def _program() -> Any:
    """One that no cache has seen: a sum, elementwise operations, and a stencil."""
    x, y = (pt.make_placeholder(name=name, shape=(100,), dtype=DTYPE)
            for name in "xy")
    for _ in range(4):
        y = pt.sin(x) * y + pt.roll(y, 1) * next(_constants)
        x = x + pt.sum(y) * next(_constants)
    return pt.make_dict_of_named_arrays({"a": x, "b": y})


def _compile(queue: Any) -> float:
    dag = _program()
    start = time.thread_time()
    program = pt.generate_loopy(dag).program
    executor = program.executor(queue.context) if queue is not None else None
    if executor is None:
        lp.generate_code_v2(program)
    else:
        executor.translation_unit_info(None)
    return time.thread_time() - start


@contextlib.contextmanager
def _recording(with_region: bool, with_log: bool) -> Iterator[None]:
    pp.enable()
    try:
        with contextlib.ExitStack() as stack:
            if not with_region:
                stack.enter_context(_never_opened())
            else:
                stack.enter_context(pp.region("rhs"))
            if with_log:
                stack.enter_context(pp.compile_log())
            yield
    finally:
        pp.disable()


def log_rows(pairs: int = PAIRS) -> list[Row]:
    """
    :returns: what compiling a program costs more while a log is open, with the OpenCL
        driver's part and without.
    """
    import pyopencl as cl

    variants = [
        Variant("off", lambda: _recording(False, False)),
        Variant("region", lambda: _recording(True, False)),
        Variant("log", lambda: _recording(True, True))]
    works: dict[Any, Callable[[], float]] = {"up to the OpenCL text": lambda: _compile(
        None)}
    try:
        queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    except cl.Error:
        pass
    else:
        works["with the driver's build"] = lambda: _compile(queue)
    caching, lp.CACHING_ENABLED = lp.CACHING_ENABLED, False
    try:
        for work in works.values():
            work()
        with no_collections():
            times = interleave(variants, works, pairs)
    finally:
        lp.CACHING_ENABLED = caching
    rows: list[Row] = []
    for work in works:
        for variant, title in (("region", "in a region"), ("log", "with a log open")):
            rows.append(ratio_row(f"compile {work}, {title}", times[variant][work],
                                  times["off"][work], target=1.02))
    return rows

# }}}
