"""Drives and actuators of a USD file, and joint properties in attributes of PhysX, MuJoCo and Newton."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError
from gpusim.importers.report import CommandInfo
from gpusim.importers.usd_parts.usd_bodies import UsdBody
from gpusim.importers.usd_parts.usd_joints import Dof, UsdJoint
from gpusim.importers.usd_parts.usd_stage import DEGREE, UNLIMITED, UsdStage
from gpusim.transform import Transform

NO_CURVE = (0.0, 0.0, 0.0)
Load = Callable[[UsdJoint, int], float]
"""Function that returns the inertia (kg m2) or mass (kg) that a joint coordinate moves."""


@dataclass
class Passive:
    """Damping, friction, armature, spring and effort range of a joint coordinate, in SI units."""

    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    stiffness: float = 0.0
    rest_position: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf


def effort_unit(stage: UsdStage, dof: Dof) -> float:
    """Return the factor that converts effort in the file to N or N m."""
    return stage.kilograms * stage.meters ** (1 if dof.linear else 2)


def read_passive(stage: UsdStage, joint: UsdJoint, dof: Dof) -> Passive:
    """Return damping, friction, armature, spring and effort range of a coordinate, from custom attributes."""
    path, effort = dof.path, effort_unit(stage, dof)
    inertia = stage.kilograms * stage.meters ** (0 if dof.linear else 2)
    per = stage.kilograms if dof.linear else effort

    def number(name: str, default: float = 0.0) -> float:
        return stage.number(path, name, default)

    radian = 1.0 if dof.linear else 1.0 / DEGREE
    result = Passive(
        damping=max(0.0, per * (number("mjc:damping") + radian * number("newton:damping"))),
        friction=max(0.0, effort * (number("mjc:frictionloss") + number("newton:friction"))),
        armature=inertia * max(number(f"{name}:armature") for name in ("mjc", "newton", "physxJoint")),
        stiffness=per * number("mjc:stiffness"),
        rest_position=number("mjc:springref") * (stage.meters if dof.linear else mjc_angle(stage)),
    )
    coefficient = number("physxJoint:jointFriction")
    if coefficient > 0.0:
        what = f"has a friction coefficient of {coefficient:g} in PhysX"
        stage.report.add("motion", joint.element, what, f"its dry friction is {effort * coefficient:g} at any load")
        result.friction += effort * coefficient
    lower, upper = _range(stage, path, "mjc:actuatorfrcrange", "mjc:actuatorfrclimited")
    result.lower, result.upper = effort * lower, effort * upper
    for name in ("physxJoint:maxJointVelocity", "newton:velocityLimit"):
        speed_limit = number(name, math.inf)
        if math.isfinite(speed_limit) and 0.0 < speed_limit < 1e6:
            stage.report.add("motion", joint.element, f"{name} = {speed_limit:g}", "its speed is not limited")
    return result


def mjc_angle(stage: UsdStage) -> float:
    """Return the factor that converts angles in MuJoCo attributes of the file to rad."""
    scenes = stage.of("Scene")
    unit = stage.value(scenes[0][0], "mjc:compiler:angle") if scenes else None
    return 1.0 if str(unit) == "radian" else DEGREE


def _range(stage: UsdStage, path: str, name: str, limited: str) -> tuple[float, float]:
    """Return the limits in a MuJoCo range attribute, or infinite limits if MuJoCo does not enforce the range."""
    lower, upper = stage.number(path, f"{name}:min"), stage.number(path, f"{name}:max")
    flag = str(stage.value(path, limited))
    return (lower, upper) if flag == "true" or (flag != "false" and lower < upper) else (-math.inf, math.inf)


@dataclass
class Actuators:
    """Converter that adds the actuators of a file to a builder.

    Attributes:
        stage, builder: the USD file, and the builder of the model.
        joints: joints of the file.
        indices: ``id(joint)`` -> index of the joint in the builder.
        passive: ``id(dof)`` -> damping, friction, armature, spring and effort range of the coordinate.
        load: function that returns the inertia (kg m2) or mass (kg) that a coordinate moves.
    """

    stage: UsdStage
    builder: ModelBuilder
    joints: Sequence[UsdJoint]
    indices: Mapping[int, int]
    passive: Mapping[int, Passive]
    load: Load

    def add(self) -> None:
        """Add the joint drives, and the actuators in the schemas of MuJoCo and Newton."""
        others = [prim for prim in self.stage.prims() if prim.GetTypeName() in ("MjcActuator", "NewtonActuator")]
        targets = {str(path) for prim in others for path in self._targets(prim)}
        for joint in self.joints:
            for axis, dof in enumerate(joint.dofs):
                drive = dof.drive
                if drive is not None and (drive.stiffness or drive.damping or dof.path not in targets):
                    self._drive(joint, axis, dof, drive)
        for prim in others:
            for path in self._targets(prim):
                self._on_target(prim, str(path))

    def _targets(self, prim: Any) -> list[Any]:
        name = "mjc:target" if prim.GetTypeName() == "MjcActuator" else "newton:targets"
        relation = prim.GetRelationship(name)
        return list(relation.GetTargets()) if relation else []

    def _servo(
        self, joint: UsdJoint, axis: int, stiffness: float, damping: float, target: float, name: str, **more: Any
    ) -> str:
        """Add a tracking servo and return its label."""
        passive = self.passive[id(joint.dofs[axis])]
        limit = more.pop("limit", (-math.inf, math.inf))
        limit = max(limit[0], passive.lower), min(limit[1], passive.upper)
        label = self.stage.label("actuator", name)
        bounded = limit if limit[0] > -math.inf and limit[1] < math.inf else None
        rate = more.pop("rate", 0.0)
        index = self.builder.add_tracking_servo(
            self.indices[id(joint)], stiffness, damping, bounded, target, axis, label, **more
        )
        self.builder.actuators[index].params["first_velocity"] = rate
        return label

    def _drive(self, joint: UsdJoint, axis: int, dof: Dof, drive: Any) -> None:
        stage, name = self.stage, joint.label if len(joint.dofs) == 1 else f"{joint.label}_{dof.name}"
        name = str(stage.value(dof.path, f"gpusim:{dof.name}:actuator") or name)  # attribute that to_usd writes
        unit = effort_unit(stage, dof)
        per = stage.kilograms if dof.linear else unit / DEGREE
        if drive.acceleration:
            load = self.load(joint, axis) + self.passive[id(dof)].armature
            per = load if dof.linear else load / DEGREE
            what = "a drive of type acceleration, whose gains follow the inertia"
            stage.report.add("motion", joint.element, what, f"its gains are for the starting load of {load:.4g} kg(m2)")
        max_effort = math.inf if not drive.forceLimit < UNLIMITED else float(drive.forceLimit) * unit
        target = float(drive.targetPosition) * dof.unit
        label = self._servo(
            joint, axis, float(drive.stiffness) * per, float(drive.damping) * per, target, name,
            limit=(-max_effort, max_effort), rate=float(drive.targetVelocity) * dof.unit,
        )  # fmt: skip
        key = f"{joint.path}:{dof.name}"
        if drive.stiffness:
            stage.report.commands[key] = CommandInfo(label, factor=dof.unit)
        elif drive.damping:
            stage.report.commands[key] = CommandInfo(f"{label}.velocity", factor=dof.unit)
        else:
            stage.report.commands[key] = CommandInfo(f"{label}.effort", factor=math.copysign(unit, dof.unit))
            fix = f"command sim.control['{label}.effort'], or write the stiffness and damping of its servo"
            stage.report.add("info", joint.element, "a drive without gains", "its servo has no gains", fix)

    def _on_target(self, prim: Any, target: str) -> None:
        element = f"actuator '{prim.GetName()}'"
        matches = [(joint, axis) for joint in self.joints for axis, dof in enumerate(joint.dofs) if dof.path == target]
        if not matches:
            what = f"acts on {target}, which is not a joint with one axis"
            self.stage.report.add("motion", element, what, "it is left out", "add it to the builder")
            return
        if len(matches) > 1:
            what = f"acts on {target} of {len(matches)} axes"
            self.stage.report.add("motion", element, what, "it drives the first axis", "write one joint for each axis")
        try:
            add = self._mjc if prim.GetTypeName() == "MjcActuator" else self._newton
            add(prim, element, *matches[0])
        except ModelError as why:
            self.stage.report.add("motion", element, str(why).split(": ", 1)[-1], "it is left out")

    def _newton(self, prim: Any, element: str, joint: UsdJoint, axis: int) -> None:
        stage, path = self.stage, str(prim.GetPath())
        unit = effort_unit(stage, joint.dofs[axis])
        per = stage.kilograms if joint.dofs[axis].linear else unit
        max_effort = stage.number(path, "newton:maxEffort", math.inf) * unit
        steps, delay = stage.number(path, "newton:delaySteps"), 0.0
        if steps:
            rates = [stage.number(scene, "newton:timeStepsPerSecond") for scene, _ in stage.of("Scene")]
            if rates and rates[0]:
                delay = steps / rates[0]
            else:
                what = f"is delayed by {steps:g} steps of unknown length"
                stage.report.add("motion", element, what, "it has no delay", "set newton:timeStepsPerSecond")
        kp, kd = stage.number(path, "newton:kp") * per, stage.number(path, "newton:kd") * per
        label = self._servo(joint, axis, kp, kd, 0.0, prim.GetName(), limit=(-max_effort, max_effort), delay=delay)
        stage.report.commands[path] = CommandInfo(label if kp else f"{label}.effort")

    def _mjc(self, prim: Any, element: str, joint: UsdJoint, axis: int) -> None:
        """Add a "general" actuator of MuJoCo: effort = gear (gain ctrl + bias0 + bias1 length + bias2 velocity)."""
        stage, path, dof = self.stage, str(prim.GetPath()), joint.dofs[axis]
        kinds = [str(stage.value(path, f"mjc:{name}") or default) for name, default in _MJC_TYPES]
        if kinds[0] != "none" or kinds[1] != "fixed" or kinds[2] not in ("none", "affine"):
            what = f"has dynamics {kinds[0]}, gain {kinds[1]} and bias {kinds[2]}"
            stage.report.add("motion", element, what, "it is left out", "add a servo or a diagram to the builder")
            return
        gear = _list(stage.value(path, "mjc:gear"), (1.0,))[0]
        gain = _list(stage.value(path, "mjc:gainPrm"), (1.0,))[0]
        bias = _list(stage.value(path, "mjc:biasPrm"), (0.0,) * 3)[:3] if kinds[2] == "affine" else np.zeros(3)
        unit = effort_unit(stage, dof)
        per = stage.kilograms if dof.linear else unit  # effort per length or angle
        ctrl = _range(stage, path, "mjc:ctrlRange", "mjc:ctrlLimited")
        ends = [unit * gear * end for end in _range(stage, path, "mjc:forceRange", "mjc:forceLimited")]
        limit = min(ends), max(ends)
        factor = unit * gear * gain
        stiffness, damping = -bias[1] * gear * gear * per, -bias[2] * gear * gear * per
        if stiffness or damping or bias[0]:
            divisor = stiffness or 1.0
            target, effort = (unit * gear * bias[0] / divisor, 0.0) if stiffness else (0.0, unit * gear * bias[0])
            label = self._servo(joint, axis, stiffness, damping, target, prim.GetName(), limit=limit)
            suffix, scale = ("", stiffness) if stiffness else (".velocity", damping) if damping else (".effort", 1.0)
            offset = target if stiffness else effort / scale
            stage.report.commands[path] = CommandInfo(label + suffix, factor / scale, offset, *ctrl)
            return
        passive = self.passive[id(dof)]
        # without an effort range, the command range limits the effort
        command_range = sorted(factor * end for end in ctrl) if factor else [-math.inf, math.inf]
        low, high = max(limit[0], command_range[0], passive.lower), min(limit[1], command_range[1], passive.upper)
        label = stage.label("actuator", prim.GetName())
        bounded = (low, high) if low > -math.inf and high < math.inf and low <= 0.0 <= high else None
        self.builder.add_joint_force(self.indices[id(joint)], bounded, axis, label)
        stage.report.commands[path] = CommandInfo(label, factor, 0.0, *ctrl)


_MJC_TYPES = (("dynType", "none"), ("gainType", "fixed"), ("biasType", "none"))


def _list(value: Any, default: Sequence[float]) -> np.ndarray:
    """Return ``value`` as an array. Missing numbers at the end come from ``default``."""
    numbers = [] if value is None else [float(x) for x in value]
    return np.array([*numbers, *default[len(numbers) :]])


def add_damping(
    stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody], joints: Sequence[UsdJoint]
) -> None:
    """Damp bodies without joints as PhysX does: force = rate (1/s) * mass * velocity."""
    jointed = {path for joint in joints for path in joint.bodies}
    for body in bodies.values():
        if body.path in jointed or body.kinematic or body.host != body.path:
            continue
        rates = [stage.number(body.path, f"physxRigidBody:{name}Damping") for name in ("linear", "angular")]
        if not any(rate > 0.0 for rate in rates):
            continue
        moments = np.linalg.eigvalsh(body.mass.inertia)
        if rates[1] > 0.0 and np.ptp(moments) > 0.01 * moments[2]:
            what = f"angular damping of {rates[1]:g} 1/s for unequal moments of inertia"
            stage.report.add("motion", body.element, what, "the damping uses their mean")
        values = [max(rates[0], 0.0) * body.mass.mass] * 3 + [max(rates[1], 0.0) * float(moments.mean())] * 3
        label = stage.label("joint", f"world_to_{body.label}")
        builder.add_joint_free(-1, body.index, child_xform=Transform(body.mass.com), damping=values, label=label)


def add_mimics(stage: UsdStage, builder: ModelBuilder, joints: Sequence[UsdJoint], indices: Mapping[int, int]) -> None:
    """Add couplings for mimic joints in the schemas of PhysX, Newton and MuJoCo."""
    coordinates = {dof.path: (joint, axis, dof) for joint in joints for axis, dof in enumerate(joint.dofs)}
    for joint in joints:
        for axis, dof in enumerate(joint.dofs):
            mimic = _leader(stage, dof)
            if mimic is None:
                continue
            path, coefficients, radians = mimic
            if path not in coordinates:
                what = f"follows {path}, which is not a joint with one axis"
                stage.report.add("motion", joint.element, what, "it is free")
                continue
            leader, leader_axis, other = coordinates[path]
            unit, per = (math.copysign(1.0, d.unit) if radians and not d.linear else d.unit for d in (dof, other))
            ends = (indices[id(joint)], axis), (indices[id(leader)], leader_axis)
            shift, ratio, *curve = (c * unit / per**power for power, c in enumerate(coefficients))
            builder.add_mimic(ends[0][0], ends[1][0], ratio, shift, axis, leader_axis, curve=curve)
            stage.report.add_mimic(*ends, ratio, shift)


def _leader(stage: UsdStage, dof: Dof) -> tuple[str, list[float], bool] | None:
    """Return the leader joint's path, the coefficients of the mimic polynomial, and True for angles in rad.

    Return None if the joint has no leader.
    """
    prim = stage.prim(dof.path)

    def target(name: str) -> str:
        relation = prim.GetRelationship(name)
        paths = relation.GetTargets() if relation else []
        return str(paths[0]) if paths else ""

    path = target("newton:mimicJoint")
    if path and stage.value(dof.path, "newton:mimicEnabled") is not False:
        return path, [*(stage.number(dof.path, f"newton:mimicCoef{k}", float(k)) for k in (0, 1)), *NO_CURVE], False
    path = target("mjc:target")
    if path and "MjcEqualityJointAPI" in stage.schemas(prim):
        return path, [stage.number(dof.path, f"mjc:coef{k}", float(k == 1)) for k in range(5)], True
    for name in ("rotX", "rotY", "rotZ"):
        path = target(f"physxMimicJoint:{name}:referenceJoint")
        if path:
            gearing = stage.number(dof.path, f"physxMimicJoint:{name}:gearing")
            return path, [-stage.number(dof.path, f"physxMimicJoint:{name}:offset"), -gearing, *NO_CURVE], False
    return None
