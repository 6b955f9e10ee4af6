"""Colliders of a USD file: shapes, materials, collision groups and filtered pairs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import shape_type
from gpusim.errors import ModelError
from gpusim.importers.usd_parts.usd_bodies import UsdBody, host_of
from gpusim.importers.usd_parts.usd_joints import WORLD, UsdJoint
from gpusim.importers.usd_parts.usd_meshes import read_mesh
from gpusim.importers.usd_parts.usd_stage import UsdStage
from gpusim.meshes.decomposition import decompose_mesh
from gpusim.meshes.polytope import solid
from gpusim.transform import Transform
from gpusim.typing import Array

HULL_VERTICES = 64
"""Maximum number of vertices of the convex hull of a mesh. More vertices make contacts slower, but not more
accurate."""
MAX_COORDINATE = 1e6
"""Maximum valid coordinate of mesh points, m."""
_OTHER_TYPES = ("CustomShape", "SpherePointsShape")
AXIS_ROTATIONS = {
    "X": Transform.from_axis_angle((0, 0, 0), (0, 1, 0), math.pi / 2.0),
    "Y": Transform.from_axis_angle((0, 0, 0), (1, 0, 0), -math.pi / 2.0),
    "Z": Transform(),
}
"""Rotation from z (the axis of the builder's shapes) to the axis of a USD shape."""


@dataclass
class Collider:
    """A collider of the file, converted to one or more shapes.

    Attributes:
        path: path of the collider's prim.
        body: path of the rigid body that has the collider, or WORLD.
        forms: a tuple (shape kind, checked parameters, pose) for each shape. The pose is in the body or in the
            builder's world.
        enabled: True if the collider makes contacts. A disabled collider only contributes to the mass.
        material: material of the surface.
        groups: paths of the collision groups that contain the collider.
        filtered: paths of the prims in the collider's filtered pairs.
        mesh: vertices (in the body's frame) and triangles of a mesh that defines the body's mass, else None.
        shapes: indices of the shapes in the builder.
        owner: path of the rigid body (enabled or disabled) that has the collider, or empty.
    """

    path: str
    body: str
    forms: list[tuple[str, dict[str, Any], Transform]]
    enabled: bool
    material: Material
    groups: frozenset[str] = frozenset()
    filtered: tuple[str, ...] = ()
    mesh: tuple[Array, Array] | None = None
    shapes: list[int] = field(default_factory=list)
    owner: str = ""


def read_colliders(stage: UsdStage, meshes: str) -> dict[str, Collider]:
    """Return the colliders as a dict (path -> collider), in the order of the file."""
    enabled_bodies = {path for path, body in stage.of("RigidBody") if body.rigidBodyEnabled}
    materials = {path: item for path, item in stage.of("RigidBodyMaterial")}
    items = {path: (kind, item) for kind in (*_BASIC, "MeshShape") for path, item in stage.of(kind)}
    colliders = {}
    for path in (str(prim.GetPath()) for prim in stage.prims()):
        if path in items:
            kind, item = items[path]
            body = str(item.rigidBody) if str(item.rigidBody) in enabled_bodies else WORLD
            collider = _read(stage, path, kind, item, body, meshes)
            if collider is not None:
                collider.material = _material(stage, path, item, materials)
                colliders[path] = collider
    for kind in _OTHER_TYPES:
        for path, item in stage.of(kind):
            body = str(item.rigidBody) if str(item.rigidBody) in enabled_bodies else WORLD
            what = f"is a {kind.removesuffix('Shape').lower()}"
            _report_missing(stage, path, body, what, "use a mesh or a basic shape")
    return colliders


def _report_missing(stage: UsdStage, path: str, body: str, what: str, fix: str = "") -> None:
    """Report a collider that the importer cannot convert.

    The report has the severity "motion" if the collider contributes to the body's mass, else "contact".
    """
    severity = "contact"
    if body != WORLD:
        mass, moments, center = (stage.value(body, f"physics:{x}") for x in ("mass", "diagonalInertia", "centerOfMass"))
        severity = "contact" if mass and np.any(moments) and center is not None else "motion"
    stage.report.add(severity, f"collider '{path}'", what, "it is left out", fix)


def _read(stage: UsdStage, path: str, kind: str, item: Any, body: str, meshes: str) -> Collider | None:
    frame = stage.frame(item.localPos, item.localRot, path)
    xform = frame if body != WORLD else stage.world * frame
    collider = Collider(path, body, [], bool(item.collisionEnabled), Material())
    collider.owner = str(item.rigidBody)
    collider.groups = frozenset(str(group) for group in item.collisionGroups)
    collider.filtered = tuple(str(other) for other in item.filteredCollisions)
    scratch, unit = ModelBuilder(), stage.meters
    if "1" in kind and abs(item.topRadius - item.bottomRadius) > 1e-6 * item.topRadius:
        _report_missing(stage, path, body, "has different radii at its ends", "use a mesh")
        return None
    if kind == "MeshShape":
        pieces = _mesh_pieces(stage, collider, item, xform, meshes)
    else:
        rotation = AXIS_ROTATIONS[item.axis.name] if hasattr(item, "axis") else Transform()
        if kind == "ConeShape" and _is_upside_down(stage, collider, item, xform):
            rotation = rotation * _FLIP
        pieces = [(_BASIC[kind], _sizes(kind, item, unit), xform * rotation)]
        _check_scale(stage, path, kind, item)
    for form, sizes, pose in pieces:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # hides the warning about removed hull vertices
                more = {"max_vertices": HULL_VERTICES} if form == "hull" else {}
                getattr(scratch, f"add_shape_{form}")(-1, *sizes, xform=pose, **more)
        except ModelError as why:
            _report_missing(stage, path, body, str(why).split(": ", 1)[-1])
            continue
        collider.forms.append((form, scratch.shapes[-1].params, pose))
    return collider if collider.forms else None


_BASIC = {
    "CubeShape": "box",
    "SphereShape": "sphere",
    "CapsuleShape": "capsule",
    "Capsule1Shape": "capsule",
    "CylinderShape": "cylinder",
    "Cylinder1Shape": "cylinder",
    "ConeShape": "cone",
    "PlaneShape": "plane",
}


_FLIP = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), math.pi)


def _is_upside_down(stage: UsdStage, collider: Collider, item: Any, xform: Transform) -> bool:
    """Return whether the prim's scale mirrors a cone along its axis."""
    axis = "XYZ".index(item.axis.name)
    base = stage.pose(collider.body) if collider.body != WORLD else Transform()
    return bool(stage.matrix(collider.path)[:3, axis] @ (base * xform).matrix()[:, axis] < 0.0)


def _sizes(kind: str, item: Any, unit: float) -> tuple[Any, ...]:
    if kind == "CubeShape":
        return (tuple(unit * abs(float(x)) for x in item.halfExtents),)  # negative for mirrored cubes
    if kind == "SphereShape":
        return (unit * float(item.radius),)
    radius = item.topRadius if "1" in kind else 0.0 if kind == "PlaneShape" else item.radius
    return () if kind == "PlaneShape" else (unit * float(radius), unit * float(item.halfHeight))


def _check_scale(stage: UsdStage, path: str, kind: str, item: Any) -> None:
    matrix = stage.matrix(path)[:3, :3]
    scale = np.linalg.norm(matrix, axis=0)
    if np.abs(np.triu(matrix.T @ matrix, 1)).max() > 1e-3 * scale.max() ** 2:
        what = "is sheared, since prims above it have unequal scales"
        stage.report.add("contact", f"collider '{path}'", what, "its shape is not sheared", "use a mesh")
    if kind in ("CubeShape", "PlaneShape"):
        return
    round_axes = [k for k in range(3) if kind == "SphereShape" or "XYZ"[k] != item.axis.name]
    values = scale[round_axes]
    if np.ptp(values) > 1e-3 * values.max():
        what = f"has unequal scales {', '.join(f'{s / stage.meters:.4g}' for s in values)} across its round side"
        stage.report.add("contact", f"collider '{path}'", what, "it has the largest scale", "use a mesh")


def _mesh_pieces(
    stage: UsdStage, collider: Collider, item: Any, xform: Transform, meshes: str
) -> list[tuple[str, tuple[Any, ...], Transform]]:
    mesh = read_mesh(stage, collider.path)
    points, triangles = mesh.points, mesh.triangles
    matrix = stage.matrix(collider.path)
    base = stage.pose(collider.body) if collider.body != WORLD else Transform()
    if collider.body != WORLD and np.linalg.det(matrix[:3, :3]) < 0.0:
        triangles = triangles[:, ::-1]
    world = points @ matrix[:3, :3].T + matrix[:3, 3]
    local = (base * xform).inverse().apply(world)
    how = str(item.approximation)
    stage.used.add((collider.path, "physics:approximation"))
    if not len(points) or not np.abs(local).max() < MAX_COORDINATE:  # False for NaN, too, which would abort coacd
        what = "its mesh has no points" if not len(points) else "a point of its mesh is not finite or far away"
        _report_missing(stage, collider.path, collider.body, what)
        return []
    if how == "boundingSphere":
        center = 0.5 * (local.min(axis=0) + local.max(axis=0))
        radius = float(np.linalg.norm(local - center, axis=1).max())
        return [("sphere", (radius,), xform * Transform(center))]
    if how == "boundingCube":
        center, half = 0.5 * (local.min(axis=0) + local.max(axis=0)), 0.5 * np.ptp(local, axis=0)
        return [("box", (tuple(np.maximum(half, 1e-4)),), xform * Transform(center))]
    if how in ("", "none", "meshSimplification", "sdf"):
        collider.mesh = xform.apply(local), triangles
        if collider.body == WORLD and len(triangles):
            return [("triangle_mesh", ((local, triangles),), xform)]
    if meshes == "decompose" and how != "convexHull":
        parts = _decompose(stage, collider.path, local, triangles)
        if parts:
            return [("hull", (part,), xform) for part in parts]
    elif how != "convexHull":
        _report_hull(stage, collider.path, local, triangles, how or "none")
    return [("hull", (local,), xform)]


def _report_hull(stage: UsdStage, path: str, points: Array, triangles: Array, how: str) -> None:
    what = f"is a mesh with approximation {how}"
    if len(triangles) and _is_convex(points, triangles):
        return
    fix = 'add one hull for each convex piece, or load with meshes="decompose"'
    stage.report.add("contact", f"collider '{path}'", what, "it collides as its convex hull", fix)


def _is_convex(points: Array, triangles: Array) -> bool:
    """Return whether a mesh is convex, with a tolerance of 0.1 % of the mesh size."""
    if len(points) * len(triangles) > 4_000_000:
        return False
    a, b, c = (points[triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    lengths = np.linalg.norm(normals, axis=1)
    normals, a = normals[lengths > 0.0] / lengths[lengths > 0.0, None], a[lengths > 0.0]
    outside = points @ normals.T - np.einsum("ij,ij->i", normals, a)
    return bool(outside.max(initial=0.0) <= 1e-3 * np.ptp(points, axis=0).max())


def _decompose(stage: UsdStage, path: str, points: Array, triangles: Array) -> list[Array]:
    """Return the points of each convex piece, or an empty list if the decomposition fails."""
    element = f"collider '{path}'"
    try:
        return decompose_mesh(element, (points, triangles))
    except ModelError as error:
        what = str(error).removeprefix(f"{element}: ")
        stage.report.add("contact", element, what, "it collides as its convex hull")
        return []


def _material(stage: UsdStage, path: str, item: Any, materials: Mapping[str, Any]) -> Material:
    bound = [str(name) for name in item.materials if str(name) in materials]
    if not bound:
        return Material(priority=int(stage.number(path, "mjc:priority")))
    if len(bound) > 1:
        what = f"has {len(bound)} physics materials"
        stage.report.add("contact", f"collider '{path}'", what, f"{bound[0]} applies to all faces")
    name, descriptor = bound[0], materials[bound[0]]
    element = f"material '{name}'"
    names = ("staticFriction", "dynamicFriction", "restitution", "density")
    stage.used.update((name, f"physics:{key}") for key in names)
    static, sliding = float(descriptor.staticFriction), max(float(descriptor.dynamicFriction), 0.0)
    if stage.value(name, "physics:staticFriction") is not None and abs(static - sliding) > 1e-6:
        what = f"static friction {static:g} and dynamic friction {sliding:g} differ"
        stage.report.add("contact", element, what, f"{sliding:g} applies to both")
    mode = stage.value(name, "physxMaterial:frictionCombineMode")
    if str(mode) == "average" and sliding > 0.0:
        effect = "a pair has the geometric mean, which is the same for equal frictions"
        stage.report.add("contact", element, "pairs have the average friction", effect)
    condim = stage.number(path, "mjc:condim", 6.0)
    priority = int(max(stage.number(name, "mjc:priority"), stage.number(path, "mjc:priority")))
    spins = stage.number(name, "newton:torsionalFriction"), stage.number(name, "mjc:torsionalfriction")
    rolls = stage.number(name, "newton:rollingFriction"), stage.number(name, "mjc:rollingfriction")
    spin = max(spins[0], spins[1] if condim >= 4 else 0.0)
    roll = max(rolls[0], rolls[1] if condim >= 6 else 0.0)
    return Material(
        friction=sliding,
        restitution=min(max(float(descriptor.restitution), 0.0), 1.0),
        density=float(descriptor.density) * stage.kilograms / stage.meters**3 if descriptor.density > 0.0 else 1000.0,
        spinning_friction=max(spin, 0.0) * stage.meters,
        rolling_friction=max(roll, 0.0) * stage.meters,
        combine=str(mode) if str(mode) in ("min", "max", "multiply") else "mean",
        priority=priority,
    )


def measure(collider: Collider) -> tuple[float, Array, Array, Transform] | None:
    """Return a collider's volume (m3), centroid (m), inertia at density 1 (m5) and pose.

    Return None for zero volume.
    """
    if collider.mesh is not None and len(collider.mesh[1]):
        points, triangles = collider.mesh
        volume, center, inertia = solid(points, triangles)
        if abs(volume) > 0.05 * np.prod(np.ptp(points, axis=0)) and np.all(np.isfinite(center)):
            return abs(volume), center, inertia * math.copysign(1.0, volume), Transform()
    kind, params, pose = collider.forms[0]
    type_ = shape_type(kind)
    volume = type_.volume(params)
    return (volume, type_.center(params), type_.inertia(params), pose) if volume > 0.0 else None


def add_shapes(
    stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody], colliders: Mapping[str, Collider]
) -> None:
    """Add the shapes of all enabled colliders, and list them in the report."""
    for collider in colliders.values():
        if not collider.enabled:
            continue
        body = bodies.get(collider.body)
        index, offset, owner = -1, Transform(), "world"
        if body is not None:
            index, offset, owner = host_of(bodies, body).index, body.offset, body.label
        for kind, params, pose in collider.forms:
            label = stage.label("shape", collider.path)
            try:
                shape = builder.add_shape(kind, index, params, offset * pose, collider.material, label)
            except ModelError as why:
                stage.report.add("contact", f"collider '{collider.path}'", str(why).split(": ", 1)[-1], "left out")
                continue
            collider.shapes.append(shape)
            stage.report.shapes.setdefault(owner, []).append(shape)


def filter_pairs(
    stage: UsdStage,
    builder: ModelBuilder,
    bodies: Mapping[str, UsdBody],
    colliders: Mapping[str, Collider],
    joints: Sequence[UsdJoint],
    self_collisions: bool | None,
) -> None:
    """Set collision rules from filtered pairs, collision groups, self-collision settings and joints."""
    articulation_of = _without_self_collisions(stage, bodies, self_collisions)
    _set_groups(stage, builder, colliders, articulation_of)
    shapes_under = _shapes_under(colliders)
    pairs = [(c.path, other) for c in colliders.values() for other in c.filtered]
    for kind in ("RigidBody", "Articulation"):
        pairs += [(path, str(other)) for path, item in stage.of(kind) for other in item.filteredCollisions]
    for first, second in pairs:
        _exclude(builder, shapes_under(first), shapes_under(second))
    for joint in joints:
        if WORLD in joint.bodies:
            if not joint.collide and joint.anchors[joint.bodies.index(WORLD)]:
                _exclude(builder, *(_shapes_at_end(builder, bodies, colliders, joint, end) for end in (0, 1)))
            continue
        one, other = (bodies[path].index for path in joint.bodies)
        if joint.kind == "latch" and not joint.collide:
            shapes = ([k for k, shape in enumerate(builder.shapes) if shape.body == body] for body in (one, other))
            _exclude(builder, *shapes)
        if joint.collide:
            listed = {frozenset((pair.shape_a, pair.shape_b)) for pair in builder.pairs}
            for a in (k for k, shape in enumerate(builder.shapes) if shape.body == one):
                for b in (k for k, shape in enumerate(builder.shapes) if shape.body == other):
                    if frozenset((a, b)) not in listed:
                        builder.add_collision_pair(a, b)


def _shapes_at_end(
    builder: ModelBuilder, bodies: Mapping[str, UsdBody], colliders: Mapping[str, Collider], joint: UsdJoint, end: int
) -> list[int]:
    """Return the shapes of the first (``end=0``) or second (``end=1``) body of a joint."""
    if joint.bodies[end] != WORLD:
        return [k for k, shape in enumerate(builder.shapes) if shape.body == bodies[joint.bodies[end]].index]
    path = joint.anchors[end]
    inside = (c for c in colliders.values() if path and c.body == WORLD and path in (c.path, c.owner))
    return [shape for collider in inside for shape in collider.shapes]


def _exclude(builder: ModelBuilder, first: Sequence[int], second: Sequence[int]) -> None:
    """Exclude collisions between shapes of ``first`` and shapes of ``second``."""
    existing = {frozenset((pair.shape_a, pair.shape_b)) for pair in builder.pairs}
    for a in first:
        for b in second:
            if builder.shapes[a].body != builder.shapes[b].body and frozenset((a, b)) not in existing:
                builder.exclude_collision_pair(a, b)
                existing.add(frozenset((a, b)))


def _shapes_under(colliders: Mapping[str, Collider]) -> Any:
    def shapes_under(path: str) -> list[int]:
        inside = (c for c in colliders.values() if (c.path + "/").startswith(path + "/") or c.body == path)
        return [shape for collider in inside for shape in collider.shapes]

    return shapes_under


def _without_self_collisions(
    stage: UsdStage, bodies: Mapping[str, UsdBody], self_collisions: bool | None
) -> dict[str, str]:
    """Return a dict (body path -> articulation path) for the articulations without self-collisions."""
    articulation_of: dict[str, str] = {}
    for path, item in stage.of("Articulation"):
        roots = [path, *(str(root) for root in item.rootPrims)]
        names = ("physxArticulation:enabledSelfCollisions", "newton:selfCollisionEnabled")
        is_disabled = any(stage.value(root, name) is False for root in roots for name in names)
        if self_collisions is False or (self_collisions is None and is_disabled):
            articulation_of.update((str(body), path) for body in item.articulatedBodies)
    if self_collisions is False and not articulation_of:
        articulation_of = dict.fromkeys(bodies, "robot")
    return articulation_of


def _set_groups(
    stage: UsdStage, builder: ModelBuilder, colliders: Mapping[str, Collider], articulation_of: Mapping[str, str]
) -> None:
    from pxr import UsdPhysics

    classes: dict[tuple[frozenset[str], str], list[int]] = {}
    for collider in colliders.values():
        key = collider.groups, articulation_of.get(collider.body, "")
        classes.setdefault(key, []).extend(collider.shapes)
    classes = {key: shapes for key, shapes in classes.items() if shapes}
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(stage.stage)

    def is_filtered(a: tuple[frozenset[str], str], b: tuple[frozenset[str], str]) -> bool:
        same = bool(a[1]) and a[1] == b[1]
        return same or any(not table.IsCollisionEnabled(g, h) for g in a[0] for h in b[0])

    rules = [pair for pair in combinations_with_replacement(classes, 2) if is_filtered(*pair)]
    named = {key: f"usd{number}" for number, key in enumerate(classes) if any(key in pair for pair in rules)}
    if len(named) > 30:  # the builder has 32 bits for groups
        for a, b in rules:
            _exclude(builder, classes[a], classes[b])
        return
    for key, name in named.items():
        for index in classes[key]:
            builder.shapes[index] = replace(builder.shapes[index], group=name)
    for a, b in rules:
        builder.set_group_collision(named[a], named[b], False)
