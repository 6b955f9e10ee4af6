"""Every scene runs, and shows what its checks say."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.backends import why_not
from gpusim.scene import Scene, list_scenes, load_scene

#: Steps that show a scene at work; scenes with checks run in full.
FEW_STEPS = 50
#: The same for scenes with contacts on NumPy, which takes long for many of them.
FEW_CONTACTS = 2


def _record(scene: Scene, steps: int, stride: int = 1, backend: str = "numpy") -> dict[str, np.ndarray]:
    sim = gpusim.Simulation(scene.builder.finalize(), backend=backend, config=scene.config)
    names = scene.signals()
    times: list[float] = []
    samples: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for step in range(steps + 1):
        if step % stride == 0:
            times.append(sim.time)
            for name in names:
                samples[name].append(np.array(sim.read(name, numpy=True)))
        if step < steps:
            if scene.schedule:
                scene.schedule(sim, sim.time)
            sim.step()
    return {"time": np.array(times)} | {name: np.stack(values) for name, values in samples.items()}


@pytest.mark.parametrize("name", list_scenes())
def test_scene_runs_and_its_signals_are_finite(name):
    scene = load_scene(name)
    recording = _record(scene, FEW_CONTACTS if scene.builder.shapes else FEW_STEPS)
    for signal, values in recording.items():
        assert np.isfinite(values).all(), signal


@pytest.mark.parametrize("name", [name for name in list_scenes() if load_scene(name).checks])
def test_scene_fulfills_its_checks(name):
    scene = load_scene(name)
    backend = "numpy"
    if scene.builder.shapes:
        backend = "native"
        if why_not(backend):
            pytest.skip(f"no native backend, and NumPy takes minutes for a whole run with contacts: {why_not(backend)}")
    recording = _record(scene, round(scene.duration / scene.config.dt), stride=2, backend=backend)
    broken = [check.statement for check in scene.checks if not check.passes(recording)]
    assert not broken
