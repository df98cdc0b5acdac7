"""
Rows: what an array costs to create, recorded against not recorded.

.. autofunction:: creation_rows
.. autofunction:: capture_rows
.. autofunction:: ordinary_rows
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt

import pytato_provenance as pp
from benchmarks.harness import (
    PAIRS,
    Row,
    Variant,
    at_depth,
    interleave,
    no_collections,
    quartiles,
    ratio_row,
    timed,
)
from pytato_provenance._host import host
from pytato_provenance.capture.paths import compiled_path_table
from pytato_provenance.capture.stack import StackStrategy


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEPTHS = (3, 10, 30, 100)

SHAPE, DTYPE = (10, 4), np.dtype(np.float64)
X = pt.make_placeholder(name="x", shape=SHAPE, dtype=DTYPE)
Y = pt.make_placeholder(name="y", shape=SHAPE, dtype=DTYPE)
make_placeholder = pt.make_placeholder


def make_loop(count: int) -> None:
    for _ in range(count):
        make_placeholder(name="x", shape=SHAPE, dtype=DTYPE)


def add_loop(count: int) -> None:
    for _ in range(count):
        X + Y


def make_one(levels: int) -> None:
    if levels:
        make_one(levels - 1)
    else:
        make_placeholder(name="x", shape=SHAPE, dtype=DTYPE)


def add_one(levels: int) -> None:
    if levels:
        add_one(levels - 1)
    else:
        X + Y


def fresh_loop(one: Callable[[int], None], levels: int, count: int) -> None:
    """Each creation has a stack of frames that were entered for it."""
    for _ in range(count):
        one(levels)


LOOPS = {"make_placeholder": (make_loop, make_one, 500), "x + y": (add_loop, add_one,
                                                                   200)}


@contextlib.contextmanager
def recorded(**options: Any) -> Iterator[None]:
    pp.enable(**options)
    try:
        yield
    finally:
        pp.disable()


@contextlib.contextmanager
def own_tags() -> Iterator[None]:
    pt.set_traceback_tag_enabled(True)
    try:
        yield
    finally:
        pt.set_traceback_tag_enabled(False)


def _variants() -> list[Variant]:
    found = [
        Variant("untagged", contextlib.nullcontext),
        Variant("untagged, again", contextlib.nullcontext),
    ]
    if compiled_path_table() is None:
        return [
            *found,
            Variant("stack, pure Python", partial(recorded, capture="stack")),
            Variant("four frames, pure Python",
                    partial(recorded, capture="stack", max_frames=4)),
            Variant("site, pure Python", partial(recorded, capture="site")),
        ]
    found += [Variant(name, partial(recorded, capture=name))
              for name in ("stack", "site")]
    if host().created_at is not None:
        found.append(Variant("pytato's own tags", own_tags))
    return found


def _instrumenting_variants() -> list[Variant]:
    """Apart from the others: CPython forgets what it has specialised when code is
    instrumented, and it takes long to come back."""
    names = ["profile"]
    if hasattr(sys, "monitoring"):
        names.append("monitoring")
    return [Variant("untagged", contextlib.nullcontext),
            *(Variant(name, partial(recorded, capture=name)) for name in names)]


# By variant, kind of stack and depth: the targets for make_placeholder and x + y.
TARGETS: dict[tuple[str, str, int], tuple[float, float]] = {
    ("stack", "", 30): (1.10, 1.05),
    ("stack", "", 100): (1.20, 1.10),
    ("stack", "fresh frames", 30): (1.15, 1.15),
    ("stack, pure Python", "", 30): (2.1, 1.4),
    **{("four frames, pure Python", "", depth): (1.10, 1.06) for depth in DEPTHS},
}


def creation_rows(pairs: int = PAIRS, instrumenting: bool = False) -> list[Row]:
    """
    :arg instrumenting: whether to measure the strategies that instrument code, or the
        others.
    :returns: each variant against untagged creation, at each depth.
    """
    works: dict[Any, Callable[[], float]] = {}
    for name, (loop, one, count) in LOOPS.items():
        for depth in DEPTHS:
            works[name, "", depth] = partial(
                at_depth, depth, partial(timed, loop, count))
        # Beneath `fresh_loop`, at depth 3, the rest of the stack is new each time.
        works[name, "fresh frames", 30] = partial(
            at_depth, 3, partial(timed, partial(fresh_loop, one, 26), count))
    with no_collections():
        times = interleave(
            _instrumenting_variants() if instrumenting else _variants(), works, pairs)
    base = times["untagged"]
    rows: list[Row] = []
    for variant, measured in times.items():
        if variant == "untagged":
            continue
        for work in works:
            name, kind, depth = work
            target = TARGETS.get((variant, kind, depth))
            if not host().has_non_equality_tags:
                # Another baseline: what counts there are the added microseconds.
                target = None
            rows.append(ratio_row(
                ", ".join(filter(None, [variant, name, f"depth {depth}", kind])),
                measured[work], base[work],
                target=target and target[name != "make_placeholder"]))
    if "pytato's own tags" in times and "stack" in times:
        rows += [_added_cost_row(name, times, (name, "", 30)) for name in LOOPS]
    return rows


def _added_cost_row(name: str, times: dict[str, dict[Any, list[float]]],
                    work: Any) -> Row:
    def added(variant: str) -> list[float]:
        return [value - base for value, base in zip(
            times[variant][work], times["untagged"][work], strict=True)]

    # Ours may be less than nothing in some pairs: the median is what is divided by.
    ours = max(statistics.median(added("stack")), 1e-9)
    return Row(f"added cost of pytato's own tags over ours, {name}, depth 30",
               quartiles([value / ours for value in added("pytato's own tags")]),
               unit="times", target=15, at_least=True)


def capture_rows(pairs: int = PAIRS) -> list[Row]:
    """
    :returns: one capture against one of jaxlib's traceback objects.
    """
    try:
        from jaxlib import _jax
    except ImportError:
        return []
    if compiled_path_table() is None:
        return []
    get_traceback = _jax.Traceback.get_traceback
    strategy = StackStrategy()
    lookup = strategy.lookup

    def ours(count: int) -> None:
        if lookup(1, 0) is None:
            strategy.miss(1)
        for _ in range(count):
            lookup(1, 0)

    def theirs(count: int) -> None:
        for _ in range(count):
            get_traceback()

    rows: list[Row] = []
    variants = [Variant("", contextlib.nullcontext)]
    strategy.start()
    with no_collections():
        for depth in DEPTHS:
            times = interleave(variants, {
                name: partial(at_depth, depth, partial(timed, loop, 3000))
                for name, loop in [("ours", ours), ("jaxlib", theirs)]}, pairs)[""]
            rows.append(ratio_row(
                f"one capture over jaxlib's traceback object, depth {depth}",
                times["ours"], times["jaxlib"],
                target=1.5 if depth == 30 else None))
    strategy.stop()
    return rows


def small_function(a: int, b: int) -> int:
    return a + b


def functions_loop(count: int) -> None:
    for i in range(count):
        small_function(i, 1)


def builtins_loop(count: int) -> None:
    for i in range(count):
        abs(i)
        len("abc")


def ordinary_rows(pairs: int = PAIRS) -> list[Row]:
    """
    :returns: how much slower Python is between the creations.
    """
    works: dict[Any, Callable[[], float]] = {
        "small functions": partial(timed, functions_loop, 20_000),
        "builtins": partial(timed, builtins_loop, 20_000),
    }
    variants = [*_instrumenting_variants(),
                Variant("stack", partial(recorded, capture="stack"))]
    with no_collections():
        times = interleave(variants, works, pairs)
    return [
        ratio_row(f"ordinary Python, {work}, {variant.name}", times[variant.name][work],
                  times["untagged"][work],
                  target=1.03 if variant.name == "monitoring" else None)
        for variant in variants if variant.name != "untagged" for work in works]


def sample(count: int = 2000) -> float:
    """
    :returns: the seconds of one creation, for processes that take turns.
    """
    with no_collections():
        return timed(make_loop, count)
