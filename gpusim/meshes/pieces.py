"""Triangles for drawing: one piece per material, with merged vertices and outward faces."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.description.looks import Look
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import VisualSpec
from gpusim.meshes.materials import Color, Paint, Textures, coat_of
from gpusim.meshes.mesh_files import read_mesh_file
from gpusim.meshes.polytope import solid
from gpusim.typing import Array

_BACKWARD = -0.2
"""A corner normal points inward if the cosine of its angle to the face normal is below this value."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Triangles of one material. The arrays are read-only.

    Attributes:
        vertices: (n, 3) in m, in the frame of the visual, without duplicates.
        triangles: (m, 3) indices. If ``closed``, triangles are counterclockwise seen from outside.
        closed: True if the triangles enclose a volume: each edge has a triangle on both sides.
        color: sRGB color (0 to 1), or the mean color of the texture or corners. None if the file has no color.
        look: transparency, finish and texture.
        normals: (m, 3, 3) unit normals at the corners of the triangles. None if the viewer computes the normals.
        uv: (m, 3, 2) texture coordinates of the corners, v upward, or None.
        colors: (m, 3, 3) colors of the corners, sRGB, uint8, or None.
    """

    vertices: Array
    triangles: Array
    closed: bool
    color: Color | None = None
    look: Look = field(default_factory=Look)
    normals: Array | None = None
    uv: Array | None = None
    colors: Array | None = None


@dataclass(frozen=True, eq=False)
class _Sheet:
    """Triangles of a mesh before they are checked and merged. The attributes are as in :class:`Piece`."""

    vertices: Array
    triangles: Array
    paint: Paint = Paint()
    normals: Array | None = None
    uv: Array | None = None
    colors: Array | None = None

    @property
    def kind(self) -> tuple[Any, ...]:
        """Return a key that is equal for sheets of the same material."""
        return self.paint, self.normals is None, self.uv is None, self.colors is None


def mesh_pieces(element: str, mesh: Any, scale: Any = 1.0, *, uv: Any = None, normals: Any = None) -> tuple[Piece, ...]:
    """Return the triangles of a mesh for drawing, one piece for each material.

    Args:
        element: name for error messages.
        mesh: path of a file, (vertices, triangles), an object with ``vertices`` and ``faces``, or a tuple of pieces. A
            tuple of pieces is returned unchanged.
        scale: factor from the mesh's unit to m, one number or one per axis. A negative factor mirrors the mesh.
        uv: texture coordinates (v upward) of the vertices, (n, 2), or of the triangles' corners, (m, 3, 2). Only for
            ``mesh`` = (vertices, triangles).
        normals: unit normals of the vertices, (n, 3), or of the triangles' corners, (m, 3, 3). Only for
            ``mesh`` = (vertices, triangles).

    Raises:
        ModelError: the file cannot be read, an array is invalid, a scale factor is 0, or no triangle has an area.
    """
    if isinstance(mesh, tuple) and mesh and all(isinstance(piece, Piece) for piece in mesh):
        return mesh
    factors = validate.per_axis(element, "scale", scale, 3)
    if np.any(factors == 0.0):
        raise validate.fail(element, "scale has a zero", "give factors that are not zero, such as 0.001 for mm")
    pieces = [_piece(sheet, factors) for sheet in _joined(_sheets(element, mesh, uv, normals))]
    found = tuple(piece for piece in pieces if len(piece.triangles))
    if not found:
        raise validate.fail(element, "its mesh has no triangle with an area", "give a mesh with at least one")
    return found


def mesh_triangles(element: str, mesh: Any) -> list[tuple[Array, Array]]:
    """Return the checked vertices (n, 3) and triangles (m, 3) of each part of a mesh (see ``mesh_pieces``)."""
    return [(sheet.vertices, sheet.triangles) for sheet in _sheets(element, mesh, None, None)]


def _sheets(element: str, mesh: Any, uv: Any, normals: Any) -> list[_Sheet]:
    if isinstance(mesh, str | os.PathLike):
        path = os.fspath(mesh)
        suffix = os.path.splitext(path)[1].lower()
        textures: Textures = {}
        return [_file_sheet(element, part, suffix, textures) for part in read_mesh_file(element, path, parts=True)]
    if hasattr(mesh, "vertices") and hasattr(mesh, "faces"):
        mesh = (mesh.vertices, mesh.faces)
    if isinstance(mesh, tuple) and len(mesh) == 2:
        vertices, triangles = _checked(element, *mesh)
        uv = _corner_values(element, "uv", uv, vertices, triangles, 2)
        return [
            _Sheet(
                vertices, triangles, Paint(), _corner_values(element, "normals", normals, vertices, triangles, 3), uv
            )
        ]
    raise validate.fail(
        element, f"{type(mesh).__name__} is not a mesh", "give the path of a file, or (vertices, triangles) as arrays"
    )


def _file_sheet(element: str, part: Any, suffix: str, textures: Textures) -> _Sheet:
    """Convert one part of a mesh file (a trimesh object) to a sheet."""
    vertices, triangles = _checked(element, part.vertices, part.faces)
    coat = coat_of(part, suffix, textures)
    # trimesh's cache contains only normals from the file. The property would compute missing normals.
    normals = part._cache["vertex_normals"] if "vertex_normals" in part._cache else None
    if normals is not None and len(normals) != len(vertices):
        normals = None
    uv = None if coat.uv is None or len(coat.uv) != len(vertices) else coat.uv[triangles]
    return _Sheet(vertices, triangles, coat.paint, None if normals is None else normals[triangles], uv, coat.colors)


def _corner_values(element: str, name: str, value: Any, vertices: Array, triangles: Array, count: int) -> Array | None:
    """Convert values at vertices or triangle corners to values at the corners of m triangles, (m, 3, count)."""
    if value is None:
        return None
    array = validate.array(element, value)
    if array.shape == (len(vertices), count):
        array = array[triangles]
    if array.shape != (len(triangles), 3, count):
        hint = f"give ({len(vertices)}, {count}) for the vertices, or ({len(triangles)}, 3, {count}) for the corners"
        raise validate.fail(element, f"{name} has shape {array.shape}", hint)
    if not np.all(np.isfinite(array)):
        raise validate.fail(element, f"{name} is not finite", "give finite numbers")
    return array


def _checked(element: str, vertices: Any, triangles: Any) -> tuple[Array, Array]:
    """Return vertices (n, 3) and triangles (m, 3) as arrays, or raise a ModelError."""
    try:
        points, corners = np.array(vertices, dtype=np.float64), np.array(triangles)
    except (TypeError, ValueError, OverflowError):
        raise validate.fail(
            element, "its mesh is not an array of numbers", "give vertices (n, 3) in m and triangles (m, 3)"
        ) from None
    if points.ndim != 2 or points.shape[1] != 3 or corners.ndim != 2 or corners.shape[1] != 3:
        raise validate.fail(
            element,
            f"vertices have shape {points.shape} and triangles {corners.shape}",
            "give vertices (n, 3) in m and triangles (m, 3)",
        )
    if not np.all(np.isfinite(points)):
        row = int(np.argwhere(~np.isfinite(points))[0, 0])
        raise validate.fail(element, f"vertex {row} is {points[row].tolist()}", "give finite coordinates")
    whole = np.issubdtype(corners.dtype, np.integer)
    if not whole or (corners.size and not 0 <= int(corners.min()) <= int(corners.max()) < len(points)):
        raise validate.fail(
            element, f"triangles are not indices of its {len(points)} vertices", "give whole numbers that count from 0"
        )
    return points, corners.astype(np.int64)


def _joined(sheets: list[_Sheet]) -> list[_Sheet]:
    """Merge all sheets (parts of a mesh) of the same material."""
    by_kind: dict[tuple[Any, ...], list[_Sheet]] = {}
    for sheet in sheets:
        by_kind.setdefault(sheet.kind, []).append(sheet)
    joined = []
    for group in by_kind.values():
        first = np.cumsum([0, *(len(sheet.vertices) for sheet in group)])
        shifted = [sheet.triangles + start for sheet, start in zip(group, first, strict=False)]
        vertices = np.concatenate([sheet.vertices for sheet in group])
        corners = (_concatenated([getattr(s, name) for s in group]) for name in ("normals", "uv", "colors"))
        joined.append(_Sheet(vertices, np.concatenate(shifted), group[0].paint, *corners))
    return joined


def _concatenated(arrays: list[Array | None]) -> Array | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if present else None


def _piece(sheet: _Sheet, factors: Array) -> Piece:
    """Convert a sheet to a piece: merge equal vertices, and delete degenerate triangles."""
    vertices, inverse = np.unique(sheet.vertices * factors, axis=0, return_inverse=True)
    corners = inverse.reshape(-1)[sheet.triangles]
    mirrored = bool(np.prod(factors) < 0.0)
    a, b, c = corners.T
    valid = (a != b) & (b != c) & (c != a)
    corners = corners[valid]
    normals, uv, colors = (None if x is None else x[valid] for x in (sheet.normals, sheet.uv, sheet.colors))
    outward = corners[:, ::-1] if mirrored else corners
    closed = _is_closed(outward, len(vertices))
    if mirrored != (closed and solid(vertices, outward)[0] < 0.0):
        corners = corners[:, ::-1]
        normals, uv, colors = (None if x is None else x[:, ::-1] for x in (normals, uv, colors))
    if normals is not None:
        normals = _outward(normals / factors, vertices[corners], closed)
    triangles = np.ascontiguousarray(corners, dtype=np.int32)
    normals, uv = (None if x is None else x.astype(np.float32) for x in (normals, uv))
    for array in (vertices, triangles, normals, uv, colors):
        if array is not None:
            array.flags.writeable = False
    return Piece(vertices, triangles, closed, sheet.paint.color, sheet.paint.look, normals, uv, colors)


def _outward(normals: Array, corners: Array, closed: bool) -> Array | None:
    """Return unit normals, which point outward on a closed surface. Return None if a normal has length 0."""
    length = np.linalg.norm(normals, axis=2, keepdims=True)
    if not np.all(np.isfinite(length)) or np.any(length < 1e-6):
        return None
    unit: Array = normals / length
    if closed:
        faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        faces /= np.maximum(np.linalg.norm(faces, axis=1), 1e-300)[:, None]
        unit = np.where(np.einsum("mij,mj->mi", unit, faces)[:, :, None] < _BACKWARD, -unit, unit)
    return unit


def _is_closed(corners: Array, count: int) -> bool:
    """Return True for a closed surface: each edge occurs equally often in both directions."""
    start, end = corners.reshape(-1), np.roll(corners, -1, axis=1).reshape(-1)
    return bool(len(corners)) and np.array_equal(np.sort(start * count + end), np.sort(end * count + start))


def count_triangles(visual: VisualSpec) -> int:
    """Return the number of triangles of a visual."""
    if visual.kind == "mesh":
        return sum(len(piece.triangles) for piece in visual.params["pieces"])
    return len(shape_type(visual.kind).mesh(visual.params)[1])
