"""Meshes of a USD file as triangles, with their surfaces, normals and texture coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.importers.usd_parts.usd_looks import Surface, bound_surface, prim_surface
from gpusim.importers.usd_parts.usd_stage import UsdStage
from gpusim.typing import Array


@dataclass(frozen=True)
class Triangles:
    """Triangles of a mesh.

    Attributes:
        points: vertices (n, 3) in the prim's coordinates.
        triangles: indices (m, 3) into ``points``.
        faces: index (m,) of the mesh face that contains each triangle.
        corners: indices (m, 3) into the mesh attribute ``faceVertexIndices``.
    """

    points: Array
    triangles: Array
    faces: Array
    corners: Array


def read_mesh(stage: UsdStage, path: str) -> Triangles:
    """Return the triangles of a mesh. If the arrays of the mesh are inconsistent, return no triangles."""
    from pxr import UsdGeom

    mesh = UsdGeom.Mesh(stage.prim(path))
    points = np.array(mesh.GetPointsAttr().Get() or (), float).reshape(-1, 3)
    counts = np.array(mesh.GetFaceVertexCountsAttr().Get() or (), int)
    corners = np.array(mesh.GetFaceVertexIndicesAttr().Get() or (), int)
    if (
        np.any(counts < 0)
        or counts.sum() != len(corners)
        or (len(corners) and not 0 <= corners.min() <= corners.max() < len(points))
    ):
        return Triangles(points, np.zeros((0, 3), int), np.zeros(0, int), np.zeros((0, 3), int))
    corner_indices, faces = fan_triangles(counts)
    holes = np.array(mesh.GetHoleIndicesAttr().Get() or (), int)
    is_kept = ~np.isin(faces, holes)
    corner_indices, faces = corner_indices[is_kept], faces[is_kept]
    if mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded:
        corner_indices = corner_indices[:, ::-1]
    return Triangles(points, corners[corner_indices], faces, corner_indices)


def fan_triangles(counts: Array) -> tuple[Array, Array]:
    """Divide each polygon into a fan of triangles around the polygon's first corner.

    Return the triangles (m, 3) and the polygon index (m,) of each triangle. The triangles are indices into the
    concatenated corners of all polygons.
    """
    starts = np.cumsum(counts) - counts
    per_face = np.maximum(counts - 2, 0)
    faces = np.repeat(np.arange(len(counts)), per_face)
    step = np.arange(len(faces)) - np.repeat(np.cumsum(per_face) - per_face, per_face)
    first = starts[faces]
    return np.stack([first, first + step + 1, first + step + 2], axis=1), faces


def face_surfaces(stage: UsdStage, path: str, faces: Array) -> list[tuple[Array, Surface]]:
    """Return pairs (mask of triangles, surface), one for each material of a mesh."""
    from pxr import UsdGeom

    mesh = UsdGeom.Mesh(stage.prim(path))
    remaining = np.ones(len(faces), bool)
    parts: list[tuple[Array, Surface]] = []
    for subset in UsdGeom.Subset.GetAllGeomSubsets(mesh):
        chosen = remaining & np.isin(faces, np.array(subset.GetIndicesAttr().Get() or (), int))
        surface = bound_surface(stage, subset.GetPrim())
        if subset.GetElementTypeAttr().Get() == UsdGeom.Tokens.face and surface is not None and chosen.any():
            parts.append((chosen, surface))
            remaining = remaining & ~chosen
    if remaining.any():
        parts.append((remaining, prim_surface(stage, stage.prim(path))))
    return parts


def corner_values(mesh: Triangles, primvar: Any, count: int) -> Array | None:
    """Return the values of a primvar at the 3 corners of all m triangles, (m, 3, count).

    ``count`` is the number of components of a value. Return None if the primvar has no values, or if the values do not
    match the mesh or ``count``.
    """
    values = primvar.ComputeFlattened() if primvar and primvar.HasValue() else None
    if values is None:
        return None
    array, how = np.array(values, float), str(primvar.GetInterpolation())
    where = {
        "faceVarying": mesh.corners,
        "vertex": mesh.triangles,
        "varying": mesh.triangles,
        "uniform": np.repeat(mesh.faces[:, None], 3, axis=1),
        "constant": np.zeros_like(mesh.triangles),
    }.get(how)
    if where is None or array.shape != (len(array), count) or not len(where) or where.max() >= len(array):
        return None
    return array[where]


def corner_normals(stage: UsdStage, path: str, mesh: Triangles) -> Array | None:
    """Return a mesh's normals (m, 3, 3) at the corners of the triangles, in the prim's coordinates, or None.

    Normals of meshes with a subdivision scheme are ignored, as in USD.
    """
    from pxr import UsdGeom

    prim = UsdGeom.Mesh(stage.prim(path))
    if prim.GetSubdivisionSchemeAttr().Get() != UsdGeom.Tokens.none:
        return None
    primvar = UsdGeom.PrimvarsAPI(prim).GetPrimvar("normals")
    if primvar and primvar.HasValue():
        return corner_values(mesh, primvar, 3)
    values = np.array(prim.GetNormalsAttr().Get() or (), float).reshape(-1, 3)
    where = mesh.corners if str(prim.GetNormalsInterpolation()) == "faceVarying" else mesh.triangles
    return values[where] if len(where) and where.max() < len(values) else None
