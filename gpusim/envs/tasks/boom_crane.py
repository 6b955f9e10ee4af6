"""Task of id ``gpusim/BoomCraneLift-v0``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpusim.envs.distributions import Scale, Uniform
from gpusim.envs.task import Goals, Signals, Task
from gpusim.scenes.mechanisms.boom_crane import AREA_A, AREA_B, BASE_PIN, GRAVITY, HOLDING_PRESSURE_B, ROD_PIN
from gpusim.simulation import Simulation
from gpusim.typing import Array

LOAD = (0.5 * 300.0 + 500.0) * 3.0 * GRAVITY
"""Moment (N m) of the boom's and the load's weight about the hinge, with the boom horizontal."""


class BoomCraneLift(Task):
    """Rotate a loaded boom to a goal angle. The action is the command of the cylinder's valve.

    Success: at the end, the angle is within 0.5 degrees of the goal.
    """

    scene = "boom_crane"
    dt, decimation, episode = 5e-3, 6, 6.0
    actions = {"lift": (-1.0, 1.0)}
    signals = [
        "joint.hinge.position", "joint.hinge.velocity", "cylinder.lift.pressure_a", "cylinder.lift.pressure_b",
        "cylinder.lift.spool",
    ]  # fmt: skip
    goals = {"angle": Uniform(-0.25, 0.75)}
    randomize = {
        "cylinder.lift.supply_pressure": Scale(0.85, 1.15),
        "cylinder.lift.viscous_friction": Scale(0.5, 2.0),
        "cylinder.lift.flow_gain": Scale(0.7, 1.3),
    }
    start = {"joint.hinge.position": Uniform(-0.25, 0.75)}

    def begin(self, sim: Simulation, worlds: Array, drawn: Mapping[str, Array]) -> dict[str, Array]:
        """Return the pressure in chamber A that holds the boom at the episode's random start angle."""
        cos, sin = np.cos(drawn["joint.hinge.position"]), np.sin(drawn["joint.hinge.position"])
        x, z = ROD_PIN * cos - BASE_PIN[0], ROD_PIN * sin - BASE_PIN[1]
        arm = ROD_PIN * (z * cos - x * sin) / np.hypot(x, z)
        return {"cylinder.lift.pressure_a": (LOAD * cos / arm + AREA_B * HOLDING_PRESSURE_B) / AREA_A}

    def observation(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return angle error, speed, pressures, spool position, goal and last action, scaled to about 1 each."""
        pressures = (1e-7 * s[f"cylinder.lift.pressure_{side}"] - 0.5 for side in "ab")
        seen = [
            3.0 * (goal["angle"] - s["joint.hinge.position"]), 3.0 * s["joint.hinge.velocity"], *pressures,
            s["cylinder.lift.spool"], goal["angle"], action[:, 0],
        ]  # fmt: skip
        return np.stack(seen, axis=1)

    def _error(self, s: Signals, goal: Goals) -> Array:
        return np.abs(goal["angle"] - s["joint.hinge.position"])

    def reward(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return a reward that increases towards the goal. The slope is greatest within one degree of the goal."""
        error = self._error(s, goal)
        return -2.0 * error + np.exp(-60.0 * error) - 0.02 * action[:, 0] ** 2

    def success(self, s: Signals, goal: Goals) -> Array:
        """Return a mask of the worlds within 0.5 degrees of the goal (num_envs,)."""
        return self._error(s, goal) < np.radians(0.5)
