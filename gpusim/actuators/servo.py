"""Position and velocity servos on a joint coordinate, with an effort limit."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.actuators.spring import spring_law
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.actuator_kinds import (
    BEFORE_LAST,
    LAST,
    NEXT,
    Group,
    JointActuator,
    Parameter,
    Reading,
    StateReader,
    StepBuffers,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import DISTANCE, TRANSLATION, joint_type
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array

_FREE_RANGE = {TRANSLATION: 1.0, DISTANCE: 1.0}
"""Control panels show this position range on both sides of 0, if the joint has no limits (m). Rotations: pi rad."""
_FREE_SPEED = {TRANSLATION: 1.0, DISTANCE: 1.0}
"""Maximum velocity that control panels show (m/s). Rotations: pi rad/s."""


def read_target(group: Group, now: StateReader) -> Array:
    """Return the target (m, rad, m/s or rad/s)."""
    return now.control[:, group.control["target"]]


_EFFORT = """const bool rate = w.servo_follows_velocity(i) > 0.5;
        const int axis = w.servo_axis()[i];
        const double target = w.servo_target_now(i), limit = w.servo_effort_limit(i);
        const double spring = rate ? 0.0 : w.servo_stiffness(i) * (target - axis_value(w, axis));
        const double damper = w.servo_damping(i) * ((rate ? target : 0.0) - axis_rate(w, axis));
        *out = clamped(spring + damper, -limit, limit);"""


def read_force(group: Group, now: StateReader) -> Array:
    """Return the clamped effort (N or N m) at time t for the current command."""
    p, target = group.params, read_target(group, now)
    velocity_mode = p["follows_velocity"] > 0.5
    spring = np.where(velocity_mode, 0.0, p["stiffness"]) * (target - now.axis_value(group.axis))
    damper = p["damping"] * (np.where(velocity_mode, target, 0.0) - now.axis_rate(group.axis))
    return np.clip(spring + damper, -p["effort_limit"], p["effort_limit"])


@register
class Servo(JointActuator):
    """Servo with the effort ``stiffness (target - q) - damping q'`` or ``damping (target - q')``, clamped to a limit.

    Spring and damper are soft constraint rows (see spring.py), which are stable for any gain and step size.
    """

    name: ClassVar[str] = "servo"
    clamped: ClassVar[bool] = True
    kernel_file: ClassVar[str] = "servo.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate",)
    prefix: ClassVar[str] = "servo"
    rotational: ClassVar[bool] = True
    commands: ClassVar[tuple[str, ...]] = ("target",)
    needs: ClassVar[tuple[str, ...]] = ("target",)
    options: ClassVar[tuple[str, ...]] = ("command_range",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("stiffness", "N m/rad", "position gain (N/m on a translation)"),
        Parameter("damping", "N m s/rad", "velocity gain (N s/m on a translation)"),
        Parameter("effort_limit", "N m", "maximum effort (N on a translation)"),
        Parameter("follows_velocity", "-", "1: the target is a velocity; 0: a position"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading("target", "rad", "commanded position or velocity", read_target, "*out = w.servo_target_now(i);"),
        Reading("force", "N m", "effort along the coordinate", read_force, _EFFORT),
    )

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return the initial target from the builder."""
        return float(spec.params["target"])

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the target. Position targets stay within the joint limits.

        The safe velocity is 0. The safe position is the current position, so that an emergency stop does not move the
        joint.
        """
        joint, axis = int(spec.params["joint"]), int(spec.params["axis"])
        type_, target = joint_type(model.joints[joint].kind), float(spec.params["target"])
        kind, unit = type_.kinds(model.joints[joint])[axis], type_.unit_of(model.joints[joint], axis)
        given = spec.params.get("command_range")
        if spec.params["follows_velocity"] > 0.5:
            max_speed = max(_FREE_SPEED.get(kind, math.pi), 2.0 * abs(target))
            lower, upper = given or (-max_speed, max_speed)
            return UiHints(lower=lower, upper=upper, unit=f"{unit}/s", limited=given is not None)
        lower, upper = given or _position_range(model, joint, axis, target, _FREE_RANGE.get(kind, math.pi))
        measured, limited = (f"joint.{model.joints[joint].label}.position", axis), given is not None
        return UiHints(lower, upper, safe=None, unit=unit, springs=False, measured=measured, limited=limited)

    def check(self, group: Group) -> None:
        """Raise ModelError if a gain or the limit is negative."""
        group.check_signs(not_negative=("stiffness", "damping", "effort_limit"))

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add a spring to the target position, or a damper to the target velocity. The solver clamps the effort."""
        if velocity is not None:
            return
        p = group.params
        target = work.command(group, "target")
        velocity_mode = p["follows_velocity"] > 0.5
        stiffness = np.where(velocity_mode, 0.0, p["stiffness"])
        elongation = work.axis_position[:, group.axis] - target
        impulse, slope = spring_law(work, group.axis, stiffness, p["damping"], elongation)
        # damping (target - q'): the target adds an impulse
        impulse = impulse + np.where(velocity_mode, work.kick_time * p["damping"] * target, 0.0)
        limited = np.isfinite(p["effort_limit"])
        work.add_law(group, np.where(limited, 0.0, impulse), np.where(limited, 0.0, slope))
        if limited.any():
            max_impulse = np.where(limited, work.kick_time * np.where(limited, p["effort_limit"], 0.0), 0.0)
            work.add_clamped_law(group, np.where(limited, impulse, 0.0), np.where(limited, slope, 0.0), max_impulse)


def _position_range(model: Elements, joint: int, axis: int, target: float, free: float) -> tuple[float, float]:
    """Return the command range for operator panels: the joint limits or +-``free``, extended to the initial target."""
    params = model.joints[joint].params
    lower, upper = (
        float(np.ravel(params[name])[axis]) if name in params else math.inf for name in ("limit_lower", "limit_upper")
    )
    lower = min(lower if math.isfinite(lower) else -free, target)
    upper = max(upper if math.isfinite(upper) else free, target)
    return (lower, upper) if lower < upper else (lower - free, upper + free)


assert abs(NEXT + LAST + BEFORE_LAST - 1.0) < 1e-15  # required by the target's impulse


def _checked_range(element: str, given: Any, mode: str) -> tuple[float, float]:
    lower, upper = (float(x) for x in validate.numbers(element, "command_range", given, 2))
    if not lower < upper:
        rule = f"command_range = ({lower:g}, {upper:g}) is not increasing"
        raise validate.fail(element, rule, "give (minimum, maximum)")
    if mode == "velocity" and not lower <= 0.0 <= upper:
        rule = f"command_range = ({lower:g}, {upper:g}) excludes 0, the velocity in an emergency stop"
        raise validate.fail(element, rule, "give a range that contains 0")
    return lower, upper


@builder_method
def add_servo(
    self: ModelBuilder,
    joint: int,
    mode: str = "position",
    stiffness: float = 0.0,
    damping: float = 0.0,
    effort_limit: float = float("inf"),
    target: float = 0.0,
    axis: int = 0,
    label: str | None = None,
    command_range: tuple[float, float] | None = None,
) -> int:
    """Add a servo on a joint coordinate. The command ``sim.control[label]`` is the target.

    Args:
        joint: joint index.
        mode: "position" (target in rad or m) or "velocity" (target in rad/s or m/s).
        stiffness: position gain (N m/rad or N/m). Velocity servos ignore ``stiffness``.
        damping: velocity gain (N m s/rad or N s/m).
        effort_limit: maximum effort (N m or N).
        target: initial target.
        axis: index of the joint coordinate.
        label: unique name.
        command_range: (minimum, maximum) to which the servo clamps targets. By default, the servo does not clamp
            targets. Operator panels then show the joint limits, or +-pi rad or +-1 m without limits. For velocity
            servos, panels show +-pi rad/s or +-1 m/s. Operator panels extend this range to the initial target.

    Returns:
        The index of the actuator.
    """
    element = self.element("actuator", label, "servo")
    validate.choice(element, "mode", mode, ("position", "velocity"))
    params: dict[str, Any] = {
        "joint": self.check_joint(element, "joint", joint, axis),
        "axis": axis,
        "stiffness": validate.not_negative(element, "stiffness", stiffness),
        "damping": validate.not_negative(element, "damping", damping),
        "effort_limit": validate.not_negative(element, "effort_limit", effort_limit, infinite=True),
        "follows_velocity": float(mode == "velocity"),
        "target": validate.number(element, "target", target),
    }
    if command_range is not None:
        params["command_range"] = _checked_range(element, command_range, mode)
    if params["stiffness"] == 0.0 and params["damping"] == 0.0:
        raise validate.fail(element, "stiffness and damping are both zero", "give at least one gain")
    if mode == "velocity" and params["damping"] == 0.0:
        raise validate.fail(element, "a velocity servo has no damping", "give the velocity gain as damping")
    return self.add_actuator("servo", label, params)
