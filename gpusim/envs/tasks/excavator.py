"""Tasks of ids ``gpusim/ExcavatorReach-v0`` and ``gpusim/ExcavatorDig-v0``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusim import rotations
from gpusim.envs.distributions import Scale, Uniform
from gpusim.envs.task import Goals, Signals, Task
from gpusim.scene import Camera
from gpusim.typing import Array

LEVERS = ("swing", "boom", "stick", "bucket")
JOINTS = [f"joint.{name}.{what}" for what in ("position", "velocity") for name in LEVERS]


class ExcavatorReach(Task):
    """Move the bucket's hinge to a goal point with four levers.

    Success: at the end, the hinge is within 10 cm of the goal.
    """

    scene = "excavator"
    parameters = {"undercarriage": "fixed", "stones": 0}
    dt, decimation, episode = 1e-2, 8, 5.0
    actions = dict.fromkeys(LEVERS, (-1.0, 1.0))
    signals = [*JOINTS, "body.bucket.position", "pump.pump.load_pressure"]
    # The minimum height is 0.35 m. If the hinge is lower, the bucket touches the ground unless the bucket is curled.
    goals = {"radius": Uniform(1.9, 2.9), "angle": Uniform(-0.8, 0.8), "height": Uniform(0.35, 1.4)}
    randomize = {
        "body.bucket.mass": Scale(0.8, 3.0),
        "pump.pump.pressure": Scale(0.85, 1.15),
        "pump.pump.max_flow": Scale(0.8, 1.2),
    }

    def observation(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return joint states, position error in cylindrical coordinates, goal, load pressure and last actions."""
        x, y, z = s["body.bucket.position"].T
        to_goal = [goal["radius"] - np.hypot(x, y), goal["angle"] - np.arctan2(y, x), goal["height"] - z]
        known = [goal["height"], goal["radius"] - 2.4, s["joint.swing.position"], 1e-7 * s["pump.pump.load_pressure"]]
        return np.concatenate([s.array[:, :8], np.stack([*to_goal, *known], axis=1), action], axis=1)

    def _gap(self, s: Signals, goal: Goals) -> Array:
        x, y = goal["radius"] * np.cos(goal["angle"]), goal["radius"] * np.sin(goal["angle"])
        return np.linalg.norm(np.stack([x, y, goal["height"]], axis=1) - s["body.bucket.position"], axis=1)

    def reward(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return a reward that increases towards the goal. The slope is greatest within 10 cm of the goal."""
        gap = self._gap(s, goal)
        return -gap + np.exp(-10.0 * gap) - 0.02 * (action**2).mean(axis=1)

    def success(self, s: Signals, goal: Goals) -> Array:
        """Return a mask of the worlds whose bucket hinge is within 10 cm of the goal (num_envs,)."""
        return self._gap(s, goal) < 0.1


STONES = 20
"""Number of stones in the trench."""
FAR = 4.0
"""Bound (m) for the coordinates of stones in observations and rewards. The arm cannot reach this far."""


@dataclass(frozen=True)
class Load:
    """State of the bucket and the stones.

    Attributes:
        to_stones: vector (num_envs, 3), m, from the middle of the bucket to the mean position of all stones that are
            not dumped.
        carried: number of lifted stones in the bucket (num_envs,). A partly lifted stone counts as a fraction.
        dumped: number of stones on the ground next to the trench (num_envs,).
        bucket: middle of the bucket (num_envs, 3), m.
    """

    to_stones: Array
    carried: Array
    dumped: Array
    bucket: Array


class ExcavatorDig(Task):
    """Scoop stones out of a trench, swing the boom sideways, and dump the stones.

    Success: at the end, at least three stones are dumped.
    """

    scene = "excavator"
    parameters = {"undercarriage": "fixed", "stones": STONES}
    dt, decimation, episode = 5e-3, 24, 12.0
    actions = dict.fromkeys(LEVERS, (-1.0, 1.0))
    signals = [
        *JOINTS, "body.bucket.position", "body.bucket.orientation", "pump.pump.load_pressure",
        *(f"body.stone{k}.position" for k in range(STONES)),
    ]  # fmt: skip
    randomize = {"pump.pump.pressure": Scale(0.9, 1.1)}
    render_options = {"camera": Camera((4.4, -3.2, 2.6), (1.7, 0.0, 0.5))}

    MIDDLE: ClassVar[tuple[float, float, float]] = (0.2, 0.0, 0.08)
    """Middle of the bucket in the bucket frame, m."""
    REACH: ClassVar[float] = 0.3
    """Maximum distance from the middle of the bucket to a stone in the bucket, m."""
    LIFTED: ClassVar[tuple[float, float]] = (0.12, 0.6)
    """Heights above which a stone counts as partly lifted and as fully lifted, m."""
    ASIDE: ClassVar[float] = 0.65
    """Minimum distance from the middle of the trench to a dumped stone, m."""

    def load(self, s: Signals) -> Load:
        """Return the state of the bucket and the stones."""
        # A stone that the bucket squeezes out can fly far away.
        stones = np.clip(s.array[:, s.slices["body.stone0.position"].start :].reshape(-1, STONES, 3), -FAR, FAR)
        rotation = rotations.matrix_from_quaternion(s["body.bucket.orientation"])
        bucket = s["body.bucket.position"] + rotations.matvec(rotation, np.array(self.MIDDLE))
        inside = np.linalg.norm(stones - bucket[:, None], axis=2) < self.REACH
        low, high = self.LIFTED
        lifted = np.clip((stones[..., 2] - low) / (high - low), 0.0, 1.0)
        dumped = (np.abs(stones[..., 1]) > self.ASIDE) & (stones[..., 2] < 0.25)
        not_dumped = ~dumped[..., None]
        mean = (stones * not_dumped).sum(axis=1) / np.maximum(not_dumped.sum(axis=1), 1)
        return Load(mean - bucket, (inside * lifted).sum(axis=1), dumped.sum(axis=1), bucket)

    def observation(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return joint states, bucket position, vector to the stones, stone counts, load pressure and last actions."""
        load = self.load(s)
        counts = [0.3 * load.carried, 0.3 * load.dumped, 1e-7 * s["pump.pump.load_pressure"]]
        return np.concatenate([s.array[:, :8], load.bucket, load.to_stones, np.stack(counts, axis=1), action], axis=1)

    def reward(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return a reward for a bucket near the stones and for lifted stones, and a larger reward for dumped stones."""
        load = self.load(s)
        carried, side = np.minimum(load.carried, 5.0), np.minimum(np.abs(load.bucket[:, 1]), 1.0)
        near = -0.3 * np.minimum(np.linalg.norm(load.to_stones, axis=1), 2.0) * np.exp(-carried)
        return near + carried * (0.3 + 0.5 * side) + 1.5 * load.dumped - 0.01 * (action**2).mean(axis=1)

    def terminated(self, s: Signals, goal: Goals) -> Array:
        """Return a mask (num_envs,) of the worlds whose bucket is more than ``FAR`` from the origin."""
        return np.linalg.norm(s["body.bucket.position"], axis=1) > FAR

    def success(self, s: Signals, goal: Goals) -> Array:
        """Return a mask of the worlds with three or more dumped stones (num_envs,)."""
        return self.load(s).dumped >= 3
