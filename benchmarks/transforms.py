"""
Rows: mappers with the mixin, while recording, and against the plain ones.

.. autofunction:: transform_rows
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
import pytato.transform as tr

import pytato_provenance as pp
from benchmarks.harness import Row, no_collections, quartiles, ratio_row


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES = 100_000
LAYERS = 20


def _layers(row: list[Any], second: bool) -> list[Any]:
    width = len(row)
    for layer in range(LAYERS - 1):
        if second:
            # The same once more, on a line of its own.
            row = [row[i] * (layer + 2) if (i + layer) % 2 else
                   row[i] + row[(i + 1) % width] for i in range(width)]
        else:
            row = [row[i] * (layer + 2) if (i + layer) % 2 else
                   row[i] + row[(i + 1) % width] for i in range(width)]
    return row


def wide_dag(nodes: int, duplicates: bool = False) -> Any:
    """
    :arg duplicates: whether there is an equal node for each one but inputs.
    :returns: a recorded dictionary of arrays, of about *nodes* nodes.
    """
    width = nodes // LAYERS // (2 if duplicates else 1)
    with pp.recording():
        inputs = [pt.make_placeholder(name=f"x{i}", shape=(4,), dtype=np.float64)
                  for i in range(width)]
        outputs = _layers(inputs, False)
        if duplicates:
            outputs += _layers(inputs, True)
    pp.disable()
    return pt.make_dict_of_named_arrays({f"y{i}": ary for i, ary in enumerate(outputs)})


def _deep_dag(nodes: int) -> Any:
    with pp.recording():
        ary = pt.make_placeholder(name="x", shape=(4,), dtype=np.float64)
        for i in range(nodes):
            ary = ary + 1 if i % 2 else 2 * ary
    pp.disable()
    return ary


def _seconds(work: Callable[[], object]) -> float:
    with no_collections():
        start = time.thread_time()
        result = work()
        seconds = time.thread_time() - start
        del result
    return seconds


@contextlib.contextmanager
def _on() -> Iterator[None]:
    pp.enable()
    try:
        yield
    finally:
        pp.disable()


def _compare(name: str, dag: Any, base: Any, other: Any, pairs: int,
             target: float | None, *, record: bool = False, note: str = "") -> Row:
    """Mappers are made anew each time: they keep what they have mapped. Each runs once
    before: patches make CPython specialise code anew."""
    times: list[float] = []
    base_times: list[float] = []
    for pair in range(pairs):
        for which in (0, 1) if pair % 2 else (1, 0):
            if which == 0:
                base()(dag)
                base_times.append(_seconds(lambda: base()(dag)))
            else:
                with _on() if record else contextlib.nullcontext():
                    other()(dag)
                    times.append(_seconds(lambda: other()(dag)))
    return ratio_row(name, times, base_times, target=target, note=note)


class _Copying(pp.PreserveCreatedAtMixin, tr.CopyMapper):
    pass


def transform_rows(pairs: int, nodes: int = NODES) -> list[Row]:
    """
    :returns: the cost of keeping sites, as ratios of whole transforms.
    """
    development = hasattr(tr, "Deduplicator")
    wide = wide_dag(nodes)
    about = f"{nodes} nodes"
    rows = [
        _compare("copy with the mixin", wide, tr.CopyMapper, _Copying, pairs,
                 1.15 if development else None, note=about),
        _compare("copy while recording", wide, tr.CopyMapper, tr.CopyMapper, pairs,
                 None, record=True, note=about),
        _compare("copy with the mixin while recording", wide, tr.CopyMapper, _Copying,
                 pairs, None, record=True, note=about)]
    if development:
        Merging: Any = type(  # noqa: N806
            "Merging", (pp.PreserveCreatedAtMixin, tr.Deduplicator), {})
        # On the released host, comparing equal nodes takes exponential time.
        twice = wide_dag(nodes, duplicates=True)
        rows += [
            _compare("deduplicate, nothing to merge", wide, tr.Deduplicator, Merging,
                     pairs, 2.5, note=about),
            _compare("deduplicate, half of it", twice, tr.Deduplicator, Merging, pairs,
                     2.5, note=about),
            _compare("deduplicate while recording", twice, tr.Deduplicator,
                     tr.Deduplicator, pairs, 2.5, record=True, note=about)]
    for name, dag in (("wide", wide), ("deep", _deep_dag(nodes))):
        for verb, work in (("explain", lambda dag: str(pp.explain(dag))),
                           ("audit", lambda dag: pp.audit(lambda same: same, dag))):
            times = [_seconds(lambda work=work, dag=dag: work(dag)) for _ in range(3)]
            rows.append(Row(f"{verb}, {name}", quartiles(times), unit="s", target=10,
                            samples=3, note=about))
    return rows
