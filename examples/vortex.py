"""A vortex in a gas, carried across a periodic square.

The solver is the package ``euler`` beside this file, an application of array contexts:
it runs on the development arraycontext's ``PytatoPyOpenCLArrayContext`` and, where only
the released one is installed, on ``lazy_array_context.py``.  The vortex of constant
entropy keeps its shape, which is what the result is checked against; mass, momentum and
energy are conserved to rounding.

Run it with its OpenCL written to files::

    python -m pytato_provenance run --kernels kernels examples/vortex.py
"""

from __future__ import annotations

import argparse

import numpy as np
import pyopencl as cl
from euler.array_context import SimulationArrayContext
from euler.discretization import Discretization
from euler.operators import Operators
from euler.physics import GAMMA, Euler
from euler.state import ConservedVars
from euler.time_stepping import TimeStepper
from pytools import obj_array


LENGTH = 10.0
VELOCITY = (1.0, 0.5)
STRENGTH = 5.0
END_TIME = 0.5


def vortex(x: np.ndarray, y: np.ndarray, time: float) -> ConservedVars:
    """Return the exact solution, in numpy arrays."""
    x = (x - VELOCITY[0] * time) % LENGTH - LENGTH / 2
    y = (y - VELOCITY[1] * time) % LENGTH - LENGTH / 2

    bump = STRENGTH / (2 * np.pi) * np.exp((1 - x**2 - y**2) / 2)
    temperature = 1 - (GAMMA - 1) / (2 * GAMMA) * bump**2
    mass = temperature ** (1 / (GAMMA - 1))
    velocity = (VELOCITY[0] - y * bump, VELOCITY[1] + x * bump)

    kinetic = 0.5 * mass * (velocity[0] ** 2 + velocity[1] ** 2)
    return ConservedVars(
        mass=mass,
        energy=mass * temperature / (GAMMA - 1) + kinetic,
        momentum=obj_array.new_1d([mass * velocity[0], mass * velocity[1]]),
    )


def solve(actx: SimulationArrayContext, order: int, num_elements: int) -> float:
    """Carry the vortex along, check what is conserved, and return the L2 error."""
    discretization = Discretization(order, num_elements, LENGTH)
    x, y = discretization.coordinates

    euler = Euler(Operators(actx, discretization))
    stepper = TimeStepper(actx, euler.rate)

    fastest = 3.0  # the flow and the sound on top of it
    dt = 0.5 * discretization.element_size / (fastest * (2 * order + 1))
    num_steps = int(np.ceil(END_TIME / dt))

    initial = vortex(x, y, time=0)
    state = actx.from_numpy(initial)
    for _ in range(num_steps):
        state = stepper.step(state, END_TIME / num_steps)
    final = actx.to_numpy(state)

    for name in ("mass", "energy"):
        before = discretization.integral(getattr(initial, name))
        after = discretization.integral(getattr(final, name))
        if abs(after - before) > 1e-12 * before:
            raise SystemExit(f"{name} changes from {before} to {after}")

    difference = final.mass - vortex(x, y, END_TIME).mass
    return np.sqrt(discretization.integral(difference**2))


def main() -> None:
    """Solve on each mesh and check how fast the error falls."""
    parser = argparse.ArgumentParser(description="Carry a vortex along.")
    parser.add_argument("--order", type=int, default=3, help="polynomial order")
    parser.add_argument(
        "--elements",
        type=int,
        nargs="+",
        default=[8, 16],
        help="along a side, one number a mesh",
    )
    arguments = parser.parse_args()

    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    actx = SimulationArrayContext(queue)

    errors = []
    print("elements  L2 error of the density")
    for num_elements in arguments.elements:
        errors.append(solve(actx, arguments.order, num_elements))
        print(f"{num_elements:8d}  {errors[-1]:.3e}")

    if len(errors) > 1:
        num_coarse, num_fine = arguments.elements[-2:]
        order = np.log(errors[-2] / errors[-1]) / np.log(num_fine / num_coarse)
        print(f"observed order of convergence: {order:.2f}")
        # With as many points of quadrature as nodes it is between p and p + 1.
        if order < arguments.order - 0.25:
            raise SystemExit(f"expected an order of at least {arguments.order}")


if __name__ == "__main__":
    main()
