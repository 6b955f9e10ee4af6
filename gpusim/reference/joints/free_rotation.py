"""Drift of free bodies that rotate by a large angle in a step.

No rigid constraint row restricts the rotation of a free body (``Topology.free``). Its angular momentum L is constant
during the drift, and its orientation R follows R' = [I(R)^-1 L]x R. The midpoint rule conserves the energy, but it only
converges if the body rotates by less than half a radian. The solver therefore divides the step into parts in which the
body rotates by at most FREE_ROTATION.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.joints.curvature import is_round, midpoint_passes
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

MIN_FREE_ROTATION, FREE_ROTATION, MAX_FREE_ROTATIONS = 0.5, 0.1, 8192
"""The solver divides a step if the rotation exceeds MIN_FREE_ROTATION (rad). In each part of the step, the body rotates
by at most FREE_ROTATION (rad). A step has at most MAX_FREE_ROTATIONS parts."""


def free_rates(w: StepBuffers, rate: Array) -> Array:
    """Replace the rates of fast free bodies by the mean rates over the step. ``rate`` is (num_worlds, bodies, 3)."""
    free = w.topology.free
    if not free.any():
        return rate
    omega = w.twist[..., 3:]
    angle = w.h * rotations.norm(omega.astype(np.float64))
    min_angle = 0.0 if w.scheme == "semi_implicit" else MIN_FREE_ROTATION
    spun = free & ~is_round(w) & (angle > min_angle) & (angle < MAX_FREE_ROTATIONS * FREE_ROTATION)
    w.spun[:] = spun
    for world, body in np.argwhere(spun):
        parts = int(angle[world, body] / FREE_ROTATION) + 1
        w.midpoint[world, body] = _free_rotation_vector(w, world, body, parts) / w.h
    return np.where(spun[..., None], w.midpoint, rate)


def _free_rotation_vector(w: StepBuffers, world: int, body: int, parts: int) -> Array:
    """Return the rotation vector of a torque-free body over the step, computed in ``parts`` substeps."""
    matvec, real = rotations.matvec, w.real.type
    inertia, rotation = w.inertia[min(world, len(w.inertia) - 1), body], w.rotation[world, body]
    start = w.state.arrays["orientation"][world, body]
    q, step = start.copy(), w.h / parts
    momentum = matvec(rotation, matvec(inertia, matvec(rotation.T, w.twist[world, body, 3:]))).astype(w.real)
    for _ in range(parts):
        rate = midpoint_passes(inertia, matvec(rotation.T, momentum).astype(w.real), real(0.5 * step))
        rotation_vector = matvec(rotation, rate) * step
        q = rotations.normalized(
            rotations.quaternion_product(rotations.quaternion_from_rotation_vector(rotation_vector), q)
        )
        rotation = rotations.matrix_from_quaternion(q)
    total = rotations.quaternion_product(q, rotations.quaternion_conjugate(start))
    return rotations.rotation_vector_from_quaternion(total)
