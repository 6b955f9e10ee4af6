"""Angles of three successive rotations (generalized Euler angles). Each rotation also rotates the following axes.

R = R1(q1) R2(q2) R3(q3) is the rotation from the child frame to the parent frame. The rotations are about the axes x, y
and z, which are right-handed for zero angles. Axis x is fixed in the parent, and axis z is fixed in the child. Axis y
is along the cross product z x x. Let s = x . z = sin q2. The relative angular velocity is w = q1' x + q2' y + q3' z.
The rates are therefore

    q1' = (x - s z)/(1 - s^2) . w,   q2' = (z x x)/|z x x| . w,   q3' = (z - s x)/(1 - s^2) . w

The middle angle is q2 = atan2(x . z, |x x z|), within +-90 degrees. Near gimbal lock, :func:`direction` limits the
rates q1' and q3'.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.compiler.topology import MIDDLE, OUTER, AngleTable
from gpusim.typing import Array

cross, dot, norm = rotations.cross, rotations.dot, rotations.norm
LOCKED = 1e-6
"""Lower bound for 1 - s^2, which limits the rates near gimbal lock."""


def direction(u: Array, other: Array, component: Array) -> Array:
    """Return the vectors d of n angles, (..., n, 3).

    The rate of an angle is d . w with the relative angular velocity w.

    ``component`` (n,) is OUTER for the rates q1' and q3', and MIDDLE for the rate q2'.
    """
    sine = dot(u, other)[..., None]
    square = 1.0 - sine * sine
    outer = (u - sine * other) / np.where(square > LOCKED, square, LOCKED)
    across = cross(u, other)
    length = norm(across)[..., None]
    middle = across / np.where(length > 1e-12, length, 1.0)
    which = np.asarray(component)[..., None]
    return np.where(which == OUTER, outer, np.where(which == MIDDLE, middle, u))


def wrapped(table: AngleTable, axis: Array, ref_a: Array, ref_b: Array, k: Array | slice = slice(None)) -> Array:
    """Compute n angles with the indices ``k`` from world vectors, (..., n), in rad within +-pi."""
    side, along = cross(ref_a, ref_b), dot(ref_a, ref_b)
    sine, cosine = dot(axis, side), along
    middle = table.middle[k] == 1
    if middle.any():
        sine, cosine = np.where(middle, along, sine), np.where(middle, norm(side), cosine)
    return np.asarray(np.arctan2(sine, cosine))
