"""Prescribed motion: a joint coordinate follows a path x(t), with unlimited force.

Commands describe the path at the start of a step: position x, velocity v and acceleration a. The jerk j is the change
of a since the last step, divided by the step size. Consider a substep from s to s + h after the start of the step. In
this substep, the coordinate q moves at the rate u*. u* is the mean rate of the path, plus a rate that corrects the
position error over the remaining n substeps:

    u* = v + a (s + h/2) + j (s^2 + s h + h^2/3)/2 + (x + v s + a s^2/2 + j s^3/6 - q)/(n h)

The actuator applies the impulse D (u* - u) in each substep. D is much larger than the inertia of all bodies, so the
solved velocity u is almost u*.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.actuator_kinds import (
    Group,
    JointActuator,
    Parameter,
    Reading,
    StateReader,
    StateVariable,
    StepBuffers,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import DISTANCE, ROTATION, TOTAL_ROTATION, TRANSLATION, joint_type
from gpusim.description.specs import ActuatorSpec, BodySpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array

STIFFNESS = 1e7
"""Gain D of the impulse D (u* - u), divided by the total mass or inertia of all bodies."""
SMOOTH_RATE, SMOOTH_WAY = 0.05, 0.02
"""Maximum velocity error / (j dt^2), and maximum position error / (j dt^3), on a path with the jerk j."""
JUMP_SPEED = 20.0
"""If a step needs a higher speed to reach the path, the path has a jump (m/s or rad/s)."""
_SPEEDS = {"velocity": 1.0, "acceleration": 10.0}
"""Maximum velocity (m/s or rad/s) and acceleration (m/s2 or rad/s2) in control panels."""


def read_target(group: Group, now: StateReader) -> Array:
    """Return the commanded position (m or rad)."""
    return now.control[:, group.control["position"]]


@register
class PrescribedMotion(JointActuator):
    """Prescribed motion of a joint coordinate along a commanded path."""

    name: ClassVar[str] = "motion"
    prefix: ClassVar[str] = "motion"
    rotational: ClassVar[bool] = True
    kernel_file: ClassVar[str] = "prescribed_motion.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate", "advance")
    jumps_from: ClassVar[float] = JUMP_SPEED
    commands: ClassVar[tuple[str, ...]] = ("position", "velocity", "acceleration")
    needs: ClassVar[tuple[str, ...]] = ("position", "rotational")
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("slope", "kg m2", "D of the row", signal=False, computed=True),
    )
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable("force", "N m", "mean force in the last step"),
        StateVariable("jerk", "rad/s3", "change of the commanded acceleration since the last step, per time"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading("target", "rad", "commanded position", read_target, "*out = w.motion_position_now(i);"),
        Reading(
            "force", "N m", "mean force of the motion in the last step",
            lambda group, now: np.asarray(group.state["force"]), "*out = w.motion_force(i);",
        ),
    )  # fmt: skip

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return the initial position, and zero for velocity and acceleration."""
        return float(spec.params["position"]) if name == "position" else 0.0

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of a command.

        The safe position is the current position. The safe velocity and the safe acceleration are 0.
        """
        joint, axis = int(spec.params["joint"]), int(spec.params["axis"])
        unit = joint_type(model.joints[joint].kind).unit_of(model.joints[joint], axis)
        if name != "position":
            speed, per = _SPEEDS[name], "s" if name == "velocity" else "s2"
            return UiHints(-speed, speed, unit=f"{unit}/{per}", limited=False)
        value, measured = self.default_command(spec, name), (f"joint.{model.joints[joint].label}.position", axis)
        ends = value - math.pi, value + math.pi
        return UiHints(*ends, safe=None, unit=unit, springs=False, measured=measured, limited=False)

    def completed(self, spec: ActuatorSpec, bodies: list[BodySpec]) -> ActuatorSpec:
        """Return the actuator with the gain D, computed from the masses or inertias of all bodies."""
        mass = sum(body.mass for body in bodies if not body.kinematic)
        positions = np.array([body.xform.position for body in bodies]).reshape(-1, 3)
        size = float(np.linalg.norm(np.ptp(positions, axis=0))) if len(positions) else 0.0
        inertia = sum(float(np.trace(body.inertia)) for body in bodies if not body.kinematic) + mass * size * size
        resistance = inertia if spec.params["rotational"] else mass
        return replace(spec, params=spec.params | {"slope": STIFFNESS * resistance})

    def _jerk(self, group: Group, work: Any) -> Array:
        """Return the jerk j (m/s3 or rad/s3), computed in the first substep of a step."""
        x, v, a = (work.control[:, group.control[name]] for name in self.commands)
        before = work.state.arrays["command_before"]
        x0, v0, a0 = (before[:, group.control[name]] for name in self.commands)
        dt = work.config.substeps * work.h
        change = dt * np.abs(a - a0)
        smooth = np.abs(v - v0 - 0.5 * dt * (a + a0)) <= SMOOTH_RATE * change
        smooth &= np.abs(x - x0 - dt * (v0 + dt * (2.0 * a0 + a) / 6.0)) <= SMOOTH_WAY * dt * change
        return np.where(smooth, (a - a0) / dt, 0.0)

    def _rate(self, group: Group, work: Any) -> Array:
        """Return the rate u* of the coordinate in this substep (m/s or rad/s)."""
        x, v, a = (work.control[:, group.control[name]] for name in self.commands)
        count, state = work.config.substeps, work.state.arrays
        done = state["sensed_substeps"][:, None]
        done = np.where(done >= count, 0, done)
        j = np.where(done == 0, self._jerk(group, work), group.state["jerk"])
        if work.trial:
            # A trial step before new commands arrive extrapolates the path.
            stale = [work.command_before(group, name) == work.command_now(group, name) for name in self.commands]
            stale = np.all(stale, axis=0) & (state["step_before"] > 0.0)[:, None]
            dt, j = np.where(stale, count * work.h, 0.0), np.where(stale, group.state["jerk"], j)
            x, v, a = x + dt * (v + dt * (0.5 * a + dt * j / 6.0)), v + dt * (a + 0.5 * dt * j), a + dt * j
        h, s = work.h, work.h * done
        gap = x + s * (v + s * (0.5 * a + s * j / 6.0)) - work.axis_position[:, group.axis]
        mean = v + a * (s + 0.5 * h) + 0.5 * j * (s * s + s * h + h * h / 3.0)
        return np.asarray(mean + gap / (h * (count - done)))

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add the impulse D (u* - u), which enforces the rate u*."""
        if velocity is None:
            slope = work.broadcast(group.params["slope"])
            work.add_law(group, slope * self._rate(group, work), slope)

    def advance(self, group: Group, work: Any) -> None:
        """Add the impulse of this substep to the mean force over the step."""
        state, kick, at = work.state.arrays, work.kick_time.astype(float), group.axis
        rate, slope = work.rate_next[:, at].astype(float), work.broadcast(group.params["slope"])
        total, slopes = (part[:, at].astype(float) for part in work.law.total(work.mode))
        others = (total - slope * self._rate(group, work)) - (slopes - slope) * rate
        row = work.solved.reshape(work.num_worlds, -1)[:, work.topology.axis_row[at]].astype(float)
        force = (row - others) / kick
        done, before = state["sensed_substeps"][:, None], group.state["force"]
        weight = kick / (state["sensed_time"][:, None] + kick)
        begins = (done == 0) | (done >= work.config.substeps)
        group.state["force"] = np.where(begins, force, before + weight * (force - before))
        group.state["jerk"] = np.where(begins, self._jerk(group, work), group.state["jerk"])

    def jump(self, group: Group, work: Any) -> Array:
        """Return the jump of the path (m or rad) at the start of a step, or 0 if the jump speed is below JUMP_SPEED."""
        done, count = work.state.arrays["sensed_substeps"][:, None], work.config.substeps
        distance = np.abs(work.control[:, group.control["position"]] - work.axis_position[:, group.axis])
        begins = (done == 0) | (done >= count)
        return np.where(begins & (distance > JUMP_SPEED * work.h * count), distance, 0.0)


@builder_method
def add_motion(self: ModelBuilder, joint: int, axis: int = 0, position: float = 0.0, label: str | None = None) -> int:
    """Add a prescribed motion: a joint coordinate follows a path x(t), with unlimited force.

    The command ``sim.control[label]`` is the position x at the start of the step (m or rad). The commands
    ``<label>.velocity`` and ``<label>.acceleration`` are the velocity and the acceleration at this time. Write all
    three commands before each step. Alternatively, use a diagram with the block ``trajectory``, or
    ``gpusim.command_schedule.follow_paths``. Errors are of second order in dt. If the path jumps (faster than 20 m/s or
    rad/s), the coordinate follows in one step, with unlimited force. The simulation warns about the first jump.

    Args:
        joint: joint index. On a prismatic joint to the world, the child moves like a kinematic body, but with correct
            sensor values.
        axis: index of the joint coordinate.
        position: initial position, equal to the initial joint coordinate.
        label: unique name. The signal ``motion.<label>.target`` is the commanded position. ``motion.<label>.force`` is
            the mean force or torque of the motion over the last step (N or N m).

    Returns:
        The index of the actuator.

    Raises:
        ModelError: the coordinate is part of a rotation vector, or already has a motion.
    """
    element = self.element("actuator", label, "motion")
    checked = self.check_joint(element, "joint", joint, axis)
    spec = self.joints[checked]
    kind = joint_type(spec.kind).kinds(spec)[axis]
    if kind in (ROTATION, TOTAL_ROTATION):
        raise validate.fail(
            element,
            f"moves coordinate {axis} of {spec.element}, a component of a rotation vector",
            "use add_joint_d6 with separate rotations",
        )
    for other in self.actuators:
        if other.kind == "motion" and (other.params["joint"], other.params["axis"]) == (checked, axis):
            raise validate.fail(
                element,
                f"moves coordinate {axis} of {spec.element}, which {other.element} already moves",
                "remove one of the two motions",
            )
    params: dict[str, Any] = {
        "joint": checked,
        "axis": axis,
        "position": validate.number(element, "position", position),
        "rotational": kind not in (TRANSLATION, DISTANCE),
    }
    return self.add_actuator("motion", label, params)
