"""MuJoCo's muscle model: a Hill-type muscle without an elastic tendon.

l is the length, a is the activation and F0 is the peak force. The force along l is

    f = -F0 (a FL(L) FV(V) + FP(L)),   L = r0 + (l - l0)/L0,   V = l'/(L0 vmax),   L0 = (l1 - l0)/(r1 - r0)

(l0, l1) is ``length_range`` and (r0, r1) is ``operating_range``. FL, FV and FP are MuJoCo's active length, active
velocity and passive curves (mju_muscleGain and mju_muscleBias). The activation depends on the excitation u (Millard et
al. 2013):

    a' = (u - a)/tau,   tau = tau_act (0.5 + 1.5 a) where u > a,   tau_deact/(0.5 + 1.5 a) where u < a

With ``tausmooth``, the time constant changes smoothly near u = a. The fourth-order Runge-Kutta method integrates the
activation. The activation does not overshoot at any step size. The force is implicit in the velocity, and therefore
stable at any step size. The velocity update (kick) uses the mean of the passive force along the motion. This mean
conserves elastic energy.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import exact_math, validate
from gpusim.actuators.refitted_law import RefittedLaw
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
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array

Params = dict[str, Array]


def normalized_length(p: Params, length: Array) -> Array:
    """Return the normalized length L for a length (m)."""
    return np.asarray(p["range_lower"] + (length - p["length_lower"]) / optimum_length(p))


def optimum_length(p: Params) -> Array:
    """Return the optimum length L0 (m)."""
    return np.asarray((p["length_upper"] - p["length_lower"]) / (p["range_upper"] - p["range_lower"]))


def force_length(p: Params, length: Array) -> tuple[Array, Array]:
    """Return FL and dFL/dL at a normalized length L."""
    min_length, max_length = p["lmin"], p["lmax"]
    rise, fall = 0.5 * (1.0 - min_length), 0.5 * (max_length - 1.0)
    x = [(length - min_length) / rise, (1.0 - length) / rise, (length - 1.0) / fall, (max_length - length) / fall]
    segments = [
        length < min_length,
        length <= min_length + rise,
        length <= 1.0,
        length <= 1.0 + fall,
        length <= max_length,
    ]
    zero = np.zeros_like(x[0])
    curve = [zero, 0.5 * x[0] * x[0], 1.0 - 0.5 * x[1] * x[1], 1.0 - 0.5 * x[2] * x[2], 0.5 * x[3] * x[3]]
    slope = [zero, x[0] / rise, x[1] / rise, -x[2] / fall, -x[3] / fall]
    return np.select(segments, curve), np.select(segments, slope)


def force_velocity(p: Params, velocity: Array) -> tuple[Array, Array]:
    """Return FV and dFV/dV at a normalized velocity V (negative while the muscle shortens)."""
    max_force = p["fvmax"]
    end = max_force - 1.0
    safe, x, y = np.where(end > 0.0, end, 1.0), velocity + 1.0, end - velocity
    segments = [velocity <= -1.0, velocity <= 0.0, velocity <= end]
    zero = np.zeros_like(x)
    force = np.select(segments, [zero, x * x, max_force - y * y / safe], max_force)
    return force, np.select(segments, [zero, 2.0 * x, 2.0 * y / safe])


def passive_force(p: Params, start: Array, end: Array) -> tuple[Array, Array]:
    """Return the mean of FP between the lengths ``start`` and ``end``, and its derivative with respect to ``end``."""
    half = 0.5 * (p["lmax"] - 1.0)
    a, b = (start - 1.0) / half, (end - 1.0) / half
    distance = b - a
    moves, force, slope = distance != 0.0, np.zeros_like(distance), np.zeros_like(distance)
    for lower, upper, linear in ((0.0, 1.0, 0.0), (1.0, np.inf, 1.0)):
        x0, x2 = np.clip(a, lower, upper), np.clip(b, lower, upper)
        divisor, within = np.where(moves, distance, 1.0), (a >= lower) & (a < upper)
        fraction = np.where(moves, (x2 - x0) / divisor, within)
        first = np.where(moves, (x0 - a) / divisor, 0.0)
        # Simpson's rule is exact for quadratic functions.
        middle = 4.0, 0.5 * (x0 + x2), first + 0.5 * fraction
        for weight, x, s in ((1.0, x0, first), middle, (1.0, x2, first + fraction)):
            force = force + fraction / 6.0 * weight * (x - 0.5 if linear else 0.5 * x * x)
            slope = slope + fraction / 6.0 * weight * s * (1.0 if linear else x)
    return p["fpmax"] * force, p["fpmax"] * slope / half


def muscle_force(p: Params, length: Array, velocity: Array, activation: Array) -> Array:
    """Return the muscle force (N) at a length (m) and a rate (m/s). Pulling forces are negative."""
    at = normalized_length(p, length)
    speed = velocity / (optimum_length(p) * p["vmax"])
    active = activation * force_length(p, at)[0] * force_velocity(p, speed)[0]
    return np.asarray(-p["peak_force"] * (active + passive_force(p, at, at)[0]))


def activation_after(p: Params, excitation: Array, activation: Array, h: float) -> Array:
    """Return the activation after ``h`` seconds with constant excitation."""
    difference = activation - excitation

    def rate(z: Array | float) -> Array:
        return 1.0 / time_constant(p, excitation, excitation + difference * exact_math.exp(-np.asarray(z)))

    first = rate(0.0)
    second = rate(0.5 * h * first)
    third = rate(0.5 * h * second)
    mean = (first + 2.0 * second + 2.0 * third + rate(h * third)) / 6.0
    return np.asarray(excitation + difference * exact_math.exp(-h * mean))


def time_constant(p: Params, excitation: Array, activation: Array) -> Array:
    """Return the time constant tau of the activation (s)."""
    difference, factor, width = excitation - activation, 0.5 + 1.5 * activation, p["tausmooth"]
    rise, fall = p["tau_act"] * factor, p["tau_deact"] / factor
    x = np.clip(difference / np.where(width > 0.0, width, 1.0) + 0.5, 0.0, 1.0)
    blend = np.where(width > 0.0, x * x * x * (3.0 * x * (2.0 * x - 5.0) + 10.0), difference > 0.0)
    return np.asarray(fall + (rise - fall) * blend)


def read_excitation(group: Group, now: StateReader) -> Array:
    """Return the excitation of muscles, 0 to 1."""
    return now.control[:, group.control["excitation"]]


def read_length(group: Group, now: StateReader) -> Array:
    """Return the length of muscles (m)."""
    return np.asarray(group.params["gear"] * now.axis_value(group.axis))


def read_velocity(group: Group, now: StateReader) -> Array:
    """Return the rate of the muscle length (m/s)."""
    return np.asarray(group.params["gear"] * now.axis_rate(group.axis))


def read_force(group: Group, now: StateReader) -> Array:
    """Return the muscle force at time t (N)."""
    return muscle_force(group.params, read_length(group, now), read_velocity(group, now), group.state["activation"])


_LENGTH, _RATE = (f"w.muscle_gear(i) * axis_{what}(w, w.muscle_axis()[i])" for what in ("value", "rate"))


@register
class Muscle(JointActuator, RefittedLaw):
    """Muscle on a joint coordinate or a tendon."""

    name: ClassVar[str] = "muscle"
    extra: ClassVar[bool] = True
    kernel_file: ClassVar[str] = "muscle.cuh"
    kernel: ClassVar[tuple[str, ...]] = (*RefittedLaw.kernel, "advance")
    prefix: ClassVar[str] = "muscle"
    commands: ClassVar[tuple[str, ...]] = ("excitation",)
    needs: ClassVar[tuple[str, ...]] = ("first_activation",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("gear", "-", "length per coordinate (m/rad on a rotation)"),
        Parameter("peak_force", "N", "active force F0 at the optimum length and zero velocity"),
        Parameter("length_lower", "m", "minimum length l0"),
        Parameter("length_upper", "m", "maximum length l1"),
        Parameter("range_lower", "-", "minimum length divided by the optimum length, r0"),
        Parameter("range_upper", "-", "maximum length divided by the optimum length, r1"),
        Parameter("lmin", "-", "normalized length below which the active force is zero"),
        Parameter("lmax", "-", "normalized length above which the active force is zero"),
        Parameter("vmax", "1/s", "shortening speed at which the active force is zero, optimum lengths per second"),
        Parameter("fpmax", "-", "scale of the passive force, as a fraction of the peak force"),
        Parameter("fvmax", "-", "active force at fast lengthening, divided by the peak force"),
        Parameter("tau_act", "s", "time constant of a rising activation"),
        Parameter("tau_deact", "s", "time constant of a falling activation"),
        Parameter("tausmooth", "-", "width of the smooth change between the time constants; 0: abrupt"),
    )
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable("activation", "-", "a, 0 to 1", lambda params: params["first_activation"]),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading(
            "excitation", "-", "command, 0 to 1", read_excitation, "*out = w.muscle_excitation_now(i);",
            lambda p: (0.0, 1.0),
        ),
        Reading(
            "activation", "-", "activation, 0 to 1",
            lambda group, now: group.state["activation"], "*out = w.muscle_activation(i);", lambda p: (0.0, 1.0),
        ),
        Reading("length", "m", "gear times the coordinate", read_length, f"*out = {_LENGTH};"),
        Reading("velocity", "m/s", "rate of the length", read_velocity, f"*out = {_RATE};"),
        Reading(
            "force", "N", "force along the length, negative while the muscle pulls", read_force,
            f"*out = muscle_force(w, i, {_LENGTH}, {_RATE}, w.muscle_activation(i));",
        ),
    )  # fmt: skip

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the excitation, 0 to 1. Safe value: 0."""
        return UiHints(lower=0.0, upper=1.0, safe=0.0)

    def check(self, group: Group) -> None:
        """Raise ModelError if a parameter is out of range."""
        p, element = group.params, group.specs[0].element
        group.check_signs(positive=("vmax", "tau_act", "tau_deact"), not_negative=("peak_force", "fpmax", "tausmooth"))
        if np.any(p["gear"] == 0.0):
            raise validate.fail(element, "gear is zero", "write a number that is not zero")
        for name in ("length", "range"):
            if np.any(p[f"{name}_lower"] >= p[f"{name}_upper"]):
                rule = f"{name}_lower is not below {name}_upper"
                raise validate.fail(element, rule, f"write {name}_lower < {name}_upper")
        if np.any((p["lmin"] >= 1.0) | (p["lmax"] <= 1.0) | (p["fvmax"] < 1.0)):
            rule = "the curves need lmin < 1 < lmax and fvmax >= 1"
            raise validate.fail(element, rule, "write normalized lengths, such as lmin = 0.5 and lmax = 1.6")

    def kick_law(self, group: Group, work: StepBuffers, rate: Array) -> tuple[Array, Array]:
        """Return the impulse p for the new velocity u+ = ``rate``, and -dp/du+, (num_worlds, n) each."""
        p, kick = group.params, work.kick_time.astype(np.float64)
        gear, peak, unit = p["gear"], p["peak_force"], optimum_length(p)
        before, before_last = (r[:, group.axis].astype(np.float64) for r in (work.rate, work.rate_old))
        length = normalized_length(p, gear * work.axis_position[:, group.axis].astype(np.float64))
        active, rise = force_length(p, length)
        activation, per_rate = group.state["activation"].astype(np.float64), gear / (unit * p["vmax"])
        active_stiffness = gear * gear * peak / unit * activation * rise * force_velocity(p, per_rate * before)[0]
        spring, per_length = np.maximum(active_stiffness, 0.0), gear / unit
        if work.scheme == "semi_implicit":
            weight, known, ahead, behind = 1.0, np.zeros_like(before), work.h, np.zeros_like(kick)
            end = length + work.h * per_length * rate
            passive, passive_slope = passive_force(p, end, end)
            passive_slope = 2.0 * work.h * per_length * passive_slope
        else:
            weight, known = NEXT, LAST * before + BEFORE_LAST * before_last
            ahead, behind = 0.25 * work.h, 0.25 * work.h_prev.astype(np.float64)
            end = length + 0.5 * work.h * per_length * rate
            passive, passive_slope = passive_force(p, length - 2.0 * behind * per_length * before, end)
            passive_slope = 0.5 * work.h * per_length * passive_slope
        curve, drop = force_velocity(p, per_rate * (weight * rate + known))
        active = gear * peak * activation * active
        force = -(gear * peak * passive + active * curve) - spring * (ahead * rate - behind * before)
        return kick * force, kick * (active * drop * per_rate * weight + gear * peak * passive_slope + ahead * spring)

    def advance(self, group: Group, work: StepBuffers) -> None:
        """Integrate the activation over the substep with the current excitation."""
        excitation, before = work.command_now(group, "excitation"), group.state["activation"].astype(np.float64)
        group.state["activation"] = activation_after(group.params, excitation, before, work.h)


@builder_method
def add_muscle(
    self: ModelBuilder,
    joint: int,
    peak_force: float,
    length_range: tuple[float, float],
    gear: float = 1.0,
    operating_range: tuple[float, float] = (0.75, 1.05),
    timeconst: tuple[float, float] = (0.01, 0.04),
    tausmooth: float = 0.0,
    lmin: float = 0.5,
    lmax: float = 1.6,
    vmax: float = 1.5,
    fpmax: float = 1.3,
    fvmax: float = 1.2,
    activation: float = 0.0,
    axis: int = 0,
    label: str | None = None,
) -> int:
    """Add a muscle on a joint coordinate or a tendon, as in MuJoCo.

    The command ``sim.control[label]`` is the excitation, 0 to 1. The length of the muscle is gear times the coordinate.
    The muscle pulls towards decreasing length. For a muscle along a line between points, use a distance joint or a
    tendon.

    Args:
        joint: joint or tendon index.
        peak_force: active force at full activation, optimum length and zero velocity (N).
        length_range: (minimum, maximum) muscle length within the joint limits (m), like MuJoCo's ``lengthrange``.
        gear: change of muscle length per change of the coordinate. For a rotation, ``gear`` is the moment arm (m/rad).
            With a negative gear, the muscle pulls towards larger coordinates.
        operating_range: normalized lengths (length divided by optimum length) at the ends of ``length_range``.
        timeconst: time constants of activation and deactivation (s).
        tausmooth: width of the range of ``u - a`` (excitation minus activation) in which the time constant changes
            smoothly, or 0 for an abrupt change.
        lmin, lmax: normalized lengths between which the muscle has an active force, lmin < 1 < lmax.
        vmax: shortening speed at which the active force is zero (optimum lengths per second).
        fpmax: scale of the passive force, as a fraction of the peak force. The passive force is zero up to the optimum
            length. Midway between the optimum length and lmax, the passive force is ``fpmax``/2 times the peak force.
        fvmax: active force at fast lengthening, divided by the peak force, 1 or more.
        activation: initial activation, 0 to 1.
        axis: index of the joint coordinate.
        label: unique name. The signals are ``muscle.<label>.activation``, ``.force``, ``.length`` and ``.velocity``.

    Returns:
        The index of the actuator.

    Raises:
        ModelError: the joint or coordinate is unknown, or a number is out of range.
    """
    element = self.element("actuator", label, "muscle")
    params: dict[str, Any] = {"joint": self.check_joint(element, "joint", joint, axis), "axis": axis}
    params["gear"] = validate.ratio(element, "gear", gear)
    for name, key, ends in (("length_range", "length", length_range), ("operating_range", "range", operating_range)):
        lower, upper = (float(x) for x in validate.numbers(element, name, ends, 2))
        if not lower < upper:
            raise validate.fail(
                element, f"{name} = ({lower:g}, {upper:g}) is not increasing", "give (minimum, maximum)"
            )
        params |= {f"{key}_lower": lower, f"{key}_upper": upper}
    rise, fall = validate.numbers(element, "timeconst", timeconst, 2)
    for name, value in (("vmax", vmax), ("timeconst", rise), ("timeconst", fall)):
        validate.positive(element, name, value)
    params |= {"tau_act": float(rise), "tau_deact": float(fall), "vmax": float(vmax)}
    for name, value in (("peak_force", peak_force), ("fpmax", fpmax), ("tausmooth", tausmooth)):
        params[name] = validate.not_negative(element, name, value)
    for name, value in (("lmin", lmin), ("lmax", lmax), ("fvmax", fvmax)):
        params[name] = validate.number(element, name, value)
    if not (params["lmin"] < 1.0 < params["lmax"] and params["fvmax"] >= 1.0):
        rule = f"lmin = {lmin:g}, lmax = {lmax:g}, fvmax = {fvmax:g} break lmin < 1 < lmax or fvmax >= 1"
        raise validate.fail(element, rule, "give multiples of the optimum length and of the peak force")
    params["first_activation"] = validate.number(element, "activation", activation)
    if not 0.0 <= params["first_activation"] <= 1.0:
        raise validate.fail(element, f"activation = {activation:g} is not within 0 to 1", "give a fraction")
    return self.add_actuator("muscle", label, params)
