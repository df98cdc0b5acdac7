"""The advection equation and its upwind flux."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytato as pt


if TYPE_CHECKING:
    from operators import Operators


class Advection:
    """The equation ``du/dt + velocity * du/dx = 0``.

    :arg operators: the operators to discretize it with
    :arg velocity: how fast the wave travels, and which way
    """

    def __init__(self, operators: Operators, velocity: float) -> None:
        self.operators = operators
        self.velocity = velocity

        normal_velocity = velocity * operators.discretization.normals
        self.outflow = pt.make_data_wrapper(np.maximum(normal_velocity, 0))
        self.inflow = pt.make_data_wrapper(np.minimum(normal_velocity, 0))

    def upwind_flux(self, interior: pt.Array, exterior: pt.Array) -> pt.Array:
        """Return the flux out of each element, taken from where the wave comes from."""
        leaving = self.outflow * interior
        entering = self.inflow * exterior
        return leaving + entering

    def rate(self, state: pt.Array) -> pt.Array:
        """Return the time derivative of *state*."""
        ops = self.operators
        u = ops.to_elements(state)

        transport = self.velocity * ops.weak_derivative(u)

        left, right = ops.face_values(u)
        flux = self.upwind_flux(
            interior=ops.interior_trace(left, right),
            exterior=ops.exterior_trace(left, right),
        )

        return ops.to_state(transport - ops.lift(flux))
