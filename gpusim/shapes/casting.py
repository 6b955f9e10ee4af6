"""Ray casting against shapes, for the shapes' ``cast`` methods. The CUDA code is in cuda_kernels/rays/ray.cuh.

Planar faces of convex shapes clip lines exactly. For smooth surfaces without a closed form, Newton's method starts
outside of the shape. For a convex function, Newton's method never overshoots the first root.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gpusim import rotations
from gpusim.description.shape_kinds import Line
from gpusim.typing import Array

ROUND_SIDE = -1
"""Face number for a hit on a round surface, or for no hit."""
MAX_NEWTON_STEPS = 64


class Span:
    """Segments of n lines inside a convex shape.

    Attributes:
        enter, leave: start and end of the segment along the line (m), (n,). If enter > leave, the line misses the
            shape.
        enter_face, leave_face: face numbers at start and end of the segment, (n,). ROUND_SIDE means a curved surface.
    """

    def __init__(self, lines: int) -> None:
        self.enter, self.leave = np.full(lines, -np.inf), np.full(lines, np.inf)
        self.enter_face, self.leave_face = np.full(lines, ROUND_SIDE), np.full(lines, ROUND_SIDE)

    def clear(self, mask: Array) -> None:
        """Mark the lines in ``mask`` as lines that miss the shape."""
        self.enter, self.leave = np.where(mask, np.inf, self.enter), np.where(mask, -np.inf, self.leave)

    def cut(self, enter: Array, leave: Array, face: int = ROUND_SIDE) -> None:
        """Clip each segment to the range from ``enter`` to ``leave``."""
        enters_later, leaves_earlier = enter > self.enter, leave < self.leave
        self.enter, self.leave = np.where(enters_later, enter, self.enter), np.where(leaves_earlier, leave, self.leave)
        self.enter_face = np.where(enters_later, face, self.enter_face)
        self.leave_face = np.where(leaves_earlier, face, self.leave_face)

    def cut_half(self, value: Array, rate: Array, face: int) -> None:
        """Clip each line to the positions s (m) with ``value + rate * s <= 0``."""
        s = -value / rate
        self.cut(np.where(rate < 0.0, s, -np.inf), np.where(rate > 0.0, s, np.inf), face)
        self.clear((rate == 0.0) & (value > 0.0))

    def cut_slab(self, line: Line, k: int, half: float) -> None:
        """Clip each line to the points p with ``-half <= p[k] <= half``."""
        self.cut_half(line.origin[:, k] - half, line.direction[:, k], 2 * k)
        self.cut_half(-line.origin[:, k] - half, -line.direction[:, k], 2 * k + 1)

    def cut_round(
        self, projection: Array, square: Array, cross_square: Array, radius: float, unclipped: Array | bool = False
    ) -> None:
        """Clip the lines to a circle or sphere. Lines in the mask ``unclipped`` do not change."""
        discriminant = square * (radius * radius) - cross_square
        hit, half = discriminant >= 0.0, np.sqrt(discriminant)
        enter, leave = (-projection - half) / square, (half - projection) / square
        enter, leave = np.where(hit, enter, np.inf), np.where(hit, leave, -np.inf)
        self.cut(np.where(unclipped, -np.inf, enter), np.where(unclipped, np.inf, leave))

    def cut_tube(self, line: Line, radius: float) -> None:
        """Clip each line to the points within ``radius`` of the z axis."""
        (x, y), (dx, dy) = line.origin[:, :2].T, line.direction[:, :2].T
        square, cross = dx * dx + dy * dy, x * dy - y * dx
        is_vertical = square == 0.0
        self.cut_round(x * dx + y * dy, square, cross * cross, radius, is_vertical)
        self.clear(is_vertical & (x * x + y * y > radius * radius))

    def cut_ball(self, line: Line, height: float, radius: float) -> None:
        """Clip each line to the points within ``radius`` of the point (0, 0, height)."""
        p = line.origin - np.array([0.0, 0.0, height])
        cross = rotations.cross(p, line.direction)
        projection, square = rotations.dot(p, line.direction), rotations.dot(line.direction, line.direction)
        self.cut_round(projection, square, rotations.dot(cross, cross), radius)

    @property
    def empty(self) -> Array:
        """Return a mask (n,), True for lines that miss the shape."""
        return np.asarray(~(self.enter <= self.leave))

    def first_end(self, start: Array) -> tuple[Array, Array]:
        """Return ray parameters (m) and faces of the entry points, or of the exit points for rays that start inside."""
        entering = self.enter >= start
        s = np.where(entering, self.enter, np.where(self.leave >= start, self.leave, np.inf))
        return np.where(self.empty, np.inf, s), np.where(entering, self.enter_face, self.leave_face)


class Side(Protocol):
    """Implicit function of a smooth convex surface. Values are <= 0 inside the shape."""

    def value(self, points: Array) -> tuple[Array, Array]:
        """Return values (n,) at points (n, 3), and gradients (n, 3)."""

    def flat(self, points: Array, face: Array) -> Array:
        """Return a mask (n,): True if a point on the planar face ``face`` belongs to the shape."""


def first_root(side: Side, line: Line, sign: float, start: Array, end: Array) -> Array:
    """Find the first root between ``start`` (outside of the shape) and ``end`` on each line.

    ``sign`` is the direction of the search: 1 along the line, -1 against it.

    Returns:
        The roots (m along the line), or ``sign`` times infinity for lines without a root.
    """
    s, roots = sign * start, np.full(start.size, np.inf)
    active = np.isfinite(s)
    for _ in range(MAX_NEWTON_STEPS):
        if not active.any():
            break
        index = np.flatnonzero(active)
        value, gradient = side.value(line.part(index).at(sign * s[index]))
        slope = sign * rotations.dot(gradient, line.direction[index])
        next_s = s[index] - value / slope
        is_root = value <= 0.0
        missed = ~is_root & (~(slope < 0.0) | (next_s > sign * end[index]))
        is_root |= ~missed & ~(next_s > s[index])
        roots[index[is_root]] = s[index[is_root]]
        active[index[is_root | missed]] = False
        s[index] = np.where(is_root | missed, s[index], next_s)
    roots[active] = s[active]
    return np.asarray(sign * roots)


def first_hit(side: Side, line: Line, bounds: Span) -> tuple[Array, Array]:
    """Return the ray parameters (m) of the first hits with a smooth shape, and the faces that the rays hit.

    ``bounds`` are the segments of the rays inside a bounding shape with planar faces.
    """
    hits_bounds = ~bounds.empty & (bounds.leave >= line.start)
    s, face = np.full(hits_bounds.size, np.inf), np.full(hits_bounds.size, ROUND_SIDE)
    enter = np.where(hits_bounds, bounds.enter, np.inf)
    on_flat_face = hits_bounds & side.flat(line.at(enter), bounds.enter_face)
    s = np.where(on_flat_face, enter, first_root(side, line, 1.0, np.where(on_flat_face, np.inf, enter), bounds.leave))
    face = np.where(on_flat_face, bounds.enter_face, ROUND_SIDE)
    starts_inside = s < line.start
    leave = np.where(starts_inside, bounds.leave, np.inf)
    on_flat_face = starts_inside & side.flat(line.at(leave), bounds.leave_face)
    exit_s = np.where(
        on_flat_face, leave, first_root(side, line, -1.0, np.where(on_flat_face, np.inf, leave), bounds.enter)
    )
    exit_s = np.where(exit_s >= line.start, exit_s, np.inf)
    face = np.where(starts_inside, np.where(on_flat_face, bounds.leave_face, ROUND_SIDE), face)
    return np.where(starts_inside, exit_s, s), face


def face_normals(face: Array) -> Array:
    """Return outward normals (n, 3) of box faces. Face 2 k is at +axis k, face 2 k + 1 at -axis k."""
    index = np.maximum(face, 0)
    result = np.zeros((face.size, 3))
    result[np.arange(face.size), index // 2 % 3] = np.where(index % 2 == 1, -1.0, 1.0)
    return result


def normals(face: Array, round_normals: Array) -> Array:
    """Return the normal at each hit: the face normal on a planar face, else ``round_normals``."""
    return np.where((face == ROUND_SIDE)[:, None], round_normals, face_normals(face))


def cylinder_span(line: Line, radius: float, half: float) -> Span:
    """Clip lines to a cylinder about z with heights from -half to half."""
    span = Span(line.start.size)
    span.cut_tube(line, radius)
    span.cut_slab(line, 2, half)
    return span
