"""Three turns about perpendicular axes that carry each other: a gimbal without its rings.

The child's frame in the parent's is R = R1(q1) R2(q2) R3(q3) about x, y, z, right-handed. With x fixed in the
parent, z in the child and s = x . z = sin q2, the relative rate w is q1' x + q2' y + q3' z, y along z x x, so the rates
are

    q1' = (x - s z)/(1 - s^2) . w,   q2' = (z x x)/|z x x| . w,   q3' = (z - s x)/(1 - s^2) . w

(the axes' dual basis; Euler's and Cardan's angles are such). First and last are *outer*: u is their own axis and
``other`` that of the other one; for the *middle* one u is z and ``other`` is x, and q2 = atan2(x . z, |x x z|), within
a quarter turn. Where it reaches that, x and z are one line: the first and the last turn are one motion, and what their
rates are taken along is bounded.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.model.topology import MIDDLE, OUTER, AngleTable
from gpusim.typing import Array

cross, dot, norm = rotations.cross, rotations.dot, rotations.norm
LOCKED = 1e-6
"""Of 1 - s^2: nearer to it (0.06 degrees), directions of outer turns grow no more."""


def direction(u: Array, other: Array, component: Array) -> Array:
    """What rates are taken along, (..., n, 3): u itself for plain turns; ``component`` (n,) as in SpinTable."""
    sine = dot(u, other)[..., None]
    square = 1.0 - sine * sine
    outer = (u - sine * other) / np.where(square > LOCKED, square, LOCKED)
    across = cross(u, other)
    length = norm(across)[..., None]
    middle = across / np.where(length > 1e-12, length, 1.0)
    which = np.asarray(component)[..., None]
    return np.where(which == OUTER, outer, np.where(which == MIDDLE, middle, u))


def wrapped(table: AngleTable, axis: Array, ref_a: Array, ref_b: Array, k: Array | slice = slice(None)) -> Array:
    """Angles k within half a turn, rad, (..., n), from vectors in the world frame."""
    side, along = cross(ref_a, ref_b), dot(ref_a, ref_b)
    sine, cosine = dot(axis, side), along
    middle = table.middle[k] == 1
    if middle.any():
        sine, cosine = np.where(middle, along, sine), np.where(middle, norm(side), cosine)
    return np.asarray(np.arctan2(sine, cosine))
