"""Triangles for drawing: checked, without seams, facing outward, one piece per color."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.meshes.mesh_files import read_mesh_file
from gpusim.meshes.polytope import solid
from gpusim.typing import Array

Color = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Piece:
    """Triangles of one color. The arrays are read-only.

    Attributes:
        vertices: (n, 3), m, frame of the visual, without duplicates.
        triangles: (m, 3) indices, counterclockwise seen from outside if ``closed``.
        closed: whether they enclose a volume: each edge has a triangle on both sides.
        color: sRGB, 0 to 1, or None if the file has no color.
    """

    vertices: Array
    triangles: Array
    closed: bool
    color: Color | None = None


def mesh_pieces(element: str, mesh: Any, scale: Any = 1.0) -> tuple[Piece, ...]:
    """Return the pieces of a mesh.

    Args:
        element: name for error messages.
        mesh: path of a file, (vertices, triangles), an object with ``vertices`` and ``faces``, or pieces, which are
            returned unchanged.
        scale: factor from the mesh's unit to m, one number or one per axis. A negative factor mirrors.

    Raises:
        ModelError: the file cannot be read, a vertex is not finite, or no triangle has an area.
    """
    if isinstance(mesh, tuple) and mesh and all(isinstance(piece, Piece) for piece in mesh):
        return mesh
    factors = validate.per_axis(element, "scale", scale, 3)
    if np.any(factors == 0.0):
        raise validate.fail(element, "scale has a zero", "give factors that are not zero, such as 0.001 for mm")
    sheets = mesh_sheets(element, mesh)
    checked = [(*checked_sheet(element, vertices, triangles), color) for vertices, triangles, color in sheets]
    pieces = [_piece(vertices * factors, triangles, factors, color) for vertices, triangles, color in _joined(checked)]
    found = tuple(piece for piece in pieces if len(piece.triangles))
    if not found:
        raise validate.fail(element, "its mesh has no triangle with an area", "give a mesh with at least one")
    return found


def mesh_sheets(element: str, mesh: Any) -> list[tuple[Any, Any, Color | None]]:
    """Return vertices, triangles and the color of each sheet of a mesh, see ``mesh_pieces``."""
    if isinstance(mesh, str | os.PathLike):
        parts = read_mesh_file(element, os.fspath(mesh), parts=True)
        return [(part.vertices, part.faces, _color_of(part.visual)) for part in parts]
    if hasattr(mesh, "vertices") and hasattr(mesh, "faces"):
        return [(mesh.vertices, mesh.faces, None)]
    if isinstance(mesh, tuple) and len(mesh) == 2:
        return [(mesh[0], mesh[1], None)]
    raise validate.fail(
        element, f"{type(mesh).__name__} is no mesh", "give the path of a file, or (vertices, triangles) as arrays"
    )


def _color_of(visual: Any) -> Color | None:
    """Return the main color that trimesh read (the mean of a texture), or None if the file has no color."""
    try:
        return _main_color(visual)
    except Exception:  # e.g. a truncated image. Triangles need no color.
        return None


def _main_color(visual: Any) -> Color | None:
    material = getattr(visual, "material", None)
    texture = getattr(material, "image", None) or getattr(material, "baseColorTexture", None)
    if texture is not None:
        rgb = np.asarray(texture.convert("RGB")).reshape(-1, 3).mean(axis=0)
    elif not visual.defined or getattr(material, "baseColorFactor", True) is None:
        return None  # trimesh would return a default gray
    else:
        rgb = (visual if material is None else material).main_color
    r, g, b = (round(float(c) / 255.0, 4) for c in rgb[:3])
    return r, g, b


def checked_sheet(element: str, vertices: Any, triangles: Any) -> tuple[Array, Array]:
    """Return vertices (n, 3) and triangles (m, 3) as arrays, or raise a ModelError."""
    try:
        points, corners = np.array(vertices, dtype=np.float64), np.array(triangles)
    except (TypeError, ValueError):
        raise validate.fail(
            element, "its mesh is no numbers", "give vertices (n, 3) in m and triangles (m, 3)"
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


def _joined(sheets: list[tuple[Array, Array, Color | None]]) -> list[tuple[Array, Array, Color | None]]:
    """Merge sheets of one color, since robot files often hold hundreds of sheets."""
    by_color: dict[Color | None, list[tuple[Array, Array]]] = {}
    for vertices, triangles, color in sheets:
        by_color.setdefault(color, []).append((vertices, triangles))
    joined = []
    for color, group in by_color.items():
        first = np.cumsum([0, *(len(vertices) for vertices, _ in group)])
        shifted = [triangles + start for (_, triangles), start in zip(group, first, strict=False)]
        joined.append((np.concatenate([vertices for vertices, _ in group]), np.concatenate(shifted), color))
    return joined


def _piece(vertices: Array, triangles: Array, factors: Array, color: Color | None) -> Piece:
    """Merge equal vertices so that normals are smooth across seams, and drop degenerate triangles."""
    places, back = np.unique(vertices, axis=0, return_inverse=True)
    corners = back.reshape(-1)[triangles]
    if np.prod(factors) < 0.0:
        corners = corners[:, ::-1]
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (c != a)]
    closed = _is_closed(corners, len(places))
    if closed and solid(places, corners)[0] < 0.0:
        corners = corners[:, ::-1]
    triangles = np.ascontiguousarray(corners, dtype=np.int32)
    for array in (places, triangles):
        array.flags.writeable = False
    return Piece(places, triangles, closed, color)


def _is_closed(corners: Array, count: int) -> bool:
    """Return whether every edge is used equally often in both directions."""
    start, end = corners.reshape(-1), np.roll(corners, -1, axis=1).reshape(-1)
    return bool(len(corners)) and np.array_equal(np.sort(start * count + end), np.sort(end * count + start))
