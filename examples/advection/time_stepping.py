"""The classical Runge-Kutta method of fourth order."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Callable

    import pytato as pt


def rk4_step(
    rate: Callable[[pt.Array], pt.Array], state: pt.Array, dt: float
) -> dict[str, pt.Array]:
    """Return one step from *state*, as the outputs of a single program.

    The rates are outputs as well, because an output is stored: each stage reads the
    rate before it.  Otherwise pytato would inline one stage into the next, and the
    expressions would grow with the power of the stages.

    :arg rate: maps a state to its time derivative
    """
    rate1 = rate(state)
    rate2 = rate(state + (dt / 2) * rate1)
    rate3 = rate(state + (dt / 2) * rate2)
    rate4 = rate(state + dt * rate3)

    slope = (rate1 + 2 * (rate2 + rate3) + rate4) / 6
    next_state = state + dt * slope

    return {
        "rate1": rate1,
        "rate2": rate2,
        "rate3": rate3,
        "rate4": rate4,
        "next_state": next_state,
    }
