"""
Rows: what stays after recording, and how much memory sites take.

.. autofunction:: off_rows
.. autofunction:: memory_rows
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Row, quartiles, ratio_row


if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 7
GENERATIONS = 6

# What a process does before it answers each line on its input with one time.
_WORKER = """
import sys
from pytato_provenance import mend_released_pytato
mend_released_pytato()
from benchmarks import creation
import pytato_provenance as pp
{setup}
creation.sample()
for _ in sys.stdin:
    print(creation.sample(), flush=True)
"""

_STATES = {
    "never on": "",
    "never on, again": "",
    "off after having been on": "pp.enable(); creation.sample(); pp.disable()",
    "off after 2,000 scopes": """
for _ in range(2000):
    with pp.recording():
        creation.make_loop(1)
pp.disable()
""",
}


@contextlib.contextmanager
def _workers() -> Iterator[dict[str, subprocess.Popen[str]]]:
    with contextlib.ExitStack() as stack:
        yield {
            name: stack.enter_context(subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", _WORKER.format(setup=setup)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for name, setup in _STATES.items()}


def _ask(worker: subprocess.Popen[str]) -> float:
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def off_rows(generations: int = GENERATIONS) -> list[Row]:
    """
    A process that has recorded cannot become one that never has: processes take turns,
    and several generations of them, for each has its own addresses and luck.

    :returns: creation after recording was switched off, against never switched on.
    """
    times: dict[str, list[float]] = {name: [] for name in _STATES}
    for _ in range(generations):
        with _workers() as workers:
            for worker in workers.values():
                _ask(worker)
            for _ in range(ROUNDS):
                for name, worker in workers.items():
                    times[name].append(_ask(worker))
    base, control, *rest = _STATES
    first = ratio_row(f"{control} (the control)", times[control], times[base])
    rows = [first]
    for name in rest:
        row = ratio_row(name, times[name], times[base], target=first.quartiles[2])
        row.note = "target: the upper quartile of the control"
        rows.append(row)
    return rows


def memory_rows(arrays: int = 1_000_000, lines: int = 100, depth: int = 10
                ) -> list[Row]:
    """
    :returns: the megabytes of sites that many arrays from a hundred lines leave.
    """
    import numpy as np
    import pytato as pt

    import pytato_provenance as pp

    body = "\n".join(
        f"    if i == {i}: return make(name='x', shape=shape, dtype=dtype)"
        for i in range(lines))
    scope: dict[str, Any] = {"make": pt.make_placeholder, "shape": (4,),
                             "dtype": np.dtype(np.float64)}
    exec(f"def branches(i):\n{body}\n"
         "def descend(levels, i):\n"
         "    return descend(levels - 1, i) if levels else branches(i)\n", scope)
    descend = scope["descend"]
    pp.enable()
    try:
        for _ in range(3):  # the host's own caches, ours too
            descend(0, 0)
        pp.disable()
        pp.enable()
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.take_snapshot()
        for n in range(arrays):
            descend(depth, n % lines)
        gc.collect()
        after = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
        pp.disable()
    size = sum(item.size_diff for item in after.compare_to(before, "filename"))
    megabytes = size / 1e6
    return [Row(f"sites of {arrays:,} arrays from {lines} lines, {depth} frames deep",
                quartiles([megabytes] * 2), unit="MB", target=1.0, samples=1,
                note="all that is allocated and stays, by tracemalloc")]
