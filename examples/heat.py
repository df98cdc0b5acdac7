"""Heat in a thin plate, by a five-point stencil: rolls, slices and a stack.

The plate is a ring in x (:func:`pytato.roll`) and held at zero temperature along two
walls in y (:func:`pytato.concatenate` and slices).  One pytato program takes a few
explicit Euler steps and records the temperature along the middle row after each of
them; a plain Python loop calls the program.  A Fourier mode decays at a known rate,
which is what the result is checked against.

Run it with its OpenCL shown on standard output::

    python -m pytato_provenance run --kernels stdout examples/heat.py
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytato as pt


if TYPE_CHECKING:
    from pytato.target import BoundProgram


NX = 48  # points around the ring
NY = 31  # points between the walls
DX = 1 / NX
DY = 1 / (NY + 1)
DIFFUSIVITY = 1.0
DT = 0.4 / (DIFFUSIVITY * (1 / DX**2 + 1 / DY**2))
STEPS_PER_PROGRAM = 4


def laplacian(temperature: pt.Array, wall: pt.Array) -> pt.Array:
    """Return the five-point Laplacian of *temperature*, shape ``(NY, NX)``.

    :arg wall: one row of wall temperatures, shape ``(1, NX)``
    """
    west = pt.roll(temperature, 1, axis=1)
    east = pt.roll(temperature, -1, axis=1)

    walled = pt.concatenate([wall, temperature, wall], axis=0)
    south = walled[0:NY, :]
    north = walled[2 : NY + 2, :]

    return (
        (west + east) / DX**2
        + (south + north) / DY**2
        - (2 / DX**2 + 2 / DY**2) * temperature
    )


def build_program() -> BoundProgram:
    """Return a program that takes ``u0`` through :data:`STEPS_PER_PROGRAM` steps."""
    temperature = pt.make_placeholder(name="u0", shape=(NY, NX), dtype=np.float64)
    wall = pt.zeros((1, NX), dtype=np.float64)

    outputs = {}
    middle_rows = []
    for step in range(1, STEPS_PER_PROGRAM + 1):
        heating = DIFFUSIVITY * laplacian(temperature, wall)
        temperature = temperature + DT * heating
        # An output is stored, so the next step reads it; anything else would be
        # inlined into every use, five times a step.
        outputs[f"u{step}"] = temperature
        middle_rows.append(temperature[NY // 2, :])

    outputs["probe"] = pt.stack(middle_rows, axis=0)
    return pt.generate_loopy(outputs)


def mode(time: float) -> np.ndarray:
    """Return the slowest mode that varies in both directions, at *time*."""
    x = DX * np.arange(NX)
    y = DY * np.arange(1, NY + 1)
    rate = DIFFUSIVITY * ((2 * np.pi) ** 2 + np.pi**2)
    return np.exp(-rate * time) * np.outer(np.sin(np.pi * y), np.cos(2 * np.pi * x))


def main() -> None:
    """Integrate, and compare with the decay of the mode."""
    parser = argparse.ArgumentParser(description="Solve the heat equation.")
    parser.add_argument(
        "--calls", type=int, default=25, help="how often the program is called"
    )
    arguments = parser.parse_args()

    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)

    program = build_program()
    # The executor keeps what it compiles; calling *program* itself would not.
    advance = program.program.executor(context)

    temperature = cl_array.to_device(queue, mode(time=0))
    history = [mode(time=0)[NY // 2]]
    for _ in range(arguments.calls):
        _, result = advance(queue, u0=temperature)
        temperature = result[f"u{STEPS_PER_PROGRAM}"]
        history.extend(result["probe"].get())

    end = DT * STEPS_PER_PROGRAM * arguments.calls
    error = np.max(np.abs(temperature.get() - mode(end))) / np.max(mode(end))
    times = DT * np.arange(len(history))
    probe_error = max(
        np.max(np.abs(row - mode(time)[NY // 2])) / np.max(mode(time))
        for row, time in zip(history, times, strict=True)
    )

    print(f"{len(history) - 1} steps to t = {end:.4f}")
    print(f"amplitude       {np.max(temperature.get()):.6f}")
    print(f"analytic        {np.max(mode(end)):.6f}")
    print(f"relative error  {error:.1e} (along the probe at most {probe_error:.1e})")
    if max(error, probe_error) > 5e-3:
        raise SystemExit("the mode does not decay as it should")


if __name__ == "__main__":
    main()
