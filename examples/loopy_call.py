"""A hand-written loopy kernel in the middle of a pytato graph.

The product of a sparse matrix and a vector reads where other data says, which pytato's
own operations do not express.  So a loopy kernel does it, called by
:func:`pytato.loopy.call_loopy`, and pytato does the rest: one sweep of a damped Jacobi
iteration and the norm of the residual.  The result is checked against numpy's solver.

Run it with its OpenCL shown on standard output::

    python -m pytato_provenance run --kernels stdout examples/loopy_call.py
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import loopy as lp
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytato as pt
from pytato.loopy import call_loopy


if TYPE_CHECKING:
    from pytato.target import BoundProgram

NUM_ROWS = 60
ENTRIES_PER_ROW = 5  # beside the diagonal
DAMPING = 0.9


def make_matrix() -> np.ndarray:
    """Return a sparse, diagonally dominant matrix (in dense form)."""
    rng = np.random.default_rng(seed=17)
    matrix = np.zeros((NUM_ROWS, NUM_ROWS))
    for row in range(NUM_ROWS):
        columns = rng.choice(NUM_ROWS, size=ENTRIES_PER_ROW, replace=False)
        matrix[row, columns] = rng.uniform(-1, 1, size=ENTRIES_PER_ROW)
    np.fill_diagonal(matrix, 2 + np.sum(np.abs(matrix), axis=1))
    return matrix


def compressed_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries of *matrix*, their columns, and where each row starts."""
    rows, columns = np.nonzero(matrix)
    starts = np.searchsorted(rows, np.arange(NUM_ROWS + 1))
    return matrix[rows, columns], columns.astype(np.int32), starts.astype(np.int32)


def make_product_kernel(num_entries: int) -> lp.TranslationUnit:
    """Return a kernel that multiplies a matrix in compressed rows by a vector."""
    return lp.make_kernel(
        ["{ [row]: 0 <= row < num_rows }", "{ [k]: 0 <= k < length }"],
        """
        for row
            <> start = row_starts[row]
            <> length = row_starts[row + 1] - start
            product[row] = sum(k, entries[start + k] * vector[columns[start + k]])
        end
        """,
        [
            lp.GlobalArg("entries, columns", shape=(num_entries,)),
            lp.GlobalArg("row_starts", shape=(NUM_ROWS + 1,)),
            lp.GlobalArg("vector, product", shape=(NUM_ROWS,)),
        ],
        fixed_parameters={"num_rows": NUM_ROWS},
        name="sparse_product",
        lang_version=(2018, 2),
    )


def build_program(matrix: np.ndarray) -> BoundProgram:
    """Return a program that improves ``guess`` by one sweep."""
    entries, columns, row_starts = compressed_rows(matrix)

    guess = pt.make_placeholder(name="guess", shape=(NUM_ROWS,), dtype=np.float64)
    load = pt.make_placeholder(name="load", shape=(NUM_ROWS,), dtype=np.float64)
    diagonal = pt.make_data_wrapper(np.diag(matrix).copy())

    product = call_loopy(
        make_product_kernel(len(entries)),
        {
            "entries": pt.make_data_wrapper(entries),
            "columns": pt.make_data_wrapper(columns),
            "row_starts": pt.make_data_wrapper(row_starts),
            "vector": guess,
        },
    )["product"]

    residual = load - product
    improved = guess + DAMPING * residual / diagonal
    squared_norm = pt.sum(residual * residual)

    return pt.generate_loopy({"improved": improved, "squared_norm": squared_norm})


def main() -> None:
    """Iterate until the residual is small, and compare with numpy."""
    parser = argparse.ArgumentParser(description="Solve a sparse system.")
    parser.add_argument(
        "--tolerance", type=float, default=1e-10, help="for the residual's norm"
    )
    arguments = parser.parse_args()

    queue = cl.CommandQueue(cl.create_some_context(interactive=False))

    matrix = make_matrix()
    load = np.sin(np.arange(NUM_ROWS))

    program = build_program(matrix)
    # The executor keeps what it compiles; calling *program* itself would not.
    sweep = program.program.executor(queue.context)
    inputs = {
        name: cl_array.to_device(queue, data)
        for name, data in program.bound_arguments.items()
    }
    inputs["load"] = cl_array.to_device(queue, load)

    guess = cl_array.zeros(queue, NUM_ROWS, np.float64)
    for num_sweeps in range(1, 200):
        _, result = sweep(queue, guess=guess, **inputs)
        guess = result["improved"]
        norm = np.sqrt(result["squared_norm"].get())
        if norm < arguments.tolerance:
            print(f"residual {norm:.1e} after {num_sweeps} sweeps")
            break
    else:
        raise SystemExit("the iteration does not converge")

    error = np.max(np.abs(guess.get() - np.linalg.solve(matrix, load)))
    print(f"largest difference from numpy's solution {error:.1e}")
    if error > 10 * arguments.tolerance:
        raise SystemExit("the solution is wrong")


if __name__ == "__main__":
    main()
