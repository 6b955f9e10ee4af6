"""Triangle meshes with normals. All instances of a simple shape share one mesh of unit size."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

import numpy as np

from gpusim.description.looks import PROJECTED, Texture
from gpusim.description.shape_kinds import CREASE, Params, ShapeType, shape_type
from gpusim.description.specs import ShapeSpec, VisualSpec
from gpusim.meshes.normals import corner_normals
from gpusim.meshes.pieces import Piece
from gpusim.meshes.tessellation import revolve, rings_mesh
from gpusim.shapes.box import Box
from gpusim.shapes.cylinder import Cylinder
from gpusim.shapes.sphere import Sphere
from gpusim.stage.texcoords import corner_texcoords, surface_uv
from gpusim.typing import Array


@dataclass(frozen=True)
class TriangleMesh:
    """Indexed mesh with a normal at each vertex. Triangles are counterclockwise seen from outside.

    Attributes:
        positions: vertex positions (n, 3), in m. Each instance scales the mesh of a unit shape.
        normals: unit normals (n, 3) of the vertices.
        triangles: vertex indices (m, 3).
        texcoords: texture coordinates (n, 3), or None without a texture. Texture coordinates are (u, v, 0), or a
            direction in a cube map.
        colors: vertex colors (n, 3), sRGB, uint8. With None, each instance has one color.
    """

    positions: Array
    normals: Array
    triangles: Array
    texcoords: Array | None = None
    colors: Array | None = None

    def bounds(self) -> tuple[Array, Array]:
        """Return the lower and the upper corner (3,) of the bounding box."""
        return self.positions.min(axis=0), self.positions.max(axis=0)


@dataclass(frozen=True)
class MeshSource:
    """Mesh that is created on first use. ``make(segments)`` sets the number of segments per circle."""

    key: str
    make: Callable[[int], TriangleMesh] = field(compare=False)
    round: bool = field(default=True, compare=False)
    """True if the mesh depends on the number of segments."""
    open: bool = field(default=False, compare=False)
    """True if the mesh is an open surface."""
    texture: Texture | None = field(default=None, compare=False)
    """Texture of the surface."""
    colored: bool = field(default=False, compare=False)
    """True if the vertices have colors."""

    @property
    def dressed(self) -> bool:
        """True if the mesh has a texture or vertex colors."""
        return self.colored or self.texture is not None


@lru_cache(maxsize=512)
def coarse_points(source: MeshSource) -> Array:
    """Return the vertices (n, 3) of a mesh with few segments, for an estimate of the extent."""
    return source.make(12).positions


def smooth_mesh(vertices: Array, triangles: Array, crease: float = CREASE) -> TriangleMesh:
    """Return a mesh with smooth normals, except at edges sharper than ``crease`` (degrees)."""
    return from_corners(vertices, triangles, corner_normals(vertices, triangles, crease))


def from_corners(
    vertices: Array, triangles: Array, normals: Array, texcoords: Array | None = None, colors: Array | None = None
) -> TriangleMesh:
    """Return a mesh in which triangle corners with equal data share one vertex.

    For m triangles, ``normals``, ``texcoords`` and ``colors`` are (3 m, 3): one value for each triangle corner.
    """
    vertex = triangles.reshape(-1)
    keys = [vertex[:, None], np.round(normals * 1e4)]
    keys += [] if texcoords is None else [np.round(texcoords * 1e6)]
    keys += [] if colors is None else [colors]
    hashes = np.zeros(len(vertex), dtype=np.uint64)
    factors = np.random.default_rng(1).integers(1 << 63, size=16, dtype=np.uint64) * 2 + 1
    for column, factor in zip(np.concatenate(keys, axis=1).T, factors, strict=False):
        hashes += column.astype(np.int64).astype(np.uint64) * factor  # five times faster than np.unique on rows
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    optional = (None if values is None else values[first] for values in (texcoords, colors))
    return TriangleMesh(vertices[vertex[first]], normals[first], inverse.reshape(-1, 3).astype(np.int32), *optional)


def _source(kind: ShapeType, params: Params) -> MeshSource:
    """Return the mesh of a shape without a texture."""
    numbers = (f"{number:g}" for value in params.values() for number in np.ravel(value))
    name = " ".join(numbers) if kind.stretched_by else _digest(*kind.mesh(params))

    def make(segments: int) -> TriangleMesh:
        return _joined([smooth_mesh(*surface) for surface in kind.surfaces(params, segments)])

    round = kind.picture == "round"
    # Meshes that do not depend on the segments are created once, since large meshes need seconds.
    once = cache(lambda: make(0))
    return MeshSource(f"{kind.name} {name}", make if round else lambda _: once(), round, kind.two_sided)


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
"""Cylinder of radius 1 from z = 0 to z = 1, for parts between two points."""


def coil(aspect: float, turns: int) -> MeshSource:
    """Return the mesh of a coil spring with radius 1 from z = 0 to z = 1."""
    aspect = float(f"{aspect:.2g}")
    return MeshSource(f"coil {aspect:g} {turns}", lambda segments: _coil_mesh(aspect, turns, segments))


def _coil_mesh(aspect: float, turns: int, segments: int) -> TriangleMesh:
    """Return a tube along a helix with flat, closed ends."""
    wire = min(0.22, 0.3 * aspect / (turns + 1))
    steps = max(8, segments * 2 // 3) * turns + 1
    angle = np.linspace(0.0, 2.0 * np.pi * turns, steps)
    fraction = np.clip((angle - 1.5 * np.pi) / (2.0 * np.pi * turns - 3.0 * np.pi), 0.0, 1.0)
    height = wire + fraction * (aspect - 2.0 * wire)
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


def shape_mesh(shape: ShapeSpec | VisualSpec, texture: Texture | None = None) -> tuple[MeshSource, Array]:
    """Return the mesh of a shape or visual, and its scale factors (3,) along the axes of its frame.

    Drawn planes are not supported. With a texture, the scale factors are 1.
    """
    kind = shape_type(shape.kind)
    if texture is not None:
        return _textured(_source(kind, shape.params), kind.picture, texture), np.ones(3)
    params, stretch = kind.unit(shape.params)
    return _source(kind, params), stretch


def _textured(plain: MeshSource, picture: str, texture: Texture) -> MeshSource:
    """Return the mesh of a shape with a texture."""

    def make(segments: int) -> TriangleMesh:
        return with_texture(plain.make(segments), picture, texture)

    return replace(plain, key=f"{plain.key} {_texture_key(texture)}", make=make, texture=texture)


def with_texture(mesh: TriangleMesh, picture: str, texture: Texture) -> TriangleMesh:
    """Return the mesh of a shape with texture coordinates."""
    corners, normals = mesh.positions[mesh.triangles], mesh.normals[mesh.triangles]
    uv = surface_uv(picture, corners, normals).reshape(-1, 2)
    texcoords = corner_texcoords(texture, corners.reshape(-1, 3), uv if picture != "terrain" else None)
    return from_corners(mesh.positions, mesh.triangles, normals.reshape(-1, 3), texcoords)


def _texture_key(texture: Texture | None) -> str:
    return "" if texture is None else f"{texture.key} {texture.repeat} {texture.mapping}"


@lru_cache(maxsize=512)
def piece_mesh(piece: Piece, texture: Texture | None = None, colored: bool = False) -> MeshSource:
    """Return the mesh of one piece of a visual (the triangles of one material). Equal pieces share a mesh.

    Args:
        piece: triangles of the piece.
        texture: texture that replaces the piece's texture, or None.
        colored: True if the vertices have the colors of the piece.
    """
    if texture is not None and piece.uv is None and not texture.is_cube:
        texture = replace(texture, mapping=PROJECTED)
    colors = piece.colors if colored else None
    uv = piece.uv if texture is not None else None
    key = f"piece {_digest(piece.vertices, piece.triangles, piece.normals, uv, colors)} {_texture_key(texture)}"

    @cache
    def make() -> TriangleMesh:
        corner = corner_normals(piece.vertices, piece.triangles) if piece.normals is None else piece.normals
        texcoords = None
        if texture is not None:
            points = piece.vertices[piece.triangles.reshape(-1)]
            flat_uv = None if uv is None or texture.is_cube else uv.reshape(-1, 2)
            texcoords = corner_texcoords(texture, points, flat_uv)
        flat = None if colors is None else colors.reshape(-1, 3)
        return from_corners(piece.vertices, piece.triangles, corner.reshape(-1, 3), texcoords, flat)

    is_open, colored = not piece.closed, colors is not None
    return MeshSource(key, lambda segments: make(), round=False, open=is_open, texture=texture, colored=colored)


def _digest(*arrays: Array | None) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        digest.update(b"" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()
