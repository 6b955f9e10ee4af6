"""Meshes of a USD file as triangles, and their colors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.importers.usd_stage import UsdStage
from gpusim.typing import Array

Color = tuple[float, float, float]
# Names of the color input in UsdPreviewSurface and in NVIDIA's MDL materials.
_COLOR_INPUTS = ("diffuseColor", "diffuse_color_constant", "diffuse_reflection_color")


def read_mesh(stage: UsdStage, path: str) -> tuple[Array, Array, Array]:
    """Return points (n, 3) in the prim's coordinates, triangles (m, 3), and the face of each triangle (m,)."""
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
        return points, np.zeros((0, 3), int), np.zeros(0, int)
    triangles, faces = fans(counts, corners)
    holes = np.array(mesh.GetHoleIndicesAttr().Get() or (), int)
    kept = ~np.isin(faces, holes)
    triangles, faces = triangles[kept], faces[kept]
    if mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded:
        triangles = triangles[:, ::-1]
    return points, triangles, faces


def fans(counts: Array, corners: Array) -> tuple[Array, Array]:
    """Divide polygons into triangles from their first corner. Return triangles (m, 3) and their polygons (m,)."""
    starts = np.cumsum(counts) - counts
    per_face = np.maximum(counts - 2, 0)
    faces = np.repeat(np.arange(len(counts)), per_face)
    step = np.arange(len(faces)) - np.repeat(np.cumsum(per_face) - per_face, per_face)
    first = starts[faces]
    return np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=1), faces


def face_colors(stage: UsdStage, path: str, faces: Array) -> list[tuple[Array, Color | None]]:
    """Return (mask of triangles, color) for each material of a mesh's faces."""
    from pxr import UsdGeom

    mesh = UsdGeom.Mesh(stage.prim(path))
    left = np.ones(len(faces), bool)
    parts: list[tuple[Array, Color | None]] = []
    for subset in UsdGeom.Subset.GetAllGeomSubsets(mesh):
        chosen = left & np.isin(faces, np.array(subset.GetIndicesAttr().Get() or (), int))
        color = bound_color(stage, subset.GetPrim())
        if subset.GetElementTypeAttr().Get() == UsdGeom.Tokens.face and color is not None and chosen.any():
            parts.append((chosen, color))
            left = left & ~chosen
    if left.any():
        parts.append((left, prim_color(stage, path)))
    return parts


def prim_color(stage: UsdStage, path: str) -> Color | None:
    """Return the color of a prim (sRGB, 0 to 1): its material's, or the mean of its displayColor, or None."""
    from pxr import UsdGeom

    prim = stage.prim(path)
    color = bound_color(stage, prim)
    if color is not None:
        return color
    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance("displayColor")
    shown = primvar.Get() if primvar else None
    return _srgb(np.array(shown, float).reshape(-1, 3).mean(axis=0)) if shown is not None and len(shown) else None


def bound_color(stage: UsdStage, prim: Any) -> Color | None:
    """Return the diffuse color of a prim's material, or None. A texture is reported."""
    from pxr import UsdShade

    material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
    if not material:
        return None
    surface = material.ComputeSurfaceSource()[0] or material.ComputeSurfaceSource("mdl")[0]
    if not surface:
        return None
    for name in _COLOR_INPUTS:
        color_input = surface.GetInput(name)
        if not color_input:
            continue
        sources = color_input.GetValueProducingAttributes()
        if any(UsdShade.Output.IsOutput(source) for source in sources):
            name = material.GetPrim().GetName()
            stage.report.add("look", f"material '{name}'", "has a texture or a network", "it is drawn in one color")
            sources = [color_input.GetAttr()]
        value = sources[0].Get() if sources else None  # an input of the material may give the value
        if value is not None:
            return _srgb(np.array(value, float)[:3])
    return None


def _srgb(linear: Array) -> Color:
    """Return linear RGB, which USD uses, as sRGB."""
    linear = np.clip(linear, 0.0, 1.0)
    r, g, b = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055)
    return round(float(r), 4), round(float(g), 4), round(float(b), 4)
