"""Ray casting against shapes, for the shapes' ``cast`` methods. The CUDA code is in cuda_kernels/rays/ray.cuh.

The functions clip lines exactly at the planar faces of convex shapes. For smooth surfaces without a closed form,
Newton's method starts outside of the shape. Newton's method never overshoots the first root of a convex function.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gpusim import rotations
from gpusim.description.shape_kinds import Line
from gpusim.typing import Array

ROUND_SIDE = -1
"""Face number that represents the round side or no face."""
MAX_WALKS = 64


class Span:
    """Segment of each line inside a convex shape, and the faces at the ends of the segment.

    Attributes:
        enter, leave: start and end of the segment along the line (m), (n,). The segment is empty if enter > leave.
        enter_face, leave_face: face numbers at start and end of the segment, (n,), ROUND_SIDE if not a planar face.
    """

    def __init__(self, lines: int) -> None:
        self.enter, self.leave = np.full(lines, -np.inf), np.full(lines, np.inf)
        self.enter_face, self.leave_face = np.full(lines, ROUND_SIDE), np.full(lines, ROUND_SIDE)

    def clear(self, where: Array) -> None:
        """Make the segments of the lines in the mask ``where`` empty."""
        self.enter, self.leave = np.where(where, np.inf, self.enter), np.where(where, -np.inf, self.leave)

    def cut(self, enter: Array, leave: Array, face: int = ROUND_SIDE) -> None:
        """Intersect the segments with the segments from ``enter`` to ``leave``."""
        later, earlier = enter > self.enter, leave < self.leave
        self.enter, self.leave = np.where(later, enter, self.enter), np.where(earlier, leave, self.leave)
        self.enter_face = np.where(later, face, self.enter_face)
        self.leave_face = np.where(earlier, face, self.leave_face)

    def cut_half(self, value: Array, rate: Array, face: int) -> None:
        """Keep the points of each line where value + rate s <= 0."""
        s = -value / rate
        self.cut(np.where(rate < 0.0, s, -np.inf), np.where(rate > 0.0, s, np.inf), face)
        self.clear((rate == 0.0) & (value > 0.0))

    def cut_slab(self, line: Line, k: int, half: float) -> None:
        """Keep the points of each line whose coordinate k is from -half to half."""
        self.cut_half(line.origin[:, k] - half, line.direction[:, k], 2 * k)
        self.cut_half(-line.origin[:, k] - half, -line.direction[:, k], 2 * k + 1)

    def cut_round(self, along: Array, square: Array, aside: Array, radius: float, whole: Array | bool = False) -> None:
        """Clip the lines to a circle or sphere with this radius, except for lines in the mask ``whole``."""
        within = square * (radius * radius) - aside
        hit, half = within >= 0.0, np.sqrt(within)
        enter, leave = (-along - half) / square, (half - along) / square
        enter, leave = np.where(hit, enter, np.inf), np.where(hit, leave, -np.inf)
        self.cut(np.where(whole, -np.inf, enter), np.where(whole, np.inf, leave))

    def cut_tube(self, line: Line, radius: float) -> None:
        """Keep the points of each line within a radius of the z axis."""
        (x, y), (dx, dy) = line.origin[:, :2].T, line.direction[:, :2].T
        square, turn = dx * dx + dy * dy, x * dy - y * dx
        upright = square == 0.0
        self.cut_round(x * dx + y * dy, square, turn * turn, radius, upright)
        self.clear(upright & (x * x + y * y > radius * radius))

    def cut_ball(self, line: Line, height: float, radius: float) -> None:
        """Keep the points of each line within a radius of the point (0, 0, height)."""
        p = line.origin - np.array([0.0, 0.0, height])
        side = rotations.cross(p, line.direction)
        along, square = rotations.dot(p, line.direction), rotations.dot(line.direction, line.direction)
        self.cut_round(along, square, rotations.dot(side, side), radius)

    @property
    def empty(self) -> Array:
        """Return a mask (n,), True for lines that miss the shape."""
        return np.asarray(~(self.enter <= self.leave))

    def first_end(self, start: Array) -> tuple[Array, Array]:
        """Return the ray parameter (m) of the first segment end on each ray, and the face at this end."""
        entering = self.enter >= start
        s = np.where(entering, self.enter, np.where(self.leave >= start, self.leave, np.inf))
        return np.where(self.empty, np.inf, s), np.where(entering, self.enter_face, self.leave_face)


class Side(Protocol):
    """A convex function of points in the shape's frame that is <= 0 inside the shape."""

    def value(self, points: Array) -> tuple[Array, Array]:
        """Return values (n,) at points (n, 3), and gradients (n, 3)."""

    def flat(self, points: Array, face: Array) -> Array:
        """Return a mask (n,), True for points on faces of the bounding shape that are also on the shape."""


def walk_to(side: Side, line: Line, sign: float, start: Array, end: Array) -> Array:
    """Find the first root from ``start`` (outside) to ``end``, along the line (sign 1) or against it (sign -1).

    Returns:
        The roots (m along the line), or ``sign`` times infinity for lines without a root.
    """
    s, found = sign * start, np.full(start.size, np.inf)
    going = np.isfinite(s)
    for _ in range(MAX_WALKS):
        if not going.any():
            break
        at = np.flatnonzero(going)
        value, gradient = side.value(line.part(at).at(sign * s[at]))
        slope = sign * rotations.dot(gradient, line.direction[at])
        further = s[at] - value / slope
        there = value <= 0.0
        missed = ~there & (~(slope < 0.0) | (further > sign * end[at]))
        there |= ~missed & ~(further > s[at])
        found[at[there]] = s[at[there]]
        going[at[there | missed]] = False
        s[at] = np.where(there | missed, s[at], further)
    found[going] = s[going]
    return np.asarray(sign * found)


def first_side(side: Side, line: Line, bounds: Span) -> tuple[Array, Array]:
    """Return the first hits of rays on a shape with a smooth side, and the faces at the hits (``Span.first_end``).

    ``bounds`` is the ray's span inside the bounding shape.
    """
    met = ~bounds.empty & (bounds.leave >= line.start)
    s, face = np.full(met.size, np.inf), np.full(met.size, ROUND_SIDE)
    enter = np.where(met, bounds.enter, np.inf)
    flat = met & side.flat(line.at(enter), bounds.enter_face)
    s = np.where(flat, enter, walk_to(side, line, 1.0, np.where(flat, np.inf, enter), bounds.leave))
    face = np.where(flat, bounds.enter_face, ROUND_SIDE)
    within = s < line.start
    leave = np.where(within, bounds.leave, np.inf)
    flat = within & side.flat(line.at(leave), bounds.leave_face)
    out = np.where(flat, leave, walk_to(side, line, -1.0, np.where(flat, np.inf, leave), bounds.enter))
    out = np.where(out >= line.start, out, np.inf)
    face = np.where(within, np.where(flat, bounds.leave_face, ROUND_SIDE), face)
    return np.where(within, out, s), face


def face_normals(face: Array) -> Array:
    """Return outward normals (n, 3) of box faces. Face 2 k is at +axis k, face 2 k + 1 at -axis k."""
    known = np.maximum(face, 0)
    out = np.zeros((face.size, 3))
    out[np.arange(face.size), known // 2 % 3] = np.where(known % 2 == 1, -1.0, 1.0)
    return out


def normals(face: Array, round_normals: Array) -> Array:
    """Return the normals at the hits, on planar faces or on the smooth side."""
    return np.where((face == ROUND_SIDE)[:, None], round_normals, face_normals(face))


def cylinder_span(line: Line, radius: float, half: float) -> Span:
    """Clip lines to a cylinder about z with heights from -half to half."""
    span = Span(line.start.size)
    span.cut_tube(line, radius)
    span.cut_slab(line, 2, half)
    return span
