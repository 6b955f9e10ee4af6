"""Visuals of a USD file. The importer reports problems with visuals, but never raises an error for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.description.looks import Look
from gpusim.description.shape_kinds import shape_type
from gpusim.errors import ModelError
from gpusim.importers.usd_parts.usd_bodies import UsdBody, host_of
from gpusim.importers.usd_parts.usd_joints import WORLD
from gpusim.importers.usd_parts.usd_looks import Surface, prim_surface
from gpusim.importers.usd_parts.usd_meshes import Triangles, corner_normals, corner_values, face_surfaces, read_mesh
from gpusim.importers.usd_parts.usd_shapes import AXIS_ROTATIONS, Collider
from gpusim.importers.usd_parts.usd_stage import UsdStage
from gpusim.meshes.pieces import Piece, count_triangles, mesh_pieces
from gpusim.transform import Transform
from gpusim.typing import Array

_AXIS_ORDER = {"X": (2, 0, 1), "Y": (1, 2, 0), "Z": (0, 1, 2)}
_NOT_DRAWN = ("Points", "BasisCurves", "NurbsCurves", "NurbsPatch", "HermiteCurves", "TetMesh", "PointInstancer")


def add_visuals(
    stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody], colliders: Mapping[str, Collider]
) -> None:
    """Add visuals for all visible prims of purpose "default" or "render".

    If all visible prims of a body are colliders with basic shapes and plain colors, the body gets no visuals. The
    viewer then draws the collision shapes in the prims' colors.
    """
    shown: dict[str, list[Any]] = {}
    for prim in stage.prims():
        if _is_drawn(stage, prim):
            shown.setdefault(_body_of(prim, bodies), []).append(prim)
    solid: dict[str, list[str]] = {}
    for collider in colliders.values():
        if collider.shapes:
            solid.setdefault(collider.body, []).append(collider.path)
    for path, prims in shown.items():
        plain = [prim for prim in prims if _is_plain(stage, prim, colliders.get(str(prim.GetPath())), path)]
        for prim in plain:
            color = prim_surface(stage, prim).color
            for index in colliders[str(prim.GetPath())].shapes:
                builder.shapes[index] = replace(builder.shapes[index], color=color)
        if len(plain) < len(prims) or _has_hidden(solid.get(path, []), prims):
            for prim in prims:
                # in the world, the viewer draws both shapes and visuals
                if path != WORLD or prim not in plain:
                    _add(stage, builder, bodies, path, prim)
    stage.report.triangles = sum(map(count_triangles, builder.visuals))


def _is_drawn(stage: UsdStage, prim: Any) -> bool:
    from pxr import UsdGeom

    if not prim.IsA(UsdGeom.Gprim):
        if prim.GetTypeName() == "PointInstancer":
            stage.report.add("look", f"prim '{prim.GetPath()}'", "is a PointInstancer", "it is not drawn")
        return False
    imageable = UsdGeom.Imageable(prim)
    hidden = imageable.ComputeVisibility() == UsdGeom.Tokens.invisible
    drawn = not hidden and imageable.ComputePurpose() in (UsdGeom.Tokens.default_, UsdGeom.Tokens.render)
    if drawn and prim.GetTypeName() in _NOT_DRAWN:
        stage.report.add("look", f"prim '{prim.GetPath()}'", f"is of type {prim.GetTypeName()}", "it is not drawn")
        return False
    return drawn and not prim.GetParent().IsA(UsdGeom.Gprim)


def _body_of(prim: Any, bodies: Mapping[str, UsdBody]) -> str:
    while prim and not prim.IsPseudoRoot():
        if str(prim.GetPath()) in bodies:
            return str(prim.GetPath())
        prim = prim.GetParent()
    return WORLD


def _is_plain(stage: UsdStage, prim: Any, collider: Collider | None, body: str) -> bool:
    """Return True if the collision shape of a prim has the same appearance as the prim."""
    if collider is None or not collider.shapes or collider.forms[0][0] == "hull" or collider.body != body:
        return False
    return prim_surface(stage, prim).look == Look()


def _has_hidden(colliders: list[str], prims: list[Any]) -> bool:
    """Return whether a collider of a body is not drawn. ``colliders``: paths of the colliders with shapes."""
    return not {str(prim.GetPath()) for prim in prims}.issuperset(colliders)


def _add(stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody], owner_path: str, prim: Any) -> None:
    path, body = str(prim.GetPath()), bodies.get(owner_path)
    base, index, offset, owner = Transform(), -1, Transform(), "world"
    if body is not None:
        base, index, offset, owner = stage.pose(body.path), host_of(bodies, body).index, body.offset, body.label
    label = stage.label("visual", path)
    try:
        basic = _basic(prim, stage.matrix(path))
        if basic is not None:
            kind, sizes, frame = basic
            pose = offset * base.inverse() * frame
            surface = _without_texture(stage, prim_surface(stage, prim), f"a {kind}")
            finish = {name: getattr(surface.look, name) for name in ("alpha", "roughness", "metallic")}
            visual = builder.add_visual(index, kind, *sizes, xform=pose, color=surface.color, label=label, **finish)
        else:
            visual = builder.add_visual(index, "mesh", _pieces(stage, prim, path, base), xform=offset, label=label)
    except ModelError as why:
        stage.report.add("look", f"visual '{path}'", str(why).split(": ", 1)[-1], "it is not drawn")
        return
    stage.report.visuals.setdefault(owner, []).append(visual)


def _basic(prim: Any, matrix: Array) -> tuple[str, tuple[Any, ...], Transform] | None:
    """Return kind, sizes and pose of a basic shape, or None for distorted shapes and other prims."""
    scale = np.linalg.norm(matrix[:3, :3], axis=0)
    square = matrix[:3, :3] / scale
    if np.abs(square.T @ square - np.eye(3)).max() > 1e-6 or np.linalg.det(square) < 0.0:
        return None
    kind, axis = str(prim.GetTypeName()), str(prim.GetAttribute("axis").Get() or "Z")
    pose = Transform.from_matrix(np.block([[square, matrix[:3, 3:]], [np.zeros((1, 3)), np.ones((1, 1))]]))
    if kind == "Cube":
        return "box", (tuple(0.5 * float(prim.GetAttribute("size").Get()) * scale),), pose
    along = "XYZ".index(axis)
    across = np.delete(scale, along) if kind in ("Cylinder", "Cone") else scale
    if kind not in ("Sphere", "Capsule", "Cylinder", "Cone") or np.ptp(across) > 1e-6 * across.max():
        return None
    radius = float(prim.GetAttribute("radius").Get()) * float(across[0])
    if kind == "Sphere":
        return "sphere", (radius,), pose
    return (
        kind.lower(),
        (radius, 0.5 * float(prim.GetAttribute("height").Get()) * float(scale[along])),
        pose * AXIS_ROTATIONS[axis],
    )


def _pieces(stage: UsdStage, prim: Any, path: str, base: Transform) -> tuple[Piece, ...]:
    """Return the triangles of a prim in the frame ``base``. Each surface is a separate piece."""
    matrix = stage.matrix(path)
    if prim.GetTypeName() == "Mesh":
        mesh = read_mesh(stage, path)
        normals, parts = corner_normals(stage, path, mesh), face_surfaces(stage, path, mesh.faces)
    else:
        points, triangles = _tessellated(prim)
        mesh, normals = Triangles(points, triangles, np.arange(len(triangles)), triangles), None
        parts = [(np.ones(len(triangles), bool), prim_surface(stage, prim))]
    vertices = base.inverse().apply(mesh.points @ matrix[:3, :3].T + matrix[:3, 3])
    if normals is not None:  # transforms normals with the inverse transpose
        normals = base.inverse().rotate((normals @ np.linalg.inv(matrix[:3, :3])).reshape(-1, 3)).reshape(-1, 3, 3)
    order = slice(None, None, -1) if np.linalg.det(matrix[:3, :3]) < 0.0 else slice(None)
    pieces: list[Piece] = []
    for chosen, part_surface in parts:
        uv = _coordinates(prim, mesh, part_surface) if part_surface.look.texture is not None else None
        surface = part_surface if uv is not None else _without_texture(stage, part_surface, f"prim '{path}'")
        used, renumbered = np.unique(mesh.triangles[chosen][:, order], return_inverse=True)
        piece_normals = None if normals is None else normals[chosen][:, order]
        uv = None if uv is None else uv[chosen][:, order]
        new_pieces = mesh_pieces(
            f"visual '{path}'", (vertices[used], renumbered.reshape(-1, 3)), uv=uv, normals=piece_normals
        )
        pieces += [replace(piece, color=surface.color, look=surface.look) for piece in new_pieces]
    if not pieces:
        raise ModelError(f"visual '{path}': has no triangles; give it some")
    return tuple(pieces)


def _coordinates(prim: Any, mesh: Triangles, surface: Surface) -> Any:
    """Return the texture coordinates (m, 3, 2) of a prim's triangles, or None without texture coordinates."""
    from pxr import UsdGeom

    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(surface.uv_transform.name)
    values = corner_values(mesh, primvar, 2)
    return None if values is None or not np.all(np.isfinite(values)) else surface.uv_transform.apply(values)


def _without_texture(stage: UsdStage, surface: Surface, what: str) -> Surface:
    """Replace a surface's texture by its mean color, because the prim has no texture coordinates."""
    if surface.look.texture is None:
        return surface
    fact = f"has a texture on {what} without texture coordinates"
    stage.report.add("look", f"material '{surface.material}'", fact, "it is drawn in one color")
    return replace(surface, look=replace(surface.look, texture=None))


def _tessellated(prim: Any) -> tuple[Any, Any]:
    """Return the points (in the prim's coordinates) and triangles of a basic shape."""
    from pxr import UsdGeom

    def of(name: str, default: float) -> float:
        value = prim.GetAttribute(name).Get()
        return default if value is None else float(value)

    kind, axis = str(prim.GetTypeName()), str(prim.GetAttribute("axis").Get() or "Z")
    if kind == "Cube":
        params: dict[str, Any] = {"half_extents": np.full(3, 0.5 * of("size", 2.0))}
        kind, axis = "box", "Z"
    elif kind == "Sphere":
        params, axis = {"radius": of("radius", 1.0)}, "Z"
    elif kind in ("Capsule", "Cylinder", "Cone"):
        small = kind == "Capsule"
        params = {"radius": of("radius", 0.5 if small else 1.0), "half_length": 0.5 * of("height", 1.0 if small else 2)}
    elif kind == "Plane":
        x, y = 0.5 * of("width", 2.0), 0.5 * of("length", 2.0)
        corners = np.array([(-x, -y, 0), (x, -y, 0), (x, y, 0), (-x, y, 0)])
        return corners[:, _AXIS_ORDER[axis]], np.array([(0, 1, 2), (0, 2, 3)])
    else:
        name = UsdGeom.Gprim(prim).GetPath()
        raise ModelError(f"visual '{name}': type {kind} is not drawn; use a mesh")
    points, triangles = shape_type(kind.lower()).mesh(params)
    return np.array(points)[:, _AXIS_ORDER[axis]], triangles
