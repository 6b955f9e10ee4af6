"""Colliders, materials, collision groups and visuals of a USD file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim.contact.material import Material
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import ShapeSpec, VisualSpec
from gpusim.exporters.usd_document import ROOT, UsdDocument, set_custom, set_pose
from gpusim.meshes.polytope import convex_hull
from gpusim.transform import Transform
from gpusim.typing import Array

Params = dict[str, Any]
Color = tuple[float, float, float]


def add_shapes(doc: UsdDocument) -> None:
    """Add a collider with material and collision group for every shape, and add all visuals."""
    from pxr import UsdGeom, UsdPhysics

    model = doc.model
    drawn = {visual.body for visual in model.visuals}
    paths = []
    for shape in model.shapes:
        path = doc.path(doc.bodies[shape.body], shape.label)
        prim = _collider(doc, path, shape)
        UsdPhysics.CollisionAPI.Apply(prim)
        _bind(doc, prim, shape.material)
        _paint(prim, shape.color)
        if shape.body in drawn and shape.body >= 0:
            UsdGeom.Imageable(prim).CreatePurposeAttr(UsdGeom.Tokens.guide)
        paths.append(path)
    for visual in model.visuals:
        _add_visual(doc, visual)
    _add_groups(doc, paths)
    for pair in model.pairs:
        if pair.collide:
            what = (
                f"shapes '{model.shapes[pair.shape_a].label}' and '{model.shapes[pair.shape_b].label}' always collide"
            )
            doc.report.add("contact", "", what, "in the file, their groups and joints decide")
        else:
            api = UsdPhysics.FilteredPairsAPI.Apply(doc.stage.GetPrimAtPath(paths[pair.shape_a]))
            api.CreateFilteredPairsRel().AddTarget(paths[pair.shape_b])


def _sphere(doc: UsdDocument, path: str, pose: Transform, p: Params) -> Any:
    from pxr import UsdGeom

    geom = UsdGeom.Sphere.Define(doc.stage, path)
    geom.CreateRadiusAttr(float(p["radius"]))
    set_pose(geom, pose)
    return geom.GetPrim()


def _round(schema: str) -> Callable[[UsdDocument, str, Transform, Params], Any]:
    def add(doc: UsdDocument, path: str, pose: Transform, p: Params) -> Any:
        from pxr import UsdGeom

        geom = getattr(UsdGeom, schema).Define(doc.stage, path)
        geom.CreateAxisAttr("Z")
        geom.CreateRadiusAttr(float(p["radius"]))
        geom.CreateHeightAttr(2.0 * float(p["half_length"]))
        set_pose(geom, pose)
        return geom.GetPrim()

    return add


def _box(doc: UsdDocument, path: str, pose: Transform, p: Params) -> Any:
    from pxr import UsdGeom

    geom = UsdGeom.Cube.Define(doc.stage, path)
    geom.CreateSizeAttr(2.0)
    set_pose(geom, pose, p["half_extents"])
    return geom.GetPrim()


def _plane(doc: UsdDocument, path: str, pose: Transform, p: Params) -> Any:
    from pxr import UsdGeom

    geom = UsdGeom.Plane.Define(doc.stage, path)
    geom.CreateAxisAttr("Z")
    geom.CreateWidthAttr(100.0)
    geom.CreateLengthAttr(100.0)
    set_pose(geom, pose)
    return geom.GetPrim()


_BASIC: dict[str, Callable[[UsdDocument, str, Transform, Params], Any]] = {
    "sphere": _sphere,
    "capsule": _round("Capsule"),
    "cylinder": _round("Cylinder"),
    "cone": _round("Cone"),
    "box": _box,
    "plane": _plane,
}


def _mesh(doc: UsdDocument, path: str, pose: Transform, points: Array, triangles: Array) -> Any:
    from pxr import UsdGeom, Vt

    geom = UsdGeom.Mesh.Define(doc.stage, path)
    corners = np.ascontiguousarray(triangles, np.int32).reshape(-1, 3)
    geom.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(points, np.float32)))
    geom.CreateFaceVertexCountsAttr(Vt.IntArray(len(corners), 3))
    geom.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(corners.reshape(-1)))
    geom.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    set_pose(geom, pose)
    return geom.GetPrim()


def _collider(doc: UsdDocument, path: str, shape: ShapeSpec) -> Any:
    from pxr import UsdPhysics

    if shape.kind in _BASIC:
        return _BASIC[shape.kind](doc, path, shape.xform, shape.params)
    type_ = shape_type(shape.kind)
    points = type_.points(shape.params)
    if not type_.movable:  # terrain
        points, triangles = type_.mesh(shape.params)
        how = UsdPhysics.Tokens.none
    else:
        if not len(points):
            points = np.asarray(type_.mesh(shape.params, 48)[0])
            what = f"is a {shape.kind}"
            doc.report.add("contact", shape.element, what, "the file has a polyhedron with 48 sides")
        points, faces = convex_hull(np.asarray(points))
        triangles, how = faces.triangles(), UsdPhysics.Tokens.convexHull
    prim = _mesh(doc, path, shape.xform, np.asarray(points), np.asarray(triangles))
    UsdPhysics.MeshCollisionAPI.Apply(prim).CreateApproximationAttr(how)
    return prim


def _bind(doc: UsdDocument, prim: Any, material: Material) -> None:
    """Bind a physics material to a shape."""
    from pxr import UsdGeom, UsdPhysics, UsdShade

    name = doc.materials.setdefault(material, f"material_{len(doc.materials)}")
    path = f"{ROOT}/PhysicsMaterials/{name}"
    if not doc.stage.GetPrimAtPath(path):
        UsdGeom.Scope.Define(doc.stage, f"{ROOT}/PhysicsMaterials")
        usd_material = UsdShade.Material.Define(doc.stage, path)
        api = UsdPhysics.MaterialAPI.Apply(usd_material.GetPrim())
        api.CreateStaticFrictionAttr(material.friction)
        api.CreateDynamicFrictionAttr(material.friction)
        api.CreateRestitutionAttr(material.restitution)
        api.CreateDensityAttr(material.density)
        mode = "average" if material.combine == "mean" else material.combine
        set_custom(usd_material.GetPrim(), "PhysxMaterialAPI", physxMaterial__frictionCombineMode=mode)
        if material.spinning_friction or material.rolling_friction:
            arms = {"newton__torsionalFriction": material.spinning_friction}
            arms["newton__rollingFriction"] = material.rolling_friction
            set_custom(usd_material.GetPrim(), "NewtonMaterialAPI", **arms)
        if material.priority:
            set_custom(usd_material.GetPrim(), "MjcMaterialAPI", mjc__priority=int(material.priority))
        if material.law is not None:
            doc.report.add("contact", f"material '{name}'", "has a contact law", "USD has no contact laws")
    binding = UsdShade.MaterialBindingAPI.Apply(prim)
    material_prim = UsdShade.Material(doc.stage.GetPrimAtPath(path))
    binding.Bind(material_prim, materialPurpose="physics")


def _paint(prim: Any, color: Color | None, alpha: float | None = None) -> None:
    from pxr import Gf, UsdGeom

    if alpha is not None:
        UsdGeom.Gprim(prim).CreateDisplayOpacityAttr([alpha])
    if color is not None:
        srgb = np.asarray(color[:3], float)
        linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        UsdGeom.Gprim(prim).CreateDisplayColorAttr([Gf.Vec3f(*map(float, linear))])


def _add_visual(doc: UsdDocument, visual: VisualSpec) -> None:
    doc.report.add_look(visual)
    parent = doc.bodies[visual.body]
    if visual.kind in _BASIC:
        path = doc.path(parent, visual.label)
        _paint(_BASIC[visual.kind](doc, path, visual.xform, visual.params), visual.color, visual.look.alpha)
        return
    if "pieces" in visual.params:
        sheets = [
            (p.vertices, p.triangles, visual.color or p.color, visual.look.over(p.look).alpha)
            for p in visual.params["pieces"]
        ]
    else:
        sheets = [(*shape_type(visual.kind).mesh(visual.params), visual.color, visual.look.alpha)]
    for points, triangles, color, alpha in sheets:
        _paint(_mesh(doc, doc.path(parent, visual.label), visual.xform, points, triangles), color, alpha)


def _add_groups(doc: UsdDocument, paths: list[str]) -> None:
    """Add a USD collision group for each combination of ``group`` and ``mask``. If all shapes collide, add none."""
    from pxr import UsdGeom, UsdPhysics

    shapes = doc.model.shapes
    kinds = sorted({(shape.group, shape.mask) for shape in shapes}, key=str)

    def can_collide(a: Any, b: Any) -> bool:
        return bool(a[0] & b[1]) and bool(b[0] & a[1])

    if all(can_collide(a, b) for a in kinds for b in kinds):
        return
    UsdGeom.Scope.Define(doc.stage, f"{ROOT}/CollisionGroups")
    groups = {}
    for number, kind in enumerate(kinds):
        group = UsdPhysics.CollisionGroup.Define(doc.stage, f"{ROOT}/CollisionGroups/group{number}")
        members = [p for p, shape in zip(paths, shapes, strict=True) if (shape.group, shape.mask) == kind]
        group.GetCollidersCollectionAPI().CreateIncludesRel().SetTargets(members)
        groups[kind] = group
    for a in kinds:
        filtered = [groups[b].GetPath() for b in kinds if not can_collide(a, b)]
        if filtered:
            groups[a].CreateFilteredGroupsRel().SetTargets(filtered)
