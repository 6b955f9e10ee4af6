from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import gpusim
from gpusim.scene import Scene, load_scene
from gpusim.scenes.machines._krt_control import MAX_LATERAL_ACCELERATION, STEERING_RATE, asked_speed
from gpusim.scenes.machines.krt100m import WHEELBASE
from tests.scenes.runs import recorded

CASES = {
    "lift": ("hydraulic_lift", {}),
    "lift of 5 t": ("hydraulic_lift", {"variant": "ramped"}),
    "krt100m": ("krt100m", {}),
    "krt100m by speed": ("krt100m", {"drive_mode": "speed", "trailer": False}),
    "excavator": ("excavator", {"stones": 0}),
    "excavator that is held": ("excavator", {"stones": 0, "undercarriage": "fixed"}),
    "rtk_m": ("rtk_m", {}),
    "lift with a closed center": ("hydraulic_lift", {"variant": "closed_center"}),
}
STRIDE = 10
ON_TRACKS = ("excavator", "rtk_m")


def scene_of(case: str) -> Scene:
    name, parameters = CASES[case]
    return load_scene(name, control="diagram", **parameters)


@cache
def recording(case: str) -> dict[str, np.ndarray]:
    scene = scene_of(case)
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=scene.config)
    return recorded(scene, sim, STRIDE)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("case", CASES)
def test_the_diagram_does_what_the_scene_says(case: str) -> None:
    scene = scene_of(case)
    assert scene.checks
    assert [check.statement for check in scene.checks if not check.passes(recording(case))] == []


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("case", CASES)
def test_the_checks_fail_without_the_operator(case: str) -> None:
    run = {name: np.repeat(values[1:2], len(values), axis=0) for name, values in recording(case).items()}
    run["time"] = recording(case)["time"]
    assert any(not check.passes(run) for check in scene_of(case).checks)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("case", CASES)
def test_numpy_runs_it_alike(case: str) -> None:
    found = []
    for backend in ("native", "numpy"):
        scene = scene_of(case)
        sim = gpusim.Simulation(scene.builder.finalize(), backend=backend, config=scene.config)
        for item in scene.builder.diagrams[0].operator_inputs:
            sim.control[item.label] = 0.5 * (item.lower + item.upper) + 0.4 * (item.upper - item.lower)
        sim.step(20 if scene.name == "hydraulic_lift" else 2 if case in ON_TRACKS else 5)
        found.append(sim.control.array.copy())
    np.testing.assert_allclose(found[0], found[1], rtol=0.0, atol=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted({name for name, _ in CASES.values()}))
def test_schedules_stay_as_they_were(name: str) -> None:
    assert load_scene(name).builder.diagrams == []
    assert load_scene(name, control="diagram").builder.diagrams


@pytest.mark.native
def test_the_lift_stops_and_warns() -> None:
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
    assert sim.read(late)[0] == 1.0
    sim.control["stop"] = 0.0
    sim.step(3000)
    assert abs(float(sim.read("joint.rail.position")[0]) - 0.4) < 2e-3 and sim.read(late)[0] == 1.0
    sim.control["confirm"] = 1.0
    sim.step(2)
    assert sim.read(late)[0] == 0.0


@pytest.mark.nightly
@pytest.mark.native
def test_krt100m_steers_within_its_bounds() -> None:
    scene = load_scene("krt100m", control="diagram", obstacle="none", trailer=False)
    sim = gpusim.Simulation(scene.builder.finalize(), 2, backend="native", config=scene.config)
    sim.step(100)
    assert np.all(sim.read("diagram.driver.brake") == 1.0)
    sim.control["stick"] = [0.5, 1.0]
    sim.control["wheel"] = [-1.0, 1.0]
    turned = []
    for _ in range(300):
        sim.step(2)  # one sample
        turned.append(sim.read("diagram.driver.turned"))
    rates = np.abs(np.diff(np.array(turned), axis=0)) / 0.01
    assert rates.max() < STEERING_RATE * 1.001 and rates.max() > 0.9 * STEERING_RATE
    speed, angle = sim.read("diagram.driver.speed"), sim.read("diagram.driver.turned")
    assert np.allclose(speed, [asked_speed(0.5), asked_speed(1.0)], rtol=0.05)
    aside = speed**2 * np.tan(np.abs(angle)) / WHEELBASE
    assert angle[0] > 0.3 and aside[0] < MAX_LATERAL_ACCELERATION
    assert angle[1] == pytest.approx(-MAX_LATERAL_ACCELERATION * WHEELBASE / speed[1] ** 2, rel=0.02)
    yaw = sim.read("body.chassis.angular_velocity")[:, 2]
    assert np.allclose(yaw, speed * np.tan(angle) / WHEELBASE, rtol=0.15)
