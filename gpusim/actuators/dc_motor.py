"""DC motor with gearbox on a joint coordinate.

    T_e tau' + tau = M_s (u - w/w_idle),   I_m w' = tau - (load torque)/r,   I_m = M_s t_m/w_idle

tau is the rotor torque. u is the command. w is the rotor speed, which is r times the joint velocity. M_s is the stall
torque, and w_idle is the no-load speed. t_m is the mechanical time constant, and T_e is the electrical time constant. r
is the gear ratio. The constraint row of the joint coordinate includes the inertia and the torque of the rotor. The
integration is implicit in torque and speed, because an explicit scheme is unstable for steps above 2 t_m. The torque
tau_n after a step of h_prev seconds is the solution of

    T_e (tau_n - tau_(n-1)) = h_prev [theta (s_n - tau_n) + (1 - theta)(s_(n-1) - tau_(n-1))],
    s = M_s (u - w/w_idle)

The weight theta makes tau exact for a constant s. The kick is the velocity update from t_n - h_prev/2 to t_n + h/2. A
command change at t_n affects only the second half of the kick.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from gpusim import validate
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
    StateVariable,
    StepBuffers,
    fitted_weight,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array


def read_command(group: Group, now: StateReader) -> Array:
    """Return the armature voltage divided by the maximum voltage."""
    return now.control[:, group.control["command"]]


def read_speed(group: Group, now: StateReader) -> Array:
    """Return the rotor speed (rad/s)."""
    speed: Array = group.params["gear_ratio"] * now.axis_rate(group.axis)
    return speed


_SPEED = "w.motor_gear_ratio(i) * axis_rate(w, w.motor_axis()[i])"
_TORQUE = f"""const double interval = *w.step_before(), electric = w.motor_electrical_time_constant(i);
        const double command = w.semi_implicit() ? w.motor_command_now(i) : w.motor_command_before(i);
        double gain = 1.0, carried = 0.0;
        if (electric > 0.0) {{
            const double theta = fitted_weight(interval / electric), divisor = electric + interval * theta;
            const double torque = w.motor_torque(i), drive = w.motor_drive(i);
            carried = (electric * torque + interval * (1.0 - theta) * (drive - torque)) / divisor;
            gain = interval * theta / divisor;
        }}
        *out = carried + gain * (w.motor_stall_torque(i) * (command - {_SPEED} / w.motor_no_load_speed(i)));"""


def read_torque(group: Group, now: StateReader) -> Array:
    """Return the torque on the rotor at time t (N m)."""
    p, interval = group.params, now.state["step_before"][:, None]
    command = read_command(group, now) if now.semi_implicit else now.command_before(group, "command")
    gain, free_torque = _electric_step(
        p["electrical_time_constant"], interval, group.state["torque"], group.state["drive"]
    )
    drive = p["stall_torque"] * (command - read_speed(group, now) / p["no_load_speed"])
    return np.asarray(free_torque + gain * drive)


def _electric_step(electric: Array, interval: Array, torque: Array, drive: Array) -> tuple[Array, Array]:
    """Return ``gain`` and ``free_torque`` for the rotor torque after ``interval`` s: ``free_torque + gain * drive``."""
    no_lag = electric <= 0.0
    safe = np.where(no_lag, 1.0, electric)
    theta = fitted_weight(interval / safe)
    divisor = safe + interval * theta
    free_torque = (safe * torque + interval * (1.0 - theta) * (drive - torque)) / divisor
    return np.where(no_lag, 1.0, interval * theta / divisor), np.where(no_lag, 0.0, free_torque)


def _solved(group: Group, work: StepBuffers) -> tuple[Array, Array]:
    """Return the rotor speed after the solve, and the torque at this speed."""
    constant, slope, _, _ = work.scratch["motor.law"]
    speed = group.params["gear_ratio"] * work.rate_next[:, group.axis]
    return speed, constant - slope * speed


@register
class DcMotor(JointActuator):
    """DC motor on a joint coordinate, with rotor inertia and rotor torque."""

    name: ClassVar[str] = "motor"
    kernel_file: ClassVar[str] = "dc_motor.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate", "advance")
    kernel_scratch: ClassVar[tuple[str, ...]] = ("constant", "slope", "known_speed")
    prefix: ClassVar[str] = "motor"
    picture: ClassVar[str | None] = "motor_can"
    commands: ClassVar[tuple[str, ...]] = ("command",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("stall_torque", "N m", "stall torque M_s of the rotor at u = 1"),
        Parameter("no_load_speed", "rad/s", "no-load speed w_idle of the rotor at u = 1"),
        Parameter("mechanical_time_constant", "s", "time constant t_m of the rotor alone"),
        Parameter("electrical_time_constant", "s", "time constant T_e of the winding"),
        Parameter("gear_ratio", "-", "gear ratio r: rotor angle per joint angle"),
    )
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable("torque", "N m", "tau at t_n"),
        StateVariable("drive", "N m", "s = M_s (u - w/w_idle) at t_n"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading(
            "command", "-", "fraction of the maximum voltage, -1 to 1", read_command, "*out = w.motor_command_now(i);",
            lambda p: (-1.0, 1.0),
        ),
        Reading("speed", "rad/s", "rotor speed", read_speed, f"*out = {_SPEED};"),
        Reading("torque", "N m", "torque on the rotor", read_torque, _TORQUE),
    )  # fmt: skip

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the voltage command, -1 to 1. Safe value: 0."""
        return UiHints(lower=-1.0, upper=1.0, safe=0.0)

    def check(self, group: Group) -> None:
        """Raise ModelError if a datasheet value or the gear ratio is out of range."""
        positive = ("stall_torque", "no_load_speed", "mechanical_time_constant")
        group.check_signs(positive, not_negative=("electrical_time_constant",))
        if np.any(group.params["gear_ratio"] == 0.0):
            raise validate.fail(group.specs[0].element, "gear_ratio is zero", "write a ratio that is not zero")

    def inertia(self, group: Group) -> Array | None:
        """Return the inertia of the rotor at the joint, r^2 I_m."""
        p = group.params
        rotor = p["stall_torque"] * p["mechanical_time_constant"] / p["no_load_speed"]
        return np.asarray(p["gear_ratio"] ** 2 * rotor)

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add the linear impulse-velocity law of the motor."""
        if velocity is not None:
            return
        p, kick = group.params, work.kick_time
        ratio, stall, idle = p["gear_ratio"], p["stall_torque"], p["no_load_speed"]
        electric = p["electrical_time_constant"]
        before, after = work.command_before(group, "command"), work.command_now(group, "command")
        second_order = work.scheme == "second_order"
        # fraction of the kick after t_n, 1 for the semi-implicit scheme
        fraction_after = work.h / (2.0 * kick) if second_order else np.ones_like(work.h_prev)
        interval = work.h_prev if second_order else np.full_like(work.h_prev, work.h)
        no_lag = electric <= 0.0
        safe_electric = np.where(no_lag, 1.0, electric)
        gain, free_torque = _electric_step(electric, interval, group.state["torque"], group.state["drive"])
        z = np.where(no_lag, np.inf, 0.5 * work.h / safe_electric)
        jump = fraction_after * np.where(no_lag, 1.0, 1.0 + np.expm1(-z) / np.where(no_lag, 1.0, z))
        if not second_order:
            before, jump = after, np.zeros_like(jump)

        weights = (NEXT, LAST, BEFORE_LAST) if second_order else (1.0, 0.0, 0.0)
        last, before_last = ratio * work.rate[:, group.axis], ratio * work.rate_old[:, group.axis]
        known_speed = weights[1] * last + weights[2] * before_last
        slope = gain * stall / idle * weights[0]
        constant = free_torque + gain * stall * (before - known_speed / idle)
        extra = jump * stall * (after - before)
        inertia = stall * p["mechanical_time_constant"] / idle
        work.scratch["motor.law"] = np.stack(np.broadcast_arrays(constant, slope, known_speed, after))
        work.add_law(
            group,
            ratio * (kick * (constant + extra) + inertia * last),
            ratio * ratio * (kick * slope + inertia),
        )

    def advance(self, group: Group, work: StepBuffers) -> None:
        """Update the rotor torque and the drive torque s = M_s (u - w/w_idle) with the solved rotor speed."""
        p = group.params
        _, _, known_speed, after = work.scratch["motor.law"]
        speed, group.state["torque"] = _solved(group, work)
        weight = NEXT if work.scheme == "second_order" else 1.0
        speed_now = weight * speed + known_speed
        group.state["drive"] = p["stall_torque"] * (after - speed_now / p["no_load_speed"])


@builder_method
def add_dc_motor(
    self: ModelBuilder,
    joint: int,
    stall_torque: float,
    no_load_speed: float,
    mechanical_time_constant: float,
    electrical_time_constant: float = 0.0,
    gear_ratio: float = 1.0,
    axis: int = 0,
    label: str | None = None,
) -> int:
    """Add a DC motor with gearbox. ``sim.control[label]`` is the fraction of the maximum voltage, -1 to 1.

    Args:
        joint: joint index.
        stall_torque: stall torque M_s at the rotor (N m).
        no_load_speed: no-load speed w_idle of the rotor (rad/s). With infinity, the torque does not depend on the
            speed.
        mechanical_time_constant: time constant t_m of the rotor alone (s). The rotor inertia is M_s t_m/w_idle.
        electrical_time_constant: time constant T_e of the winding (s), 0 for no electrical lag.
        gear_ratio: gear ratio r: rotor angle per joint angle (rad/rad) or joint translation (rad/m).
        axis: index of the joint coordinate.
        label: unique name. The signals are ``motor.<label>.command``, ``.speed`` and ``.torque``.

    Returns:
        The index of the actuator.
    """
    element = self.element("actuator", label, "motor")
    ratio = validate.ratio(element, "gear_ratio", gear_ratio)
    params = {
        "joint": self.check_joint(element, "joint", joint, axis),
        "axis": axis,
        "stall_torque": validate.positive(element, "stall_torque", stall_torque),
        "no_load_speed": validate.positive(element, "no_load_speed", no_load_speed, infinite=True),
        "mechanical_time_constant": validate.positive(element, "mechanical_time_constant", mechanical_time_constant),
        "electrical_time_constant": validate.not_negative(
            element, "electrical_time_constant", electrical_time_constant
        ),
        "gear_ratio": ratio,
    }
    return self.add_actuator("motor", label, params)


@builder_method
def add_torque_motor(self: ModelBuilder, joint: int, torque: float, axis: int = 0, label: str | None = None) -> int:
    """Add an ideal motor without inertia or lag. Its torque does not depend on the speed.

    ``sim.control[label]`` is the fraction of the maximum torque, -1 to 1.

    Args:
        joint: joint index.
        torque: maximum torque on the coordinate (N m, or N on a translation).
        axis: index of the joint coordinate.
        label: unique name. The signals are ``motor.<label>.command``, ``.speed`` and ``.torque``.

    Returns:
        The index of the actuator.
    """
    validate.positive(self.element("actuator", label, "motor"), "torque", torque)
    return int(self.add_dc_motor(joint, torque, math.inf, 1.0, axis=axis, label=label))
