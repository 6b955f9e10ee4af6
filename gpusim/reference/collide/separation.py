"""Distance or penetration depth of two convex shapes, and the contact normal.

The narrow phase uses the Minkowski difference C = B - A. The distance of the shapes is the distance of C from the
origin. The shapes overlap if the origin is inside C. In this case, the vector from the origin to the nearest boundary
point of C is the shortest translation that separates the shapes. ``separation(n)`` is the gap along a unit normal n
from A to B. The maximum of ``separation`` over all normals is the gap of the shapes.

For separated shapes, GJK finds the point of C nearest to the origin (Gilbert, Johnson and Keerthi 1988). For
overlapping shapes, EPA expands a convex hull inside C (van den Bergen 2001).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from gpusim.reference.collide.shapes import Convex
from gpusim.typing import Array

if TYPE_CHECKING:
    from scipy.spatial import ConvexHull

TOUCHING = 1e-8
"""Distance below which two cores (shapes without their radii) count as overlapping, relative to the extent of the
shapes."""
ACCURACY, ACCURACY_CURVED = 1e-12, 1e-9
"""Accuracy of the penetration depth, relative to the extent. ACCURACY_CURVED is for curved shapes, because
:func:`sharpened` refines their normals later."""
APART = 0.01
"""Distance by which :func:`sharpened` moves shapes apart to find an exact normal, relative to the extent."""
SAME = 1e-6
"""Change of the normal below which its refinement stops (rad)."""
STEPS, ROUNDS, POLISHES = 100, 60, 4
TOGETHER = 8
"""Number of hull faces that EPA (see the module) expands at once."""
_GRID = np.array([d for d in product((-1.0, 0.0, 1.0), repeat=3) if any(d)])
_GRID /= np.linalg.norm(_GRID, axis=1, keepdims=True)
# Triangles of a simplex with 1 to 4 corners.
_TRIANGLES = [
    np.array(t) for t in ([[0, 0, 0]], [[0, 1, 1]], [[0, 1, 2]], [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
]
_OPPOSITE = np.array([3, 2, 1, 0])
_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])
# Deviations from a guessed normal, in increasing order. The z axis of their frame is the guess.
_AROUND = np.array([(s * x, s * y, 0.0) for s in (1e-5, 1e-3, 0.05) for x, y in ((1, 0), (-0.5, 0.87), (-0.5, -0.87))])


@dataclass
class Posed:
    """Convex shape with its pose: x_world = center + rotation x_shape."""

    shape: Convex
    center: Array
    rotation: Array

    def support(self, n: Array) -> Array:
        """Return the support points of the core along k world directions ``n`` (k, 3)."""
        points: Array = self.center + self.shape.support(n @ self.rotation) @ self.rotation.T
        return points

    def facing(self, n: Array) -> tuple[Array, list[int]]:
        """Return corners and feature numbers of the feature (face, edge, corner) that faces world direction ``n``."""
        corners, ids = self.shape.facing(self.rotation.T @ n)
        return self.center + corners @ self.rotation.T, ids


class Pair:
    """Two convex shapes A and B with their poses."""

    def __init__(self, a: Posed, b: Posed, extent: float | None = None) -> None:
        self.a, self.b = a, b
        self.extent = extent or a.shape.extent + b.shape.extent
        self.radii = a.shape.radius + b.shape.radius
        self.inflated = False

    def support(self, n: Array) -> tuple[Array, Array]:
        """Return the support points of A along k unit vectors n (k, 3), and the support points of B along -n."""
        p, q = self.a.support(n), self.b.support(-n)
        if self.inflated:
            p, q = p + self.a.shape.radius * n, q - self.b.shape.radius * n
        return p, q

    def separation(self, n: Array) -> Array:
        """Return the gaps between both shapes (k,), measured along k unit normals ``n`` (k, 3) from A to B."""
        p, q = self.a.support(n), self.b.support(-n)
        gap: Array = np.vecdot(q - p, n) - self.radii
        return gap

    def parted(self, shift: Array) -> Pair:
        """Return a copy of the pair with shape B translated by ``shift``."""
        return Pair(self.a, Posed(self.b.shape, self.b.center + shift, self.b.rotation), self.extent)


@dataclass
class Approach:
    """Result of a distance query: unit normal from A to B, gap along this normal, and nearest points of the cores."""

    normal: Array
    gap: float
    on_a: Array
    on_b: Array

    @cached_property
    def axes(self) -> Array:
        """Return two unit vectors (2, 3) that form a right-handed frame with the normal."""
        return plane_axes(self.normal)


def plane_axes(n: Array) -> Array:
    """Return two unit vectors (2, 3) that form a right-handed frame with n."""
    x, y, z = (float(v) for v in n)
    if abs(z) < 0.6:
        length = math.hypot(x, y)
        first = np.array([-y / length, x / length, 0.0])
    else:
        length = math.hypot(y, z)
        first = np.array([0.0, -z / length, y / length])
    return np.stack([first, _cross(n, first)])


def approach(pair: Pair, margin: float, guess: Array) -> tuple[Approach | None, Array]:
    """Return the :class:`Approach` of two shapes, and their normal as the guess for the next call.

    The :class:`Approach` is None if the gap exceeds ``margin``.

    Args:
        pair: two convex shapes.
        margin: maximum gap of a contact, m.
        guess: approximate normal, (3,), or zeros if unknown.
    """
    if not 0.5 < np.dot(guess, guess) < 2.0:
        guess = pair.b.center - pair.a.center
        if not np.dot(guess, guess) > 0.0:
            guess = np.array([0.0, 0.0, 1.0])
    guess = guess / np.linalg.norm(guess)
    found, normal = nearest(pair, guess, margin + pair.radii)
    if found is None and normal is not None:
        return None, normal
    nonlinear = not (pair.a.shape.flat and pair.b.shape.flat)
    if found is None:
        found = deepest(pair, guess)
        nonlinear = nonlinear or pair.inflated
    if nonlinear and found.gap + pair.radii < APART * pair.extent:
        found = sharpened(pair, found)
    return (found if found.gap <= margin else None), found.normal


def nearest(pair: Pair, guess: Array, max_distance: float) -> tuple[Approach | None, Array | None]:
    """Return the nearest points of two separate cores (shapes without their radii)."""
    on_a, on_b = pair.support(guess[None])
    weight = np.ones(1)
    before, max_bound, normal = np.inf, -np.inf, guess
    for _ in range(STEPS):
        v = weight @ (on_b - on_a)
        length = float(np.linalg.norm(v))
        if length <= TOUCHING * pair.extent:
            return None, None
        n = v / length
        p, q = pair.support(n[None])
        bound = float(n @ (q - p)[0])
        if bound > max_distance:
            return None, n
        if bound > max_bound:
            max_bound, normal = bound, n
        if length - max_bound <= 1e-15 * pair.extent or length >= before:
            break
        before = length
        on_a, on_b = np.concatenate([on_a, p]), np.concatenate([on_b, q])
        corners = on_b - on_a
        # Due to round-off, a thin tetrahedron may seem to contain the origin. Check whether a plane separates the
        # cores.
        if len(corners) == 4 and max_bound <= 0.0 and _contains_origin(corners):
            return None, None
        used = _TRIANGLES[len(corners) - 1]
        weights, square = nearest_on_triangles(corners[used])
        best = int(np.argmin(square))
        positive = weights[best] > 0.0
        on_a, on_b, weight = on_a[used[best][positive]], on_b[used[best][positive]], weights[best][positive]
    # The distance converges before the direction, so use the direction with the greatest lower bound.
    return Approach(normal, length - pair.radii, weight @ on_a, weight @ on_b), None


def nearest_on_triangles(t: Array) -> tuple[Array, Array]:
    """Find the point nearest to the origin on each of n triangles.

    Return the barycentric coordinates of the points (n, 3) and their squared distances from the origin (n,).

    Args:
        t: corners of the triangles, (n, 3, 3). A triangle can be degenerate: a segment or a point.
    """
    after = t[:, _NEXT]
    edge = after - t
    normal = _cross(edge[:, 0], edge[:, 1])
    square = np.vecdot(normal, normal)[:, None]
    size = np.vecdot(edge, edge).max(axis=1, keepdims=True)
    inner = np.vecdot(_cross(after, edge[:, _NEXT]), normal[:, None])
    inside = (square > 1e-28 * size * size) & np.all(inner >= 0.0, axis=1, keepdims=True)
    total = inner.sum(axis=1, keepdims=True)
    inner = inner / np.where(total > 0.0, total, 1.0)
    length = np.vecdot(edge, edge)
    along = np.clip(-np.vecdot(t, edge) / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
    point = t + along[..., None] * edge
    best = np.argmin(np.vecdot(point, point), axis=1)
    row = np.arange(len(t))
    outer = np.zeros((len(t), 3))
    outer[row, best] = 1.0 - along[row, best]
    outer[row, (best + 1) % 3] = along[row, best]
    weights = np.where(inside, inner, outer)
    nearest_point = np.einsum("nk,nkx->nx", weights, t)
    return weights, np.vecdot(nearest_point, nearest_point)


def _cross(a: Array, b: Array) -> Array:
    product: Array = a[..., _NEXT] * b[..., _LAST] - a[..., _LAST] * b[..., _NEXT]
    return product


def _contains_origin(corners: Array) -> bool:
    t = corners[_TRIANGLES[3]]
    normal = _cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
    inner = np.vecdot(normal, corners[_OPPOSITE] - t[:, 0])
    return bool(np.all(-np.vecdot(normal, t[:, 0]) * inner > 0.0))


def deepest(pair: Pair, guess: Array) -> Approach:
    """Return the :class:`Approach` of overlapping cores.

    The normal is the direction of the shortest translation that separates the cores.
    """
    pair.inflated = not (pair.a.shape.solid or pair.b.shape.solid)
    frame = np.concatenate([plane_axes(guess), guess[None]])
    near = guess + _AROUND @ frame
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    on_a, on_b = pair.support(np.concatenate([_GRID, guess[None], near]))
    nonlinear = pair.inflated or not (pair.a.shape.flat and pair.b.shape.flat)
    accuracy = (ACCURACY_CURVED if nonlinear else ACCURACY) * pair.extent
    for _ in range(ROUNDS):
        hull = _hull(on_b - on_a, pair.extent)
        depth = -hull.equations[:, 3]
        face = np.argsort(depth, kind="stable")[:TOGETHER]
        n = -hull.equations[face, :3]
        p, q = pair.support(n)
        excess = -np.vecdot(q - p, n) - depth[face]
        if excess[0] <= accuracy:
            break
        new = excess > accuracy
        used = hull.vertices
        on_a, on_b = np.concatenate([on_a[used], p[new]]), np.concatenate([on_b[used], q[new]])
    corner = hull.simplices[face[0]]
    weights, _ = nearest_on_triangles((on_b - on_a)[corner][None])
    on_a, on_b = weights[0] @ on_a[corner], weights[0] @ on_b[corner]
    if pair.inflated:
        on_a, on_b = on_a - pair.a.shape.radius * n[0], on_b + pair.b.shape.radius * n[0]
    return Approach(n[0], float(pair.separation(n[:1])[0]), on_a, on_b)


def _hull(points: Array, extent: float) -> ConvexHull:
    from scipy.spatial import ConvexHull, QhullError  # the import is slow

    try:
        return ConvexHull(points)
    except QhullError:
        noise = np.random.default_rng(0).normal(size=points.shape)
        return ConvexHull(points + 1e-12 * extent * noise)


def sharpened(pair: Pair, found: Approach) -> Approach:
    """Refine the normal and the nearest points of ``found``. The search first moves the shapes slightly apart."""
    space = APART * pair.extent
    for _ in range(POLISHES):
        shift = (space - found.gap - pair.radii) * found.normal
        apart, _ = nearest(pair.parted(shift), found.normal, np.inf)
        if apart is None:
            break
        gap = float(pair.separation(apart.normal[None])[0])
        better = Approach(apart.normal, gap, apart.on_a, apart.on_b - shift)
        angle = np.linalg.norm(better.normal - found.normal)
        if gap < found.gap - 1e-12 * pair.extent:
            break
        found = better
        if angle < SAME:
            break
    return found
