"""
Rows: whole programs, and generating annotated code.

.. autofunction:: measures
.. autofunction:: program_rows
.. autofunction:: annotation_rows
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import regions
from benchmarks.creation import recorded
from benchmarks.harness import Row, Variant, interleave, no_collections, ratio_row


if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def _example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _processor_time(work: Callable[[], Any]) -> float:
    """
    :returns: the seconds of all threads: what else runs on the machine does not count.
    """
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def program_rows(pairs: int) -> list[Row]:
    """
    :returns: an example that builds, rewrites, generates, compiles and runs, without
        any cache.
    """
    heat = _example("heat")

    def run() -> None:
        arguments, sys.argv = sys.argv, ["heat.py", "--calls", "20"]
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                heat.main()
        finally:
            sys.argv = arguments

    variants = [
        Variant("not recorded", contextlib.nullcontext),
        Variant("not recorded, again", contextlib.nullcontext),
        Variant("recorded", recorded),
        Variant("recorded and annotated", partial(recorded, annotate=True)),
    ]
    run()
    times = interleave(variants, {"": partial(_processor_time, run)}, pairs)
    return [ratio_row(f"a whole program, {name}", measured[""],
                      times["not recorded"][""],
                      target=1.005 if name == "recorded" else None)
            for name, measured in times.items() if name != "not recorded"]


def annotation_rows(pairs: int) -> list[Row]:
    """
    :returns: lowering an example to OpenCL text, with and without comments.
    """
    import loopy as lp
    import pytato as pt

    import pytato_provenance as pp

    heat = _example("heat")
    outputs: list[Any] = []

    def keep(result: Any, *args: Any, **kwargs: Any) -> None:
        outputs.append(result)

    generate, pt.generate_loopy = pt.generate_loopy, keep
    try:
        with pp.recording():
            heat.build_program()
    finally:
        pt.generate_loopy = generate
    pp.disable()

    def lower() -> Any:
        return pt.generate_loopy(outputs[0])

    def plain() -> None:
        lp.generate_code_v2(lower().program).device_code()

    def beside() -> None:
        pp.kernel_source(lower())

    def measured(work: Callable[[], None]) -> float:
        with no_collections():
            start = time.thread_time()
            work()
            return time.thread_time() - start

    nothing = contextlib.nullcontext
    measured(plain)
    rows: dict[str, list[float]] = {}
    settings: list[tuple[str, Any, Callable[[], None]]] = [
        ("plain", nothing, plain),
        ("plain, again", nothing, plain),
        ("recorded, not annotated", recorded, plain),
        ("embedded", partial(recorded, annotate="embed"), plain),
        ("beside", partial(recorded, annotate=True), beside),
    ]
    for _ in range(pairs):
        for name, state, work in settings:
            with state():
                rows.setdefault(name, []).append(measured(work))
    return [ratio_row(f"generating code, {name}", values, rows["plain"],
                      target=1.05 if name in {"embedded", "beside"} else None)
            for name, values in rows.items() if name != "plain"]


def measures(quick: bool) -> dict[str, Callable[[], list[Row]]]:
    """
    :returns: by group, what measures its rows.
    """
    return {
        "program": partial(program_rows, 3 if quick else 21),
        "generation": partial(annotation_rows, 3 if quick else 21),
        "regions": partial(regions.region_rows, 5 if quick else 21),
        "log": partial(regions.log_rows, 3 if quick else 21),
    }
