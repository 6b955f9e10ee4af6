"""Ray casting against triangle meshes. The CUDA code is in cuda_kernels/rays/triangle_mesh.cuh."""

from __future__ import annotations

import numpy as np

from gpusim.description.shape_kinds import Line
from gpusim.meshes.triangle_tree import LEAF, TriangleTree
from gpusim.typing import Array

_INSIDE = 1e-12
"""Tolerance of the barycentric coordinates. Without it, rays could pass between two adjacent triangles."""


def cast_mesh(tree: TriangleTree, line: Line) -> tuple[Array, Array]:
    """Cast rays against a mesh, as in ``ShapeType.cast``."""
    count = line.start.size
    s, normal = np.full(count, np.inf), np.tile([0.0, 0.0, 1.0], (count, 1))
    for i in range(count):
        number = _candidate_triangles(tree, line.origin[i], line.direction[i], float(line.start[i]))
        if not number.size:
            continue
        distances, normals = _intersect_triangles(tree, number, line.origin[i], line.direction[i])
        distances = np.where(distances >= line.start[i], distances, np.inf)
        k = int(np.argmin(distances))
        s[i], normal[i] = distances[k], normals[k]
    return s, normal


def _candidate_triangles(tree: TriangleTree, origin: Array, direction: Array, start: float) -> Array:
    """Return the triangles of all tree leaves whose boxes the ray hits, in ascending order."""
    lower, step = tree.grid
    sides, found, at = tree.sides, [], np.zeros(1, dtype=np.int64)
    flat = direction == 0.0
    rate = np.where(flat, 1.0, direction)
    while at.size:
        low = lower + (sides[at, 0] - 1.0) * step - origin
        high = lower + (sides[at, 1] + 1.0) * step - origin
        enter = np.where(
            flat, np.where((low <= 0.0) & (high >= 0.0), -np.inf, np.inf), np.minimum(low / rate, high / rate)
        )
        leave = np.where(flat, np.inf, np.maximum(low / rate, high / rate))
        at = at[np.maximum(enter.max(axis=1), start) <= leave.min(axis=1)]
        link = tree.nodes[at, 3]
        found.append(-1 - link[link < 0])
        inner = at[link >= 0]
        below = tree.nodes[inner + 1, 3]
        at = np.concatenate([inner + 1, np.where(below < 0, inner + 2, below)])
    number = (LEAF * np.sort(np.concatenate(found))[:, None] + np.arange(LEAF)).ravel()
    return number[number < tree.solid]


def _intersect_triangles(tree: TriangleTree, number: Array, origin: Array, direction: Array) -> tuple[Array, Array]:
    """Return the ray parameters (m) of the hits (inf without a hit) and the normals (Moeller, Trumbore 1997)."""
    corner = tree.vertices[tree.triangles[number]]
    e, f = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    p = np.cross(direction, f)
    volume = np.vecdot(e, p)
    with np.errstate(all="ignore"):
        offset = origin - corner[:, 0]
        u = np.vecdot(offset, p) / volume
        q = np.cross(offset, e)
        v = q @ direction / volume
        s = np.vecdot(f, q) / volume
    hit = (volume != 0.0) & (u >= -_INSIDE) & (v >= -_INSIDE) & (u + v <= 1.0 + _INSIDE)
    return np.where(hit, s, np.inf), np.cross(e, f)
