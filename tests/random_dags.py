"""
Random DAGs over all node types that the installed host offers.

The same seed gives the same DAG, whatever records meanwhile.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytato as pt
from random_operations import LENGTH, Builder


if TYPE_CHECKING:
    from collections.abc import Callable


def random_dag(seed: int, size: int = 8,
               before_each: Callable[[int], object] = lambda number: None) -> Any:
    """
    :arg before_each: is called with the number of each operation before it.
    :returns: a dictionary of named arrays, with *size* operations.
    """
    rng = random.Random(seed)
    before_each(0)
    builder = Builder(rng)
    for number in range(size):
        before_each(number + 1)
        builder.perform()
    pools = builder.pools()
    inputs = {id(pool[0]) for pool in pools if pool}
    candidates = [ary for pool in pools for ary in pool if id(ary) not in inputs]
    outputs = rng.sample(candidates, min(len(candidates), rng.randint(1, 3)))
    named = {f"out{i}": ary for i, ary in enumerate(outputs)}
    if rng.random() < 0.5:
        named["out_last"] = builder.matrices[-1]
    before_each(size + 1)
    return pt.make_dict_of_named_arrays(named)


def random_inputs(seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """
    :returns: values for the placeholders.
    """
    rng = np.random.default_rng(seed)
    matrix = rng.random((LENGTH, LENGTH))
    return {"m0": matrix, "v0": rng.random(LENGTH), "c0": matrix + 1j * matrix.T,
            "i0": rng.integers(0, LENGTH, LENGTH), "s0": rng.random(7)}


def prepared(dag: Any) -> Any:
    """
    :returns: *dag* in the form in which the host's code generator takes it: without
        equal nodes and with calls inlined, where the host has these.
    """
    from pytato import transform
    if hasattr(pt, "tag_all_calls_to_be_inlined"):
        dag = pt.inline_calls(pt.tag_all_calls_to_be_inlined(
            transform.deduplicate(dag)))
    if hasattr(transform, "deduplicate"):
        dag = transform.deduplicate(dag)
    return dag
