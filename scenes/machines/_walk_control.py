"""Control of the walking biped: balance, inverse kinematics, and feedforward efforts.

The error of the divergent component of motion (DCM, Hof 2008, Takenaka 2009) is

    e = (x - x_plan) + (v - v_plan)/w

The control shifts the desired zero-moment point (ZMP) by ``GAIN`` e. x and v are the position and velocity of the
pelvis, which approximates the center of mass. w is the natural frequency of the inverted pendulum. Feedforward joint
efforts balance the ground force on each foot and the weight of the legs. PD laws correct the remaining error.
"""

from __future__ import annotations

import math

import numpy as np

from gpusim import ModelBuilder
from gpusim.control import Diagram, chain, heavy_chain
from gpusim.scenes.machines._biped import (
    FOOT,
    LINKS,
    NAMES,
    PELVIS_MASS,
    SIDES,
    Posture,
    add_joint_control,
    drive_constants,
)
from gpusim.scenes.machines._walk_plan import GRAVITY, GRID, LEG, LIFT, Plan
from gpusim.typing import Array

GAIN = 3.0
"""Gain from the DCM error to the desired ZMP."""
KNOT = 0.05
"""Knot spacing of the plan's splines, s."""
MASS = PELVIS_MASS + sum(link.mass for link in LINKS)
ZMP_LIMITS = (FOOT[0] - 0.02, FOOT[1] - 0.01)
"""Maximum distance of the desired ZMP from the center of a sole, m."""
TILT_STIFFNESS, TILT_DAMPING = 1200.0, 60.0
"""Stiffness (N m/rad) and damping (N m s/rad) of the pelvis orientation."""
FILTER_TIME = 0.01
"""Filter time of the pelvis velocity, s."""
FOOT_GAIN = 0.5
"""Gain from the DCM error to the landing position of a foot."""
SHIFT_RATE = 0.1
"""Rate limit of the landing position, m/s."""
FREEZE_TIME = 0.15
"""During this time before the landing, the landing position of a foot is constant, s."""
CLEARANCE = 0.6 * LIFT
"""The control resets the flag for an early contact when the planned height of the rising foot exceeds this, m."""
TOUCH_FORCE, HEIGHT_RATE = 25.0, 0.5
"""Minimum force (N) that counts as ground contact of a swinging foot. Rate limit of the height correction (m/s)."""
LEVER, DAMPING = 0.3, 3e-3
"""Inverse kinematics: weight of rotation relative to translation (m/rad), and damping of least squares."""
MAX_ZMP_SHIFT = 0.12
"""Maximum distance of the desired ZMP from the planned ZMP, m."""
NO_FILTER = 1e-6
"""Filter time of derivatives, s."""


def walk_control(b: ModelBuilder, plan: Plan, posture: Posture) -> Diagram:
    """Return the control diagram for a plan that starts at time 0."""
    d = Diagram("robot")
    _add_plan(d, plan)
    frequency = math.sqrt(GRAVITY / plan.height)
    _add_error(d, frequency)
    _add_tilt(d)
    _add_zmp(d, frequency)
    _add_frames(d)
    _add_wrench(d)
    _add_soles(d)
    for side, _ in SIDES:
        _add_landing(d, side)
        _add_contact(d, side)
        _add_leg(d, b, posture, side)
    _add_joints(d, posture)
    return d


def _formula(d: Diagram, name: str, text: str, unit: str = "-", **inputs: str) -> None:
    """Add an expression block with the formula ``text``."""
    block = d.add("expression", name, text=text, unit=unit)
    block.wire(*(inputs.get(port, port) for port in d.ports(name)[0]))


def _pack(d: Diagram, name: str, *sources: str | float) -> None:
    d.add("mux", name, count=len(sources)).wire(*sources)


def _part(d: Diagram, name: str, source: str, index: int | list[int]) -> None:
    d.connect(source, d.add("select_element", name, index=index))


def _add_plan(d: Diagram, plan: Plan) -> None:
    """Add splines of pelvis, center of mass and feet, and tables of ZMP and foot support."""
    stride = round(KNOT / GRID)
    last = (len(plan.time) - 1) // stride * stride
    knots = slice(0, last + 1, stride)
    curves = {"body": np.column_stack([plan.pelvis, plan.com[:, :2]]), "l_way": plan.feet["l"], "r_way": plan.feet["r"]}
    for name, values in curves.items():
        d.add("trajectory", name, times=plan.time[knots].tolist(), points=values[knots].tolist())
    _part(d, "place", "body.out", [0, 1, 2])
    _part(d, "yaw", "body.out", 3)
    _part(d, "com", "body.out", [4, 5])
    _part(d, "pace", "body.velocity", [0, 1])
    bends = _bends(plan.zmp)
    for k, axis in enumerate("xy"):
        values = plan.zmp[bends, k].tolist()
        d.add("sequence", f"zmp_{axis}", times=plan.time[bends].tolist(), values=values, interpolate=True, unit="m")
    _pack(d, "zmp", "zmp_x", "zmp_y")
    for side, _ in SIDES:
        supports = plan.supports[side]
        at = [0, *(np.flatnonzero(np.diff(supports)) + 1).tolist()]
        d.add("sequence", f"{side}_bears", times=plan.time[at].tolist(), values=supports[at].tolist())
        swings = [(s.begins, s.ends - FREEZE_TIME) for s in plan.steps if s.side == side]
        times = [0.0, *(t for swing in swings for t in swing)]
        d.add("sequence", f"{side}_free", times=times, values=[0.0, *[1.0, 0.0] * len(swings)])


def _bends(lines: Array) -> list[int]:
    """Return the indices of a polyline's ends and bends."""
    bent = np.abs(np.diff(lines, 2, axis=0)).max(axis=-1) > 1e-9
    return [0, *(np.flatnonzero(bent) + 1).tolist(), len(lines) - 1]


def _add_error(d: Diagram, frequency: float) -> None:
    """Add the position error of the pelvis and the DCM error."""
    for name in ("position", "orientation", "linear_velocity"):
        d.add("signal", name, signal=f"body.pelvis.{name}")
    d.add("sum", "apart_by", signs="+-").wire("position", "place")
    _part(d, "miss", "apart_by", [0, 1])
    _part(d, "high_by", "apart_by", 2)
    _part(d, "speed", "linear_velocity", [0, 1])
    d.add("sum", "haste", signs="+-").wire("speed", "pace")
    d.connect("haste", d.add("lowpass", "drift", time=FILTER_TIME))
    _formula(d, "divergent", f"miss + drift / {frequency!r}", "m")
    # shifts a foot relative to the pelvis, so that the foot lands at the planned position or beyond
    _formula(d, "astray_flat", f"miss - {FOOT_GAIN!r} * divergent", "m")
    _pack(d, "astray", "astray_flat", "high_by")


def _add_tilt(d: Diagram) -> None:
    """Add the orientation error of the pelvis and the moments that correct this error."""
    d.add("signal", "turning", signal="site.imu.angular_rate")
    for k, axis in enumerate("xyzw"):
        _part(d, f"q{axis}", "orientation", k)
    twice = "2 * (1 if qw >= 0 else -1)"
    _formula(d, "roll", f"{twice} * (cos(0.5 * yaw) * qx + sin(0.5 * yaw) * qy)", "rad")
    _formula(d, "pitch", f"{twice} * (cos(0.5 * yaw) * qy - sin(0.5 * yaw) * qx)", "rad")
    _formula(d, "veer", f"{twice} * (cos(0.5 * yaw) * qz - sin(0.5 * yaw) * qw)", "rad")
    _pack(d, "lean", "veer", "roll", "pitch")
    _part(d, "turns", "turning", [2, 0, 1])
    _formula(d, "righting", f"{TILT_STIFFNESS!r} * lean + {TILT_DAMPING!r} * turns", "N m")


def _add_zmp(d: Diagram, frequency: float) -> None:
    """Add the desired ZMP and the ground force."""
    _formula(d, "pressed", f"zmp + max(-{MAX_ZMP_SHIFT!r}, min({MAX_ZMP_SHIFT!r}, {GAIN!r} * divergent))", "m")
    _formula(d, "push", f"{MASS * frequency**2!r} * (com + miss - pressed)", "N")
    _pack(d, "force", "push", MASS * GRAVITY)
    _pack(d, "spot", "pressed", 0.0)


def _add_frames(d: Diagram) -> None:
    """Convert the desired ZMP, the ground force and the sole positions to an upright frame at the pelvis."""
    d.add("constant", "flat", value=[0.0, 0.0])
    _formula(d, "yaw_sin", "sin(0.5 * yaw)")
    _formula(d, "yaw_cos", "cos(0.5 * yaw)")
    _pack(d, "facing", "flat", "yaw_sin", "yaw_cos")
    d.add("to_frame", "near").wire("spot", "position", "facing")
    d.add("to_frame", "borne", vector=True).wire("force", "position", "facing")
    _part(d, "near_spot", "near", [0, 1])
    for side, _ in SIDES:
        _part(d, f"{side}_place", f"{side}_way.out", [0, 1, 2])
        _part(d, f"{side}_high", f"{side}_way.out", 2)
        _part(d, f"{side}_yaw", f"{side}_way.out", 3)
        _part(d, f"{side}_sinks", f"{side}_way.velocity", 2)
        d.add("to_frame", f"{side}_is").wire(f"signal:site.{side}_sole.position", "position", "facing")
        _part(d, f"{side}_spot", f"{side}_is", [0, 1])


def _add_wrench(d: Diagram) -> None:
    """Add the ground reaction wrench about the center of the supporting soles, and each sole's share of the wrench."""
    d.add("sum", "apart", signs="+-").wire("l_spot", "r_spot")
    d.add("sum", "over", signs="+-").wire("near_spot", "r_spot")
    for name, a in (("along", "over"), ("square", "apart")):
        d.add("dot", name).wire(a, "apart")
    both = "max(0, min(1, along / square))"
    _formula(d, "l_share", f"l * (1 - r + r * {both})", l="l_bears", r="r_bears")
    _formula(d, "r_share", f"r * (1 - l + l * (1 - {both}))", l="l_bears", r="r_bears")
    _formula(d, "aside", "near_spot - l_share * l_spot - r_share * r_spot", "m")
    for k, axis in enumerate("xyz"):
        _part(d, f"f{axis}", "borne", k)
    for k, axis in enumerate("xy"):
        _part(d, f"a{axis}", "aside", k)
        d.connect(f"a{axis}", d.add("limiter", f"d{axis}", lower=-ZMP_LIMITS[k], upper=ZMP_LIMITS[k]))
    _formula(d, "mx", "dy * fz", "N m")
    _formula(d, "my", "-dx * fz", "N m")
    _formula(d, "mz", "dx * fy - dy * fx", "N m")
    _pack(d, "wrench", "borne", "mx", "my", "mz")


def _add_landing(d: Diagram, side: str) -> None:
    """Add the target position of a foot: the planned position plus the robot's position error and DCM error."""
    other = "r" if side == "l" else "l"
    d.add("delay", f"{side}_last", samples=1)
    text = "astray if free else (0 if bears and not other else last)"
    wires = {"free": f"{side}_free", "bears": f"{side}_bears", "other": f"{other}_bears", "last": f"{side}_last"}
    _formula(d, f"{side}_wish", text, "m", **wires)
    d.connect(f"{side}_wish", d.add("rate_limiter", f"{side}_shift", rise=SHIFT_RATE))
    d.connect(f"{side}_shift", f"{side}_last")
    d.add("sum", f"{side}_aim", signs="+-").wire(f"{side}_place", f"{side}_shift")


def _add_contact(d: Diagram, side: str) -> None:
    """Detect an early ground contact."""
    wires = {"bears": f"{side}_bears", "v": f"{side}_sinks", "high": f"{side}_high", "load": f"{side}_bearing"}
    _formula(d, f"{side}_early", f"not bears and v < 0 and load > {TOUCH_FORCE!r}", **wires)
    _formula(d, f"{side}_gone", f"not bears and v > 0 and high > {CLEARANCE!r}", **wires)
    _formula(d, f"{side}_lands", "not bears and v < 0", **wires)
    d.add("sr_latch", f"{side}_met").wire(f"{side}_early", f"{side}_gone")
    _formula(d, f"{side}_flies", "not met", met=f"{side}_met")
    d.add("sample_hold", f"{side}_where").wire(f"{side}_high", f"{side}_flies")
    _formula(d, f"{side}_over", "(where - high) * met", "m", where=f"{side}_where", met=f"{side}_met", **wires)
    d.add("sample_hold", f"{side}_held").wire(f"{side}_over", f"{side}_lands")
    d.add("product", f"{side}_higher").wire(f"{side}_held", f"{side}_met")
    d.connect(f"{side}_higher", d.add("rate_limiter", f"{side}_stays", rise=HEIGHT_RATE))
    _pack(d, f"{side}_raised", "flat", f"{side}_stays")
    d.add("sum", f"{side}_target").wire(f"{side}_aim", f"{side}_raised")


def _add_leg(d: Diagram, b: ModelBuilder, posture: Posture, side: str) -> None:
    """Add the planned angles of a leg, and the efforts for the leg's weight and for the ground force on its foot."""
    joints = [f"{side}_{name}" for name in LEG]
    start = [posture[joint] for joint in joints]
    d.add("to_frame", f"{side}_near").wire(f"{side}_target", "place", "facing")
    for function in ("sin", "cos"):
        _formula(d, f"{side}_{function}", f"{function}(0.5 * (foot - yaw))", foot=f"{side}_yaw")
    _pack(d, f"{side}_facing", "flat", f"{side}_sin", f"{side}_cos")
    d.add("constant", f"{side}_posture", value=start)
    ik = d.add("ik", f"{side}_ik", start=start, lever=LEVER, damping=DAMPING, **chain(b, "pelvis", f"{side}_sole"))
    ik.wire(target=f"{side}_near", orientation=f"{side}_facing", posture=f"{side}_posture")
    load = d.add("inverse_dynamics", f"{side}_load", **heavy_chain(b, "pelvis", f"{side}_sole"))
    load.wire(f"{side}_ik.out", wrench=d.add("product", f"{side}_wrench").wire("wrench", f"{side}_share"))
    # The axes z, x and y of the hip joints are approximately the axes of the pelvis' lean.
    d.add("product", f"{side}_righting").wire("righting", f"{side}_share")
    d.add("constant", f"{side}_below", value=[0.0] * 3, unit="N m")
    _pack(d, f"{side}_hips", f"{side}_righting", f"{side}_below")
    d.connect(f"{side}_ik.out", d.add("derivative", f"{side}_rate", time=NO_FILTER))
    constants = dict(zip(NAMES, drive_constants()["kd"], strict=True))
    d.add("constant", f"{side}_kd", value=[constants[joint] for joint in joints])
    wires = {port: f"{side}_{port}" for port in ("load", "hips", "kd", "rate")}
    _formula(d, f"{side}_effort", "load + hips + kd * rate", "N m", **wires)


def _add_joints(d: Diagram, posture: Posture) -> None:
    """Collect the angles and efforts of all joints in joint order, and add the joint control."""
    for name, joints in {"upper": NAMES[:2], "l_arm": NAMES[8:14], "r_arm": NAMES[20:26]}.items():
        d.add("constant", name, value=[posture.get(joint, 0.0) for joint in joints])
        d.add("constant", f"{name}_effort", value=[0.0] * len(joints))
    _pack(d, "wanted", "upper", "l_ik.out", "l_arm", "r_ik.out", "r_arm")
    _pack(d, "efforts", "upper_effort", "l_effort", "l_arm_effort", "r_effort", "r_arm_effort")
    add_joint_control(d, "wanted", "efforts")
    _formula(d, "load", "abs(kp * (wanted - q) - kd * rate + effort) / stall", effort="efforts")


def _add_soles(d: Diagram) -> None:
    """Add the sole forces, and the distance from the center of pressure to the edge of the more loaded sole."""
    for side, _ in SIDES:
        d.add("signal", f"{side}_ground", signal=f"sensor.{side}_foot.force")
        _part(d, f"{side}_bearing", f"{side}_ground", 2)
        site = f"signal:site.{side}_sole."
        pressure = f"signal:sensor.{side}_foot.center_of_pressure"
        d.add("to_frame", f"{side}_pressed").wire(pressure, f"{site}position", f"{site}orientation")
        _part(d, f"{side}_x", f"{side}_pressed", 0)
        _part(d, f"{side}_y", f"{side}_pressed", 1)
        text = f"min({FOOT[0]!r} - abs(x), {FOOT[1]!r} - abs(y))"
        _formula(d, f"{side}_margin", text, "m", x=f"{side}_x", y=f"{side}_y")
    _formula(d, "margin", "l_margin if l_bearing > r_bearing else r_margin", "m")
