from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpusim
from gpusim.scene import Scene

from .setups import Setup, read, total_energy


@dataclass
class March:
    """Samples of a run.

    Attributes:
        rows: indices of the compared samples of the reference.
        found: the output at these samples, (len(rows), outputs).
        energy_error: greatest |E - E0| over the samples, J.
        joint_gap: greatest joint gap, m.
        failure: reason why the world failed, or an empty string.
    """

    rows: np.ndarray
    found: np.ndarray
    energy_error: float
    joint_gap: float
    failure: str


def simulation(scene: Scene, setup: Setup) -> gpusim.Simulation:
    """A simulation of one world with the settings of ``setup``."""
    model = scene.builder.finalize()
    return gpusim.Simulation(model, backend=setup.backend, dtype=setup.dtype, config=setup.config())


def failure(sim: gpusim.Simulation) -> str:
    return "" if sim.health()[0] else sim.health_report()


def advance(sim: gpusim.Simulation, scene: Scene, steps: int) -> None:
    if scene.schedule is None:
        sim.step(steps)
        return
    for _ in range(steps):
        scene.schedule(sim, sim.time)
        sim.step()


def sample_steps(times: np.ndarray, dt: float, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Indices of all ``times`` up to ``limit`` that are multiples of ``dt``, and their step numbers."""
    steps = np.rint(times / dt).astype(int)
    on_grid = (np.abs(steps * dt - times) < 1e-9) & (times <= limit + 1e-9)
    rows = np.flatnonzero(on_grid)
    return rows, steps[rows]


def march(
    scene: Scene,
    setup: Setup,
    times: np.ndarray,
    limit: float,
    observe: Callable[[gpusim.Simulation], Any],
) -> March:
    """Run ``scene`` and call ``observe`` at every sample time that is a multiple of the step."""
    rows, steps = sample_steps(times, setup.dt, limit)
    sim = simulation(scene, setup)
    found, energies, gaps = [], [], []
    done = 0
    for step in steps:
        advance(sim, scene, int(step) - done)
        done = int(step)
        found.append(np.asarray(observe(sim), dtype=np.float64))
        energies.append(total_energy(sim))
        gaps.append(float(read(sim, "sim.joint_drift")))
    energy = np.asarray(energies)
    return March(rows, np.stack(found), float(np.abs(energy - energy[0]).max()), max(gaps), failure(sim))
