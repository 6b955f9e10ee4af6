"""Pulling a body with the mouse: a spring and damper from the grabbed point to the cursor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpusim.geometry import rotations
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

FREQUENCY = 2.0
"""Of the grabbed point on its spring, Hz; it is damped critically."""
STRONGEST = 250.0
"""Bound of the force over the body's mass, m/s2."""
SPIN_DAMPING = 8.0
"""Rate at which a pulled body stops to turn about the grabbed point, which the spring does not see, 1/s."""
SIGNALS = ("applied_force", "applied_torque")


def mass_at_point(mass: float, inertia: Array, arm: Array) -> float:
    """The least mass that a force at a point of a free body feels, in any direction, kg.

    Args:
        mass: kg.
        inertia: (3, 3) about the center of mass, kg m2.
        arm: (3,) from there to the point, m, in the same axes.
    """
    cross = rotations.skew(np.asarray(arm, dtype=float))
    inertia_inverse_effective = np.eye(3) / mass - cross @ np.linalg.inv(inertia) @ cross
    return float(1.0 / np.linalg.eigvalsh(inertia_inverse_effective)[-1])


def spring_wrench(
    stretch: Array, velocity: Array, arm: Array, mass: float, felt: float, frequency: float = FREQUENCY
) -> tuple[Array, Array]:
    """Force and torque about the center of mass of a critically damped spring at a point.

    Args:
        stretch: (3,) from the point to where it is pulled, m.
        velocity: (3,) of the point, m/s.
        arm: (3,) from the center of mass to the point, m.
        mass: of the body, bounds the force, kg.
        felt: mass at the point, kg; see :func:`mass_at_point`.
        frequency: undamped, Hz.

    Returns:
        Force, N, and torque, N m, (3,) each, in the axes of the arguments.
    """
    omega = math.tau * frequency
    force = felt * (omega * omega * stretch - 2.0 * omega * velocity)
    size = float(np.linalg.norm(force))
    if size > STRONGEST * mass:
        force = force * (STRONGEST * mass / size)
    return force, np.cross(arm, force)


def why_not_pulled(sim: Simulation, body: int) -> str:
    """Why a body cannot be pulled; empty if it can."""
    spec = sim.model.bodies[body]
    if spec.kinematic:
        return f"body '{spec.label}' follows its given motion and cannot be pulled"
    if any(f"body.{spec.label}.{name}" not in sim.signals() for name in SIGNALS):
        return "this simulation takes no applied forces; nothing can be pulled"
    return ""


class Pull:
    """One body on the spring, from the press of the button to its release.

    Args:
        sim: the simulation.
        world, body: numbers of what is pulled.
        point: where it is grabbed, world frame without the offset of the grid, m.

    Attributes:
        target: where the point is pulled to, m.
    """

    def __init__(self, sim: Simulation, world: int, body: int, point: Array) -> None:
        self._sim = sim
        self.world, self.body = world, body
        self.label = sim.model.bodies[body].label
        self.target = np.array(point)
        center, turn, _, _ = self._motion()
        self._arm = turn.T @ (point - center)
        self._mass = float(sim.parameter("mass")[world, body])
        self._inertia = np.array(sim.parameter("inertia")[world, body])
        self._felt = mass_at_point(self._mass, self._inertia, self._arm)

    def _motion(self) -> tuple[Array, Array, Array, Array]:
        """Center of mass, rotation matrix, velocity and angular momentum: those of the half step do for a damper."""
        state = self._sim.read_state()
        names = ("position", "orientation", "linear_velocity", "angular_momentum")
        center, quaternion, velocity, momentum = (
            np.array(state[name][self.world, self.body], dtype=float) for name in names
        )
        return center, rotations.matrix_from_quaternion(quaternion), velocity, momentum

    def point(self) -> Array:
        """Where the grabbed point is, m."""
        center, turn, _, _ = self._motion()
        return center + turn @ self._arm

    def apply(self, seconds: float = 0.0) -> None:
        """Write the force and the torque that belong to the state; they hold for the next steps."""
        center, turn, velocity, momentum = self._motion()
        arm = turn @ self._arm
        spin = turn @ np.linalg.solve(self._inertia, turn.T @ momentum)
        stretch = self.target - center - arm
        force, torque = spring_wrench(stretch, velocity + np.cross(spin, arm), arm, self._mass, self._felt)
        self._write(force, torque - SPIN_DAMPING * momentum)

    def release(self) -> None:
        """Let go."""
        self._write(np.zeros(3), np.zeros(3))

    def _write(self, *wrench: Array) -> None:
        for name, value in zip(SIGNALS, wrench, strict=True):
            self._sim.write(f"body.{self.label}.{name}", value, world=self.world)
