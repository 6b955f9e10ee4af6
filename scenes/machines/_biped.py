"""Biped with 26 hinges and geared DC motors, 50 kg, 1.46 m, with sizes from the VirSim papers on bipeds.

The origin of a body's frame is at the joint to the parent. At joint angles 0, x is forward, y to the left and z up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim import Material, ModelBuilder, Transform

Vector = tuple[float, float, float]
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
FOOT: Vector = (0.11, 0.055, 0.02)
"""Half extents of a sole, m."""
FOOT_AHEAD = 0.03
"""Forward distance from the ankle to the sole's center, m."""
SOLE: Vector = (FOOT_AHEAD, 0.0, -0.08)
GRIP: Vector = (0.0, 0.0, -0.09)
"""Grip point in the hand frame, m."""
GEAR = 100.0
PELVIS_MASS = 8.0
PELVIS: Vector = (0.08, 0.13, 0.07)


@dataclass(frozen=True)
class Motor:
    """Catalog values of a brushed motor: stall torque (N m), no-load speed (rad/s), mechanical time constant (s)."""

    stall: float
    idle: float
    time: float


MOTORS = {
    "150 W": Motor(2.42, 794.0, 4.67e-3),
    "60 W": Motor(1.02, 923.0, 3.03e-3),
    "20 W": Motor(0.257, 1001.0, 4.0e-3),
}


@dataclass(frozen=True)
class Link:
    """A body of the robot, and the hinge to its parent body. Gains at the joint are in N m/rad and N m s/rad."""

    name: str
    parent: str
    anchor: Vector
    axis: Vector
    mass: float
    com: Vector
    half: Vector
    motor: str
    stiffness: float
    damping: float


def _leg(s: str, y: float) -> list[Link]:
    return [
        Link(f"{s}_hip1", "pelvis", (0, 0.09 * y, -0.04), Z, 0.8, (0, 0, 0), (0.04, 0.04, 0.04), "150 W", 1500, 40),
        Link(f"{s}_hip2", f"{s}_hip1", (0, 0, 0), X, 0.8, (0, 0, 0), (0.04, 0.04, 0.04), "150 W", 2500, 60),
        Link(f"{s}_thigh", f"{s}_hip2", (0, 0, 0), Y, 4.0, (0, 0, -0.15), (0.06, 0.06, 0.15), "150 W", 2500, 60),
        Link(f"{s}_shin", f"{s}_thigh", (0, 0, -0.32), Y, 3.0, (0, 0, -0.15), (0.05, 0.05, 0.15), "150 W", 2500, 60),
        Link(f"{s}_ankle", f"{s}_shin", (0, 0, -0.32), Y, 0.5, (0, 0, 0), (0.03, 0.03, 0.03), "150 W", 2500, 50),
        Link(f"{s}_foot", f"{s}_ankle", (0, 0, 0), X, 1.2, (FOOT_AHEAD, 0, -0.04), FOOT, "150 W", 2000, 40),
    ]


def _arm(s: str, y: float) -> list[Link]:
    return [
        Link(f"{s}_shoulder1", "torso", (0, 0.20 * y, 0.36), Y, 0.5, (0, 0, 0), (0.04, 0.04, 0.04), "60 W", 600, 15),
        Link(f"{s}_shoulder2", f"{s}_shoulder1", (0, 0, 0), X, 0.5, (0, 0, 0), (0.04, 0.04, 0.04), "60 W", 600, 15),
        Link(f"{s}_upper", f"{s}_shoulder2", (0, 0, 0), Z, 1.2, (0, 0, -0.12), (0.04, 0.04, 0.12), "60 W", 400, 10),
        Link(f"{s}_lower", f"{s}_upper", (0, 0, -0.26), Y, 0.9, (0, 0, -0.11), (0.035, 0.035, 0.11), "60 W", 400, 10),
        Link(f"{s}_wrist", f"{s}_lower", (0, 0, -0.24), X, 0.2, (0, 0, 0), (0.02, 0.02, 0.02), "20 W", 100, 2.5),
        Link(f"{s}_hand", f"{s}_wrist", (0, 0, 0), Y, 0.3, (0, 0, -0.05), (0.03, 0.02, 0.05), "20 W", 100, 2.5),
    ]


SIDES = (("l", 1.0), ("r", -1.0))
LINKS = [
    Link("torso", "pelvis", (0, 0, 0.08), Z, 12.0, (0, 0, 0.2), (0.09, 0.15, 0.2), "150 W", 1500, 60),
    Link("head", "torso", (0, 0, 0.42), Z, 2.0, (0, 0, 0.1), (0.08, 0.07, 0.1), "20 W", 60, 3),
    *(link for s, y in SIDES for link in (*_leg(s, y), *_arm(s, y))),
]
NAMES = [link.name for link in LINKS]
Posture = dict[str, float]


def drive_constants() -> dict[str, list[float]]:
    """Return the gains, stall torques (N m) and no-load speeds (rad/s) of all joints, in joint order."""
    motors = [MOTORS[link.motor] for link in LINKS]
    return {
        "kp": [link.stiffness for link in LINKS], "kd": [link.damping for link in LINKS],
        "stall": [GEAR * m.stall for m in motors], "idle": [m.idle / GEAR for m in motors],
    }  # fmt: skip


def _rotation(axis: Vector, angle: float) -> Transform:
    s, c = math.sin(0.5 * angle), math.cos(0.5 * angle)
    return Transform((0, 0, 0), (axis[0] * s, axis[1] * s, axis[2] * s, c))


def poses(posture: Posture, pelvis: Transform) -> dict[str, Transform]:
    """Return the poses of all bodies."""
    result = {"pelvis": pelvis}
    for link in LINKS:
        result[link.name] = (
            result[link.parent] * Transform(link.anchor) * _rotation(link.axis, posture.get(link.name, 0.0))
        )
    return result


def pose_of(name: str, posture: Posture, pelvis: Transform) -> Transform:
    """Return the pose of one body."""
    if name == "pelvis":
        return pelvis
    link = LINKS[NAMES.index(name)]
    return pose_of(link.parent, posture, pelvis) * Transform(link.anchor) * _rotation(link.axis, posture.get(name, 0.0))


def center_of_mass(posture: Posture, pelvis: Transform) -> np.ndarray:
    """Return the center of mass (3,) of the whole robot (m)."""
    at = poses(posture, pelvis)
    total = PELVIS_MASS * np.asarray(pelvis.position)
    for link in LINKS:
        total = total + link.mass * np.asarray(at[link.name].apply(link.com))
    return np.asarray(total / (PELVIS_MASS + sum(link.mass for link in LINKS)))


def standing(bend: float = 0.35) -> tuple[Posture, Transform]:
    """Return a posture with bent knees and elbows, and the pose of the pelvis in this posture.

    The soles are at z = 0, and the center of mass is above the line between the centers of the soles.
    """
    posture: Posture = {}
    for s, y in SIDES:
        posture |= {f"{s}_thigh": -bend, f"{s}_shin": 2.0 * bend, f"{s}_ankle": -bend}
        posture |= {f"{s}_shoulder1": 0.2, f"{s}_shoulder2": 0.12 * y, f"{s}_lower": -0.5}
    return balanced(posture)


def balanced(posture: Posture) -> tuple[Posture, Transform]:
    """Return a posture and a pelvis pose in which the legs lean, so that the center of mass is above the soles."""
    posture = dict(posture)
    for _ in range(30):
        at = poses(posture, Transform())
        ahead = center_of_mass(posture, Transform())[0] - at["l_foot"].apply(SOLE)[0]
        for s, _y in SIDES:
            posture[f"{s}_thigh"] -= 0.8 * ahead
            posture[f"{s}_ankle"] += 0.8 * ahead
    sole = poses(posture, Transform())["l_foot"].apply(SOLE)
    return posture, Transform((-float(sole[0]), 0.0, -float(sole[2])))


@dataclass
class Biped:
    """Bodies and joints of the robot by name, and its initial posture."""

    posture: Posture
    bodies: dict[str, int] = field(default_factory=dict)
    joints: dict[str, int] = field(default_factory=dict)


def add_biped(b: ModelBuilder, posture: Posture, pelvis: Transform, friction: float = 0.8) -> Biped:
    """Add the robot with sites on soles and hands (``l_sole``, ``l_grip``), force sensors and contact sensors."""
    at, robot = poses(posture, pelvis), Biped(dict(posture))
    robot.bodies["pelvis"] = b.add_body(PELVIS_MASS, _box(PELVIS_MASS, PELVIS), (0, 0, 0), pelvis, label="pelvis")
    b.add_visual(robot.bodies["pelvis"], "box", PELVIS, label="pelvis")
    for link in LINKS:
        inertia = _box(link.mass, link.half)
        body = b.add_body(link.mass, inertia, link.com, at[link.name], label=link.name)
        joint = b.add_joint_revolute(
            robot.bodies[link.parent], body, Transform(link.anchor), axis=link.axis, label=link.name
        )
        motor = MOTORS[link.motor]
        b.add_dc_motor(joint, motor.stall, motor.idle, motor.time, gear_ratio=GEAR, label=link.name)
        robot.bodies[link.name], robot.joints[link.name] = body, joint
        if not link.name.endswith("foot"):
            b.add_visual(body, "box", link.half, xform=Transform(link.com), label=link.name)
    for s, _y in SIDES:
        foot, hand = robot.bodies[f"{s}_foot"], robot.bodies[f"{s}_hand"]
        b.add_shape_box(
            foot, FOOT, xform=Transform((FOOT_AHEAD, 0, -0.06)), material=Material(friction=friction), label=f"{s}_foot"
        )
        sole = b.add_site(foot, Transform(SOLE), label=f"{s}_sole")
        b.add_contact_sensor(foot, sole, label=f"{s}_foot")
        b.add_site(hand, Transform(GRIP), label=f"{s}_grip")
        b.add_force_sensor(robot.joints[f"{s}_hand"], label=f"{s}_wrist")
    return robot


def _box(mass: float, half: Vector) -> Vector:
    x, y, z = (v * v for v in half)
    return (mass / 3.0 * (y + z), mass / 3.0 * (x + z), mass / 3.0 * (x + y))


DRIVE = "max(-1, min(1, (kp * (wanted - q) - kd * rate + effort) / stall + rate / idle))"
"""Motor voltage divided by its maximum, from PD law, feedforward effort and back-EMF compensation."""


def add_joint_control(d: Any, desired: str, effort: str | None = None) -> None:
    """Add the joint control, which computes the motor voltages.

    ``desired`` and ``effort`` are names of blocks. ``desired`` outputs the desired joint angles (26,) for a PD law, and
    ``effort`` outputs feedforward torques.
    """
    d.add("signal", "q", signal=[f"joint.{name}.position" for name in NAMES])
    d.add("signal", "rate", signal=[f"joint.{name}.velocity" for name in NAMES])
    voltage = d.add("expression", "voltage", text=DRIVE)
    for name, values in drive_constants().items():
        d.connect(d.add("constant", name, value=values), voltage[name])
    voltage.wire(q="q", rate="rate", wanted=desired, effort=0.0 if effort is None else effort)
    d.add("command", "motors", command=list(NAMES)).wire(voltage)
