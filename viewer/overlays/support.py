"""Geometry of support polygons: convex hull of points in a plane, and distance between a point and the hull's edge."""

from __future__ import annotations

import numpy as np

from gpusim.description.joint_kinds import triad
from gpusim.typing import Array


def convex_hull(points: Array) -> Array:
    """Return the corners (m, 2) of the convex hull of points (n, 2), counterclockwise.

    If all points are on a line, the hull has fewer than three corners.
    """
    unique = np.unique(np.asarray(points, dtype=float).reshape(-1, 2), axis=0)
    if len(unique) < 3:
        return unique
    lower, upper = _chain(unique), _chain(unique[::-1])
    hull = np.array(lower[:-1] + upper[:-1])
    return hull if len(hull) > 2 else unique[[0, -1]]


def _chain(points: Array) -> list[Array]:
    """Return one half (lower or upper) of the hull of sorted points (monotone chain, Andrew 1979)."""
    size = float(np.ptp(points, axis=0).max())
    chain: list[Array] = []
    for point in points:
        while len(chain) > 1 and _cross(chain[-2], chain[-1], point) <= 1e-9 * size * size:
            chain.pop()
        chain.append(point)
    return chain


def _cross(a: Array, b: Array, c: Array) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def margin(hull: Array, point: Array) -> float:
    """Return the distance (m) of a point (2,) from the edge of a hull (n, 2) of :func:`convex_hull`.

    The distance is positive inside and negative outside.
    """
    hull, point = np.asarray(hull, dtype=float).reshape(-1, 2), np.asarray(point, dtype=float)
    if not len(hull):
        return -np.inf
    a, b = hull, np.roll(hull, -1, axis=0)
    edge, to_point = b - a, point - a
    square = np.maximum((edge**2).sum(axis=1), 1e-300)
    fraction = np.clip((to_point * edge).sum(axis=1) / square, 0.0, 1.0)
    distance = float(np.linalg.norm(to_point - fraction[:, None] * edge, axis=1).min())
    inside = len(hull) > 2 and bool(np.all(edge[:, 0] * to_point[:, 1] - edge[:, 1] * to_point[:, 0] >= 0.0))
    return distance if inside else -distance


class Level:
    """Conversion between 3D points and 2D coordinates in planes perpendicular to the unit vector ``up``."""

    def __init__(self, up: Array) -> None:
        self.up = np.asarray(up, dtype=float)
        self._axes = triad(self.up)[:, :2]

    def down(self, points: Array) -> Array:
        """Project points (n, 3) along gravity and return their plane coordinates (n, 2) in m."""
        return np.asarray(np.asarray(points, dtype=float).reshape(-1, 3) @ self._axes)

    def lift(self, flat: Array, height: float) -> Array:
        """Convert plane coordinates (n, 2) to points (n, 3) in space at a height along ``up`` (m)."""
        return np.asarray(np.asarray(flat, dtype=float).reshape(-1, 2) @ self._axes.T + height * self.up)
