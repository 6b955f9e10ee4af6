"""Task of id ``gpusim/HydraulicLift-v0``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpusim.envs.distributions import Scale, Uniform
from gpusim.envs.task import Goals, Signals, Task
from gpusim.simulation import Simulation
from gpusim.typing import Array

AREA_A, AREA_B, TANK = 0.25 * np.pi * 0.04**2, 0.25 * np.pi * (0.04**2 - 0.02**2), 1e5
"""Piston areas (m2) and tank pressure (Pa) of the scene."""


class HydraulicLift(Task):
    """Lift a load to a goal height with a hydraulic valve.

    Success: at the end, the load is within 5 mm of the goal.
    """

    scene = "hydraulic_lift"
    parameters = {"position": 0.2}
    dt, decimation, episode = 5e-3, 4, 3.0
    actions = {"lift": (-1.0, 1.0)}
    signals = [
        "joint.rail.position", "joint.rail.velocity", "cylinder.lift.pressure_a", "cylinder.lift.pressure_b",
        "cylinder.lift.spool",
    ]  # fmt: skip
    goals = {"height": Uniform(0.05, 0.45)}
    randomize = {
        "body.load.mass": Uniform(50.0, 300.0),
        "cylinder.lift.supply_pressure": Uniform(0.8e7, 1.2e7),
        "cylinder.lift.dry_friction": Uniform(50.0, 300.0),
        "cylinder.lift.viscous_friction": Scale(0.5, 2.0),
        "cylinder.lift.flow_gain": Scale(0.7, 1.3),
    }
    start = {"joint.rail.position": Uniform(0.05, 0.45)}

    def begin(self, sim: Simulation, worlds: Array, drawn: Mapping[str, Array]) -> dict[str, Array]:
        """Return the pressure in chamber A that holds the episode's random mass."""
        return {"cylinder.lift.pressure_a": (9.81 * drawn["body.load.mass"] + AREA_B * TANK) / AREA_A}

    def observation(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return height error, speed, pressures, spool position and last action, scaled to about 1 each."""
        out = np.empty((len(action), 6))
        out[:, 0] = 5.0 * (goal["height"] - s["joint.rail.position"])
        out[:, 1] = 4.0 * s["joint.rail.velocity"]
        out[:, 2] = 2e-7 * s["cylinder.lift.pressure_a"] - 1.0
        out[:, 3] = 2e-7 * s["cylinder.lift.pressure_b"] - 1.0
        out[:, 4] = s["cylinder.lift.spool"]
        out[:, 5] = action[:, 0]
        return out

    def _error(self, s: Signals, goal: Goals) -> Array:
        return np.abs(goal["height"] - s["joint.rail.position"])

    def reward(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return a reward that increases towards the goal. The slope is greatest within one centimeter of the goal."""
        error = self._error(s, goal)
        return -5.0 * error + np.exp(-100.0 * error) - 0.02 * action[:, 0] ** 2

    def success(self, s: Signals, goal: Goals) -> Array:
        """Return a mask of the worlds whose load is within 5 mm of the goal (num_envs,)."""
        return self._error(s, goal) < 5e-3
