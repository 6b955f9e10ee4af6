"""Contact points of two convex shapes, computed from the two features (face, edge or corner) that face each other.

The narrow phase projects both features onto a plane perpendicular to the normal. The projections are polygons. Each
corner of their overlap is a contact point with a gap. If the overlap has more than four corners, the narrow phase keeps
four corners that span a large area. Each corner keeps its feature number from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.reference.collide.separation import Approach, Pair
from gpusim.typing import Array

SLACK = 1e-7
"""Distance tolerance of the test whether a point is inside a polygon, relative to the extent of the shapes."""
TIE = 1e-6
"""Difference below which two gaps or distances count as equal, relative to the extent of the shapes."""
PASSING = 1e-5
"""Two edges that cross get a contact point if their gap exceeds the smallest gap by at most PASSING. PASSING is
relative to the extent of the shapes."""
PARALLEL_SINE = 0.02
"""Sine of 1.1 degrees. Two segments touch along a line if the angle between them is below 1.1 degrees."""
FEATURES = 65536
NEAREST = 65535


@dataclass
class Manifold:
    """Contact manifold of n points: unit normal from A to B (3,), points on A and on B (n, 3), and feature numbers."""

    normal: Array
    on_a: Array
    on_b: Array
    feature: list[int]

    def swapped(self) -> Manifold:
        """Return the manifold with shapes A and B exchanged."""
        return Manifold(-self.normal, self.on_b, self.on_a, self.feature)


@dataclass
class Loop:
    """Convex polygon in a plane: n counterclockwise corners (n, 2), and the index of the edge after each corner."""

    corner: Array
    edge: list[int]

    def features(self) -> list[int]:
        """Return the feature numbers of the polygon's corners."""
        return [mixed(self.edge[i - 1], self.edge[i]) for i in range(len(self.edge))]


def mixed(*numbers: int) -> int:
    """Return a hash of the arguments as a feature number."""
    total = 0
    for number in numbers:
        total = (total * 40503 + number + 1) % 2147483647
    return total % FEATURES


def clip(loop: Loop, x: Array, outward: Array, edge: int, slack: float) -> Loop:
    """Clip a polygon by a line, and return the part on the inner side.

    The line goes through x. The unit normal ``outward`` of the line points away from the inner side.
    """
    level = (loop.corner - x) @ outward
    corners, edges = [], []
    count = len(level)
    for i in range(count):
        j = (i + 1) % count
        if level[i] <= slack:
            corners.append(loop.corner[i])
            edges.append(loop.edge[i])
        leaves, enters = level[i] < -slack and level[j] > slack, level[i] > slack and level[j] < -slack
        if leaves or enters:
            corners.append(loop.corner[i] + level[i] / (level[i] - level[j]) * (loop.corner[j] - loop.corner[i]))
            edges.append(edge if leaves else loop.edge[i])
        elif level[i] <= slack < level[j]:
            edges[-1] = edge  # the new edge starts at a corner on the line
    return Loop(np.array(corners).reshape(-1, 2), edges)


def sides(loop: Loop) -> list[tuple[Array, Array, int]]:
    """Return the start point, the outward normal and the index of each edge of the polygon.

    A polygon with two corners is a line segment. The two normals of a segment point along the segment.
    """
    made = []
    for i, edge in enumerate(loop.edge):
        j = (i + 1) % len(loop.edge)
        along = loop.corner[j] - loop.corner[i]
        length = np.hypot(*along)
        if length > 0.0:
            outward = np.array([along[1], -along[0]]) if len(loop.edge) > 2 else -along
            made.append((loop.corner[i], outward / length, edge))
    return made


def shared(a: Loop, b: Loop, slack: float) -> Loop:
    """Return the overlap of two convex polygons."""
    if len(a.edge) == len(b.edge) == 2:
        e, f, d = a.corner[1] - a.corner[0], b.corner[1] - b.corner[0], b.corner[0] - a.corner[0]
        sine = e[0] * f[1] - e[1] * f[0]
        if abs(sine) > PARALLEL_SINE * np.hypot(*e) * np.hypot(*f):
            s, t = (d[0] * f[1] - d[1] * f[0]) / sine, (d[0] * e[1] - d[1] * e[0]) / sine
            crossing = (a.corner[0] + np.clip(s, 0.0, 1.0) * e)[None]
            missed = np.hypot(*(crossing[0] - b.corner[0] - np.clip(t, 0.0, 1.0) * f)) > slack
            return Loop(crossing[:0] if missed else crossing, [] if missed else [mixed(a.edge[0], b.edge[0])])
    if len(a.edge) == 2:
        a, b = b, a
    for x, outward, edge in sides(a):
        b = clip(b, x, outward, edge, slack)
        if not b.edge:
            break
    return b


def distinct(points: Array, space: float) -> Array:
    """Return the indices of the points (n, k) that are farther than ``space`` from every earlier point of the array."""
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= space
    selected: list[int] = [i for i in range(len(points)) if not near[i, :i].any()]
    return np.array(selected, dtype=int)


def _first_max(value: Array, slack: float) -> int:
    """Return the first index whose value is at least ``max(value) - slack``."""
    return int(np.flatnonzero(value >= value.max() - slack)[0])


def spanning(points: Array, gap: Array) -> Array:
    """Select up to four of n points (n, 2) that span a large area, and return their indices.

    Point 1 is the deepest point, and point 2 is the point farthest from point 1. Points 3 and 4 are the points farthest
    from the line through points 1 and 2, one on each side.
    """
    if len(gap) <= 2:
        return np.arange(len(gap))
    size = float(np.ptp(points, axis=0).max())
    first = _first_max(-gap, TIE * size)
    away = points - points[first]
    second = _first_max(np.hypot(*away.T), TIE * size)
    area = away[second, 0] * away[:, 1] - away[second, 1] * away[:, 0]
    others = [_first_max(side, TIE * size * size) for side in (area, -area) if side.max() > TIE * size * size]
    return np.array([first, second, *others])


def _heights(corners: Array, at: Array) -> Array:
    """Fit a plane to n corners (n, 3), and return the heights of the plane at k positions ``at`` (k, 2)."""
    middle = corners.mean(axis=0)
    spread = corners - middle
    slope = np.linalg.lstsq(spread[:, :2], spread[:, 2], rcond=1e-9)[0]
    heights: Array = middle[2] + (at - middle[:2]) @ slope
    return heights


def _facing(pair: Pair, found: Approach, side: int) -> tuple[Array, Loop]:
    """Return the face, edge or corner of shape A (side 0) or shape B (side 1) that faces the other shape."""
    corners, ids = pair.a.facing(found.normal) if side == 0 else pair.b.facing(-found.normal)
    if side == 1 and len(ids) > 2:
        corners, ids = corners[::-1], ids[::-1]  # clockwise seen along n
    frame = np.concatenate([found.axes, found.normal[None]])
    count = len(ids)
    edges = [mixed(side, ids[i], ids[(i + 1) % count]) for i in range(count)]
    corners = (corners - pair.a.center) @ frame.T
    return corners, Loop(corners[:, :2], edges)


def touching_points(pair: Pair, found: Approach, limit: float = np.inf) -> tuple[Array, Array, list[int]]:
    """Return the n contact points with gaps up to ``limit``: positions (n, 2), gaps (n,) and feature numbers."""
    slack = SLACK * pair.extent
    (p, loop_a), (q, loop_b) = _facing(pair, found, 0), _facing(pair, found, 1)
    nearest = found.axes @ (0.5 * (found.on_a + found.on_b) - pair.a.center)
    feature = mixed(loop_a.edge[0], loop_b.edge[0])
    single = [loop.corner[0] for loop in (loop_a, loop_b) if len(loop.edge) == 1]
    if single:
        # Use the corner instead of the nearest points, because its position is more accurate. Skip corners outside the
        # other face.
        position = np.mean(single, axis=0)
        other = loop_b if len(loop_a.edge) == 1 else loop_a
        if len(other.edge) > 1 and max((position - x) @ out for x, out, _ in sides(other)) > slack:
            position = nearest
        return position[None], np.array([found.gap]), [feature]
    both = shared(loop_a, loop_b, slack)
    gap = _heights(q, both.corner) - _heights(p, both.corner) - pair.radii
    selected = distinct(both.corner, slack)
    selected = selected[gap[selected] <= limit]
    position, gap, features = both.corner[selected], gap[selected], [both.features()[i] for i in selected]
    missed = max(pair.a.shape.missed, pair.b.shape.missed) * pair.extent
    if len(p) == len(q) == 2 and (not len(gap) or gap.min() > found.gap + PASSING * pair.extent):
        return nearest[None], np.array([found.gap]), [feature]  # the edges do not touch
    if not len(gap) or gap.min() > found.gap + missed:
        position, gap, features = np.vstack([position, nearest]), np.append(gap, found.gap), [*features, NEAREST]
    return position, gap, features


def manifold(pair: Pair, found: Approach, margin: float) -> Manifold:
    """Return the contact manifold: up to four contact points with a gap of at most ``margin`` (m)."""
    position, gap, features = touching_points(pair, found, margin)
    if pair.a.shape.single or pair.b.shape.single:
        # Use the mean of the nearest points, because all points of a round rim may be equally near.
        position, gap = position[gap <= gap.min() + TIE * pair.extent].mean(axis=0)[None], np.array([found.gap])
    chosen = spanning(position, gap)
    position, gap, n = position[chosen], gap[chosen], found.normal
    on_a = pair.a.center + position @ found.axes + np.outer(_heights_of_a(pair, found, position, gap), n)
    return Manifold(n, on_a, on_a + np.outer(gap, n), unique([features[i] for i in chosen]))


def _heights_of_a(pair: Pair, found: Approach, position: Array, gap: Array) -> Array:
    p, _ = _facing(pair, found, 0)
    if len(p) > 1 and len(gap) > 1:
        return _heights(p, position) + pair.a.shape.radius
    farthest = pair.a.support(found.normal[None])[0] - pair.a.center
    return np.full(len(gap), farthest @ found.normal + pair.a.shape.radius)


def unique(features: list[int]) -> list[int]:
    """Return the feature numbers, after incrementing duplicates until all numbers differ."""
    made: list[int] = []
    for number in features:
        while number in made:
            number = (number + 1) % FEATURES
        made.append(number)
    return made
