"""Geoms of an MJCF file: shapes, visuals, and their collision rules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gpusim.compiler.adjacent_bodies import adjacent_bodies
from gpusim.description.looks import Look
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import ShapeSpec, VisualSpec
from gpusim.exporters.mjcf_document import Document, pose, text
from gpusim.meshes.normals import corner_normals
from gpusim.meshes.polytope import hull_points
from gpusim.transform import Transform
from gpusim.typing import Array

MAX_CLASSES = 31
VISUAL_GROUP, COLLISION_GROUP = 2, 3
_GRAY = (0.5, 0.5, 0.5)
"""MuJoCo's default color."""


def _numbers(*names: str) -> Any:
    return lambda params: np.concatenate([np.atleast_1d(params[name]) for name in names])


_PRIMITIVES: dict[str, tuple[str, Any]] = {
    "sphere": ("sphere", _numbers("radius")),
    "capsule": ("capsule", _numbers("radius", "half_length")),
    "cylinder": ("cylinder", _numbers("radius", "half_length")),
    "box": ("box", _numbers("half_extents")),
    "ellipsoid": ("ellipsoid", _numbers("semi_axes")),
    "plane": ("plane", lambda params: (0, 0, 1)),
}


def add_geoms(doc: Document) -> None:
    """Add a geom for every shape and visual."""
    model = doc.model
    drawn = {visual.body for visual in model.visuals}
    classes = _classes(doc)
    for index, shape in enumerate(model.shapes):
        doc.add(
            doc.bodies[shape.body],
            "geom",
            name=shape.label,
            **_geometry(doc, shape),
            **pose(shape.xform * Transform((0.0, 0.0, _min_height(shape)))),
            **_surface(shape),
            **classes[index],
            rgba=None if shape.color is None else (*shape.color, 1),
            group=COLLISION_GROUP if shape.body in drawn else None,
        )
    _report_materials(doc)
    for visual in model.visuals:
        _add_visual(doc, visual)
    _add_collision_rules(doc)


def _geometry(doc: Document, shape: ShapeSpec) -> dict[str, Any]:
    if shape.kind in _PRIMITIVES:
        kind, size = _PRIMITIVES[shape.kind]
        return {"type": kind, "size": size(shape.params)}
    field = _FIELDS.get(shape.kind)
    if field is not None:
        return dict(field(doc, shape))
    type_ = shape_type(shape.kind)
    points = type_.points(shape.params)
    if not len(points):
        points = np.asarray(type_.mesh(shape.params, 48)[0])
        what = f"is a {shape.kind}"
        doc.report.add("contact", shape.element, what, "the file has a polyhedron with 48 sides")
    return {"type": "mesh", "mesh": _mesh(doc, shape.label, hull_points(points), None)}


def _mesh(doc: Document, name: str, points: Array, triangles: Array | None) -> str:
    faces = None if triangles is None else np.asarray(triangles).reshape(-1)
    asset = doc.add(doc.section("asset"), "mesh", name=name, vertex=np.asarray(points).reshape(-1), face=faces)
    return str(asset.get("name"))


def _height_field(doc: Document, shape: ShapeSpec) -> dict[str, Any]:
    heights, (dx, dy) = np.asarray(shape.params["heights"]), shape.params["spacing"]
    rows, columns = heights.shape
    low, high = float(heights.min()), float(heights.max())
    height_range = max(high - low, 1e-6)
    base_depth = max(low - float(shape.params["base"]), 1e-3)
    size = (0.5 * dx * (columns - 1), 0.5 * dy * (rows - 1), height_range, base_depth)
    # MuJoCo's ``elevation`` starts with the last row
    asset = doc.add(
        doc.section("asset"), "hfield", name=shape.label, nrow=rows, ncol=columns, size=size,
        elevation=((heights[::-1] - low) / height_range).reshape(-1),
    )  # fmt: skip
    return {"type": "hfield", "hfield": str(asset.get("name"))}


_FIELDS: dict[str, Any] = {"height_field": _height_field}


def _min_height(shape: ShapeSpec) -> float:
    """Return the minimum height (m) of a height field, or 0 for other shapes."""
    return float(np.min(shape.params["heights"])) if shape.kind in _FIELDS else 0.0


def _surface(shape: ShapeSpec) -> dict[str, Any]:
    material = shape.material
    spin, roll = material.spinning_friction, material.rolling_friction
    condim = 6 if roll else 4 if spin else None
    friction = material.friction, spin or 0.005, roll or 1e-4
    return {"friction": friction, "condim": condim, "priority": material.priority or None}


def _report_materials(doc: Document) -> None:
    shapes, report = doc.model.shapes, doc.report
    frictions = {shape.material.friction for shape in shapes}
    rules = {shape.material.combine for shape in shapes}
    if len(frictions) > 1 and rules != {"max"}:
        what = f"shape pairs use the {' or '.join(sorted(rules))} of their frictions"
        report.add("contact", "", what, "MuJoCo uses the maximum")
    for shape in shapes:
        if shape.material.law is not None:
            report.add("contact", shape.element, "has a contact law", "it has MuJoCo's contacts in the file")
        if shape.material.restitution > 0.0:
            report.add("contact", shape.element, "bounces", "MuJoCo has no restitution")


def _add_visual(doc: Document, visual: VisualSpec) -> None:
    doc.report.add_look(visual)
    common: dict[str, Any] = {"contype": 0, "conaffinity": 0, "group": VISUAL_GROUP, "mass": 0, **pose(visual.xform)}
    rgba = _rgba(visual.color, visual.look)
    if visual.kind in _PRIMITIVES:
        kind, size = _PRIMITIVES[visual.kind]
        doc.add(doc.bodies[visual.body], "geom", type=kind, size=size(visual.params), rgba=rgba, **common)
        return
    if "pieces" in visual.params:
        sheets = [
            (p.vertices, p.triangles, _rgba(visual.color or p.color, visual.look.over(p.look)), p.normals)
            for p in visual.params["pieces"]
        ]
    else:
        sheets = [(*shape_type(visual.kind).mesh(visual.params), rgba, None)]
    for number, (points, triangles, piece_rgba, corners) in enumerate(sheets):
        if len(points) < 4:
            doc.report.add("look", visual.element, "has fewer than four points", "it is not in the file")
            continue
        points, triangles, normals = _split_vertices(np.asarray(points), np.asarray(triangles), corners)
        mesh = _mesh(doc, f"{visual.label}_{number}" if number else f"{visual.label}_look", points, triangles)
        asset = doc.find("asset", mesh, "mesh")
        asset.set("inertia", "shell")  # type: ignore[union-attr]
        asset.set("normal", text(normals.reshape(-1)))  # type: ignore[union-attr]
        doc.add(doc.bodies[visual.body], "geom", type="mesh", mesh=mesh, rgba=piece_rgba, **common)


def _rgba(color: Sequence[float] | None, look: Look) -> tuple[float, ...] | None:
    """Return color and opacity, or None for MuJoCo's default."""
    if color is None and look.alpha is None:
        return None
    return *(_GRAY if color is None else color[:3]), 1 if look.alpha is None else look.alpha


def _split_vertices(points: Array, triangles: Array, corners: Array | None) -> tuple[Array, Array, Array]:
    """Split each mesh vertex with several normals into vertices with one normal each.

    Return the new points, triangles and normals.

    Args:
        points: vertices (n, 3).
        triangles: indices (m, 3) into ``points``.
        corners: normals (m, 3, 3) at the corners of the triangles, or None to compute them from the faces.
    """
    all_normals = corner_normals(points, triangles) if corners is None else corners
    normals = np.round(np.reshape(all_normals, (-1, 3)), 4) + 0.0
    normals[~normals.any(axis=1)] = 0.0, 0.0, 1.0  # triangles with zero area
    keys = np.column_stack([triangles.reshape(-1), np.round(normals * 1e4)]).astype(int)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return points[triangles.reshape(-1)[first]], inverse.reshape(-1, 3), normals[first]


def _classes(doc: Document) -> list[dict[str, int]]:
    """Return a dict with contype and conaffinity for each shape."""
    shapes = doc.model.shapes
    kinds = sorted({(shape.group, shape.mask) for shape in shapes})
    if len(kinds) <= 1 and all(_can_collide(a, a) for a in kinds):
        return [{} for _ in shapes]
    if len(kinds) > MAX_CLASSES:
        what = f"has {len(kinds)} kinds of groups and masks, and MuJoCo has {MAX_CLASSES} bits"
        doc.report.add("contact", "model", what, "all shapes collide in the file", "use fewer groups")
        return [{} for _ in shapes]
    affinities = {a: sum(1 << k for k, b in enumerate(kinds) if _can_collide(a, b)) for a in kinds}
    bits = {a: {"contype": 1 << k, "conaffinity": affinities[a]} for k, a in enumerate(kinds)}
    return [bits[shape.group, shape.mask] for shape in shapes]  # type: ignore[index]


def _can_collide(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return bool(a[0] & b[1]) and bool(b[0] & a[1])


def _add_collision_rules(doc: Document) -> None:
    """Add <exclude> for pairs of bodies that do not collide, and <pair> for collision pairs of the model."""
    model = doc.model
    shapes = model.shapes
    shapes_of: dict[int, list[int]] = {}
    for index, shape in enumerate(shapes):
        shapes_of.setdefault(shape.body, []).append(index)
    excluded = {frozenset((p.shape_a, p.shape_b)) for p in model.pairs if not p.collide}
    adjacent = adjacent_bodies(model.joints, set(shapes_of))
    contact = doc.root.find("contact")
    for a, b in combinations(sorted(shapes_of), 2):
        is_excluded = [frozenset((i, k)) in excluded for i in shapes_of[a] for k in shapes_of[b]]
        if all(is_excluded) or (a, b) in adjacent:
            if a >= 0:
                contact = doc.section("contact")
                doc.add(contact, "exclude", body1=doc.bodies[a].get("name"), body2=doc.bodies[b].get("name"))
            elif all(is_excluded):
                what = f"body '{model.bodies[b].label}' does not collide with the world"
                doc.report.add("contact", "", what, "the file lets them collide")
        elif any(is_excluded):
            what = f"some shapes of bodies '{model.body_label(a)}' and '{model.body_label(b)}' do not collide"
            doc.report.add("contact", "", what, "the file lets them collide, since MuJoCo excludes whole bodies")
    for pair in model.pairs:
        if pair.collide:
            names = {"geom1": shapes[pair.shape_a].label, "geom2": shapes[pair.shape_b].label}
            material = pair.material
            friction = None if material is None else (material.friction,) * 2 + (0.005, 1e-4, 1e-4)
            doc.add(doc.section("contact"), "pair", **names, friction=friction)
