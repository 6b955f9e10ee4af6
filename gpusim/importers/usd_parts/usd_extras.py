"""Report the physics data in a USD file that the importer does not read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gpusim.importers.usd_parts.usd_stage import UsdStage

# Tuples (pattern of attributes, severity of the finding, effect). The first matching pattern counts. An empty severity
# means no finding.
_RULES: tuple[tuple[str, str, str], ...] = (
    (r"physics:(axis|jointEnabled|breakForce|breakTorque|excludeFromArticulation|collisionEnabled|engine)$", "", ""),
    (r"physics:(lowerLimit|upperLimit|minDistance|maxDistance|coneAngle[01]Limit|type|rigidBodyEnabled)$", "", ""),
    (r"physics:(kinematicEnabled|mass|density|centerOfMass|diagonalInertia|principalAxes|velocity)$", "", ""),
    (r"physics:(angularVelocity|gravityDirection|gravityMagnitude|startsAsleep|invertFilteredGroups)$", "", ""),
    (r"physics:(mergeGroup|mergeGroupName|approximation|local(Pos|Rot)[01]|(static|dynamic)Friction)$", "", ""),
    (r"physics:(restitution|sleepThreshold)$", "", ""),
    (r"physics:(tensor|newton):", "", ""),
    (r"physics:(surface|curves|poissons|youngs|thickness|masses|elasticity|damping)", "motion", "bodies are rigid"),
    (r"physxRigidBody:linearDamping$", "motion", "bodies move without damping"),
    (r"physxRigidBody:angularDamping$", "motion", "bodies rotate without damping"),
    (r"physxRigidBody:disableGravity$", "motion", "gravity acts on it"),
    (r"physxRigidBody:(enableGyroscopicForces|retainAccelerations)$", "info", "gyroscopic torques always act"),
    (r"physxRigidBody:max", "info", "speeds are not limited"),
    (r"physxRigidBody:(lockedPosAxis|lockedRotAxis)$", "motion", "no axis is locked"),
    (r"(physxLimit:|newton:(\w+:)?limit(Stiffness|Damping)|mjc:sol(ref|imp)limit)", "contact", "limits are rigid"),
    (r"mjc:(solref|solimp|solmix|condim|margin|gap|shellinertia)$", "contact", "contacts are rigid"),
    (r"(newton:contact|physxCollision:|physxMaterial:compliant|newton:(sdf|hydro|shell|mass))", "contact", ""),
    (r"(physxConvex|physxTriangle|physxSDF|newton:maxHullVertices|mjc:maxhullvert)", "contact", ""),
    (r"physxMaterial:frictionCombineMode$", "", ""),
    (r"physxMaterial:restitutionCombineMode$", "contact", "a pair has the greater restitution"),
    (r"(physxMaterial:|physxScene:|physxArticulation:(sleep|stabil|solver))", "info", "settings of another solver"),
    (r"physxRigidBody:(sleep|stabil|solver|contact|cfm)", "info", "settings of another solver"),
    (r"mjc:(group|flag|option|compiler|visual)", "info", "settings of MuJoCo"),
    (r"(newton:(kamino|maxSolver|timeSteps|collapse|mpm|tag)|mjcf:)", "info", "settings of another solver"),
    (r"mjc:ref$", "info", "coordinates count from USD's zero"),
    (r"mjc:torqueScale$", "info", "closed loops are rigid"),
    (r"(physx\w*|mjc):", "motion", "it is not read"),
    (r"newton:", "info", "it is not read"),
)
# Attribute -> value without effect, usually the schema's default. Zero has no effect for all other attributes except
# limits.
_DEFAULTS: dict[str, Any] = {
    "physxRigidBody:disableGravity": False,
    "physxRigidBody:enableGyroscopicForces": True,
    "physxRigidBody:maxAngularVelocity": 5729.58,
    "physxRigidBody:maxDepenetrationVelocity": 3.0,
    "physxJoint:maxJointVelocity": 1e6,
    "physxConvexHullCollision:hullVertexLimit": 64,
    "physxConvexHullCollision:minThickness": 0.001,
    "physxMaterial:compliantContactAccelerationSpring": False,
    "newton:maxHullVertices": -1,
    "mjc:condim": 3,
    "mjc:maxhullvert": -1,
    "mjc:shellinertia": False,
    "mjc:solimp": (0.9, 0.95, 0.001, 0.5, 2.0),
    "mjc:solimplimit": (0.9, 0.95, 0.001, 0.5, 2.0),
    "mjc:solmix": 1.0,
    "mjc:solref": (0.02, 1.0),
    "mjc:solreflimit": (0.02, 1.0),
}
_LIMIT = re.compile(r"(?i)(?!physxLimit:).*(max|limit(?!(stiffness|damping)))")


def _shown(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else repr(value)
    return text if len(text) < 40 else "..."


def _has_no_effect(key: str, value: Any) -> bool:
    """Return True if a value has no effect: a default value, zero, or an infinite limit."""
    if isinstance(value, str):
        return False
    try:
        numbers = np.ravel(np.asarray(value, float))
    except (TypeError, ValueError, OverflowError):
        return False
    default = _DEFAULTS.get(key)
    if default is not None:
        return numbers.shape == np.ravel(default).shape and np.allclose(numbers, np.ravel(default), rtol=1e-6, atol=0.0)
    if isinstance(value, bool) or _LIMIT.match(key):
        return bool(np.all(np.isposinf(numbers)))  # no limit
    return bool(np.all((numbers == 0.0) | np.isneginf(numbers)))


_PHYSICS = ("physx", "mjc", "newton", "physics:")
_SETTINGS, _SEPARATE_EFFECTS = "settings", ("", "it is not read")
_NAMED = 3


class _Unread:
    """Collection of attributes that the importer does not use."""

    def __init__(self) -> None:
        self.keys: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.prims: dict[tuple[str, str, str], dict[str, str]] = {}

    def add(self, path: str, name: str, key: str, value: Any) -> None:
        for pattern, severity, effect in _RULES:
            if re.match(pattern, key):
                if severity:
                    group = (severity, effect, key if effect in _SEPARATE_EFFECTS else "")
                    self.keys.setdefault(group, {}).setdefault(key, value)
                    self.prims.setdefault(group, {})[path] = name
                return

    def write(self, stage: UsdStage) -> None:
        for group, keys in self.keys.items():
            severity, effect, _ = group
            if effect.startswith(_SETTINGS):
                stage.report.add(severity, "", f"{effect} and not used: {', '.join(keys)}")
                continue
            shown = ", ".join(f"{key} = {_shown(value)}" for key, value in keys.items())
            what = f"{shown} {'is' if len(keys) == 1 else 'are'} not used"
            stage.report.add(severity, _prims(list(self.prims[group].values())), what, effect)


def _prims(names: list[str]) -> str:
    """Return a text such as "prim 'a'" or "5 prims 'a', 'b', 'c' and 2 more"."""
    quoted = ", ".join(f"'{name}'" for name in names[:_NAMED])
    if len(names) == 1:
        return f"prim {quoted}"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} prims {quoted}{more}"


def _instances_physics(stage: UsdStage, instancer: Any) -> bool:
    """Return True if a prototype of a point instancer has rigid bodies or colliders."""
    from pxr import Usd

    roots = (stage.prim(str(path)) for path in instancer.GetRelationship("prototypes").GetTargets())
    parts = (prim for root in roots if root for prim in Usd.PrimRange(root, Usd.TraverseInstanceProxies()))
    return any({"PhysicsRigidBodyAPI", "PhysicsCollisionAPI"} & set(stage.schemas(prim)) for prim in parts)


def report_unread(stage: UsdStage) -> None:
    """Report the attributes of PhysX, MuJoCo and Newton that the importer does not read.

    Also report attributes that have time samples, but no default value.
    """
    unread, animated = _Unread(), dict[str, str]()
    for prim in stage.prims():
        path, name = str(prim.GetPath()), prim.GetName()
        schemas = stage.schemas(prim)
        if any("Deformable" in schema or "Particle" in schema for schema in schemas):
            stage.report.add("motion", f"prim '{name}'", "is deformable", "it is left out", "gpusim has rigid bodies")
        if str(prim.GetTypeName()) in ("MjcTendon", "MjcEquality", "PhysxTendon"):
            stage.report.add("motion", f"prim '{name}'", f"is a {prim.GetTypeName()}", "it is left out")
        if prim.GetTypeName() == "PointInstancer" and _instances_physics(stage, prim):
            what, fix = "makes copies of bodies or colliders", "use references, one for each copy"
            stage.report.add("motion", f"prim '{name}'", what, "they are left out", fix)
        for schema in schemas:
            if schema.startswith(("PhysxTendon", "PhysxVehicle", "PhysxSurfaceVelocity", "PhysxForceAPI")):
                stage.report.add("motion", f"prim '{name}'", f"has {schema}", "it is left out")
        for attribute in prim.GetAuthoredAttributes():
            key = attribute.GetName()
            if key.startswith(("xformOp:", *_PHYSICS)) and attribute.GetNumTimeSamples() and attribute.Get() is None:
                animated[path] = name
            if (path, key) in stage.used or not key.startswith(_PHYSICS):
                continue
            value = attribute.Get()
            if value is not None and not _has_no_effect(key, value):
                unread.add(path, name, key, value)
    unread.write(stage)
    if animated:
        what, fix = "only time samples, without a default value", "give default values"
        stage.report.add("motion", _prims(list(animated.values())), what, "they are not read", fix)
