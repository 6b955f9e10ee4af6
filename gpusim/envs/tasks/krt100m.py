"""Task of id ``gpusim/Krt100mDrive-v0``."""

from __future__ import annotations

import numpy as np

from gpusim.envs.distributions import Scale, Uniform
from gpusim.envs.task import Goals, Signals, Task
from gpusim.typing import Array

STEER = 0.035
"""Range of the steering rack, m."""


class Krt100mDrive(Task):
    """Drive the robot without a trailer to a goal point.

    Success: at the end, the robot is within 30 cm of the goal.
    """

    scene = "krt100m"
    parameters = {"obstacle": "none", "trailer": False}
    dt, decimation, episode = 5e-3, 20, 12.0
    actions = {"drive": (-1.0, 1.0), "steer": (-STEER, STEER)}
    signals = [
        *(f"body.chassis.{name}" for name in ("position", "orientation", "linear_velocity", "angular_velocity")),
        "joint.steer.position",
    ]
    goals = {"x": Uniform(3.0, 10.0), "y": Uniform(-4.0, 4.0)}
    randomize = {"body.chassis.mass": Scale(0.8, 1.3)}

    def _to_goal(self, s: Signals, goal: Goals) -> tuple[Array, Array]:
        """Return the vector from the robot to the goal in the world frame (2, num_envs), m."""
        x, y, _ = s["body.chassis.position"].T
        return goal["x"] - x, goal["y"] - y

    def observation(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return the goal's distance and direction, chassis velocities, steering rack position and last actions."""
        x, y, z, w = s["body.chassis.orientation"].T
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        (dx, dy), (vx, vy, _) = self._to_goal(s, goal), s["body.chassis.linear_velocity"].T
        cos, sin = np.cos(yaw), np.sin(yaw)
        angle = np.arctan2(cos * dy - sin * dx, cos * dx + sin * dy)
        seen = [
            0.2 * np.hypot(dx, dy), np.sin(angle), np.cos(angle), 0.3 * (cos * vx + sin * vy), cos * vy - sin * vx,
            s["body.chassis.angular_velocity"][:, 2], s["joint.steer.position"] / STEER,
        ]  # fmt: skip
        return np.concatenate([np.stack(seen, axis=1), action], axis=1)

    def _gap(self, s: Signals, goal: Goals) -> Array:
        return np.hypot(*self._to_goal(s, goal))

    def reward(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return a reward that is greatest at the goal."""
        gap = self._gap(s, goal)
        return -0.1 * gap + np.exp(-2.0 * gap)

    def success(self, s: Signals, goal: Goals) -> Array:
        """Return a mask of the worlds whose robot is within 30 cm of the goal (num_envs,)."""
        return self._gap(s, goal) < 0.3
