"""Stage drift: positions by the solved velocities, orientations by the midpoint rule; momenta from the impulses."""

from __future__ import annotations

import numpy as np

from gpusim.geometry import rotations
from gpusim.reference.curvature import midpoint_rate
from gpusim.reference.work import Work
from gpusim.typing import Array


def drift(w: Work) -> None:
    """x += h v, R = exp(h omega_mid) R; store what the next substep needs."""
    state = w.state.arrays
    _keep_velocities(w)
    store_velocities(w)
    rate = w.twist[..., 3:] if w.scheme == "papers" else _turning_rate(w)
    move(w, w.twist[..., :3].astype(np.float64) * w.h, rate.astype(np.float64) * w.h)
    state["step_before"][:] = w.h
    state["time"] += w.h


def _keep_velocities(w: Work) -> None:
    """Velocities of the half steps before, from which signals find those at t (now.py)."""
    state = w.state.arrays
    state["velocity_before_last"][:] = state["velocity_before"]
    state["velocity_before"][..., :3], state["velocity_before"][..., 3:] = (
        state["linear_velocity"],
        state["angular_momentum"],
    )
    state["kick_before_last"][:] = np.where(w.h_prev[:, 0] > 0.0, state["kick_before"], 0.0)


def _turning_rate(w: Work) -> Array:
    """Midpoint rates of the solved velocities; bodies at rest need no passes."""
    return midpoint_rate(w) if w.twist[..., 3:].any() else w.twist[..., 3:]


def store_velocities(w: Work) -> None:
    """Velocities at the half step: momentum changes by I d(omega) of the impulses."""
    state = w.state.arrays
    state["linear_velocity"][:] = w.twist[..., :3]
    state["angular_momentum"][:] = w.momentum_kicked + momentum_change(w)
    state["impulse"][:] = w.impulse
    state["kick_before"][:] = w.kick_time[:, 0]
    state["axis_mode"][:] = w.mode
    state["axis_velocity"][:] = w.axis_velocity_next
    state["axis_velocity_before"][:] = w.axis_velocity
    state["residual"][:] = w.residual
    state["not_converged"] += w.unconverged


def momentum_change(w: Work) -> Array:
    """I (omega - omega_kicked) of the impulses, world frame, kg m2/s."""
    change = w.twist[..., 3:] - w.twist_kicked[..., 3:]
    body = rotations.matvec(w.rotation_real.swapaxes(-1, -2), change)
    return rotations.matvec(w.rotation_real, rotations.matvec(w.inertia, body))


def move(w: Work, shift: Array, turn: Array) -> None:
    """Add a displacement (m) and a rotation vector (rad, world frame) to every body."""
    state = w.state.arrays
    state["position"] += shift
    spin = rotations.quaternion_from_rotation_vector(turn)
    state["orientation"][:] = rotations.normalized(rotations.quaternion_product(spin, state["orientation"]))
