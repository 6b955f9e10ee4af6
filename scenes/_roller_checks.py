"""Checks of the vehicles on omni and mecanum wheels: against the path of wheels whose rollers roll.

The path is that of a rigid platform on its drives: with A the wheels' speeds by its velocity v, which on mecanum wheels
changes as the ground goes along a roller, M v' = A^T (torques), forces of servos or motors by how far they are behind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import gpusim
from gpusim import rotations
from gpusim.machines import OmniWheel
from gpusim.scene import Check, Unchecked
from gpusim.scenes import _rollers
from gpusim.scenes._checks import Recording, near

GRAVITY = 9.81
END, STEP = 8.5, 2e-3
#: From, to: it moves aside alone, s.
ASIDE = (3.0, 4.4)
#: Without any ripple: of the way, and m.
EXACT, FINE = 2e-3, 5e-4
#: Of the height, m: slop of the contacts, and how far a wheel turns between steps down on its next roller.
SLOP = 9e-5
GOES = "the platform goes where it is told"
HEIGHT = "it stays at its height within {:.2g} mm"
MOVES_ASIDE = "it moves aside without turning"


def roller_checks(
    b: gpusim.ModelBuilder, wheels: Sequence[OmniWheel], drive: _rollers.Drive, speed: float, friction: float
) -> list[Check | Unchecked]:
    """Those that apply, and the others."""
    high = _uneven(wheels[0]) + SLOP

    def stays_up(run: Recording) -> bool:
        return near(run["body.platform.position"][:, :, 2], _rollers.RADIUS, high)

    up = Check(HEIGHT.format(1e3 * high), stays_up)
    if drive == "torques":
        return [
            up,
            *(Unchecked(what, "it is given torques") for what in (GOES, MOVES_ASIDE)),
        ]
    path = _Platform(b, wheels, drive).path(speed)
    if path.grip > friction or friction == 0.0:
        why = f"its wheels slip: to hold them takes friction = {path.grip:.2g}"
        return [up, *(Unchecked(what, why) for what in (GOES, MOVES_ASIDE))]
    ripple, lever = _ripple(wheels[0]), _lever(wheels[0])
    most = FINE + EXACT * path.way
    if ripple and speed:  # of causes that do not depend on each other
        most += math.hypot(ripple * path.way, _loose(wheels[0], path.late if drive == "speeds" else 0.0))

    def follows(run: Recording) -> bool:
        """The path is that of the commands, by the drives and the rollers."""
        place = run["body.platform.position"][:, 0, :2]
        told = np.stack([np.interp(run["time"], path.time, x) for x in path.pose[:, :2].T], axis=1)
        return near(np.linalg.norm(place - place[0] - told, axis=1), 0.0, most)

    def moves_aside(run: Recording) -> bool:
        """On average, over some rollers."""
        t = (run["time"] > ASIDE[0]) & (run["time"] < ASIDE[1])
        told = path.velocity[(path.time > ASIDE[0]) & (path.time < ASIDE[1])].mean(axis=0)
        off = np.mean(run["body.platform.linear_velocity"][t, 0, 1]) - told[1]
        yaw = np.mean(run["body.platform.angular_velocity"][t, 0, 2])
        slack = FINE + (EXACT + ripple) * abs(speed)
        return near(off, 0.0, 2.0 * slack) and near(yaw * lever, 0.0, slack)

    return [Check(f"{GOES}, within {1e3 * most:.2g} mm", follows), up, Check(MOVES_ASIDE, moves_aside)]


@dataclass(frozen=True)
class _Path:
    """Times, poses (x, y, yaw) and velocities in the platform; what they need.

    Attributes:
        way: along the path, m.
        late: greatest way of the drives behind their commands, m.
        grip: greatest friction that the drives' forces take.
    """

    time: np.ndarray
    pose: np.ndarray
    velocity: np.ndarray
    way: float
    late: float
    grip: float


class _Platform:
    """The platform as a rigid body on wheels that do not slip."""

    def __init__(self, b: gpusim.ModelBuilder, wheels: Sequence[OmniWheel], drive: _rollers.Drive) -> None:
        self.wheels = wheels
        self.mass, yaw = _weighed(b)
        tilts = np.array([wheel.roller_angle for wheel in wheels])
        self.tangents, self.cosines = np.tan(tilts), np.cos(tilts)
        motions = np.eye(3)
        self.ideal = np.array([[wheel.ideal(motion) for motion in motions] for wheel in wheels])
        axle, rotor = _axle_inertia(wheels[0], b), 0.0
        if drive == "speeds":
            self.read, self.hold = (
                np.linalg.pinv(self.ideal),
                np.diag([_rollers.HOLD, _rollers.HOLD, _rollers.HOLD_TURN]),
            )
        else:
            motor = _rollers.MOTOR
            gear, idle = motor["gear_ratio"], motor["no_load_speed"]
            self.read, self.hold = np.eye(len(wheels)), motor["stall_torque"] / idle * gear**2 * np.eye(len(wheels))
            rotor = motor["mechanical_time_constant"] * motor["stall_torque"] / idle * gear**2
        self.servos = drive == "speeds"
        self.inertia = np.diag([self.mass, self.mass, yaw]) + (axle + rotor) * self.ideal.T @ self.ideal
        self.turning = axle + rotor
        frames = [self._seen(wheel) for wheel in wheels]
        self.ahead, self.aside = (np.array([frame[k] for frame in frames]) for k in (0, 1))

    @staticmethod
    def _seen(wheel: OmniWheel) -> tuple[list[float], list[float]]:
        """Velocity of a wheel's center along its x and y by each motion of the platform."""
        x, y, _ = wheel.xform.position
        back = wheel.xform.inverse()
        rates = [back.rotate((vx - turn * y, vy + turn * x, 0.0)) for vx, vy, turn in np.eye(3)]
        return [float(rate[0]) for rate in rates], [float(rate[1]) for rate in rates]

    def speeds(self, turned: np.ndarray) -> np.ndarray:
        """Of the wheels by the platform's motions, (n, 3), where the wheels have turned so far.

        At the angle t from its lowest place a roller touches the ground beside the wheel's middle, axle tan(t)
        tan(angle) along the wheel's y, and holds it along (cos(angle) cos(t), sin(angle)).
        """
        wheel = self.wheels[0]
        pitch = 2.0 * math.pi / len(wheel.rollers)
        angle = (turned + 0.5 * pitch) % pitch - 0.5 * pitch
        ahead = self.ahead.copy()
        ahead[:, 2] -= (wheel.radius - _rollers.ROLLER_RADIUS) * np.tan(angle) * self.tangents
        return (ahead + (self.tangents / np.cos(angle))[:, None] * self.aside) / wheel.radius

    def path(self, speed: float) -> _Path:
        """From rest, by implicit Euler."""
        tables = list(_rollers.commands(speed).values())
        velocity, turned, pose = np.zeros(3), np.zeros(len(self.wheels)), np.zeros(3)
        poses, velocities, late, most, grip = [pose], [velocity], np.zeros(3), 0.0, 0.0
        for k in range(round(END / STEP)):
            wanted = np.array([table.mean(k * STEP, (k + 1) * STEP) for table in tables])
            speeds = self.speeds(turned)
            velocity, friction = self._kicked(velocity, speeds, wanted)
            turned = turned + STEP * speeds @ velocity
            late = late + STEP * (wanted - velocity)
            most, grip = max(most, math.hypot(late[0], late[1])), max(grip, friction)
            yaw = pose[2] + 0.5 * STEP * velocity[2]
            c, s = math.cos(yaw), math.sin(yaw)
            pose = pose + STEP * np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ velocity
            poses.append(pose)
            velocities.append(velocity)
        places = np.array(poses)
        way = float(np.sum(np.linalg.norm(np.diff(places[:, :2], axis=0), axis=1)))
        return _Path(STEP * np.arange(len(places)), places, np.array(velocities), way, most, grip)

    def _kicked(self, velocity: np.ndarray, speeds: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, float]:
        """Velocity a step later, and the friction that this takes where all wheels bear the same."""
        told = wanted if self.servos else self._voltages(wanted)
        reads = self.read @ speeds
        stiff = reads.T @ self.hold
        spun = self.mass * velocity[2] * np.array([velocity[1], -velocity[0], 0.0])
        left = self.inertia / STEP + stiff @ reads
        later = np.linalg.solve(left, self.inertia @ velocity / STEP + spun + stiff @ told)
        torques = self.read.T @ self.hold @ (told - reads @ later) - self.turning * speeds @ (later - velocity) / STEP
        load = self.mass * GRAVITY / len(self.wheels)
        return later, float(np.abs(torques / self.cosines).max()) / (self.wheels[0].radius * load)

    def _voltages(self, wanted: np.ndarray) -> np.ndarray:
        """Idle speeds of the motors, rad/s."""
        idle = _rollers.MOTOR["no_load_speed"] / _rollers.MOTOR["gear_ratio"]
        return np.clip(self.ideal @ wanted, -idle, idle)


def _weighed(b: gpusim.ModelBuilder) -> tuple[float, float]:
    """Mass of all bodies, and their inertia about the vertical through the platform's middle."""
    mass = yaw = 0.0
    for body in b.bodies:
        turn = rotations.matrix_from_quaternion(np.asarray(body.xform.rotation))
        inertia = np.asarray(body.inertia, dtype=float)
        full = np.diag(inertia) if inertia.ndim == 1 else inertia
        center, weight = np.asarray(body.xform.position), float(body.mass or 0.0)
        mass += weight
        yaw += float((turn @ full @ turn.T)[2, 2]) + weight * float(center[:2] @ center[:2])
    return mass, yaw


def _axle_inertia(wheel: OmniWheel, b: gpusim.ModelBuilder) -> float:
    """Of a hub and its rollers about the wheel's axle, the rollers as points."""
    axle = wheel.radius - _rollers.ROLLER_RADIUS
    rollers = sum(float(b.bodies[body].mass or 0.0) for body in wheel.rollers)
    return 0.5 * _rollers.HUB_MASS * (axle - _rollers.ROLLER_RADIUS) ** 2 + rollers * axle**2


def _ripple(wheel: OmniWheel) -> float:
    """Mean share by which a mecanum wheel that turns steadily moves aside faster or slower, as cos(t) has it."""
    if wheel.roller_angle == 0.0:
        return 0.0
    angle = np.linspace(0.0, wheel.reach, 201)
    return float(np.mean(np.abs(wheel.reach / math.sin(wheel.reach) * np.cos(angle) - 1.0)))


def _loose(wheel: OmniWheel, late: float) -> float:
    """Way by which a wheel of four that the ground lets go leads a mecanum platform astray, m.

    It turns on by up to half a roller until the next one takes hold, and catches up with what servos on all wheels
    are ``late``; the platform goes as far, or aside by 1/tan(angle) of it.
    """
    return math.hypot(wheel.radius * wheel.reach, late) * max(1.0, 1.0 / abs(math.tan(wheel.roller_angle)))


def _lever(wheel: OmniWheel) -> float:
    """Way of a wheel per turn of the platform, m."""
    return abs(wheel.ideal((0.0, 0.0, 1.0))) * wheel.radius


def _uneven(wheel: OmniWheel) -> float:
    """By how much a roller's arc stands out of the wheel's cylinder or stays within it, m.

    The line of machines/omni_wheel.py is (R cos(t) - axle) sqrt(1 + sin(angle)^2 tan(t)^2) away from the roller's axis;
    the arc goes through its middle and its ends.
    """
    axle, square = wheel.radius - _rollers.ROLLER_RADIUS, math.sin(wheel.roller_angle) ** 2
    angle = np.linspace(0.0, wheel.reach, 201)
    inside, tangent = wheel.radius * np.cos(angle) - axle, np.tan(angle)
    along = (wheel.radius * np.sin(angle) - square * tangent * inside) / math.cos(wheel.roller_angle)
    thick = inside * np.sqrt(1.0 + square * tangent**2)
    thinner = _rollers.ROLLER_RADIUS - thick[-1]
    arc = 0.5 * (along[-1] ** 2 + thinner**2) / thinner
    barrel = _rollers.ROLLER_RADIUS - arc + np.sqrt(arc**2 - along**2)
    return float(np.abs(barrel - thick).max())
