"""Half spaces and height fields against convex shapes: the points of the shape that lie in front of the ground.

A height field is met triangle by triangle, in its own frame. What of the shape lies straight over or under a triangle
is measured along the triangle's normal, at any depth; above the surface, what has its foot past a ridge is measured
from the triangle's rim. Ridges and peaks are met as convex bodies, the triangles made prisms; a normal counts there
only if the surface has it, so edges within a slope or in a valley kick nobody. The deepest of all points gives the
normal of the first manifold. A shape in a valley touches both sides: the deepest point whose normal is far from those
found so far gives the next manifold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpusim.model.shape_kinds import MANIFOLDS, Faces
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
"""Points whose normals are within 10 degrees of the deepest one's make one manifold with it."""
LOWEST = 1e-3
"""Of the shape's size: only points that are this near to its lowest ones along a normal give a next manifold."""
STEP = 2e-4
"""Of the shape's size: ground that rises by less in front of the shape does not block it."""
SAME = 1e-3
"""Of the shape's size: points that are nearer to each other are one."""
LEAN = 1e-3
"""Sine by which a normal may miss those of the surface."""
INSIDE = 1e-9
"""Of a spacing: what is over the rim of a triangle by less still is over it."""
_PRISM = Faces(
    first=np.array([0, 3, 6, 10, 14, 18]),
    vertex=np.array([0, 1, 2, 5, 4, 3, 0, 3, 4, 1, 1, 4, 5, 2, 2, 5, 3, 0]),
    normal=np.zeros((5, 3)),
)


def on_half_space(center: Array, turn: Array, b: Posed, margin: float) -> Manifold | None:
    """Contact points of a half space (A) with a convex shape: the corners that face it; None beyond ``margin``."""
    n, radius = turn[:, 2], b.shape.radius
    lowest = b.support(-n[None])
    least = (lowest - center) @ n - radius
    if least[0] > margin:
        return None
    corners, ids = b.facing(-n)
    gap = (corners - center) @ n - radius
    near = gap <= margin
    corners, gap, ids = corners[near], gap[near], [i for i, kept in zip(ids, near, strict=True) if kept]
    if not len(gap) or gap.min() > least[0] + b.shape.missed * b.shape.extent:
        corners, gap, ids = np.concatenate([corners, lowest]), np.concatenate([gap, least]), [*ids, NEAREST]
    if b.shape.single:
        least_ones = gap <= gap.min() + TIE * b.shape.extent
        corners, gap = corners[least_ones].mean(axis=0)[None], gap.min()[None]
    chosen = spanning((corners - b.center) @ plane_axes(n).T, gap)
    on_b = corners[chosen] - radius * n
    return Manifold(n, on_b - np.outer(gap[chosen], n), on_b, unique([ids[i] for i in chosen]))


def bounds(shape: Convex, center: Array, turn: Array) -> tuple[Array, Array]:
    """Lowest and highest corner of the boxes around a shape in n poses: (n, 3), (n, 3, 3); (n, 3) each, m."""
    d = np.concatenate([turn, -turn], axis=1)
    reach = shape.reach(d.reshape(-1, 3)).reshape(-1, 2, 3)
    return center - reach[:, 1], center + reach[:, 0]


@dataclass
class Triangle:
    """Corners (3, 3) counterclockwise from above, unit normal, numbers of its sides."""

    corner: Array
    normal: Array
    edges: list[int]

    def height(self, x: Array) -> Array:
        """Of points (n, 3) over its plane, along the normal."""
        height: Array = (x - self.corner[0]) @ self.normal
        return height

    @property
    def loop(self) -> Loop:
        """Seen from above."""
        return Loop(self.corner[:, :2], self.edges)

    def beside(self, x: Array) -> float:
        """How far a point (3,) is beside it, seen from above."""
        return float(max((x[:2] - p) @ outward for p, outward, _ in sides(self.loop)))


class Field:
    """A height field in its own frame."""

    def __init__(self, field: HeightField) -> None:
        self._heights = field.heights
        self._spacing = field.size[2:4]
        self._last = np.array(field.heights.shape[::-1]) - 1
        self._made = field.triangles
        self.inside = INSIDE * float(self._spacing.sum())

    def triangles(self, low: Array, high: Array) -> Iterator[Triangle]:
        """Those whose cells reach into the box from low to high (2,), seen from above."""
        first, last = (x / self._spacing + 0.5 * self._last for x in (low, high))
        if np.any(last < 0.0) or np.any(first > self._last):
            return
        (column, row), (end, top) = (np.clip(x, 0, self._last - 1).astype(int) for x in (first, last))
        for i in range(row, top + 1):
            for j in range(column, end + 1):
                if (i, j) not in self._made:
                    steps = [(0, 0), (0, 1), (1, 1)], [(0, 0), (1, 1), (1, 0)]
                    self._made[i, j] = [self._triangle(i, j, way) for way in steps]
                yield from self._made[i, j]

    def _triangle(self, row: int, column: int, steps: list[tuple[int, int]]) -> Triangle:
        grid = np.array([(column + x, row + y) for y, x in steps])
        heights = self._heights[grid[:, 1], grid[:, 0]]
        corner = np.column_stack([(grid - 0.5 * self._last) * self._spacing, heights])
        normal = np.cross(corner[1] - corner[0], corner[2] - corner[0])
        edges = [mixed(row, column, len(steps) + steps[1][0], k) for k in range(3)]
        return Triangle(corner, normal / np.linalg.norm(normal), edges)

    def around(self, x: Array, space: float) -> Iterator[Triangle]:
        """The triangles over or under a point (3,), or beside it by at most ``space``."""
        yield from (t for t in self.triangles(x[:2] - space, x[:2] + space) if t.beside(x) <= space)

    def holds(self, x: Array) -> bool:
        """Whether a point (3,) lies on the surface or in the ground."""
        slack = 1e-6 * float(self._spacing.sum())
        return any(float(t.height(x)) <= slack for t in self.around(x, 0.0))

    def has_normal(self, x: Array, n: Array) -> bool:
        """Whether the surface falls away on all sides of a point of it, seen along n."""
        space = 1e-6 * float(self._spacing.sum())
        for t in self.around(x, space):
            to = t.corner - x
            if np.any(to @ n > LEAN * np.linalg.norm(to, axis=1) + LEAN * space):
                return False
        return True

    def bulges(self, t: Triangle) -> bool:
        """Whether the surface falls away from a triangle's plane around it, or ends."""
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
class Found:
    """A point of the shape over the field: its place (3,), normal, gap; ``own``: a corner of the shape."""

    place: Array
    normal: Array
    gap: float
    feature: int
    own: bool


def on_height_field(
    field: HeightField, center: Array, turn: Array, b: Posed, margin: float, most: int
) -> list[Manifold]:
    """Contact points of a height field (A) with a convex shape, no farther away than ``margin``.

    One manifold for each of up to ``most`` normals that are more than 10 degrees apart, the deepest one first.
    """
    ground = Field(field)
    body = Posed(b.shape, turn.T @ (b.center - center), turn.T @ b.turn)
    found = _all_points(ground, body, margin, most)
    known: list[tuple[Found, list[Found]]] = []
    rest = seeds = found
    for _ in range(2 * MANIFOLDS):
        if not seeds or len(known) == most:
            break
        deepest, points = _deepest_manifold(seeds, rest, body)
        known = [x for x in known if _blocks(ground, body, deepest, x[0])] + [(deepest, points)]
        rest = [x for x in found if all(x.normal @ k.normal <= CONE for k, _ in known)]
        seeds = [x for x in rest if _is_lowest(x.place, x.normal, body)]
        seeds = [x for x in seeds if all(_blocks(ground, body, k, x) for k, _ in known)]
    manifolds = []
    for deepest, points in known:
        n = turn @ deepest.normal
        on_b = center + np.array([x.place for x in points]) @ turn.T
        on_a = on_b - np.outer([x.gap for x in points], n)
        manifolds.append(Manifold(n, on_a, on_b, unique([x.feature for x in points])))
    return manifolds


def _is_lowest(place: Array, n: Array, body: Posed) -> bool:
    """Whether nothing of the shape lies lower along n than a point of it, as it does over a slope that falls away."""
    lowest = body.support(-n[None])[0] - body.shape.radius * n
    return bool((place - lowest) @ n <= LOWEST * 2.0 * body.shape.extent)


def _blocks(ground: Field, body: Posed, other: Found, x: Found) -> bool:
    """Whether the ground that meets the shape at x rises in front of it as it slides in another contact as deep.

    Where it ends at the height of that contact, as the far side of a groove does under a box, it would stop what in
    fact passes over its rim.
    """
    up, step, cosine = other.normal, STEP * 2.0 * body.shape.extent, float(other.normal @ x.normal)
    if other.gap > x.gap + step or not _is_lowest(x.place, up, body):
        return True
    way = (cosine * x.gap - other.gap + 4.0 * step) / (1.0 - cosine * cosine)
    q = x.place - x.gap * x.normal + way * (up - cosine * x.normal)
    under = next(ground.around(q, 0.0), None)
    if under is None:
        return True
    q = q - [0.0, 0.0, float(under.height(q)) / under.normal[2]]
    return bool(other.gap + (q - x.place) @ up >= step)


def _deepest_manifold(seeds: list[Found], found: list[Found], b: Posed) -> tuple[Found, list[Found]]:
    """The deepest of the seeds, and the points found that make a manifold with it."""
    deepest = min(seeds, key=lambda x: x.gap)
    size = 2.0 * b.shape.extent
    level = min((x.gap for x in seeds if x.own), default=np.inf)
    if level <= deepest.gap + TIE * size:
        deepest = next(x for x in seeds if x.own and x.gap == level)
    if b.shape.single:
        chosen = [deepest]
    else:
        near = [deepest, *(x for x in found if x.normal @ deepest.normal >= CONE)]
        near = sorted(near, key=lambda x: not x.own)
        near = [near[i] for i in distinct(np.array([x.place for x in near]), SAME * size)]
        if not any(x.gap <= deepest.gap + TIE * size for x in near):
            near.insert(0, deepest)
        place = np.array([x.place for x in near]) @ plane_axes(deepest.normal).T
        chosen = [near[i] for i in spanning(place, np.array([x.gap for x in near]))]
    return deepest, chosen


def _all_points(ground: Field, body: Posed, margin: float, most: int) -> list[Found]:
    (low,), (high,) = bounds(body.shape, body.center[None], body.turn[None])
    found: list[Found] = []
    rims: list[tuple[float, Triangle]] = []
    for t in ground.triangles(low[:2] - margin, high[:2] + margin):
        if low[2] > t.corner[:, 2].max() + margin:
            continue
        points, least = _over_triangle(ground, t, body, margin)
        found += points
        if least < margin:
            rims.append((least, t))
    for least, t in rims:
        # The rim cannot be nearer than the plane; where one point counts, only the deepest one matters.
        if most == 1 and body.shape.single and found and least >= min(x.gap for x in found):
            continue
        if ground.bulges(t):
            depth = 2.0 * float((high - low).sum()) + float(np.ptp(t.corner, axis=0).sum())
            found += _on_ridges(ground, t, body, margin, depth)
    if not found:
        # Below the surface, its lowest points under triangles that it does not reach: out of the one over it.
        lowest = body.support(np.array([[0.0, 0.0, -1.0]]))[0] - [0.0, 0.0, body.shape.radius]
        for x in (lowest, body.center):
            for t in ground.around(x, 0.0):
                if t.height(x) < 0.0:
                    place = body.support(-t.normal[None])[0] - body.shape.radius * t.normal
                    return [Found(place, t.normal, float(t.height(place)), NEAREST, False)]
    return found


def _over_triangle(ground: Field, t: Triangle, body: Posed, margin: float) -> tuple[list[Found], float]:
    """Points of what the shape shows a triangle that lie over it, and the least gap that a point at its rim may have.

    That is infinite where the face itself has the shape's nearest point, or where the shape is out of reach.
    """
    n, radius = t.normal, body.shape.radius
    lowest = body.support(-n[None])[0] - radius * n
    least = float(t.height(lowest))
    if least > margin:
        return [], np.inf
    corners, ids = body.facing(-n)
    corners = corners[::-1] - radius * n  # counterclockwise from above
    ids = ids[::-1]
    own = [mixed(ids[i], ids[(i + 1) % len(ids)]) for i in range(len(ids))]
    loop = Loop(corners[:, :2], own)
    for x, outward, edge in sides(t.loop):
        loop = clip(loop, x, outward, edge, ground.inside)
        if not loop.edge:
            break
    found = []
    if loop.edge and len(ids) > 1:
        places = np.column_stack([loop.corner, _heights(corners, loop.corner)])
        for i, (x, gap, feature) in enumerate(zip(places, t.height(places), loop.features(), strict=True)):
            of_shape = loop.edge[i] in own and loop.edge[i - 1] in own
            point: Found | None = Found(x, n, float(gap), feature, of_shape)
            if gap > 0.0 and t.beside(x - gap * n) > ground.inside and not ground.holds(x - gap * n):
                point = _past_ridge(ground, t, x + radius * n, radius, feature, of_shape)
            if point and point.gap <= margin:
                found.append(point)
    if any(x.gap <= least + SLACK * body.shape.extent for x in found):
        return found, np.inf
    # Of a point above the ground the foot on the triangle counts, of one below it what is straight over it.
    if t.beside(lowest - max(least, 0.0) * n) <= ground.inside:
        feature = mixed(own[0], own[0]) if len(ids) == 1 else NEAREST
        return [*found, Found(lowest, n, least, feature, len(ids) == 1)], np.inf
    return found, least


def _past_ridge(ground: Field, t: Triangle, x: Array, radius: float, feature: int, own: bool) -> Found | None:
    """A point (3,) of the core straight over a triangle, measured from the triangle's nearest edge or corner.

    None where the surface has no such normal there: something else is nearer to the point.
    """
    share, square = nearest_on_triangles(t.corner[None] - x)
    on_rim, distance = share[0] @ t.corner, float(np.sqrt(square[0]))
    n = (x - on_rim) / distance
    return Found(x - radius * n, n, distance - radius, feature, own) if ground.has_normal(on_rim, n) else None


def _on_ridges(ground: Field, t: Triangle, body: Posed, margin: float, depth: float) -> list[Found]:
    """Points at the rim of a triangle with normals that the surface has there."""
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
        Found(b, m.normal, float(gap), mixed(*t.edges, feature), False)
        for a, b, gap, feature, top in zip(m.on_a, m.on_b, gaps, m.feature, on_top, strict=True)
        if top and ground.has_normal(a, m.normal)
    ]


def _outward(solid: Array) -> Array:
    """Unit normals (5, 3) of a prism's faces."""
    loops = [solid[_PRISM.polygon(f)] for f in range(5)]
    normal = np.array([np.cross(p[1] - p[0], p[2] - p[0]) for p in loops])
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)
