"""Curvature bias at predicted velocities, for the first pass of a solve."""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.joints.curvature import curvature
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

# The velocity of a body is extrapolated if the velocity changed by less than SMALL_CHANGE of its magnitude in the last
# step, and if this change differs from the change before by less than SMOOTH of its magnitude.
SMOOTH, SMALL_CHANGE = 0.5, 0.25


def predict_bias(w: StepBuffers) -> None:
    """Compute the curvature bias at the velocities that the solve probably gives.

    If the acceleration of a body changes slowly, the velocity is extrapolated from the last three velocities.
    Otherwise, it is the velocity after stage kick, without impulses of joints and contacts.
    """
    if w.scheme == "semi_implicit":
        return
    kicked, w.twist = w.twist, _predicted_twist(w)
    curvature(w)
    w.midpoint = w.midpoint + (kicked - w.twist)[..., 3:]
    w.twist_predicted, w.twist = w.twist, kicked


def _predicted_twist(w: StepBuffers) -> Array:
    state = w.state.arrays
    v2, v3 = (np.asarray(state[name], np.float64) for name in ("velocity_before", "velocity_before_last"))
    v1 = np.concatenate([state["linear_velocity"], state["angular_momentum"]], axis=-1).astype(np.float64)
    shape = (*v1.shape[:2], 2, 3)
    before, last = (state[name][:, None, None, None] for name in ("kick_before", "kick_before_last"))
    known = (before > 0.0) & (last > 0.0)
    if w.config.direct and w.topology.loops.any():
        known &= w.spinning[:, None, None, None]  # near singular poses of loops, the prediction would open joints
    time = np.where(known, w.kick_time.astype(np.float64)[:, :, None, None], 0.0)
    v1 = v1.reshape(shape)
    newer = (v1 - v2.reshape(shape)) * (time / np.where(before > 0.0, before, 1.0))
    change = newer - (v2 - v3).reshape(shape) * (time / np.where(last > 0.0, last, 1.0))
    square = rotations.dot(newer, newer)
    smooth = rotations.dot(change, change) < SMOOTH * SMOOTH * square
    smooth &= square < SMALL_CHANGE * SMALL_CHANGE * rotations.dot(v1, v1)
    smooth &= w.topology.dynamic[:, None]
    predicted = (v1 + (newer + change)).astype(w.real)
    predicted[..., 1, :] = rotations.matvec(w.inertia_inverse, predicted[..., 1, :])
    return np.where(smooth[..., None], predicted, w.twist.reshape(shape)).reshape(w.twist.shape)
