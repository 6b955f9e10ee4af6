"""A scene over its duration, as its checks take it."""

from __future__ import annotations

import numpy as np

import gpusim
from gpusim.recording.recorder import Recorder
from gpusim.scene import Scene


def recorded(scene: Scene, sim: gpusim.Simulation, stride: int) -> dict[str, np.ndarray]:
    """The scene's signals and the time, once in ``stride`` steps; all worlds stay healthy."""
    assert scene.schedule is not None
    recorder = Recorder(sim, scene.signals())
    for step in range(round(scene.duration / sim.config.dt) + 1):
        if step % stride == 0:
            recorder.sample()
        scene.schedule(sim, sim.time)
        sim.step()
    assert sim.health().all(), sim.health_report()
    run = recorder.recording()
    return {"time": run.time, **run.signals}
