from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gpusim
from gpusim import ModelBuilder

from ..setups import read, total_energy

__all__ = ["angles", "march", "positions", "read", "simulation", "speeds", "total_energy"]


def simulation(
    builder: ModelBuilder, backend: str, dt: float, dtype: str = "float64", **settings: Any
) -> gpusim.Simulation:
    config = gpusim.SolverConfig(dt=dt, **settings)
    return gpusim.Simulation(builder.finalize(), backend=backend, dtype=dtype, config=config)


def march(sim: gpusim.Simulation, times: Sequence[float], observe: Callable[[gpusim.Simulation], Any]) -> np.ndarray:
    found, dt = [], sim.config.dt
    done = round(sim.time / dt)
    for time in times:
        step = round(time / dt)
        sim.step(step - done)
        done = step
        found.append(np.asarray(observe(sim), dtype=np.float64))
    return np.stack(found)


def positions(sim: gpusim.Simulation) -> np.ndarray:
    """Centers of mass of all bodies of world 0, m, (bodies, 3)."""
    bodies = len(sim.model.labels("body"))
    return np.array(sim.read_state()["position"][0], dtype=np.float64)[:bodies]


def speeds(sim: gpusim.Simulation) -> np.ndarray:
    bodies = len(sim.model.labels("body"))
    return np.linalg.norm(np.array(sim.read_state()["linear_velocity"][0], dtype=np.float64)[:bodies], axis=1)


def angles(sim: gpusim.Simulation) -> np.ndarray:
    bodies = len(sim.model.labels("body"))
    q = np.array(sim.read_state()["orientation"][0], dtype=np.float64)[:bodies]
    turn: np.ndarray = 2.0 * np.arctan2(np.linalg.norm(q[:, :3], axis=1), np.abs(q[:, 3]))
    return turn
