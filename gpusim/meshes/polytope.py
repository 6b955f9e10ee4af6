"""Convex polytopes from points: hull, flat faces as polygons, vertex reduction, mass properties."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from gpusim.description.shape_kinds import Faces
from gpusim.typing import Array

# Maximum distance of the triangles of a face from a plane, as a fraction of the extent. Round-off of float32 files must
# not split a face, because contacts on split faces are unstable.
FLAT = 1e-6
# Minimum thickness of a hull, as a fraction of the extent.
THIN = 1e-7
_BATCH = 16


class FlatPointsError(ValueError):
    """Error for points whose convex hull has no volume."""


def convex_hull(points: Array) -> tuple[Array, Faces]:
    """Return the vertices (n, 3) and the faces of the convex hull of ``points``. Coplanar triangles form one face.

    Raises:
        FlatPointsError: fewer than four points, or all points in one plane.
    """
    scaled, _ = _scaled(points)
    hull = _qhull(scaled)
    groups = _flat_groups(scaled, _outward(scaled, hull), hull.neighbors)
    loops = _without_edge_points([loop for group in groups for loop in _outlines(group)])
    used = np.unique(np.concatenate(loops))
    vertices: Array = points[used]
    number = {int(old): new for new, old in enumerate(used)}
    polygons = [[number[v] for v in loop] for loop in loops]
    first = np.cumsum([0, *(len(p) for p in polygons)])
    return vertices, Faces(
        first=first.astype(np.int32),
        vertex=np.array([v for p in polygons for v in p], dtype=np.int32),
        normal=np.stack([_normal(vertices[p]) for p in polygons]),
    )


def _scaled(points: Array) -> tuple[Array, float]:
    """Return the points, centered and scaled to extent 1, and the original extent (m)."""
    extent = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    if len(points) < 4 or not extent > 0.0:
        raise FlatPointsError
    return (points - 0.5 * (points.max(axis=0) + points.min(axis=0))) / extent, extent


def _qhull(scaled: Array) -> Any:
    from scipy.spatial import ConvexHull, QhullError

    spread = np.linalg.svd(scaled - scaled.mean(axis=0), compute_uv=False)
    if spread[-1] < THIN * np.sqrt(len(scaled)):
        raise FlatPointsError
    try:
        return ConvexHull(scaled)
    except QhullError as error:
        raise FlatPointsError from error


def _outward(points: Array, hull: Any) -> Array:
    """Return the hull's triangles, counterclockwise seen from outside."""
    triangles: Array = hull.simplices.copy()
    a, b, c = (points[triangles[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward][:, [0, 2, 1]]
    return triangles


def _flat_groups(points: Array, triangles: Array, neighbors: Array) -> list[Array]:
    """Return groups of coplanar, connected triangles."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    cross = np.cross(b - a, c - a)
    area = np.linalg.norm(cross, axis=1)
    group = np.full(len(triangles), -1)
    groups: list[Array] = []
    # Orders equal areas by index, so that the result is reproducible.
    for seed in np.argsort(-area, kind="stable"):
        if group[seed] >= 0:
            continue
        normal = cross[seed] / max(area[seed], 1e-300)
        members, waiting = [int(seed)], deque([int(seed)])
        group[seed] = len(groups)
        while waiting:
            for other in neighbors[waiting.popleft()]:
                if group[other] >= 0 or not _in_plane(points[triangles[other]], a[seed], normal, cross[other]):
                    continue
                group[other] = len(groups)
                members.append(int(other))
                waiting.append(int(other))
        groups.append(triangles[np.sort(members)])
    return groups


def _in_plane(corners: Array, origin: Array, normal: Array, cross: Array) -> bool:
    # The second condition separates the front and the back of a thin body.
    return bool(np.abs((corners - origin) @ normal).max() < FLAT) and float(cross @ normal) >= 0.0


def _outlines(triangles: Array) -> list[list[int]]:
    """Return the outline of coplanar triangles as one polygon. If the outline is not one loop, return the triangles."""
    edges = {(int(t[k]), int(t[(k + 1) % 3])) for t in triangles for k in range(3)}
    border = {a: b for a, b in edges if (b, a) not in edges}
    start = min(border, default=-1)
    loop = [start]
    while border and len(loop) <= len(border) and border.get(loop[-1], start) != start:
        loop.append(border[loop[-1]])
    simple = len(loop) == len(border) == sum((b, a) not in edges for a, b in edges)
    return [loop] if simple else [[int(v) for v in t] for t in triangles]


def _without_edge_points(loops: list[list[int]]) -> list[list[int]]:
    """Remove vertices that belong to only two faces. Such vertices are in the interior of a straight edge."""
    count: dict[int, int] = {}
    for loop in loops:
        for v in loop:
            count[v] = count.get(v, 0) + 1
    return [[v for v in loop if count[v] > 2] for loop in loops]


def _normal(polygon: Array) -> Array:
    """Return the unit normal of a polygon by Newell's method."""
    edges = polygon - polygon[0]
    total = np.cross(edges[1:-1], edges[2:]).sum(axis=0)
    unit: Array = total / np.linalg.norm(total)
    return unit


def hull_points(points: Array) -> Array:
    """Return the points that are corners of the convex hull.

    Raises:
        FlatPointsError: fewer than four points, or all points in one plane.
    """
    scaled, _ = _scaled(points)
    corners: Array = points[np.sort(_qhull(scaled).vertices)]
    return corners


def fewer_points(points: Array, count: int) -> tuple[Array, float]:
    """Return at most ``count`` points whose hull approximates the original hull, and the maximum deviation (m)."""
    from scipy.spatial import ConvexHull

    scaled, extent = _scaled(points)
    chosen = _simplex(scaled)
    while True:
        equations = ConvexHull(scaled[chosen]).equations
        outside = scaled @ equations[:, :3].T + equations[:, 3]
        worst = outside.max(axis=1)
        # One candidate per face: the farthest corner, without duplicates.
        candidates = np.unique(outside.argmax(axis=0))
        candidates = candidates[worst[candidates] > FLAT]
        order = candidates[np.argsort(-worst[candidates], kind="stable")]
        new = [int(c) for c in order if c not in chosen][: min(_BATCH, count - len(chosen))]
        if not new:
            gap = float(worst.max()) * extent if worst.max() > FLAT else 0.0
            return points[np.sort(chosen)], gap
        chosen += new


def _simplex(points: Array) -> list[int]:
    """Return the indices of four points that span a large tetrahedron."""
    first = int(np.argmin(points[:, 0]))
    edges = points - points[first]
    second = int(np.argmax(np.linalg.norm(edges, axis=1)))
    cross = np.cross(edges, edges[second])
    third = int(np.argmax(np.linalg.norm(cross, axis=1)))
    fourth = int(np.argmax(np.abs(edges @ cross[third])))
    return [first, second, third, fourth]


def solid(vertices: Array, triangles: Array) -> tuple[float, Array, Array]:
    """Return volume (m3), center of mass (3,) in m, and inertia about the center (3, 3) in m5, for density 1.

    The solid is a sum of tetrahedra. Each tetrahedron connects a surface triangle to a common inner point. Tonon (2004)
    gives an equivalent formula.
    """
    origin = vertices.mean(axis=0)
    a, b, c = (vertices[triangles[:, k]] - origin for k in range(3))
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    total = a + b + c
    center = (volumes[:, None] * total).sum(axis=0) / (4.0 * volume)
    # Integral of x x^T over a tetrahedron with one corner at the origin: V/20 (sum of corners + outer squares).
    second = np.einsum("i,ij,ik->jk", volumes, total, total)
    for corner in (a, b, c):
        second += np.einsum("i,ij,ik->jk", volumes, corner, corner)
    second = second / 20.0 - volume * np.outer(center, center)
    inertia: Array = np.trace(second) * np.eye(3) - second
    return volume, origin + center, 0.5 * (inertia + inertia.T)
