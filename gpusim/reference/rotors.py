"""Rotors: symmetric bodies with only one joint, a hinge about the axis of symmetry. Examples: flywheels and propellers.

Gears and other couplings may drive a rotor.

When the hinge axis turns, the hinge must rotate the angular momentum L of the rotor. The gyroscopic torque depends on
the velocities after the solve, so the solver iterates. Each iteration multiplies the error by n/sqrt(1 + n^2) with n =
h |L| / (2 I). I is the moment of inertia about an axis perpendicular to the spin axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import rotations
from gpusim.description.config import SolverConfig
from gpusim.description.joint_kinds import joint_frames, joint_type
from gpusim.model.model import Model
from gpusim.typing import Array

SYMMETRIC = 1e-3
"""Maximum deviation of a rotor's inertia from symmetry, as a fraction of the rotor's greatest moment of inertia."""
MIN_SPIN = 0.05
"""Minimum rotation of a rotor in a substep (rad) for which the solver predicts the curvature bias."""
MAX_NUTATION = 1.0
"""Maximum of n = h |L| / (2 I). Rotors with a greater n count as too fast for the step."""
MIN_SWING = 1e-3
"""Rotation of a rotor's axis in a substep above which gpusim warns that the rotor is too fast (rad)."""
PASSES = 10
"""Maximum number of passes in worlds with fast rotors."""


def rotors(model: Model, config: SolverConfig) -> Array:
    """Return the axis of each rotor in the body frame, and the ratio I_axis / (2 I), (bodies + 1, 4).

    Bodies that are not rotors have zeros. The inertias in the builder determine the result. Later changes of the
    inertias have no effect.
    """
    t, result = model.topology, np.zeros((model.topology.num_bodies + 1, 4))
    if not config.direct or config.scheme == "semi_implicit":
        return result
    at = np.flatnonzero(t.constraint_joint >= 0)
    on = t.constraint_bodies[at]
    count, constraint = np.bincount(on.ravel(), minlength=t.num_bodies + 1), np.zeros(t.num_bodies + 1, np.int64)
    constraint[on.ravel()] = np.repeat(at, on.shape[1])
    for body in np.flatnonzero(t.dynamic & (count == 1)):
        joint = -1 if t.swept[constraint[body]] else int(t.constraint_joint[constraint[body]])
        if joint >= 0 and joint_type(model.joints[joint].kind).hinge:
            result[body] = _rotor(model, joint, int(body))
    return result


def _rotor(model: Model, joint: int, body: int) -> Array:
    """Return the axis and the ratio (see :func:`rotors`) of a body with one hinge, or zeros if it is not a rotor."""
    spec, frames = model.bodies[body], joint_frames(model.joints[joint])
    child = model.joints[joint].child == body
    axis, point = (frames.axes_b[:, 2], frames.point_b) if child else (frames.axes_a[:, 2], frames.point_a)
    along, max_inertia = float(axis @ spec.inertia @ axis), float(np.linalg.norm(spec.inertia, 2))
    across = 0.5 * (float(np.trace(spec.inertia)) - along)
    round_ = across * np.eye(3) + (along - across) * np.outer(axis, axis)
    offset = np.linalg.norm(np.cross(point - spec.com, axis))
    if (
        np.abs(spec.inertia - round_).max() > SYMMETRIC * max_inertia
        or spec.mass * offset**2 > SYMMETRIC**2 * max_inertia
    ):
        return np.zeros(4)
    return np.append(axis, along / (2.0 * across))


def rotation_angles(w: Any) -> Array:
    """Return the rotation angle of each body in the substep (rad), (worlds, bodies).

    The angle of a rotor includes its spin only if the rotor is too fast for the time step and its axis rotates.
    """
    h, omega = w.real.type(w.h), w.twist[..., 3:]
    angle = h * rotations.norm(omega)
    if not w.rotors.any():
        return np.asarray(angle)
    axis, spin = _spins(w)
    swing = h * rotations.norm(omega - spin[..., None] * axis)
    slow = (w.rotors[:, 3] > 0.0) & ((_nutation(w, spin) <= MAX_NUTATION) | (swing <= w.real.type(MIN_SWING)))
    return np.where(slow, swing, angle)


def find_spinning(w: Any, touching: Array) -> tuple[Array, Array]:
    """Return a mask of worlds with fast rotors (worlds,), and the spins of rotors that are too fast (worlds, bodies).

    The mask excludes worlds with contacts and worlds with rotors that are too fast for the time step. The spins are the
    angles per substep (rad), and 0 for all other bodies.
    """
    if not w.rotors.any():
        return np.zeros(w.num_worlds, bool), np.zeros((w.num_worlds, 1))
    h = w.real.type(w.h)
    axis, spin = _spins(w)
    fast, too_fast = np.abs(spin) * h > MIN_SPIN, _nutation(w, spin) > MAX_NUTATION
    swings = h * rotations.norm(w.twist[..., 3:] - spin[..., None] * axis) > MIN_SWING
    return fast.any(axis=1) & ~touching & ~too_fast.any(axis=1), np.where(too_fast & swings, np.abs(spin) * h, 0.0)


def _spins(w: Any) -> tuple[Array, Array]:
    """Return the rotor axes in the world frame (worlds, bodies, 3), and the spin rates (worlds, bodies), rad/s."""
    axis = rotations.matvec(w.rotation_real, w.rotors[:, :3].astype(w.real))
    return axis, rotations.dot(w.twist[..., 3:], axis)


def _nutation(w: Any, spin: Array) -> Array:
    return np.asarray(np.abs(spin) * w.real.type(w.h) * w.rotors[:, 3].astype(w.real))
