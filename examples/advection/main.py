"""A wave carried around a ring by a discontinuous Galerkin method.

The example is laid out as an application would be, so that the lines of a kernel come
from several files: ``discretization.py`` has the matrices (numpy), ``operators.py`` the
operators of the method, ``physics.py`` the equation and its numerical flux,
``time_stepping.py`` the Runge-Kutta step, and this file drives them.  It solves on a
sequence of meshes and checks the order of convergence against the exact solution.

Run it with its OpenCL shown on standard output::

    python -m pytato_provenance run --kernels stdout examples/advection/main.py
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytato as pt
from discretization import Discretization
from operators import Operators
from physics import Advection
from time_stepping import rk4_step


VELOCITY = -1.25
END_TIME = 0.4


def initial_condition(x: np.ndarray) -> np.ndarray:
    """Return a smooth bump that is periodic on the unit interval."""
    return np.exp(np.sin(2 * np.pi * x))


def solve(queue: cl.CommandQueue, order: int, num_elements: int) -> float:
    """Advance the bump to :data:`END_TIME` and return the L2 error."""
    discretization = Discretization(order, num_elements)
    num_steps = int(np.ceil(END_TIME / discretization.stable_time_step(VELOCITY)))

    advection = Advection(Operators(discretization), VELOCITY)
    state = pt.make_placeholder(
        name="state", shape=(discretization.num_dofs,), dtype=np.float64
    )
    step = rk4_step(advection.rate, state, END_TIME / num_steps)

    # The executor keeps what it compiles; calling *program* itself would not.
    program = pt.generate_loopy(step)
    advance = program.program.executor(queue.context)
    matrices = {
        name: cl_array.to_device(queue, matrix)
        for name, matrix in program.bound_arguments.items()
    }

    current = cl_array.to_device(queue, initial_condition(discretization.x).ravel())
    for _ in range(num_steps):
        _, result = advance(queue, state=current, **matrices)
        current = result["next_state"]

    exact = initial_condition(discretization.x - VELOCITY * END_TIME)
    return discretization.l2_norm(current.get().reshape(exact.shape) - exact)


def main() -> None:
    """Solve on each mesh and check the observed order of convergence."""
    parser = argparse.ArgumentParser(description="Solve the advection equation.")
    parser.add_argument("--order", type=int, default=3, help="polynomial order")
    parser.add_argument(
        "--elements", type=int, nargs="+", default=[8, 16, 32], help="the meshes"
    )
    arguments = parser.parse_args()

    queue = cl.CommandQueue(cl.create_some_context(interactive=False))

    errors = []
    print("elements  L2 error")
    for num_elements in arguments.elements:
        errors.append(solve(queue, arguments.order, num_elements))
        print(f"{num_elements:8d}  {errors[-1]:.3e}")

    orders = [
        np.log(coarse / fine) / np.log(num_fine / num_coarse)
        for (coarse, fine), (num_coarse, num_fine) in zip(
            pairwise(errors), pairwise(arguments.elements), strict=True
        )
    ]
    if not orders:
        return

    print(f"observed order of convergence: {orders[-1]:.2f}")
    if orders[-1] < arguments.order + 0.75:
        raise SystemExit(f"expected an order of {arguments.order + 1}")


if __name__ == "__main__":
    main()
