"""Tiles: shapes of one body whose flat faces can form a common surface.

A tile (``ShapeType.tile``) is a box, a hull, a height field or a plane. Two tiles of a body are neighbors if their
bounding boxes touch and a face of each tile lies in a common surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import ShapeSpec
from gpusim.typing import Array

MAX_GAP, MAX_GAP_RATIO = 2e-4, 0.02
"""Upper bounds on the gap between neighbor tiles: MAX_GAP (m), and MAX_GAP_RATIO times half the tile's thickness."""
SEAM_CONE = 0.985
"""Cosine of 10 degrees. In a common surface, the normals of two tiles differ by at most this angle."""


def seam_reach(shapes: Sequence[ShapeSpec]) -> Array:
    """Return the maximum gap (m) to neighbor tiles for each tile, and 0 for all other shapes, (shapes,)."""
    half = [shape_type(s.kind).tile(s.params) for s in shapes]
    return np.minimum(MAX_GAP, MAX_GAP_RATIO * np.array(half, dtype=np.float64))


def seams(shapes: Sequence[ShapeSpec], tolerance: Array) -> list[list[int]]:
    """Return the neighbor tiles of each shape in ascending order."""
    neighbors: list[list[int]] = [[] for _ in shapes]
    on: dict[int, list[int]] = {}
    for i in np.flatnonzero(tolerance > 0.0).tolist():
        on.setdefault(shapes[i].body, []).append(i)
    for tiles in on.values():
        if len(tiles) > 1:
            _join(shapes, tolerance, tiles, neighbors)
    return [sorted(row) for row in neighbors]


@dataclass
class _Tile:
    """Tile with n triangles in the body frame: corners (n, 3, 3) and unit normals (n, 3)."""

    triangles: Array
    normals: Array
    bent: bool
    """True for a height field."""
    bounded: bool

    def flush(self, other: _Tile, space: float) -> bool:
        """Return True if a face of this tile and a face of ``other`` lie in a common surface."""
        if self.bent or other.bent:
            return True
        i, j = np.nonzero(self.normals @ other.normals.T >= SEAM_CONE)
        near = np.ones(i.size, dtype=bool)
        for a, b, m, n in ((self, other, i, j), (other, self, j, i)):
            if not b.bounded:
                continue
            height = np.vecdot(b.triangles[n] - a.triangles[m, :1], a.normals[m, None])
            near &= (height.min(axis=1) <= space) & (height.max(axis=1) >= -space)
        return bool(near.any())


def _tile(shape: ShapeSpec) -> _Tile:
    kind, rotation = shape_type(shape.kind), shape.xform.matrix()
    if not np.isfinite(kind.radius(shape.params)):
        corners = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, 0.0]])
        return _Tile((corners @ rotation.T + shape.xform.position)[None], rotation[None, :, 2], False, False)
    surfaces = kind.surfaces(shape.params)
    triangles = (
        np.concatenate([vertices[faces] for vertices, faces, *_ in surfaces]) @ rotation.T + shape.xform.position
    )
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    size = np.linalg.norm(normals, axis=1, keepdims=True)
    return _Tile(triangles, normals / np.where(size > 0.0, size, 1.0), not np.isfinite(kind.tile(shape.params)), True)


def _join(shapes: Sequence[ShapeSpec], tolerance: Array, tiles: list[int], neighbors: list[list[int]]) -> None:
    made = {i: _tile(shapes[i]) for i in tiles}
    index = np.array([i for i in tiles if made[i].bounded], dtype=np.int64)
    lower = np.array([made[i].triangles.min(axis=(0, 1)) - tolerance[i] for i in index]).reshape(-1, 3)
    upper = np.array([made[i].triangles.max(axis=(0, 1)) + tolerance[i] for i in index]).reshape(-1, 3)
    order = np.argsort(lower[:, 0], kind="stable")
    lower, upper, index = lower[order], upper[order], index[order]
    last = np.searchsorted(lower[:, 0], upper[:, 0], side="right")
    pairs = [(p, int(i)) for p in tiles if not made[p].bounded for i in index]
    for k, a in enumerate(index):
        others = slice(k + 1, last[k])
        near = np.all((lower[others] <= upper[k]) & (upper[others] >= lower[k]), axis=1)
        pairs += [(int(a), int(b)) for b in index[others][near]]
    for a, b in pairs:
        if made[a].flush(made[b], tolerance[a] + tolerance[b]):
            neighbors[a].append(b)
            neighbors[b].append(a)
