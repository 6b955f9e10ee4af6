"""Triangle meshes of round shapes, for drawing and tests."""

from __future__ import annotations

import numpy as np

from gpusim.typing import Array


def revolve(radius: Array, z: Array, segments: int) -> tuple[Array, Array]:
    """Return a closed surface of revolution about z.

    Args:
        radius, z: n points of the profile, each (n,) in m. ``z`` must increase.
        segments: number of edges around the axis.

    Returns:
        Vertices and triangles, see ``shape_kinds.Mesh``.
    """
    angle = 2.0 * np.pi * np.arange(segments) / segments
    rings = np.stack(
        [np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle)), np.outer(z, np.ones(segments))], axis=-1
    )
    return rings_mesh(rings)


def rings_mesh(rings: Array) -> tuple[Array, Array]:
    """Return a closed surface through n rings of points (n, segments, 3) around z, from the bottom to the top."""
    n, segments = rings.shape[:2]
    vertices = np.concatenate([rings.reshape(-1, 3), rings[0].mean(axis=0)[None], rings[-1].mean(axis=0)[None]])
    low, high = n * segments, n * segments + 1
    here = np.arange(segments)
    there = (here + 1) % segments
    triangles = [np.stack([np.full(segments, low), there, here], axis=1)]
    for k in range(n - 1):
        a, b, c, d = k * segments + here, k * segments + there, (k + 1) * segments + there, (k + 1) * segments + here
        triangles += [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
    top = (n - 1) * segments
    triangles.append(np.stack([np.full(segments, high), top + here, top + there], axis=1))
    return without_slivers(vertices, np.concatenate(triangles).astype(np.int32))


def without_slivers(vertices: Array, triangles: Array) -> tuple[Array, Array]:
    """Merge coincident vertices, and delete triangles that become degenerate."""
    scale = float(np.abs(vertices).max()) or 1.0
    _, first, inverse = np.unique(np.round(vertices / scale, 12), axis=0, return_index=True, return_inverse=True)
    triangles = inverse.reshape(-1)[triangles]
    distinct = (
        (triangles[:, 0] != triangles[:, 1])
        & (triangles[:, 1] != triangles[:, 2])
        & (triangles[:, 2] != triangles[:, 0])
    )
    return vertices[first], triangles[distinct].astype(np.int32)


def arc(radius: float, start: float, end: float, count: int) -> tuple[Array, Array]:
    """Return points of a circular arc in the (radius, z) plane, with angles (rad) from +radius towards +z."""
    angle = np.linspace(start, end, count)
    return radius * np.cos(angle), radius * np.sin(angle)
