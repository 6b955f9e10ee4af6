"""Seams between triangle meshes of a body. Triangles of different meshes become neighbors if they share vertices.

Shapes then slide across the seam without catching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpusim.compiler.seams import MAX_GAP, SEAM_CONE
from gpusim.description.specs import ShapeSpec
from gpusim.meshes.triangle_tree import TriangleTree, build_tree
from gpusim.meshes.welding import repeated
from gpusim.typing import Array

_TOLERANCE = 1e-4
"""Vertices closer than this fraction of the mesh's extent count as equal. The maximum distance is never above MAX_GAP
(m)."""
_WEIGHTS = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0])


def with_mesh_seams(shapes: Sequence[ShapeSpec]) -> list[ShapeSpec]:
    """Connect meshes of a body that share vertices and have equal collision groups and masks. Return all shapes."""
    groups: dict[tuple[int, int | str, int], list[int]] = {}
    for i, shape in enumerate(shapes):
        if isinstance(shape.params.get("tree"), TriangleTree):
            groups.setdefault((shape.body, shape.group, shape.mask), []).append(i)
    joined = list(shapes)
    for meshes in groups.values():
        if len(meshes) > 1:
            body_meshes = [_BodyMesh(shapes[i]) for i in meshes]
            for i, mesh in zip(meshes, body_meshes, strict=True):
                others = [x for x in body_meshes if x is not mesh and mesh.overlaps(x) and not mesh.shares_mesh(x)]
                joined[i] = mesh.joined(others) if others else shapes[i]
    return joined


class _BodyMesh:
    """A triangle mesh with vertices in the body's frame."""

    def __init__(self, shape: ShapeSpec) -> None:
        self.shape = shape
        self.tree: TriangleTree = shape.params["tree"]
        self.vertices = shape.xform.apply(self.tree.vertices)
        self.low, self.high = self.vertices.min(axis=0), self.vertices.max(axis=0)
        self.tolerance = min(MAX_GAP, _TOLERANCE * float((self.high - self.low).max()))

    def overlaps(self, other: _BodyMesh) -> bool:
        return bool(np.all((other.low <= self.high + self.tolerance) & (other.high >= self.low - self.tolerance)))

    def vertices_near(self, other: _BodyMesh, tolerance: float) -> Array:
        """Return the indices of this mesh's vertices that are in the bounding box of another mesh."""
        inside = np.all((self.vertices >= other.low - tolerance) & (self.vertices <= other.high + tolerance), axis=1)
        return np.flatnonzero(inside)

    def shares_mesh(self, other: _BodyMesh) -> bool:
        """Return True if this shape and ``other`` are parts of one mesh. Such parts are already connected."""
        if self.shape.xform != other.shape.xform or self.tree.solid == len(self.tree.triangles):
            return False
        ours = self.tree.vertices[self.tree.triangles[self.tree.solid :]]
        theirs = other.tree.vertices[other.tree.triangles[: other.tree.solid]]
        return bool(np.isin(ours.reshape(-1, 9) @ _WEIGHTS, theirs.reshape(-1, 9) @ _WEIGHTS).any())

    def joined(self, others: Sequence[_BodyMesh]) -> ShapeSpec:
        """Return the shape with new neighbors: the triangles of ``others`` that share a vertex with this mesh."""
        from scipy.spatial import KDTree  # slow to import

        tree, count, tolerance = self.tree, len(self.tree.triangles), self.tolerance
        candidates = np.unique(np.concatenate([self.vertices_near(x, tolerance) for x in others]))
        if not candidates.size:
            return self.shape
        finder, corners = KDTree(self.vertices[candidates]), []
        for x in others:
            close = x.vertices_near(self, tolerance)
            close = close[np.isfinite(finder.query(x.vertices[close], distance_upper_bound=tolerance)[0])]
            solid = x.tree.triangles[: x.tree.solid]
            corners.append(x.vertices[solid[np.isin(solid, close).any(axis=1)]])
        neighbors = np.concatenate(corners)
        points = neighbors.reshape(-1, 3)
        distance, nearest = finder.query(points, distance_upper_bound=tolerance)
        first = np.array([min(same) for same in KDTree(points).query_ball_point(points, tolerance)], dtype=np.int64)
        new = np.isinf(distance)
        added, number = np.unique(first[new], return_inverse=True)
        vertex = np.empty(len(points), dtype=np.int32)
        vertex[~new], vertex[new] = candidates[nearest[~new]], len(self.vertices) + number
        triangles = np.concatenate([tree.triangles, vertex.reshape(-1, 3)])
        valid = np.all(triangles != np.roll(triangles, 1, axis=1), axis=1)
        valid[repeated(triangles)] = False
        valid[:count] = True
        chosen = np.arange(len(triangles)) < tree.solid
        shared = np.isin(tree.triangles, vertex[~new]).all(axis=1) & np.all(tree.beyond >= 0, axis=1)
        walls = [t for t in np.flatnonzero(shared[: tree.solid]).tolist() if self._covered(t, neighbors)]
        if len(walls) < tree.solid:
            chosen[walls] = False
        if valid.sum() == count and chosen.sum() == tree.solid:
            return self.shape
        vertices = np.concatenate([tree.vertices, self.shape.xform.inverse().apply(points[added])])
        return replace(self.shape, params={"tree": build_tree(vertices, triangles[valid], chosen[valid])})

    def _covered(self, t: int, others: Array) -> bool:
        """Return True if one of the n triangles ``others`` (n, 3, 3) faces triangle t and touches the center of t.

        Triangle t is then hidden between two closed meshes.
        """
        corner = self.vertices[self.tree.triangles[t]]
        normal, normals = (np.cross(x[..., 1, :] - x[..., 0, :], x[..., 2, :] - x[..., 0, :]) for x in (corner, others))
        offset = corner.mean(axis=0) - others
        length = np.linalg.norm(normals, axis=1)
        facing = normals @ normal < -SEAM_CONE * length * np.linalg.norm(normal)
        level = np.abs(np.vecdot(offset[:, 0], normals)) <= self.tolerance * length
        inside = np.vecdot(np.cross(np.roll(others, -1, axis=1) - others, offset), normals[:, None]).min(axis=1) > 0.0
        return bool(np.any(facing & level & inside))
