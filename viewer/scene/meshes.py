"""Triangle meshes with normals: unit shapes that instances stretch, and shapes that need a mesh of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np

from gpusim.geometry.box import Box
from gpusim.geometry.cylinder import Cylinder
from gpusim.geometry.pieces import Piece
from gpusim.geometry.sphere import Sphere
from gpusim.geometry.tessellation import revolve, rings_mesh
from gpusim.model.shape_kinds import CREASE, Params, ShapeType, shape_type
from gpusim.model.specs import ShapeSpec, VisualSpec
from gpusim.typing import Array


@dataclass(frozen=True)
class TriangleMesh:
    """An indexed mesh with a normal at each vertex; outside is where triangles run counterclockwise.

    Attributes:
        positions: (n, 3), m or in units that an instance stretches.
        normals: (n, 3), unit vectors.
        triangles: (m, 3) indices.
    """

    positions: Array
    normals: Array
    triangles: Array

    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest corner, (3,) each."""
        return self.positions.min(axis=0), self.positions.max(axis=0)


@dataclass(frozen=True)
class MeshSource:
    """A mesh by name, made when it is first drawn with as many segments around a circle as the picture can bear.

    Two sources of one ``key`` are the same mesh; instances of it are drawn together.
    """

    key: str
    make: Callable[[int], TriangleMesh] = field(compare=False)
    round: bool = field(default=True, compare=False)
    """False: ``segments`` change nothing."""
    open: bool = field(default=False, compare=False)
    """Encloses no volume, so that its triangles are seen from both sides."""


@lru_cache(maxsize=512)
def coarse_points(source: MeshSource) -> Array:
    """Vertices of a mesh with few segments, (n, 3): enough to know how far it reaches."""
    return source.make(12).positions


def smooth_mesh(vertices: Array, triangles: Array, crease: float = CREASE) -> TriangleMesh:
    """A mesh with smooth normals that keeps edges sharper than ``crease`` (degrees).

    A corner's normal is the mean of those faces around its vertex that turn less than that from its own face,
    weighted by their angles at the vertex, so that it does not depend on how a flat face is cut into triangles.
    """
    corners = vertices[triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    faces /= np.maximum(np.linalg.norm(faces, axis=1), 1e-300)[:, None]
    vertex = triangles.reshape(-1)
    face = np.repeat(np.arange(len(triangles)), 3)
    first, second = _pairs_at_vertices(vertex, len(vertices))
    near = np.einsum("ij,ij->i", faces[face[first]], faces[face[second]]) > np.cos(np.radians(crease))
    first, second = first[near], second[near]
    shares = faces[face[second]] * _corner_angles(corners).reshape(-1)[second, None]
    sums = np.stack([np.bincount(first, shares[:, k], minlength=len(vertex)) for k in range(3)], axis=1)
    normals = sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-300)[:, None]
    names = np.concatenate([vertex[:, None], np.round(normals * 1e4)], axis=1)
    _, kept, back = np.unique(names, axis=0, return_index=True, return_inverse=True)
    return TriangleMesh(vertices[vertex[kept]], normals[kept], back.reshape(-1, 3).astype(np.int32))


def _pairs_at_vertices(vertex: Array, count: int) -> tuple[Array, Array]:
    """All ordered pairs of corners that share a vertex, each corner with itself included."""
    order = np.argsort(vertex, kind="stable")
    valence = np.bincount(vertex, minlength=count)
    start = np.concatenate([[0], np.cumsum(valence)])[:-1]
    mates = valence[vertex[order]]
    first = np.repeat(order, mates)
    within = np.arange(first.size) - np.repeat(np.cumsum(mates) - mates, mates)
    return first, order[np.repeat(start[vertex[order]], mates) + within]


def _corner_angles(corners: Array) -> Array:
    """Angles of triangles (m, 3, 3) at their corners, rad, (m, 3)."""
    angles = np.empty(corners.shape[:2])
    for k in range(3):
        a, b = corners[:, (k + 1) % 3] - corners[:, k], corners[:, (k + 2) % 3] - corners[:, k]
        across = np.linalg.norm(np.cross(a, b), axis=1)
        angles[:, k] = np.arctan2(across, np.einsum("ij,ij->i", a, b))
    return angles


def _source(kind: ShapeType, params: Params) -> MeshSource:
    """The mesh of a shape; known by its numbers, or, where these are many, by what it looks like."""
    numbers = (f"{number:g}" for value in params.values() for number in np.ravel(value))
    name = " ".join(numbers) if kind.stretched_by else _digest(*kind.mesh(params))

    def make(segments: int) -> TriangleMesh:
        return _joined([smooth_mesh(*surface) for surface in kind.surfaces(params, segments)])

    return MeshSource(f"{kind.name} {name}", make, round=kind.picture == "round")


def _joined(meshes: list[TriangleMesh]) -> TriangleMesh:
    firsts = np.cumsum([0, *(len(mesh.positions) for mesh in meshes[:-1])])
    return TriangleMesh(
        np.concatenate([mesh.positions for mesh in meshes]),
        np.concatenate([mesh.normals for mesh in meshes]),
        np.concatenate([mesh.triangles + first for mesh, first in zip(meshes, firsts, strict=True)]).astype(np.int32),
    )


BALL = _source(Sphere(), {"radius": 1.0})
BOX = _source(Box(), {"half_extents": np.ones(3)})
CYLINDER = _source(Cylinder(), {"radius": 1.0, "half_length": 1.0})
ROD = MeshSource("rod", lambda segments: smooth_mesh(*revolve(np.ones(2), np.array([0.0, 1.0]), segments)))
"""A cylinder of radius 1 from z = 0 to 1, for pieces between two points."""


def coil(aspect: float, turns: int) -> MeshSource:
    """A coil spring of radius 1 around z from 0 to 1 whose wire is round at the length ``aspect``."""
    aspect = float(f"{aspect:.2g}")
    return MeshSource(f"coil {aspect:g} {turns}", lambda segments: _coil_mesh(aspect, turns, segments))


def _coil_mesh(aspect: float, turns: int, segments: int) -> TriangleMesh:
    """A tube along a helix with closed ends; the first and last turn lie flat, as those of a ground spring do."""
    wire = min(0.22, 0.3 * aspect / (turns + 1))
    steps = max(8, segments * 2 // 3) * turns + 1
    angle = np.linspace(0.0, 2.0 * np.pi * turns, steps)
    share = np.clip((angle - 1.5 * np.pi) / (2.0 * np.pi * turns - 3.0 * np.pi), 0.0, 1.0)
    height = wire + share * (aspect - 2.0 * wire)
    center = np.stack([(1.0 - wire) * np.cos(angle), (1.0 - wire) * np.sin(angle), height], 1)
    tangent = np.gradient(center, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    outward = np.stack([np.cos(angle), np.sin(angle), np.zeros(steps)], 1)
    outward -= np.einsum("ij,ij->i", outward, tangent)[:, None] * tangent
    outward /= np.linalg.norm(outward, axis=1)[:, None]
    side = np.cross(tangent, outward)
    around = 2.0 * np.pi * np.arange(max(6, segments // 3)) / max(6, segments // 3)
    rings = center[:, None] + wire * (
        np.cos(around)[None, :, None] * outward[:, None] + np.sin(around)[None, :, None] * side[:, None]
    )
    vertices, triangles = rings_mesh(rings)
    return smooth_mesh(vertices / [1.0, 1.0, aspect], triangles, crease=60.0)


def shape_mesh(shape: ShapeSpec | VisualSpec) -> tuple[MeshSource, Array]:
    """The mesh of a shape or a visual of its kind, and how far it is stretched along the axes of its frame, (3,).

    Not for grounds: they are drawn by their own shader.
    """
    kind = shape_type(shape.kind)
    params, stretch = kind.unit(shape.params)
    return _source(kind, params), stretch


@lru_cache(maxsize=512)
def piece_mesh(piece: Piece) -> MeshSource:
    """The mesh of a piece of a visual; equal ones are drawn together, and normals are computed once."""
    key = f"piece {_digest(piece.vertices, piece.triangles)}"
    made = cache(lambda: smooth_mesh(piece.vertices, piece.triangles))
    return MeshSource(key, lambda segments: made(), round=False, open=not piece.closed)


def _digest(vertices: Array, triangles: Array) -> str:
    data = np.asarray(vertices).tobytes() + triangles.tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()
