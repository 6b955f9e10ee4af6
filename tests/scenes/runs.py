from __future__ import annotations

import numpy as np

import gpusim
from gpusim.recording.recorder import Recorder
from gpusim.reference.accuracy import VOIDS
from gpusim.scene import Scene
from tests.analytic.march import advance


def recorded(scene: Scene, sim: gpusim.Simulation, stride: int, steps: int | None = None) -> dict[str, np.ndarray]:
    steps = round(scene.duration / sim.config.dt) if steps is None else steps
    recorder = Recorder(sim, scene.signals(), steps // stride + 1)
    recorder.sample()
    for _ in range(steps // stride):
        advance(sim, scene, stride)
        recorder.sample()
    assert not (sim.status_flags() & ~VOIDS).any(), sim.health_report()
    run = recorder.recording()
    return {"time": run.time, **run.signals}
