"""A standing biped turns a valve wheel with both hands. A block diagram controls the robot.

The scene follows the VirSim papers on bipeds. The control shifts the hands' targets until each wrist pushes only along
the rim of the wheel. The new targets correct an error in the assumed position of the wheel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import numpy as np
from scipy.optimize import least_squares

import gpusim
from gpusim import Transform
from gpusim.command_schedule import Schedule, drive
from gpusim.control import Diagram, chain
from gpusim.scene import Camera, Check, Plot, Range, Scene, require
from gpusim.scenes._checks import GAPS, Recording, at, joints_stay_closed
from gpusim.scenes.machines._biped import (
    FOOT,
    GRIP,
    LINKS,
    NAMES,
    SIDES,
    Posture,
    add_biped,
    add_joint_control,
    balanced,
    pose_of,
    standing,
)

NAME = "biped_valve"
ARMS = {"l": NAMES[8:14], "r": NAMES[20:26]}
WHEEL = (0.36, 0.0, 1.0)
"""Center of the wheel, m, with the axis along x. The robot's feet are at x = 0."""
WHEEL_MASS, WHEEL_INERTIA = 3.0, (0.04, 0.02, 0.02)
SPEED = 0.6
"""Speed of the commanded wheel angle, rad/s."""
START_TIME, MIN_RETURN_TIME, SETTLING_TIME = 1.0, 5.0, 1.3
"""Start of the outward motion, earliest start of the return motion, and settling time after each motion, s."""
GRAVITY, DEGREES = 9.81, 180.0 / math.pi
HAND_MASS = next(link.mass for link in LINKS if link.name == "l_hand")
COMPLIANCE = 2e-3
"""Speed of a hand's target divided by the wrist force that is not along the rim, m/(N s)."""
HALF_WIDTH = 0.09 + FOOT[1]
"""Half of the distance between the outer edges of the two soles, m."""
BALANCED_TIME = 0.5
"""End of the initial balancing, s."""


def build(
    turn: float = 90.0,
    friction: Annotated[float, Range(above=0.0, maximum=20.0)] = 10.0,
    radius: Annotated[float, Range(0.10, 0.20)] = 0.16,
    misplaced: Annotated[float, Range(-0.03, 0.03)] = 0.0,
    feedback: bool = True,
) -> Scene:
    """Build the scene. The command "wheel" is the desired wheel angle (rad).

    Args:
        turn: rotation of the wheel, degrees, -110 to 110, not 0. At 100 degrees or more, an arm may not reach the rim
            of a wheel with a radius of 0.18 m or more.
        friction: dry friction of the wheel's hinge, N m, above 0 and at most 20. At 10 N m or more, some checks may
            fail.
        radius: radius of the wheel's rim, m, 0.1 to 0.2.
        misplaced: distance of the wheel from its assumed position, positive away from the robot, m, -0.03 to 0.03.
        feedback: True uses feedback of the wheel's angle and of the wrist forces.
    """
    require(0.0 < abs(turn) <= 110.0, NAME, "turn", turn, "must be -110 to 110, and not 0")
    b = gpusim.ModelBuilder()
    b.add_shape_plane(-1, material=gpusim.Material(friction=0.8), label="floor")
    center = (WHEEL[0] + misplaced, WHEEL[1], WHEEL[2])
    posture, pelvis = _holding_posture(center, radius)
    robot = add_biped(b, posture, pelvis)
    wheel = b.add_body(WHEEL_MASS, WHEEL_INERTIA, (0, 0, 0), Transform(center), label="wheel")
    b.add_joint_revolute(-1, wheel, axis=(1, 0, 0), at=center, friction=friction, label="wheel")
    _draw_wheel(b, wheel, radius)
    for s, y in SIDES:
        b.add_joint_ball(
            robot.bodies[f"{s}_hand"], wheel, Transform(GRIP), Transform((0, radius * y, 0)), label=f"{s}_hold"
        )
    b.add_diagram(control(b, posture, radius, feedback))
    times = Times.of(math.radians(turn))
    points = ((0.0, 0.0), (START_TIME, 0.0), (START_TIME, 1.0), (times.back, 1.0), (times.back, 0.0))
    table = Schedule([(t, math.radians(turn) * fraction) for t, fraction in points])
    return Scene(
        name=NAME,
        description="A biped turns a valve wheel with both hands. Its control is a block diagram.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=times.end,
        plots=_plots(),
        camera=Camera((2.4, -2.0, 1.4), (0.15, 0.0, 0.75)),
        schedule=drive({"wheel": table}),
        checks=_checks(math.radians(turn), friction, radius),
    )


@dataclass(frozen=True)
class Times:
    """Times of a run (s): two intervals of constant wheel speed, start of the return motion, end of the run."""

    motions: tuple[tuple[float, float], tuple[float, float]]
    back: float
    end: float

    @classmethod
    def of(cls, angle: float) -> Times:
        """Return the times for a wheel rotation (rad). The return motion starts at 5 s, or later above 93 degrees."""
        duration = abs(angle) / SPEED
        back = max(MIN_RETURN_TIME, START_TIME + duration + SETTLING_TIME)
        # lag of the filter at the start, and deceleration at the end
        starts, slows = 0.6, max(duration - 0.2, 0.8)
        outward, homeward = ((t + starts, t + slows) for t in (START_TIME, back))
        return cls((outward, homeward), back, 2.0 * back - START_TIME)


@cache
def _holding_posture(center: tuple[float, float, float], radius: float) -> tuple[Posture, Transform]:
    """Return a standing posture with both grips on the rim."""
    posture, pelvis = standing()
    for s, y in SIDES:
        posture |= {f"{s}_lower": -1.6, f"{s}_shoulder1": 0.2, f"{s}_shoulder2": 0.15 * y, f"{s}_hand": 0.0}
    for _ in range(3):
        posture, pelvis = balanced(posture)
        for s, y in SIDES:
            _solve_arm(posture, pelvis, s, np.add(center, (0, radius * y, 0)))
    posture, pelvis = balanced(posture)
    for s, y in SIDES:
        _solve_arm(posture, pelvis, s, np.add(center, (0, radius * y, 0)))
    return posture, pelvis


def _solve_arm(posture: Posture, pelvis: Transform, s: str, target: np.ndarray) -> None:
    """Change the joint angles of one arm in ``posture``, so that the arm's grip reaches ``target``."""
    hand, names = f"{s}_hand", ARMS[s]
    start = np.array([posture.get(name, 0.0) for name in names])

    def residual(q: np.ndarray) -> np.ndarray:
        at = pose_of(hand, posture | dict(zip(names, q.tolist(), strict=True)), pelvis)
        return np.concatenate([at.apply(GRIP) - target, 1e-4 * (q - start)])

    rough = least_squares(residual, start, xtol=1e-14, ftol=1e-14).x
    solution = least_squares(lambda q: residual(q)[:3], rough, xtol=1e-14, ftol=1e-14, gtol=1e-14).x
    posture.update(dict(zip(names, solution.tolist(), strict=True)))


def _draw_wheel(b: gpusim.ModelBuilder, wheel: int, radius: float) -> None:
    half = math.sqrt(0.5)
    for k in range(12):
        angle = 2.0 * math.pi * k / 12
        position = (0.0, radius * math.cos(angle), radius * math.sin(angle))
        pose = Transform(position, (math.sin(0.5 * angle), 0.0, 0.0, math.cos(0.5 * angle)))
        b.add_visual(wheel, "capsule", 0.012, 0.5 * 2.0 * math.pi * radius / 12, xform=pose, label=f"rim{k}")
    for k in range(3):
        angle = math.pi * k / 3
        spoke = Transform((0, 0, 0), (math.sin(0.5 * angle), 0.0, 0.0, math.cos(0.5 * angle)))
        b.add_visual(wheel, "capsule", 0.008, radius, xform=spoke, label=f"spoke{k}")
    b.add_visual(wheel, "cylinder", 0.03, 0.02, xform=Transform((0, 0, 0), (0, half, 0, half)), label="hub")


def control(b: gpusim.ModelBuilder, posture: Posture, radius: float, feedback: bool) -> Diagram:
    """Return the diagram that computes motor voltages from the commanded wheel angle."""
    d = Diagram("robot")
    d.add("input", "wheel", lower=-2.0, upper=2.0, unit="rad")
    d.add("rate_limiter", "speed", rise=SPEED).wire("wheel")
    d.add("lowpass2", "planned", frequency=0.7, damping=1.0).wire("speed")
    d.add("signal", "angle", signal="joint.wheel.position")
    d.add("sum", "behind", signs="+-").wire("planned", "angle")
    d.add("integrator", "lead", gain=2.0 if feedback else 0.0, lower=-0.6, upper=0.6, unit="1/s").wire("behind")
    d.add("sum", "aim", signs="++").wire("planned", "lead")
    for function in ("cos", "sin"):
        d.connect("aim", d.add("trigonometry", f"aim_{function}", function=function))
        d.connect("angle", d.add("trigonometry", f"angle_{function}", function=function))
    for quantity in ("position", "orientation"):
        d.add("signal", f"torso_{quantity}", signal=f"body.torso.{quantity}")
    d.connect(d.add("timer", "time"), d.add("compare", "begins", sign="<", value=1e-6)["a"])
    d.add("expression", "push", text="0.5 * (l + r)", unit="N")
    for s, y in SIDES:
        _add_arm(d, b, posture, s, y, radius, feedback)
        d.connect(f"{s}_work.along", f"push.{s}")
    fixed = {"upper": NAMES[:2], "l_leg": NAMES[2:8], "r_leg": NAMES[14:20]}
    for name, joints in fixed.items():
        d.add("constant", name, value=[posture.get(joint, 0.0) for joint in joints])
    d.add("mux", "wanted", count=5).wire("upper", "l_leg", "l_ik.out", "r_leg", "r_ik.out")
    add_joint_control(d, "wanted")
    _add_balance(d)
    return d


def _add_arm(
    d: Diagram, b: gpusim.ModelBuilder, posture: Posture, s: str, y: float, radius: float, feedback: bool
) -> None:
    """Add the diagram blocks of an arm: hand target on the rim, hand force, and joint angles."""
    lever = radius * y
    d.add("expression", f"{s}_y", text=f"{lever!r} * c", unit="m").wire("aim_cos")
    d.add("expression", f"{s}_z", text=f"{WHEEL[2]!r} + {lever!r} * s", unit="m").wire("aim_sin")
    d.add("constant", f"{s}_x", value=WHEEL[0], unit="m")
    d.add("mux", f"{s}_rim", count=3).wire(f"{s}_x", f"{s}_y", f"{s}_z")
    # Force of the hand on the wheel, in world axes. The sensor measures the force of the hand on the wrist, including
    # the hand's weight.
    d.add("signal", f"{s}_wrist", signal=f"sensor.{s}_wrist.force")
    d.connect(f"{s}_wrist", d.add("gain", f"{s}_push", gain=-1.0, unit="-"))
    wrist = (f"signal:body.{s}_wrist.{quantity}" for quantity in ("position", "orientation"))
    d.add("from_frame", f"{s}_felt", vector=True).wire(f"{s}_push", *wrist)
    d.add("constant", f"{s}_weight", value=[0.0, 0.0, -GRAVITY * HAND_MASS], unit="N")
    d.add("sum", f"{s}_force").wire(f"{s}_felt", f"{s}_weight")
    d.add("constant", f"{s}_zero", value=0.0)
    d.connect("angle_sin", d.add("gain", f"{s}_ty", gain=-y))
    d.connect("angle_cos", d.add("gain", f"{s}_tz", gain=y))
    d.add("mux", f"{s}_tangent", count=3).wire(f"{s}_zero", f"{s}_ty", f"{s}_tz")
    d.add("project", f"{s}_work").wire(f"{s}_force", f"{s}_tangent")
    yields = -COMPLIANCE if feedback else 0.0
    d.add("integrator", f"{s}_yield", gain=yields, initial=[0.0] * 3, lower=-0.08, upper=0.08, unit="m/N s")
    # force without work on the wheel: all force except the mean push of the hands along the rim
    d.add("product", f"{s}_share").wire("push", f"{s}_tangent")
    d.connect(d.add("sum", f"{s}_idle", signs="+-").wire(f"{s}_force", f"{s}_share"), f"{s}_yield")
    d.add("sum", f"{s}_target").wire(f"{s}_rim", f"{s}_yield")
    d.add("to_frame", f"{s}_near").wire(f"{s}_target", "torso_position", "torso_orientation")
    angles, links = [posture.get(joint, 0.0) for joint in ARMS[s]], chain(b, "torso", f"{s}_grip")
    # keep the initial difference between hand and plan
    d.add("signal", f"{s}_joints", signal=[f"joint.{joint}.position" for joint in ARMS[s]])
    d.connect(f"{s}_joints", d.add("chain", f"{s}_arm", **links))
    d.add("sum", f"{s}_miss", signs="+-").wire(f"{s}_arm.position", f"{s}_near")
    d.add("sample_hold", f"{s}_taken").wire(f"{s}_miss", "begins")
    d.add("sum", f"{s}_aim").wire(f"{s}_near", f"{s}_taken")
    d.add("constant", f"{s}_posture", value=angles)
    d.add("ik", f"{s}_ik", start=angles, **links).wire(f"{s}_aim", f"{s}_posture")


def _add_balance(d: Diagram) -> None:
    """Add display signals: center of pressure, its distance from the edge of the soles, and load of the drives."""
    for s, _y in SIDES:
        d.add("signal", f"{s}_ground", signal=f"sensor.{s}_foot.force")
        d.connect(f"{s}_ground", d.add("select_element", f"{s}_load", index=2))
        d.add("signal", f"{s}_pressure", signal=f"sensor.{s}_foot.center_of_pressure")
    pressure = d.add("expression", "pressure", text="(l * a + r * b) / (l + r)", unit="m")
    pressure.wire(l="l_load", r="r_load", a="l_pressure", b="r_pressure")
    for k, axis in enumerate("xy"):
        d.connect("pressure", d.add("select_element", f"zmp_{axis}", index=k))
    text = f"min({FOOT[0]!r} - abs(x), {HALF_WIDTH!r} - abs(y))"
    d.add("expression", "margin", text=text, unit="m").wire("zmp_x", "zmp_y")
    load = d.add("expression", "load", text="abs(kp * (wanted - q) - kd * rate) / stall", unit="-")
    load.wire(**{name: name for name in ("kp", "kd", "wanted", "q", "rate", "stall")})


def _plots() -> list[Plot]:
    wire = "diagram.robot."
    return [
        Plot("Wheel angle", "degrees", ["joint.wheel.position", f"{wire}planned"], ["actual", "planned"], DEGREES),
        Plot("Hand forces along the rim", "N", [f"{wire}l_work.along", f"{wire}r_work.along"], ["left", "right"]),
        Plot("Shifts of the hand targets", "mm", [f"{wire}l_yield", f"{wire}r_yield"], scale=1e3),
        Plot("Distance from center of pressure to edge of soles", "mm", [f"{wire}margin"], scale=1e3),
        Plot("Torque / stall torque", "-", [f"{wire}load"]),
        Plot("Positions of the feet", "mm", ["site.l_sole.position", "site.r_sole.position"], scale=1e3),
        Plot("Largest joint gap", "mm", ["sim.joint_drift", "sim.joint_drift_peak"], scale=1e3, labels=GAPS),
    ]


def _checks(turn: float, friction: float, radius: float) -> list[Check]:
    return [
        Check("the wheel reaches both angles within 1 degree", lambda run: max(off(run, turn)) <= math.radians(1.0)),
        Check(
            "both wrists push with friction/(2 r) within 5 % while the wheel turns",
            lambda run: push_off(run, turn, friction, radius) <= 0.05,
        ),
        Check("the feet slip by less than 1 mm", lambda run: slip(run) < 1e-3),
        Check("the center of pressure stays 1 cm inside the soles", lambda run: min_margin(run) > 0.01),
        Check("drives need 5 to 100 % of their stall torque", lambda run: 0.05 < run["diagram.robot.load"].max() < 1.0),
        joints_stay_closed(1e-4),
    ]


def off(run: Recording, turn: float) -> tuple[float, float]:
    """Return the errors of the wheel angle (rad) just before the return motion and at the end of the run."""
    angle = run["joint.wheel.position"]
    before_return = at(run, "joint.wheel.position", Times.of(turn).back - 0.1)
    return float(np.abs(before_return - turn).max()), float(np.abs(angle[-1]).max())


def push_off(run: Recording, turn: float, friction: float, radius: float) -> float:
    """Return the maximum relative error of a wrist's mean force along the rim (exact value: friction/(2 radius))."""
    expected, worst = math.copysign(friction / (2.0 * radius), turn), 0.0
    for (begin, end), sign in zip(Times.of(turn).motions, (1.0, -1.0), strict=True):
        during = (run["time"] > begin) & (run["time"] < end)
        for s, _y in SIDES:
            mean = run[f"diagram.robot.{s}_work.along"][during].mean(axis=0)
            worst = max(worst, float(np.abs(sign * mean / expected - 1.0).max()))
    return worst


def slip(run: Recording) -> float:
    """Return the maximum displacement (m) of a sole after the initial balancing."""
    settled = run["time"] > BALANCED_TIME
    feet = [run[f"site.{s}_sole.position"][settled] for s, _y in SIDES]
    return max(float(np.linalg.norm(foot - foot[0], axis=-1).max()) for foot in feet)


def min_margin(run: Recording) -> float:
    """Return the minimum distance (m) between center of pressure and edge of the soles, after the initial balancing."""
    return float(run["diagram.robot.margin"][run["time"] > BALANCED_TIME].min())
