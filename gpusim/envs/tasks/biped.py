"""Task of id ``gpusim/BipedWalk-v0``."""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.envs.distributions import Scale, Uniform
from gpusim.envs.task import Goals, Signals, Task
from gpusim.scenes.machines._biped import SIDES, standing
from gpusim.scenes.machines._walk_plan import LEG
from gpusim.scenes.machines.biped_walk import STANDING_BEND, TARGET_RANGE
from gpusim.typing import Array

JOINTS = [f"{side}_{name}" for side, _ in SIDES for name in LEG]
POSTURE, PELVIS = standing(STANDING_BEND)
HOME = np.array([POSTURE.get(name, 0.0) for name in JOINTS])
HEIGHT = float(PELVIS.position[2])
FALLEN = 0.8 * HEIGHT
"""Height of the pelvis below which the robot has fallen, m."""


class BipedWalk(Task):
    """Walk at a goal speed. The actions are the target positions of twelve joints.

    Success: at the end, the robot stands and its speed is within 0.1 m/s of the goal.
    """

    scene = "biped_walk"
    parameters = {"control": "joints"}
    decimation, episode = 10, 10.0
    actions = {
        f"{name}_target": (angle - TARGET_RANGE, angle + TARGET_RANGE) for name, angle in zip(JOINTS, HOME, strict=True)
    }
    signals = [
        *(f"body.pelvis.{name}" for name in ("position", "orientation", "linear_velocity", "angular_velocity")),
        *(f"joint.{name}.{what}" for what in ("position", "velocity") for name in JOINTS),
    ]
    goals = {"speed": Uniform(0.0, 0.6)}
    randomize = {"body.torso.mass": Scale(0.8, 1.2)}
    noise = {f"joint.{name}.position": 0.005 for name in JOINTS}

    def observation(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return pelvis height, gravity and velocities in the pelvis frame, joints, goal speed and last actions."""
        inverse = np.swapaxes(rotations.matrix_from_quaternion(s["body.pelvis.orientation"]), 1, 2)
        velocities = (rotations.matvec(inverse, s[f"body.pelvis.{name}_velocity"]) for name in ("linear", "angular"))
        joints = s.array[:, s.slices[f"joint.{JOINTS[0]}.position"].start :]
        return np.concatenate(
            [
                s["body.pelvis.position"][:, 2:] - HEIGHT, -inverse[..., 2], *velocities,
                joints[:, : len(JOINTS)] - HOME, 0.1 * joints[:, len(JOINTS) :], goal["speed"][:, None], action,
            ],
            axis=1,
        )  # fmt: skip

    def _miss(self, s: Signals, goal: Goals) -> Array:
        return np.abs(s["body.pelvis.linear_velocity"][:, 0] - goal["speed"])

    def reward(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return a reward for the goal speed, a straight walk along the x axis, a steady pelvis and small actions."""
        sideways = np.abs(s["body.pelvis.linear_velocity"][:, 1]) + np.abs(s["body.pelvis.position"][:, 1])
        angular_speed = np.abs(s["body.pelvis.angular_velocity"]).sum(axis=1)
        return (
            0.3
            + np.exp(-10.0 * self._miss(s, goal) ** 2)
            - 0.2 * sideways
            - 0.02 * angular_speed
            - 0.01 * (action**2).sum(1)
        )

    def terminated(self, s: Signals, goal: Goals) -> Array:
        """Return a mask of the worlds whose robot has fallen (num_envs,)."""
        return s["body.pelvis.position"][:, 2] < FALLEN

    def success(self, s: Signals, goal: Goals) -> Array:
        """Return a mask of the worlds whose robot stands and walks at the goal speed (num_envs,)."""
        return (self._miss(s, goal) < 0.1) & ~self.terminated(s, goal)
