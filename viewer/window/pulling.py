"""Spring-damper that pulls a body to the mouse cursor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gpusim import rotations
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

FREQUENCY = 2.0
"""Natural frequency of the critically damped spring with the effective mass at the grabbed point, Hz."""
STRONGEST = 250.0
"""Maximum spring force divided by the body's mass, m/s2."""
SPIN_DAMPING = 8.0
"""Rate at which the damping reduces the body's rotation, 1/s."""
SIGNALS = ("applied_force", "applied_torque")


def mass_at_point(mass: float, inertia: Array, arm: Array) -> float:
    """Return the minimum effective mass (kg) of a free body at a point, over all force directions.

    Args:
        mass: mass of the body (kg).
        inertia: inertia (3, 3) about the center of mass (kg m2).
        arm: vector (3,) from the center of mass to the point (m), in the same axes.
    """
    cross = rotations.skew(np.asarray(arm, dtype=float))
    inertia_inverse_effective = np.eye(3) / mass - cross @ np.linalg.inv(inertia) @ cross
    return float(1.0 / np.linalg.eigvalsh(inertia_inverse_effective)[-1])


def spring_wrench(
    stretch: Array, velocity: Array, arm: Array, mass: float, felt: float, frequency: float = FREQUENCY
) -> tuple[Array, Array]:
    """Compute the force of a critically damped spring on a point, and its torque about the center of mass.

    Args:
        stretch: vector (3,) from the point to the target (m).
        velocity: velocity (3,) of the point (m/s).
        arm: vector (3,) from the center of mass to the point (m).
        mass: mass of the body (kg). The maximum force is 250 m/s2 times the mass.
        felt: effective mass at the point (kg), from :func:`mass_at_point`.
        frequency: undamped natural frequency of the spring (Hz).

    Returns:
        Force (3,) in N, and torque (3,) in N m, in the axes of the arguments.
    """
    omega = math.tau * frequency
    force = felt * (omega * omega * stretch - 2.0 * omega * velocity)
    size = float(np.linalg.norm(force))
    if size > STRONGEST * mass:
        force = force * (STRONGEST * mass / size)
    return force, np.cross(arm, force)


def why_not_pulled(sim: Simulation, body: int) -> str:
    """Return the reason why the mouse cannot pull a body, or an empty text if it can."""
    spec = sim.model.bodies[body]
    if spec.kinematic:
        return f"body '{spec.label}' follows its prescribed motion and cannot be pulled"
    if any(f"body.{spec.label}.{name}" not in sim.signals() for name in SIGNALS):
        return "this simulation has no applied forces, so bodies cannot be pulled"
    return ""


class Pull:
    """Spring that pulls a body while the user holds the mouse button.

    Args:
        sim: the simulation.
        world, body: indices of the pulled body.
        point: grabbed point in the world frame (m), without grid offset.

    Attributes:
        target: position to which the spring pulls the point (m).
    """

    def __init__(self, sim: Simulation, world: int, body: int, point: Array) -> None:
        self._sim = sim
        self.world, self.body = world, body
        self.label = sim.model.bodies[body].label
        self.target = np.array(point)
        center, rotation, _, _ = self._motion()
        self._arm = rotation.T @ (point - center)
        self._mass = float(sim.runtime.parameter("mass")[world, body])
        self._inertia = np.array(sim.runtime.parameter("inertia")[world, body])
        self._felt = mass_at_point(self._mass, self._inertia, self._arm)

    def _motion(self) -> tuple[Array, Array, Array, Array]:
        """Return four values for the body: center of mass, rotation matrix, velocity, angular momentum."""
        state = self._sim.read_state()
        names = ("position", "orientation", "linear_velocity", "angular_momentum")
        center, quaternion, velocity, momentum = (
            np.array(state[name][self.world, self.body], dtype=float) for name in names
        )
        return center, rotations.matrix_from_quaternion(quaternion), velocity, momentum

    def point(self) -> Array:
        """Return the current position of the grabbed point (m)."""
        center, rotation, _, _ = self._motion()
        return center + rotation @ self._arm

    def apply(self, seconds: float = 0.0) -> None:
        """Apply the spring force and torque for the current state, until the next call."""
        center, rotation, velocity, momentum = self._motion()
        arm = rotation @ self._arm
        spin = rotation @ np.linalg.solve(self._inertia, rotation.T @ momentum)
        stretch = self.target - center - arm
        force, torque = spring_wrench(stretch, velocity + np.cross(spin, arm), arm, self._mass, self._felt)
        self._write(force, torque - SPIN_DAMPING * momentum)

    def release(self) -> None:
        """Remove force and torque."""
        self._write(np.zeros(3), np.zeros(3))

    def _write(self, *wrench: Array) -> None:
        for name, value in zip(SIGNALS, wrench, strict=True):
            self._sim.write(f"body.{self.label}.{name}", value, worlds=self.world)
