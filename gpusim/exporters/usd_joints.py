"""Joints of a USD file, with their limits, drives and mimic joints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim.builder.commands import command_names, map_of
from gpusim.compiler.groups import Groups
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.joint_kinds import triad
from gpusim.description.specs import WORLD, ActuatorSpec, CouplingSpec, JointSpec
from gpusim.exporters.usd_document import ROOT, UsdDocument, quatf, set_custom, vec3f
from gpusim.joints.ball import cone_of
from gpusim.model.sensors import BREAKS
from gpusim.transform import Transform
from gpusim.typing import Array

FOLDER = f"{ROOT}/Joints"
DEGREES = 180.0 / math.pi

Motion = tuple[bool, int, float]
"""Joint motion as a tuple: True for a translation or False for a rotation, axis of the joint frame (0 to 2), sign of
the axis."""


def add_joints(doc: UsdDocument) -> None:
    """Add all joints. Joints that close loops are excluded from the articulations."""
    from pxr import UsdGeom

    UsdGeom.Scope.Define(doc.stage, FOLDER)
    closing = _closing_joints(doc.model.joints)
    for index, joint in enumerate(doc.model.joints):
        maker = _MAKERS.get(joint.kind)
        if maker is None:
            doc.report_loss(joint.element, f"USD has no {joint.kind} joint")
            continue
        prim = maker(doc, index, joint)
        if prim is not None:
            doc.joints[index] = str(prim.GetPath())
            doc.report.joints[joint.label] = [str(prim.GetPath())]
            if index in closing:
                prim.GetAttribute("physics:excludeFromArticulation").Set(True)
    _add_articulations(doc, closing)


def _closing_joints(joints: list[JointSpec]) -> set[int]:
    """Return the indices of joints that close loops, because earlier joints already connect their bodies."""
    connected, closing = Groups(), set()
    for index, joint in enumerate(joints):
        open_latch = joint.kind == "latch" and not np.isfinite(joint.params["limit_lower"][0])
        if joint.kind in _MAKERS and _MAKERS[joint.kind] is not _free and not open_latch:
            if not connected.join(joint.parent, joint.child):
                closing.add(index)
    return closing


def _add_articulations(doc: UsdDocument, closing: set[int]) -> None:
    from pxr import UsdPhysics

    carried = {doc.model.joints[k].child for k in doc.joints if k not in closing}
    for index, path in doc.joints.items():
        joint = doc.model.joints[index]
        if index in closing or joint.parent in carried:
            continue
        # the articulation root is the joint to the world, or the body of a floating base
        prim = doc.stage.GetPrimAtPath(path if joint.parent == WORLD else doc.bodies[joint.parent])
        UsdPhysics.ArticulationRootAPI.Apply(prim)


def _define(doc: UsdDocument, joint: JointSpec, schema: Any, columns: Array) -> Any:
    """Define a joint prim. ``columns`` (3, 3) contains the axes of the USD joint in the joint frames of the model."""
    rotation = Transform.from_matrix(columns)
    usd_joint = schema.Define(doc.stage, doc.path(FOLDER, joint.label))
    for end, (body, frame) in enumerate(((joint.parent, joint.parent_xform), (joint.child, joint.child_xform))):
        joint_frame = frame * rotation
        if body != WORLD:
            getattr(usd_joint, f"CreateBody{end}Rel")().SetTargets([doc.bodies[body]])
        getattr(usd_joint, f"CreateLocalPos{end}Attr")(vec3f(joint_frame.position))
        getattr(usd_joint, f"CreateLocalRot{end}Attr")(quatf(joint_frame))
    return usd_joint


def _fixed(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    from pxr import UsdPhysics

    return _define(doc, joint, UsdPhysics.FixedJoint, np.eye(3)).GetPrim()


def _latch(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    """Add a closed latch as a fixed or spherical joint, with the latch's break force and break torque."""
    from pxr import UsdPhysics

    if not np.isfinite(joint.params["limit_lower"][0]):
        doc.report_loss(joint.element, "an open latch")
        return None
    kind = UsdPhysics.FixedJoint if joint.params.get("rotation", True) else UsdPhysics.SphericalJoint
    usd_joint = _define(doc, joint, kind, np.eye(3))
    force, torque = (joint.params.get(name, math.inf) for name in BREAKS)
    if math.isfinite(force):
        usd_joint.CreateBreakForceAttr(force)
    if math.isfinite(torque):
        usd_joint.CreateBreakTorqueAttr(torque)
    return usd_joint.GetPrim()


def _ball(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    from pxr import UsdPhysics

    cone, axis = cone_of(joint)
    usd_joint = _define(doc, joint, UsdPhysics.SphericalJoint, triad(axis))
    if math.isfinite(cone):
        usd_joint.CreateAxisAttr("Z")
        usd_joint.CreateConeAngle0LimitAttr(cone * DEGREES)
        usd_joint.CreateConeAngle1LimitAttr(cone * DEGREES)
    prim = usd_joint.GetPrim()
    if np.isfinite(joint.params["limit_upper"][3]):
        doc.report_loss(joint.element, "its limit of the whole rotation")
    _set_passive(doc, prim, joint)
    if math.isfinite(cone) and np.any(joint.params["friction"]) and abs(axis[2]) < 1.0:
        what, effect = "has dry friction about each axis", "it acts about the axes of the cone"
        doc.report.add("motion", joint.element, what, effect, "use the axis (0, 0, 1) for the cone")
    return prim


def _single(doc: UsdDocument, index: int, joint: JointSpec, linear: bool) -> Any:
    from pxr import UsdPhysics

    schema = UsdPhysics.PrismaticJoint if linear else UsdPhysics.RevoluteJoint
    usd_joint = _define(doc, joint, schema, joint.params["columns"])
    usd_joint.CreateAxisAttr("Z")
    unit = 1.0 if linear else DEGREES
    lower, upper = (float(joint.params[f"limit_{end}"][0]) * unit for end in ("lower", "upper"))
    if math.isfinite(lower):
        usd_joint.CreateLowerLimitAttr(lower)
    if math.isfinite(upper):
        usd_joint.CreateUpperLimitAttr(upper)
    doc.axes[index, 0] = ("linear" if linear else "angular", 1.0)
    _set_passive(doc, usd_joint.GetPrim(), joint)
    return usd_joint.GetPrim()


def _revolute(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    return _single(doc, index, joint, False)


def _prismatic(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    return _single(doc, index, joint, True)


def _cylindrical(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    return _generic(doc, index, joint, joint.params["columns"], [(True, 2, 1.0), (False, 2, 1.0)])


def _planar(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    motions: list[Motion] = [(True, 0, 1.0), (True, 1, 1.0), (False, 2, 1.0)]
    return _generic(doc, index, joint, joint.params["columns"], motions)


def _universal(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    return _generic(doc, index, joint, joint.params["columns"], [(False, 0, 1.0), (False, 1, 1.0)])


def _d6(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    angular, linear = list(joint.params["angular"]), list(joint.params["linear"])
    columns = joint.params["columns"]
    if len(angular) < 2:  # a single rotation can have any axis, so the translations determine the other axes
        columns = _axes_of([*angular, *linear])
    motions: list[Motion] = []
    for is_linear, axis in [(True, axis) for axis in linear] + [(False, axis) for axis in angular]:
        components = columns.T @ axis
        number = int(np.argmax(np.abs(components)))
        if abs(components[number]) < 1.0 - 1e-9:
            doc.report_loss(joint.element, "translations that are not along its axes of rotation")
            return None
        motions.append((is_linear, number, float(np.sign(components[number]))))
    return _generic(doc, index, joint, columns, motions)


def _axes_of(directions: list[Array]) -> Array:
    """Return three right-handed orthonormal axes. The first axes are ``directions``."""
    axes: list[Array] = []
    for direction in (*directions, *np.eye(3)):
        remainder = direction - sum((axis * (axis @ direction) for axis in axes), np.zeros(3))
        if np.linalg.norm(remainder) > 0.1 and len(axes) < 3:
            axes.append(remainder / np.linalg.norm(remainder))
    columns = np.stack(axes, axis=1)
    if np.linalg.det(columns) < 0.0:
        columns[:, 2] *= -1.0
    return columns


def _generic(doc: UsdDocument, index: int, joint: JointSpec, columns: Array, motions: list[Motion]) -> Any:
    from pxr import UsdPhysics

    prim = _define(doc, joint, UsdPhysics.Joint, columns).GetPrim()
    free = {}
    for k, (linear, number, sign) in enumerate(motions):
        name = ("trans" if linear else "rot") + "XYZ"[number]
        unit = 1.0 if linear else DEGREES
        ends = [float(joint.params[f"limit_{end}"][k]) * unit * sign for end in ("lower", "upper")]
        free[name] = min(ends), max(ends)
        doc.axes[index, k] = (name, sign)
        if sign < 0.0:  # USD axes are right-handed, so this axis is reversed
            set_custom(prim, "GpusimJointAPI", **{f"gpusim__{name}__factor": sign})
            what = f"its coordinate {k} is -{name} in the file"
            doc.report.add("info", joint.element, what, "its limits, targets and efforts have the opposite sign there")
    for name in ("transX", "transY", "transZ", "rotX", "rotY", "rotZ"):
        lower, upper = free.get(name, (1.0, -1.0))  # lower > upper locks an axis in USD
        if math.isinf(lower) and math.isinf(upper):
            continue
        limit = UsdPhysics.LimitAPI.Apply(prim, name)
        limit.CreateLowAttr(lower)
        limit.CreateHighAttr(upper)
    _set_passive(doc, prim, joint)
    return prim


def _distance(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    from pxr import UsdPhysics

    usd_joint = _define(doc, joint, UsdPhysics.DistanceJoint, np.eye(3))
    rod = joint.params["rod"]
    lower, upper = (float(joint.params[f"limit_{end}"][0]) if rod is None else float(rod) for end in ("lower", "upper"))
    if math.isfinite(lower) and lower > 0.0:
        usd_joint.CreateMinDistanceAttr(lower)
    if math.isfinite(upper):
        usd_joint.CreateMaxDistanceAttr(upper)
    if float(joint.params["damping"][0]) > 0.0:
        doc.report_loss(joint.element, "its damping")
    return usd_joint.GetPrim()


def _free(doc: UsdDocument, index: int, joint: JointSpec) -> Any:
    """Add nothing, because USD bodies without a joint are free."""
    if any(np.any(joint.params.get(name, 0.0)) for name in ("damping", "friction", "armature")):
        doc.report_loss(joint.element, "damping, friction and armature of a free joint")


_MAKERS: dict[str, Callable[[UsdDocument, int, JointSpec], Any]] = {
    "fixed": _fixed,
    "latch": _latch,
    "ball": _ball,
    "revolute": _revolute,
    "prismatic": _prismatic,
    "cylindrical": _cylindrical,
    "planar": _planar,
    "universal": _universal,
    "d6": _d6,
    "distance": _distance,
    "free": _free,
}


def _set_passive(doc: UsdDocument, prim: Any, joint: JointSpec) -> None:
    """Write damping, friction and armature as attributes of MuJoCo's schema, in SI units."""
    names = {"damping": "mjc__damping", "friction": "mjc__frictionloss", "armature": "mjc__armature"}
    values = {}
    for name, attribute in names.items():
        numbers = np.ravel(joint.params.get(name, 0.0))
        if np.any(numbers):
            values[attribute] = float(numbers[0])
            if np.ptp(numbers[:3]) > 0.0:
                doc.report.add("motion", joint.element, f"its {name} differs by axis", "the first one applies to all")
    if values:
        set_custom(prim, "MjcJointAPI", **values)
        what = "damping, friction and armature"
        doc.report.add(
            "info", joint.element, what, "they are attributes of MuJoCo's schema, which not all programs read"
        )
    if np.any(joint.params.get("limit_restitution", 0.0)):
        doc.report.add("contact", joint.element, "bounces off its limits", "it does not bounce in the file")


def add_drives(doc: UsdDocument) -> None:
    """Add drives for servos, torque motors and joint forces, and attributes for springs. Report other actuators."""
    for spec in doc.model.actuators:
        maker = _DRIVES.get(spec.kind)
        coordinate = (spec.params.get("joint", -1), spec.params.get("axis", 0))
        if maker is None:
            doc.report_loss(
                spec.element, f"USD has no {spec.kind.replace('_', ' ')}", "compute its force in your own loop"
            )
        elif coordinate not in doc.axes:
            doc.report_loss(spec.element, "it acts on a coordinate that USD does not have")
        else:
            maker(doc, spec, *doc.axes[coordinate])
            _report_maps(doc, spec)


def _report_maps(doc: UsdDocument, spec: ActuatorSpec) -> None:
    """Report command maps, which USD drives do not support."""
    for command, label in zip(actuator_type(spec.kind).commands, command_names(spec), strict=True):
        command_map = map_of(spec, command)
        if command_map is None:
            continue
        scaled = (command_map.factor, command_map.offset) != (1.0, 0.0)
        limited = spec.kind != "joint_force" and (math.isfinite(command_map.lower) or math.isfinite(command_map.upper))
        parts = [f"has factor {command_map.factor:g} and offset {command_map.offset:g}"] if scaled else []
        parts += [f"is clipped to {command_map.lower:g} to {command_map.upper:g}"] if limited else []
        parts += [f"has a lag of {command_map.time_constant:g} s"] if command_map.time_constant else []
        parts += ["is a rate that is integrated"] if command_map.integrate else []
        if parts:
            severity = "motion" if limited or command_map.has_activation else "info"
            what = f"its command '{label}' {' and '.join(parts)}"
            doc.report.add(
                severity,
                spec.element,
                what,
                "the drive uses the actuator's units without the map",
                "apply the map in your program",
            )


def _mapped_limits(spec: ActuatorSpec, lower: float, upper: float) -> tuple[float, float]:
    """Return the minimum and maximum effort of an actuator over the range of its commands."""
    command_map = map_of(spec, actuator_type(spec.kind).commands[0])
    if command_map is None:
        return lower, upper
    ends = sorted(command_map.factor * end + command_map.offset for end in (command_map.lower, command_map.upper))
    return max(lower, ends[0]), min(upper, ends[1])


def _add_drive(
    doc: UsdDocument, spec: ActuatorSpec, axis: str, gains: tuple[float, float], effort_limits: tuple[float, float]
) -> Any:
    from pxr import UsdPhysics

    prim = doc.stage.GetPrimAtPath(doc.joints[spec.params["joint"]])
    if UsdPhysics.DriveAPI.Get(prim, axis):
        doc.report_loss(spec.element, "a second actuator on its coordinate")
        return None
    drive = UsdPhysics.DriveAPI.Apply(prim, axis)
    if axis not in _SINGLE:
        set_custom(prim, "GpusimJointAPI", **{f"gpusim__{axis}__actuator": spec.label})
    unit = 1.0 if axis.startswith(("linear", "trans")) else 1.0 / DEGREES
    drive.CreateStiffnessAttr(gains[0] * unit)
    drive.CreateDampingAttr(gains[1] * unit)
    if effort_limits[1] < math.inf or effort_limits[0] > -math.inf:
        drive.CreateMaxForceAttr(float(max(-effort_limits[0], effort_limits[1])))
        if effort_limits[0] != -effort_limits[1]:
            doc.report.add(
                "motion", spec.element, "its minimum and maximum effort differ", "the larger one is the limit"
            )
    return drive


def _start(doc: UsdDocument, spec: ActuatorSpec, command: str) -> float:
    """Return the starting value of a command in the actuator's units."""
    commands = actuator_type(spec.kind).commands
    column = doc.model.controls.get(command_names(spec)[commands.index(command)])
    value = 0.0 if column is None else float(np.ravel(doc.model.default_controls)[column])
    command_map = map_of(spec, command)
    return (
        value
        if command_map is None
        else command_map.factor * min(max(value, command_map.lower), command_map.upper) + command_map.offset
    )


def _scaled(axis: str, sign: float, value: float) -> float:
    return sign * value * (1.0 if axis.startswith(("linear", "trans")) else DEGREES)


def _add_tracking(doc: UsdDocument, spec: ActuatorSpec, axis: str, sign: float) -> None:
    p = spec.params
    drive = _add_drive(doc, spec, axis, (float(p["stiffness"]), float(p["damping"])), (p["lower"], p["upper"]))
    if drive is not None:
        drive.CreateTargetPositionAttr(_scaled(axis, sign, _start(doc, spec, "target")))
        drive.CreateTargetVelocityAttr(_scaled(axis, sign, _start(doc, spec, "velocity")))
        if _start(doc, spec, "effort"):
            doc.report_loss(spec.element, "starts with a feed-forward effort")


def _add_servo(doc: UsdDocument, spec: ActuatorSpec, axis: str, sign: float) -> None:
    p, max_effort = spec.params, float(spec.params["effort_limit"])
    follows = p["follows_velocity"] > 0.5
    gains = (0.0 if follows else float(p["stiffness"]), float(p["damping"]))
    drive = _add_drive(doc, spec, axis, gains, (-max_effort, max_effort))
    if drive is not None:
        create = drive.CreateTargetVelocityAttr if follows else drive.CreateTargetPositionAttr
        create(_scaled(axis, sign, _start(doc, spec, "target")))


def _add_effort(doc: UsdDocument, spec: ActuatorSpec, axis: str, sign: float) -> None:
    effort_limits = _mapped_limits(spec, float(spec.params["lower"]), float(spec.params["upper"]))
    if _add_drive(doc, spec, axis, (0.0, 0.0), effort_limits) is not None:
        doc.report.add("info", spec.element, "is commanded by effort", "it is a drive without gains")
        if _start(doc, spec, "effort"):
            doc.report_loss(spec.element, "starts with an effort")


def _add_motor(doc: UsdDocument, spec: ActuatorSpec, axis: str, sign: float) -> None:
    p = spec.params
    if math.isfinite(p["no_load_speed"]):
        doc.report_loss(
            spec.element, "a DC motor, whose torque falls with the speed", "use add_torque_motor or a servo"
        )
        return
    max_effort = float(p["stall_torque"]) * float(p["gear_ratio"])
    if _add_drive(doc, spec, axis, (0.0, 0.0), (-max_effort, max_effort)) is not None:
        doc.report.add(
            "info", spec.element, f"has commands relative to {max_effort:g} N m", "it is a drive without gains, in N m"
        )


def _add_spring(doc: UsdDocument, spec: ActuatorSpec, axis: str, sign: float) -> None:
    p = spec.params
    prim = doc.stage.GetPrimAtPath(doc.joints[p["joint"]])
    if axis not in _SINGLE or prim.GetAttribute("mjc:stiffness"):
        doc.report_loss(spec.element, "a spring on one of several axes, or a second one")
        return
    before = prim.GetAttribute("mjc:damping")
    damping = float(p["damping"]) + (float(before.Get()) if before else 0.0)
    values = {"mjc__stiffness": float(p["stiffness"]), "mjc__springref": _scaled(axis, sign, float(p["rest_length"]))}
    set_custom(prim, "MjcJointAPI", mjc__damping=damping, **values)
    doc.report.add("info", spec.element, "is a spring", "it is an attribute of MuJoCo's schema")


_SINGLE = frozenset({"linear", "angular"})
_DRIVES: dict[str, Callable[[UsdDocument, ActuatorSpec, str, float], None]] = {
    "tracking_servo": _add_tracking,
    "servo": _add_servo,
    "joint_force": _add_effort,
    "motor": _add_motor,
    "torsion_spring": _add_spring,
}


def add_coupling(doc: UsdDocument, coupling: CouplingSpec) -> None:
    """Write a gear or a mimic of two hinges or slides with Newton's schema."""
    axis_names = [doc.axes.get((joint, axis), ("", 1.0))[0] for joint, axis, _ in coupling.terms]
    if len(coupling.terms) != 2 or not all(name in _SINGLE for name in axis_names):
        doc.report_loss(coupling.element, "couples more than two coordinates, or joints of several axes")
        return
    if coupling.offset is None:
        doc.report_loss(coupling.element, "its offset comes from the starting positions", "give it an offset")
        return
    if coupling.curve:
        _add_curve(doc, coupling)
        return
    (first, _, a), (second, _, b) = coupling.terms
    units = [1.0 if name == "linear" else DEGREES for name in axis_names]
    prim = doc.stage.GetPrimAtPath(doc.joints[first])
    values = {"newton__mimicCoef0": coupling.offset / a * units[0], "newton__mimicCoef1": -b / a * units[0] / units[1]}
    set_custom(prim, "NewtonMimicAPI", **values)
    prim.CreateRelationship("newton:mimicJoint").SetTargets([doc.joints[second]])
    doc.report.add("info", coupling.element, "is a coupling", "it is in Newton's schema, which not all programs read")


def _add_curve(doc: UsdDocument, coupling: CouplingSpec) -> None:
    """Write a polynomial mimic with MuJoCo's schema, in m and rad."""
    (leader, _, b), (follower, _, a) = coupling.terms
    prim = doc.stage.GetPrimAtPath(doc.joints[follower])
    rule = [coupling.offset or 0.0, -b, *(-c for c in coupling.curve)]
    set_custom(prim, "MjcEqualityJointAPI", **{f"mjc__coef{k}": float(c) / a for k, c in enumerate(rule)})
    prim.CreateRelationship("mjc:target").SetTargets([doc.joints[leader]])
    doc.report.add("info", coupling.element, "is a coupling", "it is in MuJoCo's schema, which not all programs read")
