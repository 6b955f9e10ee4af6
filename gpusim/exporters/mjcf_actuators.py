"""Actuators of an MJCF file: motors, servos, springs, and forces on bodies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np

from gpusim.builder.commands import APPLIED, map_of
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import CommandMap
from gpusim.exporters.mjcf_document import Coordinate, Document, finite_limits
from gpusim.transform import Transform

_UNUSED = 1.0
"""Placeholder in the file for muscle parameters that have no effect."""


def add_actuators(doc: Document) -> None:
    """Add every actuator that MJCF supports, and report all unsupported actuators."""
    for spec in doc.model.actuators:
        maker = _MAKERS.get(spec.kind)
        if maker is None:
            doc.report_loss(
                spec.element, f"MJCF has no {spec.kind.replace('_', ' ')}", "compute its force in your own loop"
            )
        else:
            maker(doc, spec)


def _coordinate(doc: Document, spec: ActuatorSpec) -> Coordinate | None:
    coordinate = doc.coordinates.get((spec.params["joint"], spec.params.get("axis", 0)))
    if coordinate is None:
        doc.report_loss(spec.element, "it acts on a coordinate that is not a hinge or slide of the tree")
    return coordinate


def _target(doc: Document, spec: ActuatorSpec) -> dict[str, str] | None:
    coordinate = _coordinate(doc, spec)
    if coordinate is None:
        return None
    tendon = doc.find("tendon", coordinate.name) is not None
    return {"tendon" if tendon else "joint": coordinate.name}


def _command(doc: Document, label: str) -> float:
    """Return the initial value of a command."""
    column = doc.model.controls.get(label)
    return 0.0 if column is None else float(np.ravel(doc.model.default_controls)[column])


def _first_command(spec: ActuatorSpec) -> str:
    names = actuator_type(spec.kind).commands
    return names[0] if names else ""


def _add_general(
    doc: Document, spec: ActuatorSpec, gain: float, bias: Any, start: float, force_range: Any, **more: Any
) -> None:
    target = _target(doc, spec)
    if target is None:
        return
    command = more.pop("command", spec.label)
    name = command.removeprefix(f"{spec.label}.") if command != spec.label else _first_command(spec)
    command_map = map_of(spec, name)
    gain, bias, mapped = _apply_command_map(doc, command, command_map, gain, bias, more.get("ctrlrange"))
    more |= mapped
    affine = {} if bias is None else {"biastype": "affine", "biasprm": bias}
    more |= {**target, **affine, "forcerange": force_range}
    doc.add(doc.section("actuator"), "general", name=spec.label, gainprm=gain, **more)
    doc.inputs[command] = len(doc.ctrl)
    doc.ctrl.append(start)


def _apply_command_map(
    doc: Document, command: str, command_map: CommandMap | None, gain: float, bias: Any, ctrlrange: Any = None
) -> tuple[float, Any, dict[str, Any]]:
    """Return the MJCF attributes of an actuator with a command map, such as gain and bias."""
    if command_map is None:
        return gain, bias, {}
    ends = sorted((end - command_map.offset) / command_map.factor for end in ctrlrange or (-math.inf, math.inf))
    active = command_map.activation_lower, command_map.activation_upper
    if command_map.integrate:
        more: dict[str, Any] = {"ctrlrange": finite_limits(command_map.lower, command_map.upper)}
        active = max(active[0], ends[0]), min(active[1], ends[1])
    else:
        more = {"ctrlrange": finite_limits(max(command_map.lower, ends[0]), min(command_map.upper, ends[1]))}
    if command_map.offset:
        first, *others = bias or (0.0, 0.0, 0.0)
        bias = (first + gain * command_map.offset, *others)
    if command_map.has_activation:
        law = {"dyntype": "filterexact", "dynprm": command_map.time_constant}
        more |= {"dyntype": "integrator"} if command_map.integrate else law
        more["actrange"] = finite_limits(*active)
        doc.activations[command] = len(doc.act)
        doc.act.append(_command(doc, f"{command}{APPLIED}"))
    return gain * command_map.factor, bias, more


def _effort(doc: Document, spec: ActuatorSpec) -> None:
    force_range = finite_limits(spec.params["lower"], spec.params["upper"])
    _add_general(doc, spec, 1.0, None, _command(doc, spec.label), force_range)


def _tracking(doc: Document, spec: ActuatorSpec) -> None:
    p = spec.params
    stiffness, damping = float(p["stiffness"]), float(p["damping"])
    force_range = finite_limits(p["lower"], p["upper"])
    others = [f"{spec.label}.{name}" for name in ("velocity", "effort") if _command(doc, f"{spec.label}.{name}")]
    if stiffness:
        _add_general(doc, spec, stiffness, (0.0, -stiffness, -damping), _command(doc, spec.label), force_range)
    elif damping:
        rate = f"{spec.label}.velocity"
        others = [name for name in others if name != rate]
        _add_general(doc, spec, damping, (0.0, 0.0, -damping), _command(doc, rate), force_range, command=rate)
    else:
        others = []
        effort = f"{spec.label}.effort"
        _add_general(doc, spec, 1.0, None, _command(doc, effort), force_range, command=effort)
    if others:
        doc.report_loss(spec.element, f"starts with the commands {', '.join(others)}")


def _servo(doc: Document, spec: ActuatorSpec) -> None:
    p = spec.params
    stiffness, damping = float(p["stiffness"]), float(p["damping"])
    force_range = finite_limits(-p["effort_limit"], p["effort_limit"])
    ctrlrange = p.get("command_range")
    gain, bias = stiffness, (0.0, -stiffness, -damping)
    if p["follows_velocity"] > 0.5 or not stiffness:
        gain, bias = damping, (0.0, 0.0, -damping)
    start = _command(doc, spec.label)
    if not stiffness and p["follows_velocity"] <= 0.5:
        gain, start, ctrlrange = 0.0, 0.0, None  # a position servo without stiffness is a damper
    _add_general(doc, spec, gain, bias, start, force_range, ctrlrange=ctrlrange)


def _motor(doc: Document, spec: ActuatorSpec) -> None:
    p = spec.params
    ratio = float(p["gear_ratio"])
    torque = float(p["stall_torque"]) * ratio
    slope = 0.0 if math.isinf(p["no_load_speed"]) else torque * ratio / float(p["no_load_speed"])
    if float(p["electrical_time_constant"]) > 0.0:
        doc.report.add("motion", spec.element, "its torque has a time constant", "the file has no time constant")
    if float(p["mechanical_time_constant"]) > 0.0 and math.isfinite(p["no_load_speed"]):
        rotor = float(p["mechanical_time_constant"]) * slope
        coordinate = _coordinate(doc, spec)
        joint = None if coordinate is None else _joint(doc, coordinate.name)
        if joint is not None:
            joint.set("armature", repr(float(joint.get("armature", 0.0)) + rotor))
    bias = (0.0, 0.0, -slope) if slope else None
    _add_general(doc, spec, torque, bias, _command(doc, spec.label), None, ctrlrange=(-1, 1))


def _joint(doc: Document, name: str) -> ElementTree.Element | None:
    return doc.find("worldbody", name, "joint")


def _joint_spring(doc: Document, spec: ActuatorSpec) -> None:
    coordinate = _coordinate(doc, spec)
    if coordinate is None:
        return
    stiffness, damping, springref = (float(spec.params[name]) for name in ("stiffness", "damping", "rest_length"))
    joint = _joint(doc, coordinate.name)
    if joint is not None and joint.get("stiffness") is None:
        joint.set("stiffness", repr(stiffness))
        joint.set("springref", repr(springref))
        joint.set("damping", repr(float(joint.get("damping", 0.0)) + damping))
        return
    tendon = doc.find("tendon", coordinate.name)
    if tendon is None:  # the joint has a spring already
        tendon = doc.add(doc.section("tendon"), "fixed", name=spec.label)
        doc.add(tendon, "joint", joint=coordinate.name, coef=1)
    tendon.set("stiffness", repr(stiffness))
    tendon.set("springlength", repr(springref))
    tendon.set("damping", repr(float(tendon.get("damping", 0.0)) + damping))


def _spring(doc: Document, spec: ActuatorSpec) -> None:
    p = spec.params
    tendon = doc.add(
        doc.section("tendon"), "spatial", name=spec.label, stiffness=float(p["stiffness"]),
        damping=float(p["damping"]), springlength=float(p["rest_length"]),
    )  # fmt: skip
    for end in ("a", "b"):
        doc.add(
            tendon, "site", site=doc.site(int(p[f"body_{end}"]), Transform(p[f"point_{end}"]), f"{spec.label}_{end}")
        )


def _wrench(doc: Document, spec: ActuatorSpec) -> None:
    p, body = spec.params, int(spec.params["body"])
    vector = [[float(p.get(f"{name}_{c}", 0.0)) for c in "xyz"] for name in ("force", "torque")]
    com = doc.model.bodies[body].com
    point = [float(p.get(f"point_{c}", 0.0)) + float(com[k]) for k, c in enumerate("xyz")]
    site = doc.site(body, Transform(point), f"{spec.label}_point")
    reference_site = None if p["in_body_frame"] > 0.5 else doc.site(-1, Transform(), f"{spec.label}_frame")
    gear, start = (*vector[0], *vector[1]), _command(doc, spec.label)
    gain, bias, more = _apply_command_map(doc, spec.label, map_of(spec, _first_command(spec)), 1.0, None)
    more |= {} if bias is None else {"biastype": "affine", "biasprm": bias}
    attributes = {"site": site, "refsite": reference_site, "gear": gear}
    doc.add(doc.section("actuator"), "general", name=spec.label, **attributes, gainprm=gain, **more)
    doc.inputs[spec.label] = len(doc.ctrl)
    doc.ctrl.append(start)


def _muscle(doc: Document, spec: ActuatorSpec) -> None:
    p, target = spec.params, _target(doc, spec)
    command_map = map_of(spec, _first_command(spec)) or CommandMap(lower=0.0, upper=1.0)
    if target is None:
        return
    if (command_map.factor, command_map.offset) != (1.0, 0.0):
        doc.report.add("motion", spec.element, "its command has another unit", "the excitation in the file is 0 to 1")
    # MuJoCo's compiler rejects zeros, even for parameters without effect.
    curves = [float(p[name]) for name in ("range_lower", "range_upper", "peak_force", "lmin", "lmax", "vmax")]
    curves = [*curves[:3], _UNUSED, *curves[3:], float(p["fpmax"]) or _UNUSED, float(p["fvmax"])]
    types = {"dyntype": "muscle", "gaintype": "muscle", "biastype": "muscle" if p["fpmax"] > 0.0 else "none"}
    doc.activations[spec.label] = len(doc.act)
    doc.act.append(float(p["first_activation"]))
    doc.add(
        doc.section("actuator"), "general", name=spec.label, **types, **target, gear=float(p["gear"]),
        dynprm=tuple(float(p[name]) for name in ("tau_act", "tau_deact", "tausmooth")), gainprm=curves, biasprm=curves,
        lengthrange=(float(p["length_lower"]), float(p["length_upper"])),
        ctrlrange=finite_limits(max(command_map.lower, 0.0), min(command_map.upper, 1.0)),
    )  # fmt: skip
    doc.inputs[spec.label] = len(doc.ctrl)
    doc.ctrl.append(_command(doc, spec.label))


_MAKERS: dict[str, Callable[[Document, ActuatorSpec], None]] = {
    "joint_force": _effort,
    "tracking_servo": _tracking,
    "servo": _servo,
    "motor": _motor,
    "torsion_spring": _joint_spring,
    "spring": _spring,
    "muscle": _muscle,
    "force": _wrench,
    "torque": _wrench,
}
