"""Data of the selected body, for display in the window."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusim import rotations
from gpusim.typing import Array
from gpusim.viewer.window.sources import Live, Source


@dataclass(frozen=True)
class Picked:
    """State of a body at one time.

    Attributes:
        label: name of the body.
        world: index of the body's world.
        position: origin of the body frame, in the world frame (m).
        orientation: quaternion xyzw, body to world.
        velocity: velocity of the center of mass (m/s), None for recordings.
        angular_velocity: angular velocity in the world frame (rad/s), None for recordings.
        mass: mass (kg), None for a kinematic body.
    """

    label: str
    world: int
    position: Array
    orientation: Array
    velocity: Array | None
    angular_velocity: Array | None
    mass: float | None

    @classmethod
    def read(cls, source: Source, world: int, body: int) -> Picked:
        """Read the current state of a body from a source.

        Args:
            source: simulation or recording.
            world: index of the source's world.
            body: index of the body.
        """
        spec = source.model.bodies[body]
        if isinstance(source, Live):
            names = ("position", "orientation", "linear_velocity", "angular_velocity")
            position, orientation, speed, spin = (
                source.sim.read(f"body.{spec.label}.{name}", numpy=True)[world] for name in names
            )
            mass = None if spec.kinematic else float(source.sim.runtime.parameter("mass")[world, body])
            return cls(spec.label, world, position, orientation, speed, spin, mass)
        poses = source.poses([world], None)
        rotation = poses.rotation[0, body]
        position = poses.position[0, body] - rotation @ spec.com
        mass = None if spec.kinematic else float(source.model.parameters["mass"][0, body])
        return cls(spec.label, world, position, quaternion_of(rotation), None, None, mass)

    def lines(self) -> list[str]:
        """Return lines of text, one line for each value."""
        x, y, z = np.round(self.position, 9) + 0.0
        rotation_vector = rotations.rotation_vector_from_quaternion(self.orientation)
        angle = float(np.linalg.norm(rotation_vector))
        axis = rotation_vector / angle if angle > 1e-9 else np.array([0.0, 0.0, 1.0])
        axis = np.round(axis, 2) + 0.0  # avoids "-0.00"
        reported = [
            f"{self.label}" + (f"  (world {self.world})" if self.world else ""),
            f"at {x:.4g}, {y:.4g}, {z:.4g} m",
            f"turned {math.degrees(angle):.1f}° about {axis[0]:.2f}, {axis[1]:.2f}, {axis[2]:.2f}",
        ]
        if self.velocity is not None and self.angular_velocity is not None:
            speed, spin = (round(float(np.linalg.norm(v)), 6) for v in (self.velocity, self.angular_velocity))
            reported.append(f"speed {speed:.3g} m/s, {spin:.3g} rad/s")
        reported.append("follows its prescribed motion" if self.mass is None else f"mass {self.mass:.4g} kg")
        return reported


def quaternion_of(matrix: Array) -> Array:
    """Return the quaternion xyzw of a rotation matrix (3, 3)."""
    x, y, z = matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]
    m = matrix
    # eigenvector of the maximum eigenvalue, without case distinction (Bar-Itzhack 2000)
    k = np.array(
        [
            [m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], x],
            [m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], m[1, 2] + m[2, 1], y],
            [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1], z],
            [x, y, z, m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    quaternion: Array = np.linalg.eigh(k)[1][:, -1]
    return quaternion if quaternion[3] >= 0.0 else -quaternion
