"""Scenes whose control is a block diagram: they fulfill their checks, which can fail, and NumPy runs them alike."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import gpusim
from gpusim.scene import Scene, load_scene

CASES = {
    "lift": ("hydraulic_lift", {}),
    "lift of 5 t": ("hydraulic_lift", {"variant": "ramped"}),
    "lift with a closed center": ("hydraulic_lift", {"variant": "closed_center"}),
}
STRIDE = 10


def scene_of(case: str) -> Scene:
    """A scene by its diagram."""
    name, parameters = CASES[case]
    return load_scene(name, control="diagram", **parameters)


@cache
def recording(case: str) -> dict[str, np.ndarray]:
    """A run of the scene over its duration, native; made once."""
    scene = scene_of(case)
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=scene.config)
    assert scene.schedule is not None
    times: list[float] = []
    samples: dict[str, list[np.ndarray]] = {name: [] for name in scene.signals()}
    for _ in range(0, round(scene.duration / scene.config.dt) + 1, STRIDE):
        times.append(sim.time)
        for name, values in samples.items():
            values.append(np.array(sim.read(name, numpy=True)))
        for _ in range(STRIDE):
            scene.schedule(sim, sim.time)
            sim.step()
    assert sim.health().all(), sim.health_report()
    return {"time": np.array(times)} | {name: np.stack(values) for name, values in samples.items()}


@pytest.mark.native
@pytest.mark.parametrize("case", CASES)
def test_the_diagram_does_what_the_scene_says(case: str) -> None:
    scene = scene_of(case)
    assert scene.checks
    assert [check.statement for check in scene.checks if not check.passes(recording(case))] == []


@pytest.mark.native
@pytest.mark.parametrize("case", CASES)
def test_the_checks_fail_without_the_operator(case: str) -> None:
    """Nobody touches an input: the run is that of the first sample, held."""
    run = {name: np.repeat(values[1:2], len(values), axis=0) for name, values in recording(case).items()}
    run["time"] = recording(case)["time"]
    assert any(not check.passes(run) for check in scene_of(case).checks)


@pytest.mark.native
@pytest.mark.parametrize("case", CASES)
def test_numpy_runs_it_alike(case: str) -> None:
    found = []
    for backend in ("native", "numpy"):
        scene = scene_of(case)
        sim = gpusim.Simulation(scene.builder.finalize(), backend=backend, config=scene.config)
        for item in scene.builder.diagrams[0].operator_inputs:
            sim.control[item.label] = 0.5 * (item.lower + item.upper) + 0.4 * (item.upper - item.lower)
        sim.step(20)
        found.append(sim.control.array.copy())
    np.testing.assert_allclose(found[0], found[1], rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES.values()}))
def test_schedules_stay_as_they_were(name: str) -> None:
    assert load_scene(name).builder.diagrams == []
    assert load_scene(name, control="diagram").builder.diagrams


@pytest.mark.native
def test_the_lift_stops_and_warns() -> None:
    """Stop shuts the valve and brakes the rod; a load that can't follow puts a lamp on, until it is confirmed."""
    scene = load_scene("hydraulic_lift", control="diagram", position=0.2)
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=scene.config)
    sim.control["height"] = 0.4
    sim.step(800)
    moving = float(sim.read("joint.rail.velocity")[0])
    sim.control["stop"] = 1.0
    sim.step(200)
    place = float(sim.read("joint.rail.position")[0])
    assert moving > 0.05 and abs(float(sim.read("joint.rail.velocity")[0])) < 1e-3
    assert sim.control["lift"][0] == 0.0 and sim.control["lift.brake"][0] == 1.0
    sim.step(1000)
    assert abs(float(sim.read("joint.rail.position")[0]) - place) < 1e-3
    late = "diagram.lift_control.late"
    assert sim.read(late)[0] == 1.0  # the wish has gone on
    sim.control["stop"] = 0.0
    sim.step(3000)
    assert abs(float(sim.read("joint.rail.position")[0]) - 0.4) < 2e-3 and sim.read(late)[0] == 1.0
    sim.control["confirm"] = 1.0
    sim.step(2)
    assert sim.read(late)[0] == 0.0
