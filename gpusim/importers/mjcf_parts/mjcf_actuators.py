"""Actuators of the MJCF importer.

The force of a MuJoCo actuator is ``gain ctrl + b0 + b1 l + b2 v``. Here, l is the length of the actuator, v is its
velocity, and (b0, b1, b2) is biasprm. The builder's actuator depends on biasprm: position servo (b1 < 0), velocity
servo (b1 = 0, b2 < 0), or joint force (b1 = b2 = 0). Command maps convert MuJoCo's ctrl values to commands of the
model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.importers.mjcf_parts.mjcf_context import FREE, SLIDE, Context, frame, vector
from gpusim.importers.mjcf_parts.mjcf_muscles import add_muscle, is_muscle, unknown_muscle
from gpusim.importers.report import CommandInfo

_USE_MOTOR = "use a motor, and compute its ctrl in your own loop"

MAX_EFFORT = 1e12
"""Effort limit (N or N m) for the unlimited direction of an actuator that has a limit in only one direction."""


@dataclass(frozen=True)
class _EffortLaw:
    """Effort on a joint coordinate q: ``gain ctrl + constant - stiffness q - damping q'``, clipped to the limits."""

    gain: float
    constant: float
    stiffness: float
    damping: float
    lower: float
    upper: float

    @property
    def limit(self) -> tuple[float, float] | None:
        if math.isinf(self.lower) and math.isinf(self.upper):
            return None
        return max(self.lower, -MAX_EFFORT), min(self.upper, MAX_EFFORT)


def add_actuators(context: Context) -> None:
    """Add all actuators that the builder supports."""
    m = context.m
    if context.is_disabled("ACTUATION"):
        return
    disabled = int(getattr(m.opt, "disableactuator", 0))
    groups = context.field("actuator_group", np.zeros(context.actuators, int))
    for a in range(context.actuators):
        if 0 <= groups[a] <= 30 and disabled >> int(groups[a]) & 1:
            context.report_loss("info", "ACTUATOR", a, "its group is disabled", "left out")
            continue
        feature = _unsupported_feature(context, a)
        if feature:
            context.report_loss("motion", "ACTUATOR", a, feature, "left out", _USE_MOTOR)
            continue
        if context.field("actuator_actearly", np.zeros(context.actuators))[a]:
            context.report_loss("info", "ACTUATOR", a, "actearly", "the force uses the current activation")
        _add(context, a)


def _enum_name(context: Context, name: str, value: Any) -> str:
    """Return the lower-case name of an enumeration value, such as "joint" for mjTRN_JOINT."""
    return str(getattr(context.mj, name)(int(value)).name).split("_", 1)[1].lower()


def _unsupported_feature(context: Context, a: int) -> str:
    """Return a text that names an unsupported feature of actuator ``a``, or an empty text."""
    m = context.m
    dynamics = _enum_name(context, "mjtDyn", m.actuator_dyntype[a])
    gain, bias = (
        _enum_name(context, "mjtGain", m.actuator_gaintype[a]),
        _enum_name(context, "mjtBias", m.actuator_biastype[a]),
    )
    if is_muscle(context, a):
        return unknown_muscle(context, a)
    if dynamics not in ("none", "filter", "filterexact", "integrator"):
        return f"activation dynamics '{dynamics}'"
    if not (gain == "fixed" or (gain == "affine" and not np.any(m.actuator_gainprm[a][1:3]))):
        if gain != "affine":
            return f"gain type '{gain}'"
        inputs = [
            name for name, factor in zip(("length", "velocity"), m.actuator_gainprm[a][1:3], strict=True) if factor
        ]
        return f"a gain that depends on the {' and '.join(inputs)}"
    if bias not in ("none", "affine"):
        return f"bias type '{bias}'"
    if bias == "affine" and np.any(m.actuator_biasprm[a][1:3] > 0.0):
        return "a negative stiffness or damping"
    for field, what in (("delay", "a delay"), ("damping", "actuator damping"), ("dampingpoly", "actuator damping")):
        if np.any(context.field(f"actuator_{field}", np.zeros(context.actuators))[a]):
            return what
    if np.any(context.field("actuator_armature", np.zeros(context.actuators))[a]):
        return "actuator armature"
    return ""


def _add(context: Context, a: int) -> None:
    m, kind = context.m, _enum_name(context, "mjtTrn", context.m.actuator_trntype[a])
    target = int(m.actuator_trnid[a][0])
    if kind == "site":
        _add_on_site(context, a, target)
    elif kind in ("joint", "jointinparent") and m.jnt_type[target] >= SLIDE:
        coordinate = context.coordinates[target]
        _add_on_joint(context, a, coordinate.index, coordinate.axis, _joint_limit(context, target))
    elif (
        kind in ("joint", "jointinparent")
        and context.placements[int(m.body_parentid[m.jnt_bodyid[target]])][0] == WORLD
    ):
        _add_on_free(context, a, target, kind == "jointinparent")
    elif kind == "tendon" and target in context.tendons:
        flags = context.field("tendon_actfrclimited", np.zeros(m.ntendon))
        gear = m.actuator_gear[a][0]  # MuJoCo applies a tendon's actuatorfrcrange before the gear
        limit = context.limited(flags[target], gear * m.tendon_actfrcrange[target] if flags[target] else (0, 0))
        _add_on_joint(context, a, context.tendons[target], 0, limit, context.offsets.get(target, 0.0))
    else:
        reasons = {
            "joint": "on a ball joint of two bodies",
            "tendon": "on a tendon that is left out",
            "body": "adhesion",
        }
        what = reasons.get("joint" if kind == "jointinparent" else kind, f"transmission '{kind}'")
        context.report_loss("motion", "ACTUATOR", a, what, "left out", "drive a hinge, a slide or a site")


def _joint_limit(context: Context, j: int) -> tuple[float, float]:
    """Return a joint's ``actuatorfrcrange`` (lower, upper), or infinite limits if the file sets none."""
    m = context.m
    flags = context.field("jnt_actfrclimited", np.zeros(m.njnt))
    return context.limited(flags[j], m.jnt_actfrcrange[j])


def _effort_law(context: Context, a: int, joint_limit: tuple[float, float], offset: float) -> _EffortLaw:
    """Return the effort law of an actuator on a joint coordinate q."""
    m, gear = context.m, float(context.m.actuator_gear[a][0])
    bias = m.actuator_biasprm[a] if _enum_name(context, "mjtBias", m.actuator_biastype[a]) == "affine" else np.zeros(3)
    force_range = sorted(gear * x for x in context.limited(m.actuator_forcelimited[a], m.actuator_forcerange[a]))
    lower, upper = max(force_range[0], joint_limit[0]), min(force_range[1], joint_limit[1])
    if lower > 0.0 or upper < 0.0:
        effect = f"from {min(lower, 0.0):g} to {max(upper, 0.0):g}"
        context.report_loss(
            "motion", "ACTUATOR", a, "a force range without zero", effect, "give a range that contains 0"
        )
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    return _EffortLaw(
        gain=gear * float(m.actuator_gainprm[a][0]),
        constant=gear * float(bias[0] + bias[1] * gear * offset),
        stiffness=-(gear**2) * float(bias[1]),
        damping=-(gear**2) * float(bias[2]),
        lower=lower,
        upper=upper,
    )


def _add_on_joint(
    context: Context, a: int, joint: int, axis: int, joint_limit: tuple[float, float], offset: float = 0.0
) -> None:
    m, builder = context.m, context.builder
    if not m.actuator_gear[a][0]:
        context.report_loss("info", "ACTUATOR", a, "gear 0", "left out")
        return
    label = context.label("actuator", context.name("ACTUATOR", a))
    if is_muscle(context, a):
        if any(map(math.isfinite, joint_limit)):
            what = "a force range of the muscle's joint or tendon"
            context.report_loss("motion", "ACTUATOR", a, what, "no limit", "limit the muscle's force")
        add_muscle(context, a, joint, axis, offset, label)
        _set_command_map(context, a, context.name("ACTUATOR", a), label)
        return
    law = _effort_law(context, a, joint_limit, offset)
    scale = law.stiffness or law.damping or 1.0
    factor, offset = law.gain / scale, law.constant / scale
    command = label
    if law.stiffness:
        builder.add_tracking_servo(
            joint, law.stiffness, law.damping, limit=law.limit, target=offset, axis=axis, label=label
        )
    elif law.damping and -law.lower == law.upper:
        builder.add_servo(
            joint, "velocity", damping=law.damping, effort_limit=law.upper, target=offset, axis=axis, label=label
        )
    elif law.damping:
        index = builder.add_tracking_servo(joint, 0.0, law.damping, limit=law.limit, axis=axis, label=label)
        command, builder.actuators[index].params["first_velocity"] = f"{label}.velocity", offset
    else:
        index = builder.add_joint_force(joint, limit=law.limit, axis=axis, label=label)
        builder.actuators[index].params["first_effort"] = offset
    _set_command_map(context, a, context.name("ACTUATOR", a), command, factor, offset)


def _set_command_map(
    context: Context,
    a: int,
    name: str,
    command: str,
    factor: float = 1.0,
    offset: float = 0.0,
    clip: tuple[float, float] = (-math.inf, math.inf),
) -> None:
    """Define a command with the unit, starting value and range of MuJoCo's ctrl. ``clip`` further limits the range."""
    m, k = context.m, _ctrl_index(context, a)
    if factor == 0.0:
        context.report_loss("info", "ACTUATOR", a, "gain 0", "its ctrl has no effect")
        context.builder.set_command_map(command, 1.0, 0.0, offset - 1e-9, offset + 1e-9, initial=offset)
        return
    clamped = m.actuator_ctrllimited[k] and not context.is_disabled("CLAMPCTRL")
    lower, upper = (min(max(x, clip[0]), clip[1]) for x in context.limited(clamped, m.actuator_ctrlrange[k]))
    if lower == upper:
        lower, upper = lower - 1e-9, upper + 1e-9
    start = min(max(float(context.now.ctrl[k]), lower), upper)
    law = _activation(context, a, command)
    context.builder.set_command_map(command, factor, offset, lower, upper, initial=start, **law)
    info = context.report.commands[name] = CommandInfo(command, lower=lower, upper=upper)
    context.controls.append((k, info))


def _activation(context: Context, a: int, command: str) -> dict[str, Any]:
    """Return the arguments of ``set_command_map`` for the activation dynamics of an actuator."""
    m, dynamics = context.m, _enum_name(context, "mjtDyn", context.m.actuator_dyntype[a])
    lag = float(m.actuator_dynprm[a][0]) if dynamics.startswith("filter") else 0.0
    if dynamics != "integrator" and lag <= 0.0:
        return {}
    lower, upper = context.limited(m.actuator_actlimited[a], m.actuator_actrange[a])
    if lower == upper:
        lower, upper = lower - 1e-9, upper + 1e-9
    context.activations.append((int(m.actuator_actadr[a]), command, lower, upper))
    law = {"integrate": True} if dynamics == "integrator" else {"time_constant": lag}
    first = min(max(float(context.now.act[m.actuator_actadr[a]]), lower), upper)
    return law | {"activation_range": (lower, upper), "activation": first}


def _ctrl_index(context: Context, a: int) -> int:
    """Return the index of an actuator's first value in MuJoCo's ctrl."""
    return int(context.field("actuator_ctrladr", np.arange(context.m.nu))[a])


def _add_on_site(context: Context, a: int, site: int) -> None:
    """Add a force and a torque at a site, in the axes of the site or of its reference site."""
    body, pose = context.site(site)
    axes, frame_name, reference = pose, "body", int(context.m.actuator_trnid[a][1])
    if reference >= 0:
        base, axes = context.site(reference)
        axes, frame_name = context.options.xform * axes, "world"
        if base != WORLD:
            fix = "leave out refsite, or drive the joints"
            context.report_loss("motion", "ACTUATOR", a, "a reference site on a body that moves", "left out", fix)
            return
    gear = context.m.actuator_gear[a]
    force, torque = axes.rotate(gear[:3]), axes.rotate(gear[3:])
    _add_wrench(context, a, body, {"force": (force, frame_name), "torque": (torque, frame_name)}, vector(pose.position))


def _add_on_free(context: Context, a: int, j: int, in_parent: bool) -> None:
    """Add a force and a torque on a floating body, or a torque on the body of a ball joint."""
    m, b, gear = context.m, int(context.m.jnt_bodyid[j]), context.m.actuator_gear[a]
    body, axes = context.placements[b][0], "world" if in_parent else "body"
    if m.jnt_type[j] == FREE:
        _add_wrench(context, a, body, {"force": (gear[:3], "world"), "torque": (gear[3:], axes)})
        return
    zero = context.options.xform * context.placements[int(m.body_parentid[b])][1] * frame(m.body_pos[b], m.body_quat[b])
    _add_wrench(context, a, body, {"torque": (zero.rotate(gear[:3]) if in_parent else gear[:3], axes)})


def _add_wrench(
    context: Context, a: int, body: int, wrench: dict[str, tuple[Any, str]], point: tuple[float, ...] = (0.0, 0.0, 0.0)
) -> None:
    """Add a force and a torque on a body, with MuJoCo's ctrl as command.

    Args:
        context: state of the import.
        a: index of the actuator.
        body: index of the body in the builder.
        wrench: "force" or "torque" -> (vector for an actuator force of 1, frame of the vector: "world" or "body").
        point: point of application in the body's frame, m.
    """
    m, builder = context.m, context.builder
    affine = _enum_name(context, "mjtBias", m.actuator_biastype[a]) == "affine"
    if affine and np.any(m.actuator_biasprm[a][1:3]):
        context.report_loss(
            "motion", "ACTUATOR", a, "a servo on a site, or on a ball or free joint", "left out", _USE_MOTOR
        )
        return
    if body == WORLD or builder.bodies[body].kinematic:
        context.report_loss("info", "ACTUATOR", a, "a force on the world or on a kinematic body", "left out")
        return
    gain, clip = float(m.actuator_gainprm[a][0]), (-math.inf, math.inf)
    constant, unit = float(m.actuator_biasprm[a][0]) if affine else 0.0, gain or 1.0
    if m.actuator_forcelimited[a]:
        if _enum_name(context, "mjtDyn", m.actuator_dyntype[a]) == "none" and gain:
            clip = context.limited(True, (m.actuator_forcerange[a] - constant) / gain)
        elif not gain:
            constant = float(np.clip(constant, *m.actuator_forcerange[a]))
        else:
            fix = "give an actrange"
            context.report_loss(
                "motion", "ACTUATOR", a, "a force range and an activation", "no limit of the force", fix
            )
    name = context.name("ACTUATOR", a)
    parts = {part: (vector(unit * values), axes) for part, (values, axes) in wrench.items() if np.any(values)}
    if len({axes for _, axes in parts.values()}) > 1:
        fix = f"give {name} and {name}_torque the same command"
        context.report_loss("motion", "ACTUATOR", a, "a force and a torque in different axes", "two commands", fix)
    elif "force" in parts:
        label, (force, axes) = context.label("actuator", name), parts["force"]
        torque, _ = parts.get("torque", ((0.0, 0.0, 0.0), axes))
        builder.add_force(body, force, point, frame=axes, label=label, torque=torque)
        _set_command_map(context, a, name, label, gain / unit, constant / unit, clip)
        return
    for part, (values, axes) in parts.items():
        suffix = "" if part == next(iter(parts)) else f"_{part}"
        label = context.label("actuator", name + suffix)
        if part == "force":
            builder.add_force(body, values, point, frame=axes, label=label)
        else:
            builder.add_torque(body, values, frame=axes, label=label)
        _set_command_map(context, a, name + suffix, label, gain / unit, constant / unit, clip)
