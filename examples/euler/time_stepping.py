"""A Runge-Kutta method of third order, of Shu and Osher, with compiled stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arraycontext import rec_multimap_array_container


if TYPE_CHECKING:
    from collections.abc import Callable


def blend(old: Any, stage: Any, rate: Any, weight: float, dt: float) -> Any:
    """Return an Euler step from *stage*, averaged with *old* by *weight*."""

    def blend_arrays(old: Any, stage: Any, rate: Any) -> Any:
        return (1 - weight) * old + weight * (stage + dt * rate)

    return rec_multimap_array_container(blend_arrays, old, stage, rate)


class TimeStepper:
    """Advances a state whose time derivative a compiled function gives.

    :arg actx: an array context that has ``compile``
    :arg rate: maps a state to its time derivative
    """

    def __init__(self, actx: Any, rate: Callable[[Any], Any]) -> None:
        self.rate = actx.compile(rate)
        self.blend = actx.compile(blend)

    def step(self, state: Any, dt: float) -> Any:
        """Return the state after *dt*."""
        stage = state
        for weight in (1.0, 1 / 4, 2 / 3):
            stage = self.blend(state, stage, self.rate(stage), weight, dt)
        return stage
