"""Length limits of ropes: distance joints and tendons. Users can change these limits during the simulation.

After a change, the limit moves to the new value during the next step. The velocity bound of the rope's constraint row
contains the rate of the limit: ``u <= (limit - q)/h + rate``. If the rate would exceed LENGTH_SPEED, the limit changes
immediately.
"""

from __future__ import annotations

import numpy as np

from gpusim.reference.joints.laws import limit_velocity
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

LENGTH_SPEED = 20.0
"""Greatest rate of a rope's limit, m/s or rad/s."""


def move_limits(w: StepBuffers) -> None:
    """Advance the length limits by one substep, and add their rates to the velocity bounds of the axis rows."""
    axis = w.ropes["rope_axis"]
    if not axis.size:
        return
    state = w.state.arrays
    written = [w.broadcast(w.axis_parameters[name])[:, axis] for name in ("limit_lower", "limit_upper")]
    goal, now, remaining = np.stack(written, axis=-1), state["limit_now"], state["limit_left"]
    remaining = np.where(remaining > 0, remaining, w.config.substeps)
    with np.errstate(invalid="ignore"):
        rate = (goal - now) / (remaining[..., None] * w.h)
        if w.trial:  # without a new value, the limit moves as in the last substep
            rate = np.where(now == goal, state["limit_rate"], rate)
        at_once = ~(np.abs(rate) <= LENGTH_SPEED)
    now, rate = np.where(at_once, goal, now), np.where(at_once, 0.0, rate)
    if rate.any():
        _bound(w, axis, goal, now, rate)
    if not w.trial:
        state["limit_now"][:] = np.where(remaining[..., None] == 1, goal, now + rate * w.h)
        state["limit_rate"][:] = rate
        state["limit_left"][:] = remaining - 1


def _bound(w: StepBuffers, axis: Array, goal: Array, now: Array, rate: Array) -> None:
    law, position = w.law, w.axis_position[:, axis]
    goal, now, drive = goal.astype(w.real), now.astype(w.real), rate.astype(w.real)
    lower = limit_velocity(now[..., 0] - position, w.h) + drive[..., 0]
    upper = -limit_velocity(position - now[..., 1], w.h) + drive[..., 1]
    moves = (rate[..., 0] != 0.0) & ~(law.lower[:, axis] > goal[..., 0])
    law.velocity_lower[:, axis] = np.where(moves, lower, law.velocity_lower[:, axis])
    moves = (rate[..., 1] != 0.0) & ~(law.upper[:, axis] < goal[..., 1])
    law.velocity_upper[:, axis] = np.where(moves, upper, law.velocity_upper[:, axis])


def limit_rates(w: StepBuffers, side: int) -> Array:
    """Return the rates of the lower (``side`` 0) or upper (``side`` 1) position limits, (num_worlds, axes)."""
    rates = np.zeros((w.num_worlds, w.topology.axis_row.size), w.real)
    rates[:, w.ropes["rope_axis"]] = w.state.arrays["limit_rate"][..., side]
    return rates
