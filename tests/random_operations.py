# The two lines of each operation are the point.
# ruff: noqa: RUF034
"""
The operations that random DAGs are made of: each on two lines, so that equal
expressions come from different places.
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

HAS = {name: hasattr(pt, name) for name in (
    "AdvancedIndexInContiguousAxes", "arange", "broadcast_to", "expand_dims",
    "make_csr_matrix", "pad", "squeeze", "trace_call")}
try:
    HAS["strides"] = pt.make_data_wrapper(np.zeros(4))[::2] is not None
except ValueError:
    HAS["strides"] = False

_twice_kernel = lp.make_kernel(
    f"{{[i, j]: 0 <= i, j < {LENGTH}}}", "twice[i, j] = 2*ary[i, j] {id=twice}",
    [lp.GlobalArg("ary", np.float64, (LENGTH, LENGTH)),
     lp.GlobalArg("twice", np.float64, (LENGTH, LENGTH))],
    name="twice_kernel", lang_version=lp.MOST_RECENT_LANGUAGE_VERSION)


_sums_kernel = lp.make_kernel(
    [f"{{[i, j]: 0 <= i, j < {LENGTH}}}", f"{{[k]: 0 <= k < {LENGTH}}}"],
    """
    rows[i] = sum(j, weight*ary[i, j]) {id=rows}
    first[k] = weight*ary[0, k] {id=first}
    """,
    [lp.GlobalArg("ary", np.float64, (LENGTH, LENGTH)),
     lp.ValueArg("weight", np.float64),
     lp.GlobalArg("rows", np.float64, (LENGTH,)),
     lp.GlobalArg("first", np.float64, (LENGTH,))],
    name="sums_kernel", lang_version=lp.MOST_RECENT_LANGUAGE_VERSION)


try:
    HAS["kernels"] = call_loopy(
        _twice_kernel, {"ary": pt.make_data_wrapper(np.zeros((LENGTH, LENGTH)))}
        ) is not None
except AttributeError:
    # The development host under ``python -O``.
    HAS["kernels"] = False


class Builder:
    """All arrays are square matrices or vectors of one length, or scalars, or vectors
    of a length that is an input."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines = random.Random(rng.random())
        shape = (LENGTH, LENGTH)
        self.matrices: list[Array] = [
            pt.make_placeholder(name="m0", shape=shape, dtype=np.float64),
            pt.make_data_wrapper(np.arange(16.0).reshape(shape))]
        self.vectors: list[Array] = [
            pt.make_placeholder(name="v0", shape=(LENGTH,), dtype=np.float64)]
        self.scalars: list[Array] = []
        self.complexes: list[Array] = [
            pt.make_placeholder(name="c0", shape=shape, dtype=np.complex128)]
        self.indices: list[Array] = [
            pt.make_placeholder(name="i0", shape=(LENGTH,), dtype=np.int64),
            pt.make_data_wrapper(np.array([3, 0, 2, 0]))]
        self.any_length: list[Array] = [
            pt.make_placeholder(name="s0", shape=(pt.make_size_param("n"),),
                                dtype=np.float64)]

        self.hidden = dict.fromkeys(map(id, self.pools()), 0)

    def pools(self) -> list[list[Array]]:
        return [self.matrices, self.vectors, self.scalars, self.complexes,
                self.indices, self.any_length]

    def pick(self, pool: list[Array]) -> Array:
        visible = pool[:len(pool) - self.hidden[id(pool)]]
        return self.rng.choice(visible[-8:])

    def matrix(self) -> Array:
        return self.pick(self.matrices)

    def vector(self) -> Array:
        return self.pick(self.vectors)

    def number(self) -> float:
        return self.rng.choice([0.5, 2, 1.5, 3])

    def which(self) -> bool:
        return self.lines.random() < 0.5

    def perform(self) -> None:
        """One operation, or the same one twice, of the same operands."""
        before, sizes = self.rng.getstate(), [len(pool) for pool in self.pools()]
        operation = self.rng.choice(self.operations())
        operation()
        if self.lines.random() < 0.3:
            after = self.rng.getstate()
            for pool, size in zip(self.pools(), sizes, strict=True):
                self.hidden[id(pool)] = len(pool) - size
            self.rng.setstate(before)
            self.rng.choice(self.operations())()
            self.hidden = dict.fromkeys(self.hidden, 0)
            self.rng.setstate(after)

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
        a, = _without_duplicates(self.matrix())
        self.matrices.append(
            call_loopy(_twice_kernel, {"ary": a})["twice"] if self.which() else
            call_loopy(_twice_kernel, {"ary": a})["twice"])

    def traced(self) -> None:
        a, b = _without_duplicates(self.matrix(), self.matrix())
        self.matrices.append(
            pt.trace_call(_difference, a, b) if self.which() else
            pt.trace_call(_difference, a, b))

    def single(self) -> None:
        a = self.matrix()
        self.matrices.append(
            a.astype(np.float32) if self.which() else
            a.astype(np.float32))

    def both_true(self) -> None:
        a, b = self.matrix(), self.matrix()
        self.matrices.append(
            pt.where(pt.logical_and(pt.less(a, b), pt.not_equal(b, 1)), 2, b)
            if self.which() else
            pt.where(pt.logical_and(pt.less(a, b), pt.not_equal(b, 1)), 2, b))

    def constant(self) -> None:
        a, number = self.matrix(), self.number()
        self.matrices.append(
            a * pt.full(a.shape, number, a.dtype) + pt.zeros(a.shape, a.dtype)
            if self.which() else
            a * pt.full(a.shape, number, a.dtype) + pt.zeros(a.shape, a.dtype))

    def complex_from_matrix(self) -> None:
        a, b = self.pick(self.complexes), self.matrix()
        self.complexes.append(
            a * 1j + b if self.which() else
            a * 1j + b)

    def matrix_from_complex(self) -> None:
        a = self.pick(self.complexes)
        self.matrices.append(
            pt.real(a) - pt.imag(pt.conj(a)) if self.which() else
            pt.real(a) - pt.imag(pt.conj(a)))

    def magnitude(self) -> None:
        a = self.pick(self.complexes)
        self.matrices.append(
            pt.abs(a) if self.which() else
            pt.abs(a))

    def of_any_length(self) -> None:
        a, b = self.pick(self.any_length), self.pick(self.any_length)
        self.any_length.append(
            a + 2 * b if self.which() else
            a + 2 * b)

    def sine_of_any_length(self) -> None:
        a = self.pick(self.any_length)
        self.any_length.append(
            pt.sin(a) if self.which() else
            pt.sin(a))

    def scale_by_scalar(self) -> None:
        if len(self.scalars) == self.hidden[id(self.scalars)]:
            return self.total()
        a, b = self.pick(self.scalars), self.vector()
        self.vectors.append(
            0.125 * a * b if self.which() else
            0.125 * a * b)
        return None

    def strided(self) -> None:
        a, b = self.matrix(), self.matrix()
        self.matrices.append(
            pt.stack([a[0, ::-1], b[::1, 1], a[2], b[1]]) if self.which() else
            pt.stack([a[0, ::-1], b[::1, 1], a[2], b[1]]))

    # Where the host has it:

    def pad(self) -> None:
        a = self.matrix()
        self.matrices.append(
            pt.pad(a, 1)[0:4, 1:5] if self.which() else
            pt.pad(a, 1)[0:4, 1:5])

    def expand(self) -> None:
        a, b = self.vector(), self.vector()
        self.matrices.append(
            pt.expand_dims(a, (1,)) + b if self.which() else
            pt.expand_dims(a, (1,)) + b)

    def squeeze(self) -> None:
        a = self.matrix()
        self.vectors.append(
            pt.squeeze(pt.reshape(a, (1, 16)))[4:8] if self.which() else
            pt.squeeze(pt.reshape(a, (1, 16)))[4:8])

    def broadcast(self) -> None:
        a = self.vector()
        self.matrices.append(
            pt.broadcast_to(a, (LENGTH, LENGTH)) if self.which() else
            pt.broadcast_to(a, (LENGTH, LENGTH)))

    def arange(self) -> None:
        a = self.vector()
        self.vectors.append(
            a * pt.arange(LENGTH, dtype=np.int64) if self.which() else
            a * pt.arange(LENGTH, dtype=np.int64))

    def gather(self) -> None:
        a, rows = self.matrix(), self.pick(self.indices)
        self.matrices.append(
            a[rows] if self.which() else
            a[rows])

    def gather_elements(self) -> None:
        a, rows = self.matrix(), self.pick(self.indices)
        columns = self.pick(self.indices)
        self.vectors.append(
            a[rows, columns] if self.which() else
            a[rows, columns])

    def gather_apart(self) -> None:
        a, rows = self.matrix(), self.pick(self.indices)
        columns = self.pick(self.indices)
        self.vectors.append(
            pt.reshape(a, (4, 1, 4))[rows, :, columns][:, 0] if self.which() else
            pt.reshape(a, (4, 1, 4))[rows, :, columns][:, 0])

    def permute_indices(self) -> None:
        a, by = self.pick(self.indices), self.pick(self.indices)
        self.indices.append(
            a[by] if self.which() else
            a[by])

    def sparse(self) -> None:
        values, a = self.vector(), self.vector()
        columns, starts = _sparse_structure()
        self.vectors.append(
            pt.make_csr_matrix((LENGTH, LENGTH), values, columns, starts) @ a
            if self.which() else
            pt.make_csr_matrix((LENGTH, LENGTH), values, columns, starts) @ a)

    def broadcasting_einsum(self) -> None:
        a, b = self.vector(), self.matrix()
        self.matrices.append(
            pt.einsum("ij,ij->ij", pt.reshape(a, (LENGTH, 1)), b) if self.which() else
            pt.einsum("ij,ij->ij", pt.reshape(a, (LENGTH, 1)), b))

    def kernel_with_two_results(self) -> None:
        a, = _without_duplicates(self.matrix())
        weight = float(self.number())
        results = (
            call_loopy(_sums_kernel, {"ary": a, "weight": weight}, "sums_kernel")
            if self.which() else
            call_loopy(_sums_kernel, {"ary": a, "weight": weight}, "sums_kernel"))
        self.vectors.append(results["rows"])
        if self.which():
            self.vectors.append(results["first"])

    def traced_nested(self) -> None:
        a, b = _without_duplicates(self.matrix(), self.matrix())
        results = (
            pt.trace_call(_sum_and_difference, a, b) if self.which() else
            pt.trace_call(_sum_and_difference, a, b))
        self.matrices.append(results["sum"])
        if self.which():
            self.matrices.append(results["difference"])

    # }}}

    def operations(self) -> list[Callable[[], None]]:
        operations = [
            self.add_matrix, self.scale_matrix, self.sine, self.outer, self.product,
            self.matrix_vector, self.roll, self.transpose, self.row, self.halves,
            self.stack, self.reshape, self.choose, self.row_sums, self.two_reductions,
            self.total, self.both_true, self.constant,
            self.complex_from_matrix, self.matrix_from_complex, self.magnitude,
            self.of_any_length, self.sine_of_any_length, self.scale_by_scalar]
        if HAS["kernels"]:
            operations += [self.kernel, self.kernel_with_two_results]
        if hasattr(pt.Array, "astype"):
            operations.append(self.single)
        for name, those in {
                "AdvancedIndexInContiguousAxes": [
                    self.gather, self.gather_elements, self.gather_apart,
                    self.permute_indices],
                "arange": [self.arange], "broadcast_to": [self.broadcast],
                "expand_dims": [self.expand], "make_csr_matrix": [self.sparse],
                "pad": [self.pad, self.broadcasting_einsum],
                "squeeze": [self.squeeze], "strides": [self.strided],
                "trace_call": [self.traced, self.traced_nested]}.items():
            if HAS[name]:
                operations.extend(those)
        return operations


def _difference(left: Array, right: Array) -> Array:
    half = 0.5 * left
    return half - right


def _sum_and_difference(left: Array, right: Array) -> dict[str, Array]:
    total = left + right
    return {"sum": total + pt.trace_call(_difference, left, right),
            "difference": pt.trace_call(_difference, right, total)}


def _sparse_structure() -> tuple[Array, Array]:
    return (pt.make_data_wrapper(np.array([2, 0, 3, 1])),
            pt.make_data_wrapper(np.array([0, 1, 1, 3, 4])))


def _without_duplicates(*arys: Array) -> list[Array]:
    # The development host asks a question of the operands that equal nodes break.
    from pytato import transform
    deduplicate = getattr(transform, "deduplicate", None)
    if deduplicate is None:
        return list(arys)
    named = {f"_{i}": ary for i, ary in enumerate(arys)}
    named = deduplicate(pt.make_dict_of_named_arrays(named))
    return [named[name].expr for name in sorted(named)]
