"""The Euler equations of an ideal gas."""
# The entries of a container are of any type.
# pyright: reportGeneralTypeIssues=none, reportIndexIssue=none

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytools import obj_array

from euler.state import ConservedVars


if TYPE_CHECKING:
    from euler.operators import Operators

GAMMA = 1.4  # ratio of specific heats


class Euler:
    """The equations, discretized with *operators*.

    :arg operators: the operators of the discretization
    """

    def __init__(self, operators: Operators) -> None:
        self.operators = operators
        self.np = operators.actx.np

    def pressure(self, state: ConservedVars) -> Any:
        """Return the pressure."""
        kinetic = 0.5 * np.dot(state.momentum, state.momentum) / state.mass
        return (GAMMA - 1) * (state.energy - kinetic)

    def wave_speed(self, state: ConservedVars, pressure: Any, axis: int) -> Any:
        """Return how fast the fastest wave travels along *axis*."""
        flow = self.np.abs(state.momentum[axis] / state.mass)
        sound = self.np.sqrt(GAMMA * pressure / state.mass)
        return flow + sound

    def faster(self, speed: Any, other: Any) -> Any:
        """Return the larger of two speeds, which are never NaN."""
        return self.np.where(self.np.greater(speed, other), speed, other)

    def fluxes(self, state: ConservedVars, pressure: Any) -> list[ConservedVars]:
        """Return the flux along each axis."""
        velocity = obj_array.new_1d([m / state.mass for m in state.momentum])
        momentum_flux = np.outer(velocity, state.momentum)
        enthalpy = state.energy + pressure

        fluxes = []
        for axis, speed in enumerate(velocity):
            momentum_flux[axis, axis] = momentum_flux[axis, axis] + pressure
            fluxes.append(
                ConservedVars(
                    mass=state.momentum[axis],
                    energy=speed * enthalpy,
                    momentum=momentum_flux[axis],
                )
            )
        return fluxes

    def numerical_flux(
        self,
        below: ConservedVars,
        above: ConservedVars,
        flux_below: ConservedVars,
        flux_above: ConservedVars,
        speed: Any,
    ) -> ConservedVars:
        """Return the flux through faces, by Rusanov's formula."""
        average = 0.5 * (flux_below + flux_above)
        dissipation = self.operators.scaled(0.5 * speed, above - below)
        return average - dissipation

    def rate(self, state: ConservedVars) -> ConservedVars:
        """Return the time derivative of *state*."""
        ops = self.operators
        pressure = ops.stored(self.pressure(state))

        rates = []
        for axis, flux in enumerate(self.fluxes(state, pressure)):
            below, above = ops.sides(state, axis)
            flux_below, flux_above = ops.sides(flux, axis)

            speed = ops.stored(self.wave_speed(state, pressure, axis))
            faster = self.faster(*ops.sides(speed, axis))
            face_flux = ops.stored(
                self.numerical_flux(below, above, flux_below, flux_above, faster)
            )

            volume = ops.weak_derivative(flux, axis)
            rates.append(volume - ops.lift(face_flux, axis))

        return rates[0] + rates[1]
