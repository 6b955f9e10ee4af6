"""What the tables of single scenes share: a timed run, and how figures are written."""

from __future__ import annotations

import time

import numpy as np

import gpusim
from gpusim.recording.recorder import Recorder
from gpusim.scene import Scene

SAMPLES = 0.01
"""Time between samples, s."""
MACHINE = "2-core shared AMD EPYC VM"


def timed_run(scene: Scene, sim: gpusim.Simulation, greatest: str) -> tuple[dict[str, np.ndarray], float, float]:
    """Step ``sim`` over the scene's whole way, with its schedule.

    Gives the recording of the scene's signals, the greatest value of the signal ``greatest`` at any step, and the
    process time of the steps alone, s.
    """
    assert scene.schedule is not None
    recorder = Recorder(sim, scene.signals())
    spent, most = 0.0, -np.inf
    stride = round(SAMPLES / sim.config.dt)
    for k in range(steps_of(scene, sim)):
        if k % stride == 0:
            recorder.sample()
        start = time.process_time()
        scene.schedule(sim, sim.time)
        sim.step()
        spent += time.process_time() - start
        most = max(most, float(sim.read(greatest, numpy=True).max()))
    run = recorder.recording()
    return {"time": run.time, **run.signals}, most, spent


def steps_of(scene: Scene, sim: gpusim.Simulation) -> int:
    """Of a whole run; the last one begins at its end."""
    return round(scene.duration / sim.config.dt) + 1


def figure(value: float) -> str:
    """Two digits, or whole."""
    return f"{value:.2g}" if value < 10.0 else f"{value:.0f}"
