"""Contact points of triangle meshes with convex shapes.

The narrow phase handles one triangle at a time, in the mesh's frame. The gap of a point is measured along the
triangle's normal. The normal points to the side of the triangle that contains most of the shape. This normal prevents
ghost collisions at edges inside a plane or valley.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.description.shape_kinds import Faces
from gpusim.reference.collide.ground import LEAN, ContactPoint, bounds, manifolds_of
from gpusim.reference.collide.manifolds import NEAREST, TIE, Loop, Manifold, _heights, clip, manifold, mixed, sides
from gpusim.reference.collide.separation import Pair, Posed, approach, nearest_on_triangles, plane_axes
from gpusim.reference.collide.shapes import Polytope, TriangleMesh
from gpusim.typing import Array

INSIDE = 1e-6
"""Distance tolerance of the test whether a point is on the rim of a triangle, relative to the shape's size."""
FLAT = 1e-6
"""Angle tolerance (sine) of the test whether a point is on a plane."""
LOOK = 1e-3
"""Distance from an open edge at which the narrow phase searches for other triangles, relative to the shape's size."""
_TWO_SIDES = Faces(first=np.array([0, 3, 6]), vertex=np.array([0, 1, 2, 2, 1, 0]), normal=np.zeros((2, 3)))


@dataclass
class Triangle:
    """Triangle of a mesh: index ``number``, three corners (3, 3), and unit normal towards the shape."""

    number: int
    corner: Array
    normal: Array
    side: float
    opposite: list[Array | None]

    def height(self, x: Array) -> Array:
        """Return the distances of points ``x`` (..., 3) from the triangle's plane, positive along the normal."""
        height: Array = (x - self.corner[0]) @ self.normal
        return height

    @cached_property
    def outward(self) -> Array:
        """Return the outward unit normals (3, 3) of the three edges, in the triangle's plane."""
        edges = np.roll(self.corner, -1, axis=0) - self.corner
        out = np.cross(edges, self.side * self.normal)
        unit: Array = out / np.linalg.norm(out, axis=1, keepdims=True)
        return unit

    def levels(self, x: Array) -> Array:
        """Return the distances of point ``x`` (3,) from the three edges, (3,), positive outside the triangle."""
        levels: Array = np.vecdot(x - self.corner, self.outward)
        return levels

    def aside(self, k: int, x: Array) -> Array:
        """Return the shortest vector from the infinite line through edge k to each of n points ``x``, (n, 3)."""
        edge = self.corner[(k + 1) % 3] - self.corner[k]
        to = x - self.corner[k]
        across: Array = to - np.outer(to @ edge / (edge @ edge), edge)
        return across

    def on_edge(self, k: int, x: Array) -> Array:
        """Return the point on edge k that is nearest to point ``x`` (3,)."""
        edge = self.corner[(k + 1) % 3] - self.corner[k]
        nearest: Array = self.corner[k] + np.clip((x - self.corner[k]) @ edge / (edge @ edge), 0.0, 1.0) * edge
        return nearest


class Ground:
    """Triangle mesh, and one shape near the mesh. All points and vectors are in the frame of the mesh."""

    def __init__(self, mesh: TriangleMesh, body: Posed, margin: float) -> None:
        self._tree = mesh.tree
        self.body = body
        self.margin = margin
        (low,), (high,) = bounds(body.shape, body.center[None], body.rotation[None])
        self.size = float((high - low).sum())
        self.low, self.high = low - margin, high + margin

    def triangles(self) -> list[Triangle]:
        """Return the triangles whose bounding boxes overlap the bounding box of the shape, enlarged by the margin."""
        corners = self._tree.vertices[self._tree.triangles[: self._tree.solid]]
        overlaps = np.all((corners.min(axis=1) <= self.high) & (corners.max(axis=1) >= self.low), axis=1)
        return [self._triangle(int(i)) for i in np.flatnonzero(overlaps)]

    def _triangle(self, i: int) -> Triangle:
        corner = self._tree.vertices[self._tree.triangles[i]]
        normal = np.cross(corner[1] - corner[0], corner[2] - corner[0])
        normal /= np.linalg.norm(normal)
        ends = self.body.support(np.stack([normal, -normal]))
        side = -1.0 if ((ends - corner[0]) @ normal).sum() < 0.0 else 1.0
        opposite = [None if b < 0 else self._tree.vertices[b] for b in self._tree.beyond[i]]
        return Triangle(i, corner, side * normal, side, opposite)

    def is_near(self, x: Array, distance: float) -> bool:
        """Return whether point ``x`` (3,) is within ``distance`` (m) of the mesh."""
        near = self._tree.near(x - distance, x + distance)
        if not near.size:
            return False
        square = nearest_on_triangles(self._tree.vertices[self._tree.triangles[near]] - x)[1]
        return bool(square.min() <= distance * distance)

    def continues(self, x: Array, outward: Array) -> bool:
        """Return whether other triangles continue the surface from point x in the direction ``outward``."""
        look = LOOK * self.size
        return self.is_near(x + look * outward, 0.1 * look)

    def rises_at(self, q: Array, x: ContactPoint, other: ContactPoint, step: float) -> bool:
        """Return whether the mesh passes near point q. See :meth:`Surface.rises_at` in ground.py."""
        return self.is_near(q, 2.0 * step)

    def has_normal(self, t: Triangle, x: Array, n: Array) -> bool:
        """Return whether ``n`` is a valid surface normal at point x on an edge or corner of triangle ``t``."""
        on = t.levels(x) >= -INSIDE * self.size
        if not on.any():
            return False
        for k in np.flatnonzero(on).tolist():
            if t.opposite[k] is None and self.continues(x, t.outward[k]):
                return False
        if on.sum() == 1:
            k = int(np.argmax(on))
            tip = t.opposite[k]
            around = [t.corner[(k + 2) % 3]] + ([] if tip is None else [tip])
            to = t.aside(k, np.array(around))
        else:
            nearest = int(np.argmin(np.linalg.norm(t.corner - x, axis=1)))
            fan = self._fan(self._tree.triangles[t.number, nearest])
            to = self._tree.vertices[self._tree.triangles[fan].ravel()] - t.corner[nearest]
        return not np.any(to @ n > LEAN * np.linalg.norm(to, axis=1))

    def has_shorter_separation(self, t: Triangle, foot: Array, depth: float) -> bool:
        """Return whether a translation shorter than ``depth`` (m) separates the shape from triangle ``t``."""
        for vertex in self._tree.triangles[t.number]:
            for i in self._fan(vertex):
                around = self._triangle(int(i))
                if self._clears(t, around.corner[0], around.side * around.normal, depth):
                    return True
                for k in range(3):
                    ends = self._tree.triangles[i][[k, (k + 1) % 3]]
                    if around.opposite[k] is not None or vertex not in ends:
                        continue
                    out = around.outward[k]
                    if self._clears(t, around.corner[k], out, depth) and not self.continues(
                        around.on_edge(k, foot), out
                    ):
                        return True
        return False

    def _fan(self, vertex: int) -> Array:
        fan: Array = self._tree.fan[self._tree.fan_start[vertex] : self._tree.fan_start[vertex + 1]]
        return fan

    def _clears(self, t: Triangle, x: Array, n: Array, depth: float) -> bool:
        """Return whether a translation along n, shorter than ``depth`` (m), separates the shape from triangle ``t``."""
        to = t.corner - x
        flat = FLAT * float(np.linalg.norm(to, axis=1).max())
        behind, ahead = bool((to @ n).min() < -flat), bool((to @ n).max() > flat)
        if behind == ahead:
            return False
        out = n if behind else -n
        nearest = self.body.support(-out[None])[0]
        return bool((x - nearest) @ out + self.body.shape.radius < depth - TIE * self.size)


def on_triangle_mesh(
    mesh: TriangleMesh, center: Array, rotation: Array, b: Posed, margin: float, max_count: int
) -> list[Manifold]:
    """Return at most ``max_count`` contact manifolds of a triangle mesh (A) and a convex shape (B), deepest first.

    The gap of each contact point is at most ``margin``.
    """
    body = Posed(b.shape, rotation.T @ (b.center - center), rotation.T @ b.rotation)
    ground = Ground(mesh, body, margin)
    found: list[ContactPoint] = []
    for t in ground.triangles():
        points, ignores_edges = _in_front(ground, t)
        found += points
        if not ignores_edges and _has_ridge(t):
            found += _at_rim(ground, t)
    return manifolds_of(ground, found, center, rotation, body, max_count)


def _in_front(ground: Ground, t: Triangle) -> tuple[list[ContactPoint], bool]:
    """Return the contact points inside triangle ``t``, and whether the caller can skip the edges of ``t``."""
    body, n, radius = ground.body, t.normal, ground.body.shape.radius
    lowest = body.support(-n[None])[0] - radius * n
    min_gap = float(t.height(lowest))
    if min_gap > ground.margin:
        return [], True
    space = INSIDE * ground.size
    corners, ids = body.facing(-n)
    corners = corners[::-1] - radius * n  # counterclockwise seen from above
    ids = ids[::-1]
    edge_ids = [mixed(ids[i], ids[(i + 1) % len(ids)]) for i in range(len(ids))]
    axes = plane_axes(n)
    frame = np.concatenate([axes, n[None]])
    seen = (corners - t.corner[0]) @ frame.T
    rim = (t.corner - t.corner[0]) @ axes.T
    loop = Loop(seen[:, :2], edge_ids)
    edges = [mixed(t.number, k) for k in range(3)]
    for x, outward, edge in sides(Loop(rim[:: int(t.side)], edges)):
        loop = clip(loop, x, outward, edge, space)
        if not loop.edge:
            break
    inside = bool(np.all(t.levels(lowest - min_gap * n) <= space))
    if not loop.edge and not inside:
        return [], False
    if min_gap < -TIE * ground.size and ground.has_shorter_separation(t, lowest - min_gap * n, -min_gap):
        return [], False
    found = []
    if loop.edge:
        positions = np.column_stack([loop.corner, _heights(seen, loop.corner)])
        for i, (x, feature) in enumerate(zip(positions, loop.features(), strict=True)):
            of_shape = loop.edge[i] in edge_ids and loop.edge[i - 1] in edge_ids
            if x[2] <= ground.margin:
                found.append(ContactPoint(t.corner[0] + x @ frame, n, float(x[2]), feature, of_shape))
    if any(x.gap <= min_gap + space for x in found):
        return found, True
    if inside:
        return [*found, ContactPoint(lowest, n, min_gap, NEAREST, False)], True
    return found, False


def _has_ridge(t: Triangle) -> bool:
    """Return whether an edge of the triangle is a ridge or the border of the mesh."""
    for k, tip in enumerate(t.opposite):
        if tip is None:
            return True
        to = t.aside(k, tip[None])[0]
        if to @ t.normal < -FLAT * np.linalg.norm(to):
            return True
    return False


def _at_rim(ground: Ground, t: Triangle) -> list[ContactPoint]:
    normal = t.side * t.normal
    faces = Faces(_TWO_SIDES.first, _TWO_SIDES.vertex, np.stack([normal, -normal]))
    hull = Posed(Polytope(np.zeros(8), t.corner - t.corner[0], faces), t.corner[0], np.eye(3))
    pair = Pair(hull, ground.body)
    near, _ = approach(pair, ground.margin, t.normal)
    if near is None:
        return []
    m = manifold(pair, near, ground.margin)
    gaps = np.vecdot(m.on_b - m.on_a, m.normal)
    return [
        ContactPoint(b, m.normal, float(gap), mixed(t.number, feature), False)
        for a, b, gap, feature in zip(m.on_a, m.on_b, gaps, m.feature, strict=True)
        if ground.has_normal(t, a, m.normal)
    ]
