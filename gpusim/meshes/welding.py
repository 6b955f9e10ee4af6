"""Preparation of triangles for collisions: check them, merge vertices, and delete degenerate or repeated triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import validate
from gpusim.meshes.pieces import mesh_triangles
from gpusim.typing import Array

WELD = 1e-7
"""Vertices are rounded to multiples of this fraction of the mesh's extent (float32 resolution) before comparison."""
_THIN = 1e-7
"""Minimum height of a triangle divided by its longest edge. Thinner triangles are degenerate."""
_CHUNK = 1 << 16
_PRIMES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))


def welded_mesh(element: str, mesh: Any, scale: Any = 1.0) -> tuple[Array, Array, Array]:
    """Return vertices (n, 3) in m, triangles (m, 3), and a mask of the original triangles that remain.

    Args:
        element: name for error messages.
        mesh: path of a file, ``(vertices, triangles)``, or an object with ``vertices`` and ``faces``.
        scale: factor from the mesh's unit to m, one number or one per axis. A negative factor mirrors the mesh.

    Raises:
        ModelError: the file cannot be read, a vertex is not finite, an index is out of range, a scale factor is 0, or
            no triangle has an area.
    """
    factors = validate.per_axis(element, "scale", scale, 3)
    if np.any(factors == 0.0):
        raise validate.fail(element, "scale has a zero", "give factors that are not zero, such as 0.001 for mm")
    sheets = mesh_triangles(element, mesh)
    first = np.cumsum([0, *(len(vertices) for vertices, _ in sheets)])
    vertices = np.concatenate([vertices for vertices, _ in sheets]) * factors
    triangles = np.concatenate([t + start for (_, t), start in zip(sheets, first, strict=False)])
    if np.prod(factors) < 0.0:
        triangles = triangles[:, ::-1]
    vertices, triangles, kept = _with_area(*_welded(vertices, triangles.astype(np.int32)))
    if not len(triangles):
        raise validate.fail(element, "its mesh has no triangle with an area", "give a mesh with at least one")
    return vertices, triangles, kept


def _welded(vertices: Array, triangles: Array) -> tuple[Array, Array]:
    """Merge vertices with equal rounded positions, and delete vertices without triangles."""
    if not len(triangles):
        return vertices, triangles
    used = np.zeros(len(vertices), dtype=bool)
    used[triangles] = True
    if not used.all():
        vertices, triangles = vertices[used], (np.cumsum(used, dtype=np.int32) - 1)[triangles]
    size = float(np.ptp(vertices, axis=0).max()) or 1.0
    grid = np.round((vertices - vertices.min(axis=0)) / (WELD * size)).astype(np.int32)
    _, first, inverse = np.unique(_row_hashes(*grid.T), return_index=True, return_inverse=True)
    if len(first) == len(grid):
        return vertices, triangles
    if not np.array_equal(grid[first][inverse], grid):  # two positions with the same hash
        _, first, inverse = np.unique(grid, axis=0, return_index=True, return_inverse=True)
    return vertices[first], inverse.reshape(-1).astype(np.int32)[triangles]


def _with_area(vertices: Array, triangles: Array) -> tuple[Array, Array, Array]:
    """Delete triangles with zero area, and triangles with the same vertices as an earlier triangle."""
    if not len(triangles):
        return vertices, triangles, np.zeros(0, dtype=bool)
    kept = np.concatenate([_has_area(vertices[part]) for part in chunks(triangles)])
    kept[repeated(triangles)] = False
    if not kept.all():
        triangles = triangles[kept]
        # deletes vertices of deleted triangles
        used = np.zeros(len(vertices), dtype=bool)
        used[triangles] = True
        vertices, triangles = vertices[used], (np.cumsum(used, dtype=np.int32) - 1)[triangles]
    return vertices, triangles, kept


def chunks(triangles: Array) -> list[Array]:
    """Split triangles (n, 3) into smaller arrays, to save memory."""
    return np.array_split(triangles, -(-len(triangles) // _CHUNK)) if len(triangles) else []


def _has_area(corner: Array) -> Array:
    edge = np.roll(corner, -1, axis=1) - corner
    double_area = np.linalg.norm(np.cross(edge[:, 0], edge[:, 1]), axis=1)
    large: Array = double_area > _THIN * np.vecdot(edge, edge).max(axis=1)
    return large


def repeated(triangles: Array) -> Array:
    """Return the indices of triangles with the same three vertices as an earlier triangle."""
    low, high = triangles.min(axis=1), triangles.max(axis=1)
    middle = triangles.sum(axis=1) - low - high
    key = _row_hashes(low, middle, high)
    ordered = np.sort(key)
    if not np.any(ordered[1:] == ordered[:-1]):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((high, middle, low))
    same = [x[order][1:] == x[order][:-1] for x in (low, middle, high)]
    return order[1:][np.logical_and.reduce(same)]


def _row_hashes(*numbers: Array) -> Array:
    """Return one hash per row of a table. Each argument is one column of nonnegative integers."""
    key = np.zeros(len(numbers[0]), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for number, prime in zip(numbers, _PRIMES, strict=True):
            key = (key ^ number.astype(np.uint64)) * prime
            key ^= key >> np.uint64(29)
    return key
