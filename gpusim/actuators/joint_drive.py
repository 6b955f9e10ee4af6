"""Actuators on a joint coordinate: joint force (or torque), and servo with feed-forward.

    effort = clamp(stiffness (target - q) + damping (velocity - q') + feed-forward, lower, upper)

q is the joint coordinate. Spring and damper are soft constraint rows (see spring.py), which are stable for any gain.
For second-order accuracy, the servo uses the mean of each command over the velocity update (kick).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.actuators.spring import spring_law
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.builder.commands import checked_delay
from gpusim.description.actuator_kinds import (
    Group,
    JointActuator,
    Parameter,
    Reading,
    StateReader,
    StepBuffers,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import joint_type
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array

_LIMITS = (
    Parameter("lower", "N m", "minimum effort (N on a translation)"),
    Parameter("upper", "N m", "maximum effort (N on a translation)"),
)


def _reader(command: str) -> Any:
    return lambda group, now: now.control[:, group.control[command]]


def _force(group: Group, now: StateReader) -> Array:
    """Return the clamped effort at time t for the current commands (N m or N)."""
    p, effort = group.params, _reader("effort")(group, now)
    if "stiffness" in p:
        effort = effort + p["stiffness"] * (_reader("target")(group, now) - now.axis_value(group.axis))
        effort = effort + p["damping"] * (_reader("velocity")(group, now) - now.axis_rate(group.axis))
    return np.asarray(np.clip(effort, p["lower"], p["upper"]))


class JointDrive(JointActuator):
    """Base class of actuators that apply a clamped effort to a joint coordinate."""

    clamped: ClassVar[bool] = True
    kernel_file: ClassVar[str] = "joint_drive.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate",)
    rotational: ClassVar[bool] = True

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return the initial target position for the position command, and 0 for other commands."""
        return float(spec.params.get(f"first_{name}", 0.0))

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of a command.

        The safe effort and the safe velocity are 0. The safe position is the current position.
        """
        joint, axis = int(spec.params["joint"]), int(spec.params["axis"])
        unit = joint_type(model.joints[joint].kind).unit_of(model.joints[joint], axis)
        if name == "effort":
            lower, upper = (float(spec.params[k]) for k in ("lower", "upper"))
            if not (math.isfinite(lower) and lower < upper):
                lower, upper = -100.0, 100.0
            return UiHints(lower, upper, unit="N" if unit == "m" else "N m", limited=False)
        if name == "velocity":
            return UiHints(-math.pi, math.pi, unit=f"{unit}/s", limited=False)
        value = self.default_command(spec, name)
        measured = f"joint.{model.joints[joint].label}.position", axis
        ends = value - math.pi, value + math.pi
        return UiHints(*ends, safe=None, unit=unit, springs=False, measured=measured, limited=False)

    def check(self, group: Group) -> None:
        """Raise ModelError if a gain is negative, or if the limits are swapped or exclude zero."""
        p, element = group.params, group.specs[0].element
        group.check_signs(not_negative=[name for name in ("stiffness", "damping") if name in p])
        if np.any(p["lower"] > p["upper"]):
            raise validate.fail(element, "lower is above upper", "swap them")
        if np.any((p["lower"] > 0.0) | (p["upper"] < 0.0)):
            raise validate.fail(element, "its limits exclude zero", "write lower <= 0 <= upper")

    def _add(self, group: Group, work: StepBuffers, impulse: Array, slope: Array) -> None:
        """Add the impulse law P - D u, clamped to the effort limits."""
        p, kick = group.params, work.kick_time
        limited = np.isfinite(p["upper"])
        upper, lower = np.where(limited, p["upper"], 0.0), np.where(limited, p["lower"], 0.0)
        middle, half = kick * (0.5 * (lower + upper)), kick * (0.5 * (upper - lower))
        work.add_law(group, np.where(limited, middle, impulse), np.where(limited, 0.0, slope))
        if limited.any():
            law = np.where(limited, impulse - middle, 0.0), np.where(limited, slope, 0.0), np.where(limited, half, 0.0)
            work.add_clamped_law(group, *law)


@register
class JointForce(JointDrive):
    """Joint force: the effort ``sim.control[label]`` on a joint coordinate, clamped to limits (N m or N)."""

    name: ClassVar[str] = "joint_force"
    prefix: ClassVar[str] = "force"
    commands: ClassVar[tuple[str, ...]] = ("effort",)
    options: ClassVar[tuple[str, ...]] = ("first_effort",)
    parameters: ClassVar[tuple[Parameter, ...]] = _LIMITS
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading("command", "N m", "commanded effort", _reader("effort"), "*out = w.joint_force_effort_now(i);"),
        Reading(
            "force", "N m", "effort along the coordinate", _force,
            "*out = clamped(w.joint_force_effort_now(i), w.joint_force_lower(i), w.joint_force_upper(i));",
        ),
    )  # fmt: skip

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add the mean effort over the velocity update (kick)."""
        if velocity is None:
            impulse = work.kick_time * work.command(group, "effort")
            self._add(group, work, impulse, np.zeros_like(impulse))


_TRACKED = """const int axis = w.tracking_servo_axis()[i];
        const double spring = w.tracking_servo_stiffness(i) * (w.tracking_servo_target_now(i) - axis_value(w, axis));
        const double damper = w.tracking_servo_damping(i) * (w.tracking_servo_velocity_now(i) - axis_rate(w, axis));
        const double effort = w.tracking_servo_effort_now(i) + spring + damper;
        *out = clamped(effort, w.tracking_servo_lower(i), w.tracking_servo_upper(i));"""


@register
class TrackingServo(JointDrive):
    """Servo with a target position, a target velocity and a feed-forward effort."""

    name: ClassVar[str] = "tracking_servo"
    prefix: ClassVar[str] = "servo"
    commands: ClassVar[tuple[str, ...]] = ("target", "velocity", "effort")
    options: ClassVar[tuple[str, ...]] = ("first_target", "first_velocity", "first_effort")
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("stiffness", "N m/rad", "position gain (N/m on a translation)"),
        Parameter("damping", "N m s/rad", "velocity gain (N s/m on a translation)"),
        *_LIMITS,
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading("target", "rad", "commanded position", _reader("target"), "*out = w.tracking_servo_target_now(i);"),
        Reading("force", "N m", "effort along the coordinate", _force, _TRACKED),
    )

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add a spring to the target position, a damper to the target velocity, and the feed-forward effort."""
        if velocity is not None:
            return
        p = group.params
        elongation = work.axis_position[:, group.axis] - work.command(group, "target")
        impulse, slope = spring_law(work, group.axis, p["stiffness"], p["damping"], elongation)
        feed_forward = p["damping"] * work.command(group, "velocity") + work.command(group, "effort")
        self._add(group, work, impulse + work.kick_time * feed_forward, slope)


def checked_limits(element: str, limit: Any) -> dict[str, float]:
    """Return the lower and the upper limit of the effort.

    ``limit`` is one number, a pair (minimum, maximum), or None.
    """
    if limit is None:
        return {"lower": -math.inf, "upper": math.inf}
    if np.ndim(np.array(limit, dtype=object)) == 0:  # dtype object accepts uneven lists
        bound = validate.not_negative(element, "limit", limit, infinite=True)
        return {"lower": -bound, "upper": bound}
    lower, upper = (float(x) for x in validate.numbers(element, "limit", limit, 2))
    if not lower <= upper:
        raise validate.fail(element, f"limit = ({lower:g}, {upper:g}) is decreasing", "give (minimum, maximum)")
    if not lower <= 0.0 <= upper:
        rule = f"limit = ({lower:g}, {upper:g}) excludes zero, the effort in an emergency stop"
        raise validate.fail(element, rule, "give minimum <= 0 <= maximum")
    return {"lower": lower, "upper": upper}


@builder_method
def add_joint_force(
    self: ModelBuilder,
    joint: int,
    limit: float | tuple[float, float] | None = None,
    axis: int = 0,
    label: str | None = None,
    delay: float = 0.0,
    max_delay: float | None = None,
) -> int:
    """Add a torque or force on a joint coordinate. ``sim.control[label]`` is the torque (N m) or force (N).

    Args:
        joint: joint index.
        limit: maximum effort in both directions, or a pair (minimum, maximum), in N m or N. None means no limit.
        axis: index of the joint coordinate.
        label: unique name. The signals are ``force.<label>.command`` (after the delay) and ``force.<label>.force``.
        delay: delay (s) between a command and its effect, rounded to whole steps.
        max_delay: maximum delay (s), by default ``delay``. For a different delay in each world, write the signal
            ``force.<label>.delay``.

    Returns:
        The index of the actuator.

    Raises:
        ModelError: the limits are swapped or exclude zero, the joint or coordinate is unknown, or the delay is negative
            or above ``max_delay``.
    """
    element = self.element("actuator", label, "joint_force")
    params = {"joint": self.check_joint(element, "joint", joint, axis), "axis": axis}
    params |= checked_limits(element, limit) | checked_delay(element, delay, max_delay)
    return self.add_actuator("joint_force", label, params)


@builder_method
def add_tracking_servo(
    self: ModelBuilder,
    joint: int,
    stiffness: float,
    damping: float,
    limit: float | tuple[float, float] | None = None,
    target: float = 0.0,
    axis: int = 0,
    label: str | None = None,
    delay: float = 0.0,
    max_delay: float | None = None,
) -> int:
    """Add a servo on a joint coordinate, with target position, target velocity and feed-forward effort.

    The command ``sim.control[label]`` is the target position (rad or m). Two more commands are initially zero:
    ``<label>.velocity`` (target velocity, rad/s or m/s) and ``<label>.effort`` (feed-forward effort, N m or N).

    Args:
        joint: joint index.
        stiffness: position gain (N m/rad or N/m).
        damping: velocity gain (N m s/rad or N s/m).
        limit: maximum total effort in both directions, or a pair (minimum, maximum), in N m or N. With None, the effort
            is unlimited.
        target: initial target position.
        axis: index of the joint coordinate.
        label: unique name. The signals are ``servo.<label>.target`` (after the delay) and ``servo.<label>.force``.
        delay: delay (s) between a command and its effect, rounded to whole steps.
        max_delay: maximum delay (s), by default ``delay``. For a different delay in each world, write the signal
            ``servo.<label>.delay``.

    Returns:
        The index of the actuator.

    Raises:
        ModelError: a gain is negative, the limits are swapped or exclude zero, the joint or coordinate is unknown, or
            the delay is negative or above ``max_delay``.
    """
    element = self.element("actuator", label, "tracking_servo")
    params: dict[str, Any] = {
        "joint": self.check_joint(element, "joint", joint, axis),
        "axis": axis,
        "stiffness": validate.not_negative(element, "stiffness", stiffness),
        "damping": validate.not_negative(element, "damping", damping),
        "first_target": validate.number(element, "target", target),
    }
    params |= checked_limits(element, limit) | checked_delay(element, delay, max_delay)
    return self.add_actuator("tracking_servo", label, params)
