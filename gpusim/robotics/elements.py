"""Scalar functions of the poses of two bodies in a tree. Each function has a value, a Jacobian row and a drift.

The functions describe constraint rows of joints (description/joint_kinds.py), and coordinates with a reflected inertia.
A function f with the Jacobian row J(q) has the time derivatives f' = J v and f'' = J a + drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial

from gpusim.robotics.kinematics import Kinematics, Motion, cross
from gpusim.rotations import dot, matvec
from gpusim.typing import Array


@dataclass(frozen=True)
class Ends:
    """Two nodes a and b of a tree, and one point on each node, in its body frame (m). Node -1 is the world."""

    node_a: int
    point_a: Array
    node_b: int
    point_b: Array


class Pair:
    """Points and axes of two nodes in given postures.

    With a ``motion``, the pair also contains the rates of the points and axes.
    """

    def __init__(self, k: Kinematics, ends: Ends, motion: Motion | None) -> None:
        self.k, self.ends, self.motion = k, ends, motion
        self.position_a, self.position_b = (
            k.position_of(ends.node_a, ends.point_a),
            k.position_of(ends.node_b, ends.point_b),
        )
        self.rows_a, self.rows_b = k.jacobian(ends.node_a, self.position_a), k.jacobian(ends.node_b, self.position_b)
        self.difference = self.position_b - self.position_a

    def to_world(self, node: int, vector: Array) -> Array:
        """Rotate a vector (worlds, 3) from a body frame to the world."""
        worlds = self.k.posture.shape[0]
        return np.asarray(self.k.rotation[:, node] @ vector) if node >= 0 else np.broadcast_to(vector, (worlds, 3))

    def point_motion(self, node: int, point: Array) -> tuple[Array, Array, Array, Array]:
        """Return the velocity, angular velocity, acceleration and angular acceleration of a point on a node.

        The accelerations are for zero generalized acceleration.
        """
        if node < 0 or self.motion is None:
            none = np.zeros((self.k.posture.shape[0], 3))
            return none, none, none, none
        arm = point - self.k.reference
        twist, bias = self.motion.twist[:, node], self.motion.bias[:, node]
        w, angular = twist[:, 3:], bias[:, 3:]
        v = twist[:, :3] + cross(w, arm)
        return v, w, bias[:, :3] + cross(angular, arm) + cross(w, v), angular


def fixed_rates(w: Array, angular: Array, u: Array) -> tuple[Array, Array]:
    """Return the first and second time derivatives of a vector u that is fixed in a body."""
    first = cross(w, u)
    return first, cross(angular, u) + cross(w, first)


@dataclass(frozen=True)
class Gap:
    """Distance from point a to point b along a vector u, minus an offset (m). u is fixed in body a or the world."""

    ends: Ends
    u: Array
    offset: float = 0.0
    on_world: bool = False

    def evaluate(self, k: Kinematics, motion: Motion | None) -> tuple[Array, Array, Array]:
        """Return values (worlds,) (m), Jacobian rows (worlds, freedoms) and drifts (worlds,)."""
        p = Pair(k, self.ends, motion)
        u = p.to_world(-1 if self.on_world else self.ends.node_a, self.u)
        row = matvec((p.rows_b - p.rows_a)[:, :3].swapaxes(1, 2), u)
        va, wa, aa, alpha = p.point_motion(self.ends.node_a, p.position_a)
        vb, _, ab, _ = p.point_motion(self.ends.node_b, p.position_b)
        drift = dot(u, ab - aa)
        if not self.on_world:
            row = row + matvec(p.rows_a[:, 3:].swapaxes(1, 2), cross(u, p.difference))
            first, second = fixed_rates(wa, alpha, u)
            drift = drift + 2.0 * dot(first, vb - va) + dot(second, p.difference)
        return dot(u, p.difference) - self.offset, row, drift


@dataclass(frozen=True)
class Angle:
    """Dot product of the vectors u and w, minus an offset. u is fixed in body a, and w is fixed in body b."""

    ends: Ends
    u: Array
    w: Array
    offset: float = 0.0

    def evaluate(self, k: Kinematics, motion: Motion | None) -> tuple[Array, Array, Array]:
        """Return values (worlds,), Jacobian rows (worlds, freedoms) and drifts (worlds,)."""
        p = Pair(k, self.ends, motion)
        u, w = p.to_world(self.ends.node_a, self.u), p.to_world(self.ends.node_b, self.w)
        row = matvec((p.rows_b - p.rows_a)[:, 3:].swapaxes(1, 2), cross(w, u))
        _, wa, _, alpha = p.point_motion(self.ends.node_a, p.position_a)
        _, wb, _, beta = p.point_motion(self.ends.node_b, p.position_b)
        (u1, u2), (w1, w2) = fixed_rates(wa, alpha, u), fixed_rates(wb, beta, w)
        return dot(u, w) - self.offset, row, dot(u2, w) + 2.0 * dot(u1, w1) + dot(u, w2)


@dataclass(frozen=True)
class Line:
    """Distance between the two points minus a length (m)."""

    ends: Ends
    length: float = 0.0

    def evaluate(self, k: Kinematics, motion: Motion | None) -> tuple[Array, Array, Array]:
        """Return values (worlds,), Jacobian rows (worlds, freedoms) and drifts (worlds,)."""
        p = Pair(k, self.ends, motion)
        length = np.sqrt(dot(p.difference, p.difference))
        divisor = np.where(length > 0.0, length, 1.0)
        along = p.difference / divisor[:, None]
        row = matvec((p.rows_b - p.rows_a)[:, :3].swapaxes(1, 2), along)
        va, _, aa, _ = p.point_motion(self.ends.node_a, p.position_a)
        vb, _, ab, _ = p.point_motion(self.ends.node_b, p.position_b)
        relative_velocity = vb - va
        centripetal = (dot(relative_velocity, relative_velocity) - dot(along, relative_velocity) ** 2) / divisor
        return length - self.length, row, dot(along, ab - aa) + centripetal


@dataclass(frozen=True)
class RotationRate:
    """Rotation rate of body b relative to body a, about an axis that is fixed in body a or b.

    The value is always zero, because a rotation rate has no position.
    """

    ends: Ends
    axis: Array
    on_b: bool = False

    def evaluate(self, k: Kinematics, motion: Motion | None) -> tuple[Array, Array, Array]:
        """Return zeros, Jacobian rows (worlds, freedoms) and drifts (worlds,)."""
        p = Pair(k, self.ends, motion)
        owner = self.ends.node_b if self.on_b else self.ends.node_a
        axis = p.to_world(owner, self.axis)
        row = matvec((p.rows_b - p.rows_a)[:, 3:].swapaxes(1, 2), axis)
        _, wa, _, alpha = p.point_motion(self.ends.node_a, p.position_a)
        _, wb, _, beta = p.point_motion(self.ends.node_b, p.position_b)
        first, _ = fixed_rates(wb if self.on_b else wa, alpha, axis)
        return np.zeros(row.shape[0]), row, dot(axis, beta - alpha) + dot(first, wb - wa)


@dataclass(frozen=True)
class Sum:
    """Weighted sum of scalar coordinates of the tree, minus an offset.

    ``at`` contains the indices of the coordinates in the posture. ``rate`` contains the indices of the coordinates in
    the velocities. With ``curve`` (c2, c3, c4), the sum includes ``c2 q^2 + c3 q^3 + c4 q^4``. q is the first
    coordinate.
    """

    at: Array
    rate: Array
    factor: Array
    offset: float = 0.0
    curve: tuple[float, ...] = ()

    def evaluate(self, k: Kinematics, motion: Motion | None) -> tuple[Array, Array, Array]:
        """Return values (worlds,), Jacobian rows (worlds, freedoms) and drifts (worlds,)."""
        row = np.zeros((k.posture.shape[0], k.forest.freedoms))
        row[:, self.rate] = self.factor  # each coordinate occurs once
        value, drift = k.posture[:, self.at] @ self.factor - self.offset, np.zeros(row.shape[0])
        if any(self.curve):
            curve, q, rate = Polynomial([0.0, 0.0, *self.curve]), k.posture[:, self.at[0]], int(self.rate[0])
            value, row[:, rate] = value + curve(q), row[:, rate] + curve.deriv()(q)
            if motion is not None:
                drift = curve.deriv(2)(q) * motion.velocity[:, rate] ** 2
        return value, row, drift


@dataclass(frozen=True)
class ElementSum:
    """Weighted sum of other elements, such as the segments of a tendon."""

    parts: tuple[Line | Sum, ...]
    factor: Array

    def evaluate(self, k: Kinematics, motion: Motion | None) -> tuple[Array, Array, Array]:
        """Return values (worlds,), Jacobian rows (worlds, freedoms) and drifts (worlds,)."""
        values, rows, drifts = evaluate(list(self.parts), k, motion)
        return values @ self.factor, np.einsum("wnv,n->wv", rows, self.factor), drifts @ self.factor


Element = Gap | Angle | Line | RotationRate | Sum


def evaluate(
    elements: Sequence[Element | ElementSum], k: Kinematics, motion: Motion | None = None
) -> tuple[Array, Array, Array]:
    """Return values (worlds, n), Jacobian rows (worlds, n, freedoms) and drifts (worlds, n) of n elements."""
    worlds, freedoms = k.posture.shape[0], k.forest.freedoms
    if not elements:
        return np.zeros((worlds, 0)), np.zeros((worlds, 0, freedoms)), np.zeros((worlds, 0))
    values, rows, drifts = zip(*(e.evaluate(k, motion) for e in elements), strict=True)
    return np.stack(values, axis=1), np.stack(rows, axis=1), np.stack(drifts, axis=1)
