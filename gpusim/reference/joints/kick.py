"""Stage kick: change the velocities by gravity and applied forces, over the kick time H."""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.step_buffers import StepBuffers


def kick(w: StepBuffers) -> None:
    """Change the velocities and angular momenta by gravity and applied forces, and update the twists."""
    state, time = w.state.arrays, w.kick_time[:, :, None]
    velocity = state["linear_velocity"] + time * (w.gravity + w.inverse_mass[..., None] * w.force)
    momentum = state["angular_momentum"] + time * np.where(w.topology.dynamic[:, None], w.torque, 0.0)
    w.momentum_kicked = momentum
    w.twist[..., :3] = velocity
    w.twist[..., 3:] = rotations.matvec(w.inertia_inverse, momentum)
    w.twist_kicked = w.twist_predicted = w.twist.copy()
