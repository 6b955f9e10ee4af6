"""Plan of a biped walk: footprints, zero-moment point, center of mass, pelvis and feet.

The center of mass c, at the constant height z above the sole, moves as a linear inverted pendulum:

    c'' = w^2 (c - p),   w^2 = g/z

p is the zero-moment point and g is the gravitational acceleration (Kajita and Tani 1991). Finite differences in time
turn this equation into a tridiagonal system. A few iterations correct p for the masses of the swinging legs.

All arrays are (samples, ...), in SI units and in the world frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_banded

from gpusim import Transform
from gpusim.rotations import matrix_from_quaternion
from gpusim.scenes.machines._biped import LINKS, PELVIS_MASS, SIDES, SOLE, Posture, poses
from gpusim.typing import Array

GRAVITY = 9.81
SPACE = 0.09
"""Distance of a foot from the center line, m."""
HIP = (0.0, SPACE, -0.04)
THIGH = SHIN = 0.32
GRID = 0.01
"""Time step of the plan, s."""
INWARDS = 0.012
"""In single support, offset of the zero-moment point from the sole's center towards the center line, m."""
LIFT = 0.05
"""Maximum height of a swinging foot above the higher one of its two footprints (start and end of the step), m."""
CORRECTIONS = 6
"""Number of iterations that correct the zero-moment point for all masses."""
DIGITS = 10
"""Number of decimals to which the plan is rounded, so that all processors give the same plan."""
LEG = ("hip1", "hip2", "thigh", "shin", "ankle", "foot")


@dataclass(frozen=True)
class Footprint:
    """Pose of a sole on the ground: center (m) and yaw (rad)."""

    x: float
    y: float
    z: float
    yaw: float

    def ahead(self, length: float, aside: float, rotation: float) -> Footprint:
        """Return this footprint, shifted by ``length`` forward and ``aside`` to the left (m), and rotated (rad)."""
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return replace(
            self, x=self.x + c * length - s * aside, y=self.y + s * length + c * aside, yaw=self.yaw + rotation
        )


@dataclass(frozen=True)
class Step:
    """One step: a foot swings from footprint ``start`` to ``end``, between the times ``begins`` and ``ends`` (s)."""

    side: str
    start: Footprint
    end: Footprint
    begins: float
    ends: float


@dataclass(frozen=True)
class Pace:
    """Time settings of the walk (s). A step lasts ``single`` in single support, plus ``double`` in double support."""

    single: float = 0.6
    double: float = 0.2
    first: float = 1.2
    """Time before the first step."""
    rest: float = 1.8
    """Time after the last step."""


@dataclass(frozen=True)
class Plan:
    """Planned motion at ``time`` (samples,)."""

    time: Array
    steps: list[Step]
    zmp: Array
    """Zero-moment point (samples, 2), m."""
    com: Array
    """Center of mass (samples, 3), m."""
    pelvis: Array
    """Position (m) and yaw (rad) of the pelvis, (samples, 4)."""
    feet: dict[str, Array]
    """Foot "l" or "r" -> position of the sole's center (m) and yaw (rad), (samples, 4)."""
    supports: dict[str, Array]
    """Foot "l" or "r" -> 1 while the foot is on the ground, else 0, (samples,)."""
    height: float
    """Height of the center of mass above the ground, m."""


def feet_at(middle: Footprint) -> dict[str, Footprint]:
    """Return the footprints of two feet next to each other, left and right of ``middle`` on the center line."""
    return {side: middle.ahead(0.0, sign * SPACE, 0.0) for side, sign in SIDES}


def footprints(moves: Sequence[tuple[float, float]]) -> list[tuple[str, Footprint]]:
    """Return alternating footprints, starting with the left foot.

    ``moves`` are the length (m) and the rotation (rad) of each step.
    """
    middle = Footprint(0.0, 0.0, 0.0, 0.0)
    prints = []
    for k, (length, rotation) in enumerate(moves):
        # half of the rotation before and half after the translation, as on an arc
        middle = middle.ahead(0.0, 0.0, 0.5 * rotation).ahead(length, 0.0, 0.5 * rotation)
        side = SIDES[k % 2][0]
        prints.append((side, feet_at(middle)[side]))
    return prints


def timed(prints: Sequence[tuple[str, Footprint]], pace: Pace) -> list[Step]:
    """Return consecutive steps. Before the first step, both feet are next to each other at the origin."""
    at = feet_at(Footprint(0.0, 0.0, 0.0, 0.0))
    steps, begins = [], pace.first
    for side, target in prints:
        steps.append(Step(side, at[side], target, begins, begins + pace.single))
        at[side] = target
        begins += pace.single + pace.double
    return steps


def planned(steps: Sequence[Step], pace: Pace, posture: Posture, height: float, lift: float = LIFT) -> Plan:
    """Return the plan of the whole walk.

    Args:
        height: height of the pelvis above the soles in ``posture`` (m).
        posture: joint angles (rad) at the start. The angles of the arms are constant.
    """
    time = GRID * np.arange(math.ceil((steps[-1].ends + pace.rest) / GRID) + 1)
    feet = {side: _foot(time, steps, side, lift) for side, _ in SIDES}
    supports = {side: _supports(time, steps, side) for side, _ in SIDES}
    zmp = _zmp(time, steps, pace)
    ground = _ground(time, steps, pace)
    yaw = _smooth(0.5 * (feet["l"][:, 3] + feet["r"][:, 3]), 0.3)
    masses = _Masses(posture)
    level = height + ground
    pelvis = np.column_stack([np.zeros_like(zmp), level, yaw])
    com_height = float(_center(masses, pelvis[:1], {s: f[:1] for s, f in feet.items()})[0, 2])
    corrected = zmp
    for _ in range(CORRECTIONS):
        com = _pendulum(corrected, com_height / GRAVITY)
        for _ in range(3):
            actual = _center(masses, pelvis, feet)
            pelvis[:, :2] += com - actual[:, :2]
        corrected = corrected + zmp - _zmp_of_masses(masses, pelvis, feet, ground)
    actual = np.round(_center(masses, pelvis, feet), DIGITS)
    feet = {side: np.round(foot, DIGITS) for side, foot in feet.items()}
    pelvis, zmp = np.round(pelvis, DIGITS), np.round(zmp, DIGITS)
    return Plan(time, list(steps), zmp, actual, pelvis, feet, supports, round(com_height, DIGITS))


def quintic(phase: Array) -> Array:
    """Return a quintic polynomial from 0 to 1, with zero first and second derivative at both ends."""
    u = np.clip(phase, 0.0, 1.0)
    return np.asarray(u**3 * (10.0 + u * (6.0 * u - 15.0)))


def _foot(time: Array, steps: Sequence[Step], side: str, lift: float) -> Array:
    swings = [s for s in steps if s.side == side]
    first = swings[0].start
    path = np.tile([first.x, first.y, first.z, first.yaw], (len(time), 1))
    for step in swings:
        phase = (time - step.begins) / (step.ends - step.begins)
        displacement = np.array([getattr(step.end, n) - getattr(step.start, n) for n in ("x", "y", "z", "yaw")])
        # early changes of height for steps up, late changes for steps down
        rises = quintic(2.0 * phase) if displacement[2] > 0.0 else quintic(2.0 * phase - 1.0)
        weights = np.stack([quintic(phase), quintic(phase), rises, quintic(phase)], axis=-1)
        path += weights * displacement
        u = np.clip(phase, 0.0, 1.0)
        path[:, 2] += lift * np.where(u < 0.5, quintic(2.0 * u), quintic(2.0 - 2.0 * u))
    return path


def _supports(time: Array, steps: Sequence[Step], side: str) -> Array:
    swings = [(time > s.begins) & (time < s.ends) for s in steps if s.side == side]
    return np.where(np.any(swings, axis=0), 0.0, 1.0)


def _zmp(time: Array, steps: Sequence[Step], pace: Pace) -> Array:
    """Return the zero-moment point. In double support, the zero-moment point moves to the next sole."""
    at = feet_at(Footprint(0.0, 0.0, 0.0, 0.0))
    points = [(0.0, np.zeros(2)), (steps[0].begins - 2.0 * pace.double, np.zeros(2))]
    for step in steps:
        other, sign = next((s, v) for s, v in SIDES if s != step.side)
        target = at[other].ahead(0.0, -sign * INWARDS, 0.0)
        points += [(step.begins, np.array([target.x, target.y])), (step.ends, np.array([target.x, target.y]))]
        at[step.side] = step.end
    last = 0.5 * np.array([at["l"].x + at["r"].x, at["l"].y + at["r"].y])
    points += [(steps[-1].ends + 2.0 * pace.double, last), (time[-1] + 1.0, last)]
    times = [t for t, _ in points]
    return np.column_stack([np.interp(time, times, [p[k] for _, p in points]) for k in range(2)])


def _ground(time: Array, steps: Sequence[Step], pace: Pace) -> Array:
    """Return the ground height under the body: the smoothed mean height of the two current footprints."""
    level = np.zeros_like(time)
    for step in steps:
        phase = (time - step.begins) / (step.ends + pace.double - step.begins)
        level += 0.5 * (step.end.z - step.start.z) * quintic(phase)
    return level


def _smooth(values: Array, width: float) -> Array:
    """Return the moving average over a time ``width`` (s)."""
    half = max(1, round(0.5 * width / GRID))
    padded = np.concatenate([np.full(half, values[0]), values, np.full(half, values[-1])])
    kernel = np.full(2 * half + 1, 1.0 / (2 * half + 1))
    return np.convolve(padded, kernel, "valid")


def _pendulum(zmp: Array, ratio: float) -> Array:
    """Solve c - ``ratio`` c'' = p for the center of mass c, with p = ``zmp``, and c = p at both ends."""
    pull = ratio / GRID**2
    bands = np.zeros((3, len(zmp)))
    bands[0, 2:], bands[2, :-2], bands[1] = -pull, -pull, 1.0 + 2.0 * pull
    bands[1, [0, -1]] = 1.0
    return np.asarray(solve_banded((1, 1), bands, zmp))


class _Masses:
    """Masses of the upper body (as one mass) and of the legs' links."""

    def __init__(self, posture: Posture) -> None:
        at = poses(posture, Transform())
        legs = {f"{s}_{name}" for s, _ in SIDES for name in LEG}
        upper = [(PELVIS_MASS, np.zeros(3))]
        upper += [(x.mass, np.asarray(at[x.name].apply(x.com))) for x in LINKS if x.name not in legs]
        self.upper = sum(m for m, _ in upper)
        self.upper_com = sum(m * c for m, c in upper) / self.upper
        self.legs = {x.name: x for x in LINKS if x.name in legs}
        self.total = self.upper + sum(x.mass for x in self.legs.values())


def _yawed(yaw: Array) -> Array:
    half = 0.5 * yaw
    zero = np.zeros_like(half)
    return np.asarray(matrix_from_quaternion(np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)))


def _about(axis: Sequence[float], angle: Array) -> Array:
    s = np.sin(0.5 * angle)
    return np.asarray(matrix_from_quaternion(np.stack([*(a * s for a in axis), np.cos(0.5 * angle)], axis=-1)))


def leg_angles(pelvis: Array, sole: Array, sign: float) -> Array:
    """Return the joint angles (samples, 6) of a leg between an upright pelvis and a level sole.

    The joints are in the order of ``LEG``. The solution is in closed form (Kajita, "Introduction to Humanoid Robotics",
    2014, section 2.5).
    """
    body, foot = _yawed(pelvis[:, 3]), _yawed(sole[:, 3])
    ankle = sole[:, :3] - np.einsum("nij,j->ni", foot, SOLE)
    hip = pelvis[:, :3] + np.einsum("nij,j->ni", body, (HIP[0], sign * HIP[1], HIP[2]))
    r = np.einsum("nji,nj->ni", foot, hip - ankle)
    distance = np.linalg.norm(r, axis=-1)
    cosine = (THIGH**2 + SHIN**2 - distance**2) / (2.0 * THIGH * SHIN)
    knee = math.pi - np.arccos(np.clip(cosine, -1.0, 1.0))
    inner = np.arcsin(np.clip(THIGH / distance * np.sin(math.pi - knee), -1.0, 1.0))
    roll = np.arctan2(r[:, 1], r[:, 2])
    pitch = -np.arctan2(r[:, 0], np.hypot(r[:, 1], r[:, 2])) - inner
    hip_rotation = np.swapaxes(body, 1, 2) @ foot @ _about((1, 0, 0), -roll) @ _about((0, 1, 0), -(knee + pitch))
    hip1 = np.arctan2(-hip_rotation[:, 0, 1], hip_rotation[:, 1, 1])
    hip2 = np.arctan2(
        hip_rotation[:, 2, 1], -hip_rotation[:, 0, 1] * np.sin(hip1) + hip_rotation[:, 1, 1] * np.cos(hip1)
    )
    thigh = np.arctan2(-hip_rotation[:, 2, 0], hip_rotation[:, 2, 2])
    return np.column_stack([hip1, hip2, thigh, knee, pitch, roll])


def _centers(masses: _Masses, pelvis: Array, feet: dict[str, Array]) -> list[tuple[float, Array]]:
    """Return pairs (mass (kg), positions (samples, 3)) of the upper body, then of the links of both legs."""
    body = _yawed(pelvis[:, 3])
    centers = [(masses.upper, pelvis[:, :3] + body @ masses.upper_com)]
    for side, sign in SIDES:
        angles = leg_angles(pelvis, feet[side], sign)
        rotation, position = body, pelvis[:, :3]
        for k, name in enumerate(LEG):
            link = masses.legs[f"{side}_{name}"]
            position = position + rotation @ np.asarray(link.anchor)
            rotation = rotation @ _about(link.axis, angles[:, k])
            centers.append((link.mass, position + rotation @ np.asarray(link.com)))
    return centers


def _center(masses: _Masses, pelvis: Array, feet: dict[str, Array]) -> Array:
    return np.asarray(sum(m * x for m, x in _centers(masses, pelvis, feet)) / masses.total)


def _zmp_of_masses(masses: _Masses, pelvis: Array, feet: dict[str, Array], ground: Array) -> Array:
    """Return the zero-moment point of point masses (samples, 2)."""
    numerator, denominator = np.zeros((len(pelvis), 2)), np.zeros(len(pelvis))
    for mass, x in _centers(masses, pelvis, feet):
        rate = np.zeros_like(x)
        rate[1:-1] = (x[2:] - 2.0 * x[1:-1] + x[:-2]) / GRID**2
        vertical = rate[:, 2] + GRAVITY
        numerator += mass * (vertical[:, None] * x[:, :2] - (x[:, 2] - ground)[:, None] * rate[:, :2])
        denominator += mass * vertical
    return np.asarray(numerator / denominator[:, None])
