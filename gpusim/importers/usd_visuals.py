"""Visuals of a USD file. A problem with a visual is a finding, never an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import VisualSpec
from gpusim.errors import ModelError
from gpusim.importers.usd_bodies import UsdBody, host_of
from gpusim.importers.usd_joints import WORLD
from gpusim.importers.usd_meshes import face_colors, prim_color, read_mesh
from gpusim.importers.usd_shapes import LAID, Collider
from gpusim.importers.usd_stage import UsdStage
from gpusim.meshes.pieces import Piece, mesh_pieces
from gpusim.transform import Transform
from gpusim.typing import Array

_TURNED = {"X": (2, 0, 1), "Y": (1, 2, 0), "Z": (0, 1, 2)}
_NOT_DRAWN = ("Points", "BasisCurves", "NurbsCurves", "NurbsPatch", "HermiteCurves", "TetMesh", "PointInstancer")


def _triangles(visual: VisualSpec) -> int:
    if visual.kind == "mesh":
        return sum(len(piece.triangles) for piece in visual.params["pieces"])
    return len(shape_type(visual.kind).mesh(visual.params)[1])


def add_visuals(
    stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody], colliders: Mapping[str, Collider]
) -> None:
    """Add what a renderer of the file shows: prims of purpose "default" or "render" that are visible.

    A visible collider of a basic shape colors its shape. Bodies with other visible prims get visuals.
    """
    shown: dict[str, list[Any]] = {}
    for prim in stage.prims():
        if _is_drawn(stage, prim):
            shown.setdefault(_body_of(prim, bodies), []).append(prim)
    for path, prims in shown.items():
        plain = [prim for prim in prims if _is_plain(colliders.get(str(prim.GetPath())), path)]
        for prim in plain:
            collider, color = colliders[str(prim.GetPath())], prim_color(stage, str(prim.GetPath()))
            for index in collider.shapes:
                builder.shapes[index] = replace(builder.shapes[index], color=color)
        if len(plain) < len(prims) or _has_hidden(colliders, path, prims):
            for prim in prims:
                # the viewer draws the shapes of the world next to its visuals
                if path != WORLD or prim not in plain:
                    _add(stage, builder, bodies, path, prim)
    stage.report.triangles = sum(map(_triangles, builder.visuals))


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


def _is_plain(collider: Collider | None, body: str) -> bool:
    """Return whether a prim is drawn well by its own shape."""
    return collider is not None and bool(collider.shapes) and collider.forms[0][0] != "hull" and collider.body == body


def _has_hidden(colliders: Mapping[str, Collider], body: str, prims: list[Any]) -> bool:
    paths = {str(prim.GetPath()) for prim in prims}
    return any(c.body == body and c.shapes and c.path not in paths for c in colliders.values())


def _add(stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody], on: str, prim: Any) -> None:
    path, body = str(prim.GetPath()), bodies.get(on)
    base, index, offset, owner = Transform(), -1, Transform(), "world"
    if body is not None:
        base, index, offset, owner = stage.pose(body.path), host_of(bodies, body).index, body.offset, body.label
    label = stage.label("visual", path)
    try:
        basic = _basic(prim, stage.matrix(path))
        if basic is not None:
            kind, sizes, frame = basic
            place = offset * base.inverse() * frame
            made = builder.add_visual(index, kind, *sizes, xform=place, color=prim_color(stage, path), label=label)
        else:
            made = builder.add_visual(index, "mesh", _pieces(stage, prim, path, base), xform=offset, label=label)
    except ModelError as why:
        stage.report.add("look", f"visual '{path}'", str(why).split(": ", 1)[-1], "it is not drawn")
        return
    stage.report.visuals.setdefault(owner, []).append(made)


def _basic(prim: Any, matrix: Array) -> tuple[str, tuple[Any, ...], Transform] | None:
    """Return kind, sizes and pose of a basic shape, or None if its scales make it another shape."""
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
        pose * LAID[axis],
    )


def _pieces(stage: UsdStage, prim: Any, path: str, base: Transform) -> tuple[Piece, ...]:
    """Return the triangles of a prim in the frame ``base``, one piece for each color."""
    matrix = stage.matrix(path)
    if prim.GetTypeName() == "Mesh":
        points, triangles, faces = read_mesh(stage, path)
        parts = face_colors(stage, path, faces)
    else:
        points, triangles = _tessellated(prim)
        parts = [(np.ones(len(triangles), bool), prim_color(stage, path))]
    if np.linalg.det(matrix[:3, :3]) < 0.0:
        triangles = triangles[:, ::-1]
    placed = base.inverse().apply(points @ matrix[:3, :3].T + matrix[:3, 3])
    pieces: list[Piece] = []
    for chosen, color in parts:
        used, renumbered = np.unique(triangles[chosen], return_inverse=True)
        part = placed[used], renumbered.reshape(-1, 3)
        pieces += [replace(piece, color=color) for piece in mesh_pieces(f"visual '{path}'", part)]
    if not pieces:
        raise ModelError(f"visual '{path}': has no triangles; give it some")
    return tuple(pieces)


def _tessellated(prim: Any) -> tuple[Any, Any]:
    """Return points in the prim's coordinates and triangles of a basic shape."""
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
        return corners[:, _TURNED[axis]], np.array([(0, 1, 2), (0, 2, 3)])
    else:
        name = UsdGeom.Gprim(prim).GetPath()
        raise ModelError(f"visual '{name}': type {kind} is not drawn; use a mesh")
    points, triangles = shape_type(kind.lower()).mesh(params)
    return np.array(points)[:, _TURNED[axis]], triangles
