"""
Where the time to the first result goes: regions and the log of what is compiled.

Run it with ``python examples/regions.py``. It integrates a decaying wave, checks the
result, and prints what was compiled for which part of it, and at which line's cost.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyopencl as cl

import pytato_provenance as pp


pp.mend_released_pytato()

import pytato as pt  # noqa: E402


POINTS = 64
SPEED, DECAY = 1.0, 0.5


@pp.region("flux")
def derivative(u: Any, dx: float) -> Any:
    return (pt.roll(u, -1) - pt.roll(u, 1)) / (2 * dx)


def right_hand_side(u: Any, dx: float) -> Any:
    with pp.region("rhs"):
        return -SPEED * derivative(u, dx) - DECAY * u


def energy(u: Any, dx: float) -> Any:
    with pp.region("diagnostics"):
        return pt.sum(u * u) * dx


class Solver:
    """Set-up, and the programs; nothing is compiled yet."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.queue = queue
        self.dx = 2 * np.pi / POINTS
        u = pt.make_placeholder(name="u", shape=(POINTS,), dtype=np.float64)
        self.rhs = self._executor(right_hand_side(u, self.dx))
        self.energy = self._executor(energy(u, self.dx))

    def _executor(self, expression: Any) -> Any:
        # An executor keeps what it has built; a bound program builds at each call.
        return pt.generate_loopy(expression).program.executor(self.queue.context)

    def run(self, u: Any, dt: float, steps: int) -> tuple[Any, float]:
        """Heun's method."""
        for _ in range(steps):
            _, (first,) = self.rhs(self.queue, u=u)
            _, (second,) = self.rhs(self.queue, u=u + dt * first)
            u = u + dt / 2 * (first + second)
        _, (total,) = self.energy(self.queue, u=u)
        return u, float(total)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)
    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    pp.enable()
    x = np.linspace(0, 2 * np.pi, POINTS, endpoint=False)
    solver = Solver(queue)
    with pp.compile_log() as log:
        # What the first step would find out.
        pp.precompile(solver.rhs, queue, u=np.sin(x))
        compiled = len(log)
        u, total = solver.run(np.sin(x), 0.01, 100)

    expected = np.exp(-DECAY) * np.sin(x - SPEED)
    assert abs(u - expected).max() < 5e-3, abs(u - expected).max()
    assert abs(total - np.pi * np.exp(-2 * DECAY)) < 5e-3
    # The steps compiled nothing: all that came after is the diagnostics.
    after = [event for event in log[compiled:] if event.origin != "reused"]
    assert after and all("diagnostics" in event.regions for event in after)
    assert not log.select(region="rhs/flux", stage="build")[1:]

    print(log)
    print()
    print(log.select(region="rhs/flux").by_line())
    pp.disable()


if __name__ == "__main__":
    main()
