"""Contact points of half spaces and height fields with convex shapes.

The narrow phase handles a height field one triangle at a time, in the field's frame. The gap of a point above or below
a triangle is measured along the triangle's normal. This normal prevents ghost collisions at edges inside a slope or
valley. A shape in a valley touches both slopes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpusim.description.shape_kinds import MANIFOLDS, Faces
from gpusim.reference.collide.manifolds import (
    NEAREST,
    SLACK,
    TIE,
    Loop,
    Manifold,
    _heights,
    clip,
    distinct,
    manifold,
    mixed,
    sides,
    spanning,
    unique,
)
from gpusim.reference.collide.separation import Pair, Posed, approach, nearest_on_triangles, plane_axes
from gpusim.reference.collide.shapes import Convex, HeightField, Polytope
from gpusim.typing import Array

CONE = 0.985
"""Cosine of 10 degrees. A point joins the manifold of the deepest point if their normals differ by at most 10
degrees."""
LOWEST = 1e-3
"""Maximum height of the first point of a manifold above the shape's lowest point, relative to the shape's size."""
STEP = 2e-4
"""Rise of the ground above which the ground blocks a sliding shape, relative to the shape's size."""
SAME = 1e-3
"""Distance below which two points are merged, relative to the shape's size."""
LEAN = 1e-3
"""Sine of the angle tolerance in the test whether a vector is a normal of the surface."""
INSIDE = 1e-9
"""Distance tolerance of the test whether a point is inside a triangle, relative to the grid spacing."""
_PRISM = Faces(
    first=np.array([0, 3, 6, 10, 14, 18]),
    vertex=np.array([0, 1, 2, 5, 4, 3, 0, 3, 4, 1, 1, 4, 5, 2, 2, 5, 3, 0]),
    normal=np.zeros((5, 3)),
)


def on_half_space(center: Array, rotation: Array, b: Posed, margin: float) -> Manifold | None:
    """Return the contact manifold of a half space (A) and a convex shape (B), or None if the gap exceeds ``margin``."""
    n, radius = rotation[:, 2], b.shape.radius
    lowest = b.support(-n[None])
    min_gap = (lowest - center) @ n - radius
    if min_gap[0] > margin:
        return None
    corners, ids = b.facing(-n)
    gap = (corners - center) @ n - radius
    near = gap <= margin
    corners, gap, ids = corners[near], gap[near], [i for i, is_near in zip(ids, near, strict=True) if is_near]
    if not len(gap) or gap.min() > min_gap[0] + b.shape.missed * b.shape.extent:
        corners, gap, ids = np.concatenate([corners, lowest]), np.concatenate([gap, min_gap]), [*ids, NEAREST]
    if b.shape.single:
        min_ones = gap <= gap.min() + TIE * b.shape.extent
        corners, gap = corners[min_ones].mean(axis=0)[None], gap.min()[None]
    chosen = spanning((corners - b.center) @ plane_axes(n).T, gap)
    on_b = corners[chosen] - radius * n
    return Manifold(n, on_b - np.outer(gap[chosen], n), on_b, unique([ids[i] for i in chosen]))


def bounds(shape: Convex, center: Array, rotation: Array) -> tuple[Array, Array]:
    """Return the bounding boxes of one shape in n poses: lower and upper corners, (n, 3) each.

    ``center`` (n, 3) and ``rotation`` (n, 3, 3) are the poses of the shape.
    """
    d = np.concatenate([rotation, -rotation], axis=1)
    extents = shape.extents(d.reshape(-1, 3)).reshape(-1, 2, 3)
    return center - extents[:, 1], center + extents[:, 0]


@dataclass
class Triangle:
    """Triangle of a height field: three corners (3, 3), unit normal, and edge indices.

    The corners are counterclockwise when seen from above.
    """

    corner: Array
    normal: Array
    edges: list[int]

    def height(self, x: Array) -> Array:
        """Return the distances of points ``x`` (n, 3) from the triangle's plane, positive along the normal."""
        height: Array = (x - self.corner[0]) @ self.normal
        return height

    @property
    def loop(self) -> Loop:
        """Return the projection of the triangle onto the plane z = 0."""
        return Loop(self.corner[:, :2], self.edges)

    def lateral_distance(self, x: Array) -> float:
        """Return the horizontal distance of point ``x`` (3,) from the triangle's edges, negative inside."""
        return float(max((x[:2] - p) @ outward for p, outward, _ in sides(self.loop)))


class Field:
    """Height field. All points and vectors are in the frame of the height field."""

    def __init__(self, field: HeightField) -> None:
        self._heights = field.heights
        self._spacing = field.size[2:4]
        self._last = np.array(field.heights.shape[::-1]) - 1
        self._made = field.triangles
        self.inside = INSIDE * float(self._spacing.sum())

    def triangles(self, low: Array, high: Array) -> Iterator[Triangle]:
        """Yield the triangles of all grid cells that overlap the horizontal box from ``low`` to ``high``."""
        first, last = (x / self._spacing + 0.5 * self._last for x in (low, high))
        if np.any(last < 0.0) or np.any(first > self._last):
            return
        (column, row), (end, top) = (np.clip(x, 0, self._last - 1).astype(int) for x in (first, last))
        for i in range(row, top + 1):
            for j in range(column, end + 1):
                if (i, j) not in self._made:
                    steps = [(0, 0), (0, 1), (1, 1)], [(0, 0), (1, 1), (1, 0)]
                    self._made[i, j] = [self._triangle(i, j, corners) for corners in steps]
                yield from self._made[i, j]

    def _triangle(self, row: int, column: int, steps: list[tuple[int, int]]) -> Triangle:
        grid = np.array([(column + x, row + y) for y, x in steps])
        heights = self._heights[grid[:, 1], grid[:, 0]]
        corner = np.column_stack([(grid - 0.5 * self._last) * self._spacing, heights])
        normal = np.cross(corner[1] - corner[0], corner[2] - corner[0])
        edges = [mixed(row, column, len(steps) + steps[1][0], k) for k in range(3)]
        return Triangle(corner, normal / np.linalg.norm(normal), edges)

    def around(self, x: Array, space: float) -> Iterator[Triangle]:
        """Yield the triangles that are within the horizontal distance ``space`` of point ``x`` (3,)."""
        yield from (t for t in self.triangles(x[:2] - space, x[:2] + space) if t.lateral_distance(x) <= space)

    def contains(self, x: Array) -> bool:
        """Return whether point ``x`` (3,) is on or below the height field's surface."""
        slack = 1e-6 * float(self._spacing.sum())
        return any(float(t.height(x)) <= slack for t in self.around(x, 0.0))

    def has_normal(self, x: Array, n: Array) -> bool:
        """Return whether the surface near point x is below the plane through x with normal n."""
        space = 1e-6 * float(self._spacing.sum())
        for t in self.around(x, space):
            to = t.corner - x
            if np.any(to @ n > LEAN * np.linalg.norm(to, axis=1) + LEAN * space):
                return False
        return True

    def rises_at(self, q: Array, x: ContactPoint, other: ContactPoint, step: float) -> bool:
        """Return whether the surface at point q is above the contact plane at contact point ``other``.

        Return True if q is outside the field.
        """
        under = next(self.around(q, 0.0), None)
        if under is None:
            return True
        q = q - [0.0, 0.0, float(under.height(q)) / under.normal[2]]
        return bool(other.gap + (q - x.position) @ other.normal >= step)

    def bulges(self, t: Triangle) -> bool:
        """Return True if the surface bends down near triangle ``t``, or if ``t`` is at the border of the field."""
        grid = t.corner[:, :2] / self._spacing + 0.5 * self._last
        if np.any(grid < 0.5) or np.any(grid > self._last - 0.5):
            return True
        low, high = t.corner[:, :2].min(axis=0), t.corner[:, :2].max(axis=0)
        space = 0.5 * self._spacing
        fall = 0.0
        for o in self.triangles(low - space, high + space):
            fall = min(fall, float(t.height(o.corner).min()))
        return fall < -1e-6 * float(self._spacing.sum())


@dataclass
class ContactPoint:
    """Candidate contact point of a shape with the ground: position (3,), ground normal and gap."""

    position: Array
    normal: Array
    gap: float
    feature: int
    of_shape: bool


def on_height_field(
    field: HeightField, center: Array, rotation: Array, b: Posed, margin: float, max_count: int
) -> list[Manifold]:
    """Return at most ``max_count`` contact manifolds of a height field (A) and a convex shape (B), deepest first.

    The gap of each contact point is at most ``margin``.
    """
    ground = Field(field)
    body = Posed(b.shape, rotation.T @ (b.center - center), rotation.T @ b.rotation)
    return manifolds_of(ground, _all_points(ground, body, margin, max_count), center, rotation, body, max_count)


class Surface(Protocol):
    """Interface of ground surfaces (height field or triangle mesh). Vectors are in the frame of the surface."""

    def rises_at(self, q: Array, x: ContactPoint, other: ContactPoint, step: float) -> bool:
        """Return whether the surface at point q stops a shape from sliding along the contact plane at ``other``.

        The shape touches the surface at the contact points ``x`` and ``other``.
        """


def manifolds_of(
    ground: Surface, found: list[ContactPoint], center: Array, rotation: Array, body: Posed, max_count: int
) -> list[Manifold]:
    """Group the contact points ``found`` into at most ``max_count`` manifolds."""
    known: list[tuple[ContactPoint, list[ContactPoint]]] = []
    remaining = seeds = found
    for _ in range(2 * MANIFOLDS):
        if not seeds or len(known) == max_count:
            break
        deepest, points = _deepest_manifold(seeds, remaining, body)
        known = [x for x in known if _blocks(ground, body, deepest, x[0])] + [(deepest, points)]
        remaining = [x for x in found if all(x.normal @ k.normal <= CONE for k, _ in known)]
        seeds = [x for x in remaining if _is_lowest(x.position, x.normal, body)]
        seeds = [x for x in seeds if all(_blocks(ground, body, k, x) for k, _ in known)]
    manifolds = []
    for deepest, points in known:
        n = rotation @ deepest.normal
        on_b = center + np.array([x.position for x in points]) @ rotation.T
        on_a = on_b - np.outer([x.gap for x in points], n)
        manifolds.append(Manifold(n, on_a, on_b, unique([x.feature for x in points])))
    return manifolds


def _is_lowest(position: Array, n: Array, body: Posed) -> bool:
    """Return whether a point is one of the lowest points of the shape ``body``. The vector n points up."""
    lowest = body.support(-n[None])[0] - body.shape.radius * n
    return bool((position - lowest) @ n <= LOWEST * 2.0 * body.shape.extent)


def _blocks(ground: Surface, body: Posed, other: ContactPoint, x: ContactPoint) -> bool:
    """Return whether the ground at ``x`` stops a shape that slides along the contact plane at point ``other``."""
    up, step, cosine = other.normal, STEP * 2.0 * body.shape.extent, float(other.normal @ x.normal)
    if other.gap > x.gap + step or not _is_lowest(x.position, up, body):
        return True
    distance = (cosine * x.gap - other.gap + 4.0 * step) / (1.0 - cosine * cosine)
    return ground.rises_at(x.position - x.gap * x.normal + distance * (up - cosine * x.normal), x, other, step)


def _deepest_manifold(
    seeds: list[ContactPoint], found: list[ContactPoint], b: Posed
) -> tuple[ContactPoint, list[ContactPoint]]:
    deepest = min(seeds, key=lambda x: x.gap)
    size = 2.0 * b.shape.extent
    level = min((x.gap for x in seeds if x.of_shape), default=np.inf)
    if level <= deepest.gap + TIE * size:
        deepest = next(x for x in seeds if x.of_shape and x.gap == level)
    if b.shape.single:
        chosen = [deepest]
    else:
        near = [deepest, *(x for x in found if x.normal @ deepest.normal >= CONE)]
        near = sorted(near, key=lambda x: not x.of_shape)
        near = [near[i] for i in distinct(np.array([x.position for x in near]), SAME * size)]
        if not any(x.gap <= deepest.gap + TIE * size for x in near):
            near.insert(0, deepest)
        positions = np.array([x.position for x in near]) @ plane_axes(deepest.normal).T
        chosen = [near[i] for i in spanning(positions, np.array([x.gap for x in near]))]
    return deepest, chosen


def _all_points(ground: Field, body: Posed, margin: float, max_count: int) -> list[ContactPoint]:
    (low,), (high,) = bounds(body.shape, body.center[None], body.rotation[None])
    found: list[ContactPoint] = []
    rims: list[tuple[float, Triangle]] = []
    for t in ground.triangles(low[:2] - margin, high[:2] + margin):
        if low[2] > t.corner[:, 2].max() + margin:
            continue
        points, min_gap = _over_triangle(ground, t, body, margin)
        found += points
        if min_gap < margin:
            rims.append((min_gap, t))
    for min_gap, t in rims:
        # All gaps at the triangle's rim are at least ``min_gap``. If one contact point is enough, skip the rim.
        if max_count == 1 and body.shape.single and found and min_gap >= min(x.gap for x in found):
            continue
        if ground.bulges(t):
            depth = 2.0 * float((high - low).sum()) + float(np.ptp(t.corner, axis=0).sum())
            found += _on_ridges(ground, t, body, margin, depth)
    if not found:
        # The shape is completely below the surface, so use the triangle above its lowest point or center.
        lowest = body.support(np.array([[0.0, 0.0, -1.0]]))[0] - [0.0, 0.0, body.shape.radius]
        for x in (lowest, body.center):
            for t in ground.around(x, 0.0):
                if t.height(x) < 0.0:
                    position = body.support(-t.normal[None])[0] - body.shape.radius * t.normal
                    return [ContactPoint(position, t.normal, float(t.height(position)), NEAREST, False)]
    return found


def _over_triangle(ground: Field, t: Triangle, body: Posed, margin: float) -> tuple[list[ContactPoint], float]:
    """Return the contact points inside triangle ``t``, and a lower bound for the gaps at the edges of ``t``."""
    n, radius = t.normal, body.shape.radius
    lowest = body.support(-n[None])[0] - radius * n
    min_gap = float(t.height(lowest))
    if min_gap > margin:
        return [], np.inf
    corners, ids = body.facing(-n)
    corners = corners[::-1] - radius * n  # the corners are counterclockwise, seen from above
    ids = ids[::-1]
    edge_ids = [mixed(ids[i], ids[(i + 1) % len(ids)]) for i in range(len(ids))]
    loop = Loop(corners[:, :2], edge_ids)
    for x, outward, edge in sides(t.loop):
        loop = clip(loop, x, outward, edge, ground.inside)
        if not loop.edge:
            break
    found = []
    if loop.edge and len(ids) > 1:
        positions = np.column_stack([loop.corner, _heights(corners, loop.corner)])
        for i, (x, gap, feature) in enumerate(zip(positions, t.height(positions), loop.features(), strict=True)):
            of_shape = loop.edge[i] in edge_ids and loop.edge[i - 1] in edge_ids
            point: ContactPoint | None = ContactPoint(x, n, float(gap), feature, of_shape)
            if gap > 0.0 and t.lateral_distance(x - gap * n) > ground.inside and not ground.contains(x - gap * n):
                point = _past_ridge(ground, t, x + radius * n, radius, feature, of_shape)
            if point and point.gap <= margin:
                found.append(point)
    if any(x.gap <= min_gap + SLACK * body.shape.extent for x in found):
        return found, np.inf
    # Points above the ground are projected along the normal, and points below the ground are projected vertically.
    if t.lateral_distance(lowest - max(min_gap, 0.0) * n) <= ground.inside:
        feature = mixed(edge_ids[0], edge_ids[0]) if len(ids) == 1 else NEAREST
        return [*found, ContactPoint(lowest, n, min_gap, feature, len(ids) == 1)], np.inf
    return found, min_gap


def _past_ridge(
    ground: Field, t: Triangle, x: Array, radius: float, feature: int, of_shape: bool
) -> ContactPoint | None:
    """Return the contact point of a sphere at ``x`` (3,) with the nearest edge or corner of triangle ``t``."""
    weights, square = nearest_on_triangles(t.corner[None] - x)
    on_rim, distance = weights[0] @ t.corner, float(np.sqrt(square[0]))
    n = (x - on_rim) / distance
    return (
        ContactPoint(x - radius * n, n, distance - radius, feature, of_shape) if ground.has_normal(on_rim, n) else None
    )


def _on_ridges(ground: Field, t: Triangle, body: Posed, margin: float, depth: float) -> list[ContactPoint]:
    solid = np.concatenate([t.corner, t.corner - [0.0, 0.0, depth]])
    center = t.corner.mean(axis=0)
    faces = Faces(_PRISM.first, _PRISM.vertex, _outward(solid))
    prism = Posed(Polytope(np.zeros(8), solid - center, faces), center, np.eye(3))
    pair = Pair(prism, body)
    near, _ = approach(pair, margin, t.normal)
    if near is None:
        return []
    m = manifold(pair, near, margin)
    gaps = np.vecdot(m.on_b - m.on_a, m.normal)
    on_top = np.abs(t.height(m.on_a)) <= 1e-6 * float(np.ptp(t.corner, axis=0).sum())
    return [
        ContactPoint(b, m.normal, float(gap), mixed(*t.edges, feature), False)
        for a, b, gap, feature, top in zip(m.on_a, m.on_b, gaps, m.feature, on_top, strict=True)
        if top and ground.has_normal(a, m.normal)
    ]


def _outward(solid: Array) -> Array:
    """Return the outward unit normals (5, 3) of the faces of a triangular prism."""
    loops = [solid[_PRISM.polygon(f)] for f in range(5)]
    normal = np.array([np.cross(p[1] - p[0], p[2] - p[0]) for p in loops])
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)
