"""Rigid bodies of a USD file: poses, velocities, mass properties, and merging of bodies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from gpusim.errors import ModelError
from gpusim.importers.inertia import MassProperties, combine, inertia_fault, repair_inertia, sphere_inertia
from gpusim.importers.usd_parts.usd_joints import WORLD, UsdJoint
from gpusim.importers.usd_parts.usd_stage import DEGREE, UsdStage, quaternion
from gpusim.transform import Transform, homogeneous_matrix
from gpusim.typing import Array

DEFAULT_MASS = 1.0
"""Mass (kg) of a body that has neither a mass attribute nor colliders, as in PhysX."""


@dataclass
class UsdBody:
    """A rigid body.

    Attributes:
        path, label: the body's path in the file, and its label in the model.
        pose: pose in the builder's world.
        mass: mass properties in the body's frame.
        kinematic: True for a kinematic body. Forces do not move a kinematic body.
        linear, angular: velocities in the builder's world, m/s and rad/s.
        host: path of the body into which this body is merged. For other bodies, ``host`` equals ``path``.
        offset: pose of this body in the host's frame.
        index: index in the builder, or -1 if the builder does not contain the body yet.
        gravity_scale: gravity factor of this body.
    """

    path: str
    label: str
    pose: Transform
    mass: MassProperties
    kinematic: bool
    linear: Array
    angular: Array
    host: str = ""
    offset: Transform = field(default_factory=Transform)
    index: int = -1
    gravity_scale: float = 1.0

    @property
    def element(self) -> str:
        """Return the body's name for messages in the import report."""
        return f"body '{self.label}'"


Measure = Callable[[str], tuple[float, Array, Array, Transform] | None]
"""Function from a collider's path to its volume (m3), center (m), inertia at density 1 (m5), and pose in the body."""


def read_bodies(stage: UsdStage, measure: Measure) -> dict[str, UsdBody]:
    """Return all enabled rigid bodies as a dict (path -> body), in the order of the file."""
    bodies: dict[str, UsdBody] = {}
    for path, descriptor in stage.of("RigidBody"):
        stage.used.update((path, f"physics:{name}") for name in ("velocity", "angularVelocity", "mass", "density"))
        stage.used.update((path, f"physics:{name}") for name in ("centerOfMass", "diagonalInertia", "principalAxes"))
        if not descriptor.rigidBodyEnabled:
            stage.report.add("info", f"body '{path}'", "rigidBodyEnabled is false", "its shapes belong to the world")
            continue
        parent_pose = stage.pose(str(stage.prim(path).GetParent().GetPath()))
        body = UsdBody(
            path=path,
            label=stage.label("body", path),
            pose=stage.pose(path),
            mass=MassProperties(0.0, np.zeros(3), np.zeros((3, 3))),
            kinematic=bool(descriptor.kinematicBody),
            linear=parent_pose.rotate([stage.meters * float(x) for x in descriptor.linearVelocity]),
            angular=parent_pose.rotate([DEGREE * float(x) for x in descriptor.angularVelocity]),
            host=path,
        )
        body.mass = _mass(stage, body, descriptor, measure)
        body.gravity_scale = 0.0 if stage.value(path, "physxRigidBody:disableGravity") is True else 1.0
        bodies[path] = body
    return bodies


def _mass(stage: UsdStage, body: UsdBody, descriptor: Any, measure: Measure) -> MassProperties:
    """Return a body's mass properties from its attributes. USD computes missing attributes from the colliders."""
    from pxr import UsdPhysics

    api = UsdPhysics.MassAPI(stage.prim(body.path))
    mass = float(api.GetMassAttr().Get() or 0.0) * stage.kilograms
    moments = np.array(api.GetDiagonalInertiaAttr().Get() or (0, 0, 0), float) * stage.kilograms * stage.meters**2
    center = np.array(api.GetCenterOfMassAttr().Get() or (math.nan,) * 3, float)
    given_com = stage.meters * center * np.array([float(x) for x in descriptor.scale])
    principal_axes = api.GetPrincipalAxesAttr().Get()
    if principal_axes is not None and not math.isfinite(principal_axes.GetLength()):
        raise ModelError(f"{body.element}: its principal axes are not finite; correct them in the file")
    axes = quaternion(principal_axes).matrix()
    given_inertia = axes @ np.diag(moments) @ axes.T
    if mass > 0.0 and np.any(moments > 0.0) and np.all(np.isfinite(center)):
        result = MassProperties(mass, given_com, given_inertia)
    else:
        solid = _from_colliders(stage, body, measure, mass)
        com = given_com if np.all(np.isfinite(center)) else np.zeros(3)
        result = solid or MassProperties(mass, com, given_inertia)
    if not math.isfinite(result.mass) or result.mass <= 0.0:
        inertia = DEFAULT_MASS * 0.4 * 0.1**2 * np.eye(3)
        what, effect = "has no mass and no solid collider", f"it gets {DEFAULT_MASS:g} kg and a ball's inertia"
        if not body.kinematic:
            stage.report.add("motion", body.element, what, effect, "give it PhysicsMassAPI")
        return MassProperties(DEFAULT_MASS, np.zeros(3), inertia)
    fault = inertia_fault(result.inertia, result.mass)
    if fault is not None and not body.kinematic:
        no_moment = not np.any(result.inertia)
        inertia = sphere_inertia(result.mass) if no_moment else repair_inertia(result.inertia, result.mass)
        shown = ", ".join(f"{value:.3g}" for value in np.linalg.eigvalsh(inertia))
        stage.report.add("motion", body.element, f"inertia {fault}", f"it gets principal moments {shown} kg m2")
        return MassProperties(result.mass, result.com, inertia)
    return result if fault is None else MassProperties(result.mass, result.com, sphere_inertia(result.mass))


def _from_colliders(stage: UsdStage, body: UsdBody, measure: Measure, mass: float) -> MassProperties | None:
    """Return a body's mass properties from its colliders, or None if no collider is solid."""
    from pxr import Gf, UsdPhysics

    solid = False

    def information(prim: Any) -> Any:
        result = UsdPhysics.RigidBodyAPI.MassInformation()
        result.localRot = Gf.Quatf(1.0)
        nonlocal solid
        measured = measure(str(prim.GetPath()))
        if measured is not None:
            solid = True
            volume, center, inertia, pose = measured
            x, y, z, w = pose.rotation
            result.volume = volume / stage.meters**3
            result.centerOfMass = Gf.Vec3f(*map(float, center / stage.meters))
            result.inertia = Gf.Matrix3f(*map(float, (inertia / stage.meters**5).T.flatten()))
            result.localPos = Gf.Vec3f(*map(float, pose.position / stage.meters))
            result.localRot = Gf.Quatf(float(w), float(x), float(y), float(z))
        return result

    api = UsdPhysics.RigidBodyAPI(stage.prim(body.path))
    computed_mass, moments, center, axes = api.ComputeMassProperties(information)
    if not solid or not 0.9 < axes.GetLength() < 1.1:
        return None
    rotation = quaternion(axes).matrix()
    inertia = rotation @ np.diag(np.array(moments, float)) @ rotation.T * stage.kilograms * stage.meters**2
    com = stage.meters * np.array(center, float)
    if not np.all(np.isfinite(com)):
        com = np.zeros(3)
    return MassProperties(mass or float(computed_mass) * stage.kilograms, com, inertia)


def merge_fixed(
    bodies: Mapping[str, UsdBody], joints: Sequence[UsdJoint], keep: Sequence[str], merge: bool
) -> list[UsdJoint]:
    """Merge bodies connected by fixed joints, and return the remaining joints.

    Two bodies stay separate if one is kinematic, or if their gravity factors differ. A child whose label or path
    matches ``keep`` also stays separate.
    """
    remaining = []
    for joint in joints:
        parent, child = (bodies.get(path) for path in joint.bodies)
        if not merge or joint.kind != "fixed" or joint.excluded or parent is None or child is None:
            remaining.append(joint)
            continue
        is_kept = any(fnmatchcase(name, pattern) for name in (child.label, child.path) for pattern in keep)
        is_separate = parent.kinematic or child.kinematic or parent.gravity_scale != child.gravity_scale
        if is_kept or is_separate or host_of(bodies, child) is host_of(bodies, parent):
            remaining.append(joint)
            continue
        root = host_of(bodies, parent)
        # pose of the child's host in the frame of the parent's host
        moved = parent.offset * joint.frames[0] * joint.frames[1].inverse() * child.offset.inverse()
        group = host_of(bodies, child).path
        for body in bodies.values():
            if body.host == group:
                body.host, body.offset = root.path, moved * body.offset
    _combine_masses(bodies)
    return [joint for joint in remaining if not _is_internal(bodies, joint)]


def host_of(bodies: Mapping[str, UsdBody], body: UsdBody) -> UsdBody:
    """Return the body into which ``body`` is merged, or ``body`` itself."""
    return bodies[body.host]


def _is_internal(bodies: Mapping[str, UsdBody], joint: UsdJoint) -> bool:
    hosts = [bodies[path].host if path != WORLD else WORLD for path in joint.bodies]
    return hosts[0] == hosts[1]


def _combine_masses(bodies: Mapping[str, UsdBody]) -> None:
    """Add the mass properties of merged bodies to their hosts, and convert velocities to the new centers of mass."""
    parts_of: dict[str, list[UsdBody]] = {}
    for body in bodies.values():
        parts_of.setdefault(body.host, []).append(body)
    for body in bodies.values():
        parts = parts_of.get(body.path, [])
        if body.host == body.path and len(parts) > 1:
            old, body.mass = body.mass.com, combine(part.mass.moved(homogeneous_matrix(part.offset)) for part in parts)
            body.linear = body.linear + np.cross(body.angular, body.pose.rotate(body.mass.com - old))
