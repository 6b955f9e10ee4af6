"""Smooth normals of triangle meshes. Sharp edges stay sharp."""

from __future__ import annotations

import numpy as np

from gpusim.description.shape_kinds import CREASE
from gpusim.typing import Array


def corner_normals(vertices: Array, triangles: Array, crease: float = CREASE) -> Array:
    """Return smooth normals at the three corners of each triangle, (3 * triangles, 3).

    The normal at a corner is a weighted mean of the triangle normals around the vertex.
    """
    corners = vertices[triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    faces /= np.maximum(np.linalg.norm(faces, axis=1), 1e-300)[:, None]
    vertex = triangles.reshape(-1)
    face = np.repeat(np.arange(len(triangles)), 3)
    first, second = _pairs_at_vertices(vertex, len(vertices))
    smooth = np.einsum("ij,ij->i", faces[face[first]], faces[face[second]]) > np.cos(np.radians(crease))
    first, second = first[smooth], second[smooth]
    weighted = faces[face[second]] * _corner_angles(corners).reshape(-1)[second, None]
    sums = np.stack([np.bincount(first, weighted[:, k], minlength=len(vertex)) for k in range(3)], axis=1)
    normals: Array = sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-300)[:, None]
    return normals


def _pairs_at_vertices(vertex: Array, count: int) -> tuple[Array, Array]:
    """Return all ordered pairs of triangle corners that share a vertex, including pairs of a corner with itself."""
    order = np.argsort(vertex, kind="stable")
    valence = np.bincount(vertex, minlength=count)
    start = np.concatenate([[0], np.cumsum(valence)])[:-1]
    counts = valence[vertex[order]]
    first = np.repeat(order, counts)
    offset = np.arange(first.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, order[np.repeat(start[vertex[order]], counts) + offset]


def _corner_angles(corners: Array) -> Array:
    """Return the angles (rad) at the corners of m triangles, (m, 3)."""
    angles = np.empty(corners.shape[:2])
    for k in range(3):
        a, b = corners[:, (k + 1) % 3] - corners[:, k], corners[:, (k + 2) % 3] - corners[:, k]
        cross = np.linalg.norm(np.cross(a, b), axis=1)
        angles[:, k] = np.arctan2(cross, np.einsum("ij,ij->i", a, b))
    return angles
