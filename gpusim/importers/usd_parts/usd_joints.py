"""Joints of a USD file: degrees of freedom, and relative poses that satisfy the joints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpusim.importers.usd_parts.usd_stage import DEGREE, UNLIMITED, UsdStage
from gpusim.rotations import matrix_from_quaternion
from gpusim.transform import Transform
from gpusim.typing import Array

AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
TYPES = ("FixedJoint", "RevoluteJoint", "PrismaticJoint", "SphericalJoint", "DistanceJoint", "D6Joint", "CustomJoint")
WORLD = ""
"""Path that represents the world."""


@dataclass
class Dof:
    """One degree of freedom of a joint.

    Attributes:
        name: name in the file's attributes, such as "angular", "linear", "rotX" or "transX".
        axis: unit vector in the joint frame.
        linear: True for a translation (m), False for a rotation (rad).
        unit: factor from the file's unit to m or rad. The factor is negative if ``axis`` is opposite to the axis in the
            file.
        lower, upper: limits (m or rad), infinite if unlimited.
        drive: drive descriptor from usd-core's parser, or None.
        state: joint position (m or rad) in the file, or None to compute it from the body poses.
        rate: joint velocity (m/s or rad/s) in the file.
        path, label: path and label of the joint's prim.
    """

    name: str
    axis: Array
    linear: bool
    unit: float
    lower: float = -math.inf
    upper: float = math.inf
    drive: Any = None
    state: float | None = None
    rate: float = 0.0
    path: str = ""
    label: str = ""


@dataclass
class UsdJoint:
    """A joint.

    Attributes:
        kind: joint type in the builder.
        frames: pose of the joint frame in each body, or in the world.
    """

    path: str
    label: str
    kind: str
    bodies: tuple[str, str]
    frames: tuple[Transform, Transform]
    excluded: bool
    collide: bool = False
    dofs: list[Dof] = field(default_factory=list)
    distances: tuple[float, float] = (0.0, math.inf)
    cone: tuple[float, Array] | None = None
    """Limit (rad) and axis of a ball joint's cone."""
    breaks: tuple[float, float] = (math.inf, math.inf)
    """Force (N) and torque (N m) at which a latch breaks."""
    anchors: tuple[str, str] = ("", "")
    """Paths of the two prims that the joint connects in the file. Either prim may be static."""

    @property
    def element(self) -> str:
        """Return the joint's name for messages in the import report."""
        return f"joint '{self.label}'"

    @property
    def determines_pose(self) -> bool:
        """Return whether the joint coordinates determine the child's pose relative to the parent."""
        return self.kind not in ("distance", "free")


def read_joints(stage: UsdStage, bodies: set[str]) -> list[UsdJoint]:
    """Return all enabled joints in the order of the file.

    Args:
        stage: the file.
        bodies: paths of the rigid bodies. A joint to a prim that is not a rigid body becomes a joint to the world.
    """
    order = {str(prim.GetPath()): number for number, prim in enumerate(stage.prims())}
    descriptors = [(path, kind, joint) for kind in TYPES for path, joint in stage.of(kind)]
    joints = []
    for path, kind, joint in sorted(descriptors, key=lambda item: order.get(item[0], 0)):
        usd_joint = _read(stage, path, kind, joint, bodies)
        if usd_joint is not None:
            joints.append(usd_joint)
    return _combine(stage, joints)


def _combine(stage: UsdStage, joints: list[UsdJoint]) -> list[UsdJoint]:
    """Combine hinges and slides between the same two bodies into a d6 joint."""
    result: list[UsdJoint] = []
    first: dict[tuple[str, str], UsdJoint] = {}
    for joint in joints:
        single = joint.kind in ("revolute", "prismatic") and not joint.excluded
        one = first.get(joint.bodies) if single else None
        if one is None:
            result.append(joint)
            if single:
                first[joint.bodies] = joint
            continue
        offset = one.frames[0].inverse() * joint.frames[0]
        axis = offset.rotate(joint.dofs[0].axis)
        perpendicular = axis - sum(
            (dof.axis * (dof.axis @ axis) for dof in one.dofs if dof.linear == joint.dofs[0].linear), 0
        )
        if np.linalg.norm(perpendicular) < 0.999:
            what = f"joins the bodies of {one.element} at another angle"
            stage.report.add("motion", joint.element, what, "both joints act")
            result.append(joint)
            continue
        if not joint.dofs[0].linear and np.linalg.norm(offset.position) > 1e-4:
            what = f"has its axis {np.linalg.norm(offset.position):.3g} m from the axis of {one.element}"
            stage.report.add(
                "motion", joint.element, what, "its axis is moved to the same point", "put a body between them"
            )
        one.kind = "d6"
        one.dofs.append(replace(joint.dofs[0], axis=perpendicular / np.linalg.norm(perpendicular)))
        one.dofs.sort(key=lambda dof: not dof.linear)
    return result


def _read(stage: UsdStage, path: str, kind: str, descriptor: Any, bodies: set[str]) -> UsdJoint | None:
    element = f"joint '{path}'"
    for name in ("body0", "body1", "localPos0", "localPos1", "localRot0", "localRot1"):
        stage.used.add((path, f"physics:{name}"))
    if not descriptor.jointEnabled:
        stage.report.add("info", element, "is disabled", "it is left out")
        return None
    if kind == "CustomJoint":
        stage.report.add("motion", element, f"has the custom type {stage.prim(path).GetTypeName()}", "it is left out")
        return None
    ends = [str(body) if str(body) in bodies else WORLD for body in (descriptor.body0, descriptor.body1)]
    missing = [str(rel) for rel in (descriptor.rel0, descriptor.rel1) if str(rel) and not stage.prim(str(rel))]
    if missing:
        stage.report.add(
            "motion", element, f"joins {missing[0]}, which is not in the file", "it joins the world instead"
        )
    if ends[0] == ends[1]:
        where = ends[0] or "the world"
        stage.report.add("info", element, f"both of its ends are on {where}", "it is left out")
        return None
    frames = (
        _frame(stage, path, ends[0], descriptor.rel0, descriptor.localPose0Position, descriptor.localPose0Orientation),
        _frame(stage, path, ends[1], descriptor.rel1, descriptor.localPose1Position, descriptor.localPose1Orientation),
    )
    usd_joint = UsdJoint(
        path, stage.label("joint", path), "", (ends[0], ends[1]), frames,
        bool(descriptor.excludeFromArticulation), bool(descriptor.collisionEnabled),
        anchors=(str(descriptor.rel0), str(descriptor.rel1)),
    )  # fmt: skip
    _MAKERS[kind](stage, descriptor, usd_joint)
    _report_ignored(stage, path, kind, usd_joint)
    _set_break_limits(stage, descriptor, usd_joint)
    for dof in usd_joint.dofs:
        dof.path, dof.label = path, usd_joint.label
        _read_state(stage, path, dof)
    return usd_joint


_DRIVEN = {"RevoluteJoint": ("angular",), "PrismaticJoint": ("linear",)}
_D6_AXES = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")


def _report_ignored(stage: UsdStage, path: str, kind: str, usd_joint: UsdJoint) -> None:
    """Report drives and limits that usd-core's parser ignores, and joint targets that do not exist."""
    axes = _D6_AXES if kind == "D6Joint" else _DRIVEN.get(kind, ())
    for schema in stage.schemas(stage.prim(path)):
        api, _, axis = schema.partition(":")
        if api == "PhysicsDriveAPI" and kind != "FixedJoint" and axis not in axes:
            gains = [stage.number(path, f"drive:{axis}:physics:{name}") for name in ("stiffness", "damping")]
            if any(gains):
                stage.report.add("motion", usd_joint.element, f"a drive of {axis!r} on a {kind}", "it is left out")
        elif api == "PhysicsLimitAPI" and kind not in ("FixedJoint", "D6Joint"):
            ends = [stage.number(path, f"limit:{axis}:physics:{name}", UNLIMITED) for name in ("low", "high")]
            if min(map(abs, ends)) >= UNLIMITED:
                continue
            stage.report.add("motion", usd_joint.element, f"a limit of {axis!r} on a {kind}", "it is left out")


def _set_break_limits(stage: UsdStage, descriptor: Any, usd_joint: UsdJoint) -> None:
    """Convert a breakable fixed joint to a latch."""
    limits = descriptor.breakForce, descriptor.breakTorque
    if min(limits) >= UNLIMITED:
        return
    force, torque = (
        limit * _force_unit(stage, linear) if limit < UNLIMITED else math.inf
        for limit, linear in zip(limits, (True, False), strict=True)
    )  # fmt: skip
    if usd_joint.kind == "fixed" and force > 0.0 and torque > 0.0:
        usd_joint.kind, usd_joint.breaks = "latch", (force, torque)
        return
    what = f"breaks at {force:g} N or {torque:g} N m"
    stage.report.add("motion", usd_joint.element, what, "it never breaks", "only fixed joints break, above zero")


def _force_unit(stage: UsdStage, linear: bool) -> float:
    return stage.kilograms * stage.meters ** (1 if linear else 2)


def _frame(stage: UsdStage, path: str, body: str, rel: Any, position: Any, rotation: Any) -> Transform:
    """Return the pose of a joint frame in its body."""
    local = stage.frame(position, rotation, path)
    if body != WORLD:
        return local
    return (stage.pose(str(rel)) if str(rel) else stage.world) * local


def _limits(limit: Any, unit: float) -> tuple[float, float]:
    if limit is None:  # usd-core's parser returns one-sided limits as disabled
        return -math.inf, math.inf
    lower = -math.inf if limit.lower < -UNLIMITED else limit.lower * unit
    return lower, math.inf if limit.upper > UNLIMITED else limit.upper * unit


def _single(stage: UsdStage, descriptor: Any, usd_joint: UsdJoint, linear: bool) -> None:
    unit = stage.meters if linear else DEGREE
    lower, upper = _limits(descriptor.limit, unit)
    if lower > upper:
        rule = f"its lower limit {descriptor.limit.lower:g} is above its upper limit {descriptor.limit.upper:g}"
        stage.report.add("motion", usd_joint.element, rule, "it is fixed, since USD locks such a joint")
        usd_joint.kind = "fixed"
        return
    axis = np.array(AXES[descriptor.axis.name])
    usd_joint.kind = "prismatic" if linear else "revolute"
    usd_joint.dofs = [
        Dof("linear" if linear else "angular", axis, linear, unit, lower, upper, _drive(descriptor.drive))
    ]


def _revolute(stage: UsdStage, descriptor: Any, usd_joint: UsdJoint) -> None:
    _single(stage, descriptor, usd_joint, False)


def _prismatic(stage: UsdStage, descriptor: Any, usd_joint: UsdJoint) -> None:
    _single(stage, descriptor, usd_joint, True)


def _fixed(stage: UsdStage, descriptor: Any, usd_joint: UsdJoint) -> None:
    usd_joint.kind = "fixed"


def _spherical(stage: UsdStage, descriptor: Any, usd_joint: UsdJoint) -> None:
    usd_joint.kind = "ball"
    if not descriptor.limit.enabled:
        return
    angles, axis = (descriptor.limit.lower, descriptor.limit.upper), np.array(AXES[descriptor.axis.name])
    angle = min(angles)
    if angles[0] != angles[1]:
        what = f"an elliptic cone limit of {angles[0]:g} and {angles[1]:g} degrees"
        effect = f"a round cone of {angle:g} degrees"
        stage.report.add("motion", usd_joint.element, what, effect, "use a D6 joint with limits")
    if angle == 0.0:
        usd_joint.kind, usd_joint.dofs = "revolute", [Dof("angular", axis, False, DEGREE)]
    elif angle < 180.0:
        usd_joint.cone = angle * DEGREE, axis


def _distance(stage: UsdStage, descriptor: Any, usd_joint: UsdJoint) -> None:
    usd_joint.kind = "distance"
    lower = stage.meters * descriptor.limit.lower if descriptor.minEnabled else 0.0
    upper = (
        stage.meters * descriptor.limit.upper
        if descriptor.maxEnabled and descriptor.limit.upper < UNLIMITED
        else math.inf
    )
    usd_joint.distances = max(lower, 0.0), upper


def _drive(drive: Any) -> Any:
    return drive if drive is not None and drive.enabled else None


def _d6(stage: UsdStage, descriptor: Any, usd_joint: UsdJoint) -> None:
    limits = {pair.first.name: pair.second for pair in descriptor.jointLimits}
    drives = {pair.first.name: pair.second for pair in descriptor.jointDrives}
    if "Distance" in limits:
        stage.report.add(
            "motion", usd_joint.element, "a limit of the distance", "it is not limited", "use a distance joint"
        )
    for key in _D6_AXES:
        name, linear = key[0].upper() + key[1:], key.startswith("trans")
        unit, limit = (stage.meters if linear else DEGREE), limits.get(name)
        if limit is not None and limit.enabled and limit.lower > limit.upper:
            continue
        lower, upper = _limits(limit, unit)
        axis, drive = np.array(AXES[name[-1]]), _drive(drives.get(name))
        if (stage.value(usd_joint.path, f"gpusim:{key}:factor") or 1.0) < 0.0:  # to_usd reversed the coordinate
            axis, unit, lower, upper = -axis, -unit, -upper, -lower
        usd_joint.dofs.append(Dof(key, axis, linear, unit, lower, upper, drive))
    slides = [dof for dof in usd_joint.dofs if dof.linear]
    plain = all(dof.drive is None and math.isinf(dof.lower) and math.isinf(dof.upper) for dof in usd_joint.dofs)
    counts = len(slides), len(usd_joint.dofs) - len(slides)
    usd_joint.kind = "d6"
    if plain and counts[1] == 3 and counts[0] in (0, 3):
        usd_joint.kind, usd_joint.dofs = ("free" if slides else "ball"), []
    elif sum(counts) < 2:
        usd_joint.kind = ("fixed", "prismatic" if slides else "revolute")[sum(counts)]


def _read_state(stage: UsdStage, path: str, dof: Dof) -> None:
    """Read the joint position and velocity from attributes of Isaac Sim and Newton."""
    for form in ("state:{}:physics:{}", "newton:{}:{}"):
        position = stage.value(path, form.format(dof.name, "position"))
        velocity = stage.value(path, form.format(dof.name, "velocity"))
        if position is not None and dof.state is None:
            dof.state = float(position) * dof.unit
        dof.rate = dof.rate or float(velocity or 0.0) * dof.unit


_MAKERS = {
    "FixedJoint": _fixed,
    "RevoluteJoint": _revolute,
    "PrismaticJoint": _prismatic,
    "SphericalJoint": _spherical,
    "DistanceJoint": _distance,
    "D6Joint": _d6,
}


def constrained_pose(joint: UsdJoint, pose: Transform) -> Transform:
    """Return the pose closest to ``pose`` that the joint allows.

    ``pose`` and the result are poses of the second joint frame in the first joint frame.
    """
    if not joint.determines_pose:
        return pose
    slides, rotations = [d for d in joint.dofs if d.linear], [d for d in joint.dofs if not d.linear]
    position = np.zeros(3)
    for dof in slides:
        position = position + dof.axis * (float(pose.position @ dof.axis) if dof.state is None else dof.state)
    if joint.kind == "ball":
        return Transform(position, pose.rotation)
    result = Transform(position)
    for dof, angle in zip(rotations, _angles(rotations, pose), strict=True):
        result = result * Transform.from_axis_angle((0, 0, 0), dof.axis, angle)
    return result


def _angles(rotations: list[Dof], pose: Transform) -> list[float]:
    """Return the angles (rad) of the rotations. Angles that the file does not define come from ``pose``."""
    if not rotations:
        return []
    if len(rotations) == 1:
        angles = [twist(pose, rotations[0].axis)]
    else:
        columns = _columns(rotations)
        angles = list(gimbal_angles(columns.T @ pose.matrix() @ columns))[: len(rotations)]
        if len(rotations) == 3 and rotations[2].axis @ columns[:, 2] < 0.0:
            angles[2] *= -1.0
    return [angle if dof.state is None else dof.state for dof, angle in zip(rotations, angles, strict=True)]


def coordinates(joint: UsdJoint, pose: Transform) -> list[float]:
    """Return the joint coordinates (rad, m). ``pose`` is the second joint frame's pose in the first joint frame."""
    angles = iter(_angles([dof for dof in joint.dofs if not dof.linear], pose))
    return [float(pose.position @ dof.axis) if dof.linear else next(angles) for dof in joint.dofs]


def _columns(rotations: list[Dof]) -> Array:
    return np.stack([rotations[0].axis, rotations[1].axis, np.cross(rotations[0].axis, rotations[1].axis)], axis=1)


def twist(pose: Transform, axis: Array) -> float:
    """Return the angle (rad) of the rotation about ``axis`` that is closest to ``pose``."""
    return 2.0 * math.atan2(float(pose.rotation[:3] @ axis), float(pose.rotation[3]))


def gimbal_angles(rotation: Array) -> tuple[float, float, float]:
    """Return the intrinsic x-y-z Euler angles (rad) of ``rotation`` (3, 3)."""
    middle = math.asin(float(np.clip(rotation[0, 2], -1.0, 1.0)))
    first = math.atan2(-rotation[1, 2], rotation[2, 2])
    return first, middle, math.atan2(-rotation[0, 1], rotation[0, 0])


def coordinate_name(joint: UsdJoint, dof: Dof) -> str:
    """Return a d6 coordinate's name: the label of its prim, or ``<joint>:<axis>`` if the prim is shared."""
    is_unique = len({one.path for one in joint.dofs}) == len(joint.dofs)
    return dof.label if is_unique else f"{joint.label}:{dof.name}"


def rotation_angle(pose: Transform) -> float:
    """Return the rotation angle (rad) of a pose."""
    trace = float(np.trace(matrix_from_quaternion(pose.rotation)))
    return math.acos(min(1.0, max(-1.0, 0.5 * (trace - 1.0))))
