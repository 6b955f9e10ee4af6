"""Analytic model of an arm with parallel hinges: planar kinematics, and static cylinder forces from virtual work.

Points are complex numbers x + iz. In the arm's frame, point p of part k is at ``o_k + e_k p``, with |e_k| = 1. q are
the hinge angles from the initial pose, positive from x towards z. L_k(q) are the lengths of the cylinders. V(q) is the
potential energy of the weights. For forces f on points p(q), the cylinder forces F_k satisfy

    sum_k F_k dL_k/dq_i = dV/dq_i - sum f . dp/dq_i      (F_k > 0 pushes)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpusim import validate
from gpusim.typing import Array

BASE = "base"
STEP = 1e-6
"""Step of central differences, rad."""
DEAD_CENTER = 1e-3
"""Minimum moment arm of a cylinder or link about a hinge, divided by the length of the cylinder or link."""
PlanarPose = tuple[complex, complex]
Point = tuple[float, float]


class PointForce(NamedTuple):
    """A force on a part: part name, point (x, z) (m) in the part's frame, and force (x, z) (N) in the arm's frame."""

    part: str
    point: Point
    force: Point


@dataclass(frozen=True)
class ArmStatic:
    """Analytic static equilibrium of an arm.

    Attributes:
        forces: force (N) of every cylinder, positive if the cylinder pushes its pins apart.
        lengths: distance (m) between the pins of every cylinder.
        torques: torque (N m) of the cylinders about every hinge.
    """

    forces: dict[str, float]
    lengths: dict[str, float]
    torques: dict[str, float]


class NotClosed(Exception):
    """Error for a pose in which a four-bar linkage cannot close."""


@dataclass(frozen=True)
class Hinged:
    """A link on a hinge. The hinge position and the initial angle are relative to the parent link."""

    name: str
    parent: str
    at: complex
    pose: float


@dataclass(frozen=True)
class FourBar:
    """A four-bar linkage: a rocker on the part ``stick``, and a link from the rocker to the part ``bucket``.

    ``side`` (1 or -1) selects one of the two possible positions of the pin between rocker and link.
    """

    rocker: str
    link: str
    stick: str
    pivot: complex
    bucket: str
    ear: complex
    rocker_length: float
    link_length: float
    side: float

    def close(self, pivot: complex, ear: complex) -> complex:
        """Return the position of the pin between rocker and link, an intersection of two circles."""
        offset = ear - pivot
        distance = abs(offset)
        a, b = self.rocker_length, self.link_length
        along = (a * a - b * b + distance * distance) / (2.0 * distance) if distance > 0.0 else 2.0 * a
        square = a * a - along * along
        if square <= (DEAD_CENTER * a) ** 2:
            raise NotClosed
        return complex(pivot + offset / distance * (along + 1j * self.side * np.sqrt(square)))


@dataclass(frozen=True)
class Ram:
    """A hydraulic cylinder of the analytic model, with its two parts and the positions of its two pins."""

    name: str
    start: str
    end: str
    pins: tuple[complex, complex]


@dataclass
class Mechanism:
    """Analytic model of the arm in its plane.

    Attributes:
        gravity: gravitational acceleration in the arm's frame, m/s2, as the complex number x + i z.
        hinges: hinges of the links, parents before children.
        loops: four-bar linkages.
        weights: mass (kg) of every part, and its center of mass (m) in the part's frame.
        rams: cylinders.
    """

    gravity: complex
    hinges: list[Hinged] = field(default_factory=list)
    loops: list[FourBar] = field(default_factory=list)
    weights: dict[str, tuple[float, complex]] = field(default_factory=dict)
    rams: list[Ram] = field(default_factory=list)

    def poses(self, angles: Sequence[float] | Array) -> dict[str, PlanarPose]:
        """Return origin o_k and direction e_k of every part at the hinge angles ``angles`` (rad).

        Raises:
            NotClosed: a four-bar linkage cannot close.
        """
        poses: dict[str, PlanarPose] = {BASE: (0j, 1 + 0j)}
        for hinge, angle in zip(self.hinges, angles, strict=True):
            origin, along = poses[hinge.parent]
            poses[hinge.name] = origin + along * hinge.at, along * np.exp(1j * (hinge.pose + angle))
        for loop in self.loops:
            pivot, ear = locate(poses[loop.stick], loop.pivot), locate(poses[loop.bucket], loop.ear)
            elbow = loop.close(pivot, ear)
            poses[loop.rocker] = pivot, (elbow - pivot) / loop.rocker_length
            poses[loop.link] = elbow, (ear - elbow) / loop.link_length
        return poses

    def lengths(self, poses: Mapping[str, PlanarPose]) -> Array:
        """Return the distance (m) between the pins of every cylinder."""
        ends = [(locate(poses[r.start], r.pins[0]), locate(poses[r.end], r.pins[1])) for r in self.rams]
        return np.array([abs(end - start) for start, end in ends])

    def potential(self, poses: Mapping[str, PlanarPose], forces: Sequence[PointForce]) -> float:
        """Return the potential energy (J) of the weights and of the constant forces."""
        pulls = [(mass * self.gravity, locate(poses[part], com)) for part, (mass, com) in self.weights.items()]
        pulls += [(complex(*f.force), locate(poses[f.part], complex(*f.point))) for f in forces]
        return -float(sum((pull.conjugate() * point).real for pull, point in pulls))

    def slopes(self, angles: Array, forces: Sequence[PointForce]) -> tuple[Array, Array]:
        """Return dL/dq (m), with shape (hinges, cylinders), and dV/dq (N m), with shape (hinges,)."""
        levers, torques = [], []
        for k in range(len(angles)):
            step = STEP * np.eye(len(angles))[k]
            ends = [self.poses(angles + sign * step) for sign in (1.0, -1.0)]
            levers.append((self.lengths(ends[0]) - self.lengths(ends[1])) / (2.0 * STEP))
            torques.append((self.potential(ends[0], forces) - self.potential(ends[1], forces)) / (2.0 * STEP))
        return np.array(levers).reshape(len(angles), len(self.rams)), np.array(torques)

    def static(self, element: str, angles: Array, forces: Sequence[PointForce] = ()) -> ArmStatic:
        """Return the static forces of all cylinders.

        With more cylinders than hinges, return the minimum-norm solution.
        """
        lengths = self.lengths(self.poses(angles))
        levers, torques = self.slopes(angles, forces)
        has_lever = np.any(np.abs(levers) >= DEAD_CENTER * lengths, axis=1)
        unactuated = [hinge.name for hinge, actuated in zip(self.hinges, has_lever, strict=True) if not actuated]
        if unactuated:
            rule = f"no cylinder has a lever on the hinge of '{unactuated[0]}'"
            raise validate.fail(element, rule, "give every hinge a cylinder, with pins that are not in line with it")
        push = np.linalg.lstsq(levers, torques, rcond=None)[0]
        if np.abs(levers @ push - torques).max() > 1e-6 * max(1.0, float(np.abs(torques).max())):
            raise validate.fail(element, "its cylinders do not hold every hinge", "give every hinge its own label")
        names = [ram.name for ram in self.rams]
        return ArmStatic(
            dict(zip(names, push.tolist(), strict=True)),
            dict(zip(names, lengths.tolist(), strict=True)),
            dict(zip((h.name for h in self.hinges), torques.tolist(), strict=True)),
        )


def locate(pose: PlanarPose, point: complex) -> complex:
    """Convert a point from a part's frame to the arm's frame."""
    return pose[0] + pose[1] * point
