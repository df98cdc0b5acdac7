# The two lines of each operation are the point.
# ruff: noqa: RUF034
"""
Random DAGs over all node types that the installed host offers.

The same seed gives the same DAG, whatever records meanwhile. Each operation stands on
two lines, so that equal expressions come from different places.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import loopy as lp
import numpy as np
import pytato as pt
from pytato.loopy import call_loopy


if TYPE_CHECKING:
    from collections.abc import Callable


Array = Any

LENGTH = 4

_twice_kernel = lp.make_kernel(
    f"{{[i, j]: 0 <= i, j < {LENGTH}}}", "twice[i, j] = 2*ary[i, j] {id=twice}",
    [lp.GlobalArg("ary", np.float64, (LENGTH, LENGTH)),
     lp.GlobalArg("twice", np.float64, (LENGTH, LENGTH))],
    name="twice_kernel", lang_version=lp.MOST_RECENT_LANGUAGE_VERSION)


class _Builder:
    """All arrays are square matrices or vectors of one length, or scalars."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.has_calls = hasattr(pt, "trace_call")
        shape = (LENGTH, LENGTH)
        self.matrices: list[Array] = [
            pt.make_placeholder(name="m0", shape=shape, dtype=np.float64),
            pt.make_data_wrapper(np.arange(16.0).reshape(shape))]
        self.vectors: list[Array] = [
            pt.make_placeholder(name="v0", shape=(LENGTH,), dtype=np.float64)]
        self.scalars: list[Array] = []

    def matrix(self) -> Array:
        return self.rng.choice(self.matrices[-8:])

    def vector(self) -> Array:
        return self.rng.choice(self.vectors[-8:])

    def number(self) -> float:
        return self.rng.choice([0.5, 2, 1.5, 3])

    def which(self) -> bool:
        return self.rng.random() < 0.5

    # {{{ operations: each on two lines

    def add_matrix(self) -> None:
        a, b = self.matrix(), self.matrix()
        self.matrices.append(
            a + b if self.which() else
            a + b)

    def scale_matrix(self) -> None:
        a, factor = self.matrix(), self.number()
        self.matrices.append(
            factor * a if self.which() else
            factor * a)

    def sine(self) -> None:
        a = self.matrix()
        self.matrices.append(
            pt.sin(a) if self.which() else
            pt.sin(a))

    def outer(self) -> None:
        a, b = self.vector(), self.vector()
        self.matrices.append(
            pt.einsum("i,j->ij", a, b) if self.which() else
            pt.einsum("i,j->ij", a, b))

    def product(self) -> None:
        a, b = self.matrix(), self.matrix()
        self.matrices.append(
            0.125 * (a @ b) if self.which() else
            0.125 * (a @ b))

    def matrix_vector(self) -> None:
        a, b = self.matrix(), self.vector()
        self.vectors.append(
            0.125 * pt.einsum("ij,j->i", a, b) if self.which() else
            0.125 * pt.einsum("ij,j->i", a, b))

    def roll(self) -> None:
        a, shift = self.matrix(), self.rng.choice([1, 2])
        self.matrices.append(
            pt.roll(a, shift, 0) if self.which() else
            pt.roll(a, shift, 0))

    def transpose(self) -> None:
        a = self.matrix()
        self.matrices.append(
            a.T if self.which() else
            a.T)

    def row(self) -> None:
        a, index = self.matrix(), self.rng.randrange(LENGTH)
        self.vectors.append(
            a[index] if self.which() else
            a[index])

    def halves(self) -> None:
        a, b = self.matrix(), self.matrix()
        self.matrices.append(
            pt.concatenate([a[0:2], b[2:4]]) if self.which() else
            pt.concatenate([a[0:2], b[2:4]]))

    def stack(self) -> None:
        rows = [self.vector() for _ in range(LENGTH)]
        self.matrices.append(
            pt.stack(rows) if self.which() else
            pt.stack(rows))

    def reshape(self) -> None:
        a = self.matrix()
        self.matrices.append(
            pt.reshape(pt.reshape(a, (2, 8)), (4, 4)) if self.which() else
            pt.reshape(pt.reshape(a, (2, 8)), (4, 4)))

    def choose(self) -> None:
        a, b = self.matrix(), self.matrix()
        self.matrices.append(
            pt.where(pt.greater(a, b), a, b) if self.which() else
            pt.where(pt.greater(a, b), a, b))

    def row_sums(self) -> None:
        a = self.matrix()
        self.vectors.append(
            0.25 * pt.sum(a, axis=1) if self.which() else
            0.25 * pt.sum(a, axis=1))

    def two_reductions(self) -> None:
        a, b = self.matrix(), self.matrix()
        self.vectors.append(
            pt.amax(a, axis=0) - pt.amin(b, axis=0) if self.which() else
            pt.amax(a, axis=0) - pt.amin(b, axis=0))

    def total(self) -> None:
        a = self.vector()
        self.scalars.append(
            pt.sum(a) if self.which() else
            pt.sum(a))

    def kernel(self) -> None:
        a = _without_duplicates(self.matrix())
        self.matrices.append(
            call_loopy(_twice_kernel, {"ary": a})["twice"] if self.which() else
            call_loopy(_twice_kernel, {"ary": a})["twice"])

    def traced(self) -> None:
        a, b = (_without_duplicates(self.matrix()) for _ in range(2))
        self.matrices.append(
            pt.trace_call(_difference, a, b) if self.which() else
            pt.trace_call(_difference, a, b))

    # }}}

    def operations(self) -> list[Callable[[], None]]:
        operations = [
            self.add_matrix, self.scale_matrix, self.sine, self.outer, self.product,
            self.matrix_vector, self.roll, self.transpose, self.row, self.halves,
            self.stack, self.reshape, self.choose, self.row_sums, self.two_reductions,
            self.total, self.kernel]
        if self.has_calls:
            operations.append(self.traced)
        return operations


def _difference(left: Array, right: Array) -> Array:
    half = 0.5 * left
    return half - right


def _without_duplicates(ary: Array) -> Array:
    # The development host asks a question of the operand that equal nodes break.
    from pytato import transform
    deduplicate = getattr(transform, "deduplicate", None)
    return ary if deduplicate is None else deduplicate(ary)


def random_dag(seed: int, size: int = 8) -> Any:
    """
    :returns: a dictionary of named arrays, with *size* operations.
    """
    rng = random.Random(seed)
    builder = _Builder(rng)
    operations = builder.operations()
    for _ in range(size):
        rng.choice(operations)()
    pools = (builder.matrices, builder.vectors, builder.scalars)
    candidates = [ary for pool in pools for ary in pool[1:]]
    outputs = rng.sample(candidates, min(len(candidates), rng.randint(1, 3)))
    named = {f"out{i}": ary for i, ary in enumerate(outputs)}
    if rng.random() < 0.5:
        named["out_last"] = builder.matrices[-1]
    return pt.make_dict_of_named_arrays(named)


def random_inputs(seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """
    :returns: values for the placeholders.
    """
    rng = np.random.default_rng(seed)
    return {"m0": rng.random((LENGTH, LENGTH)), "v0": rng.random(LENGTH)}


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
