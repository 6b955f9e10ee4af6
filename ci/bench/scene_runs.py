"""Shared functions for tables of single scenes."""

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
    """Step ``sim`` for the scene's whole duration, with its schedule.

    Returns:
        The recording of the scene's signals, the maximum of the signal ``greatest``, and the process time of the steps
        (s).
    """
    assert scene.schedule is not None
    recorder = Recorder(sim, scene.signals())
    spent, highest = 0.0, -np.inf
    stride = round(SAMPLES / sim.config.dt)
    for k in range(steps_of(scene, sim)):
        if k % stride == 0:
            recorder.sample()
        start = time.process_time()
        scene.schedule(sim, sim.time)
        sim.step()
        spent += time.process_time() - start
        highest = max(highest, float(sim.read(greatest, numpy=True).max()))
    run = recorder.recording()
    return {"time": run.time, **run.signals}, highest, spent


def steps_of(scene: Scene, sim: gpusim.Simulation) -> int:
    """Return the number of steps of a whole run, up to a last step that begins at the end of the schedule."""
    return round(scene.duration / sim.config.dt) + 1


def figure(value: float) -> str:
    """Format a number with two digits if it is below 10, else as an integer."""
    return f"{value:.2g}" if value < 10.0 else f"{value:.0f}"
