"""Stage sense: velocities and forces at t_n, from a kick and solve that are not kept.

Velocities live at half steps; at t_n they are the weighted mean of the ones before and after the kick. The kick
at t_n belongs to the next substep, so it is tried here with the commands as they stand.
"""

from __future__ import annotations

import numpy as np

from gpusim.geometry import rotations
from gpusim.reference.drift import momentum_change
from gpusim.reference.work import Work


def _shares(w: Work) -> None:
    """Force of every actuator group on its axes over the tried kick, N or N m."""
    law, kick = w.law, np.where(w.kick_time > 0.0, w.kick_time, 1.0)
    w.shares = {}
    for name, (group, impulse, slope) in law.shares.items():
        w.shares[name] = (impulse - slope * w.axis_velocity_next[:, group.axis]) / kick
    for name, (group, _, (impulse, slope, most)) in law.clamped.items():
        effort = impulse - slope * w.axis_velocity_next[:, group.axis]
        w.shares[name] = w.shares.get(name, 0.0) + np.clip(effort, -most, most) / kick


def sense(w: Work) -> None:
    """Fill ``twist_now`` (num_worlds, bodies, 6) and ``momentum_now`` after a tried solve."""
    state = w.state.arrays
    _shares(w)
    if w.scheme == "papers":
        w.twist_now, w.momentum_now = w.twist_before, state["angular_momentum"].copy()
        return
    total = w.h_prev + w.real.type(w.h)
    after = (w.h_prev / total)[:, :, None]
    momentum = w.momentum_kicked + momentum_change(w)
    w.momentum_now = state["angular_momentum"] + after * (momentum - state["angular_momentum"])
    linear = state["linear_velocity"] + after * (w.twist[..., :3] - state["linear_velocity"])
    w.twist_now = np.concatenate([linear, rotations.matvec(w.inertia_inverse, w.momentum_now)], axis=-1)
