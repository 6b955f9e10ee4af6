from __future__ import annotations

import math
import pathlib
from functools import cache
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Transform
from gpusim.control import Diagram, block_kinds
from gpusim.robotics import Tree
from gpusim.scene import Scene, load_scene
from gpusim.scenes.mechanisms import _robot_arm, robot_arm
from gpusim.scenes.mechanisms._robot_arm_control import APPROACH, Path
from gpusim.viewer.operator import Operator
from tests.scenes.runs import recorded

STRIDE = 5
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "pid": {"control": "pid"},
    "eight, fast": {"path": "eight", "speed": 0.5, "tilt": 45.0},
    "eight by pid": {"path": "eight", "control": "pid"},
    "level, without a load": {"tilt": 0.0, "load": 0.0},
    "heavier than known": {"unknown": 0.5},
    "250 Hz": {"rate": 250.0},
    "500 Hz": {"rate": 500.0},
}


def simulation(scene: Scene, worlds: int = 1) -> gpusim.Simulation:
    return gpusim.Simulation(scene.builder.finalize(), worlds, backend="native", config=scene.config)


@cache
def recording(case: str) -> dict[str, np.ndarray]:
    scene = load_scene("robot_arm", **CASES[case])
    sim = simulation(scene)
    return recorded(scene, sim, STRIDE)


def path_of(case: str) -> Path:
    given = {"path": "square", "tilt": 25.0} | CASES[case]
    plane = Transform.from_axis_angle(robot_arm.CENTER, (0, 1, 0), -math.radians(given["tilt"]))
    return Path(given["path"], plane, plane)


def off_path(case: str) -> float:
    end = load_scene("robot_arm", **CASES[case]).duration - APPROACH - robot_arm.SETTLING_TIME
    return float(robot_arm.off(path_of(case), recording(case), end).max())


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("case", CASES)
def test_the_scene_fulfills_its_checks(case: str) -> None:
    checks = load_scene("robot_arm", **CASES[case]).checks
    assert [check.statement for check in checks if not check.passes(recording(case))] == []


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("case", ["plain", "pid", "eight by pid"])
def test_the_checks_fail_without_a_start(case: str) -> None:
    run = {name: np.repeat(values[1:2], len(values), axis=0) for name, values in recording(case).items()}
    run["time"] = recording(case)["time"]
    broken = [c.statement for c in load_scene("robot_arm", **CASES[case]).checks if not c.passes(run)]
    assert "the tool follows the whole path and returns home" in broken and len(broken) >= 2


@pytest.mark.nightly
@pytest.mark.native
def test_computed_torque_is_far_better_than_pid() -> None:
    assert off_path("plain") < 6e-5
    assert off_path("pid") > 20.0 * off_path("plain")
    use = [recording(case)["diagram.arm.use"].max() for case in ("plain", "pid")]
    assert use[0] < 1.05 * use[1]


@pytest.mark.nightly
@pytest.mark.native
def test_errors_are_of_the_first_order_of_the_sample_time() -> None:
    far, near, nearest = (off_path(case) for case in ("250 Hz", "500 Hz", "plain"))
    assert 1.8 < far / near < 2.3 and 1.8 < near / nearest < 2.3


@pytest.mark.nightly
@pytest.mark.native
def test_an_unknown_load_sags_and_is_made_up_for() -> None:
    miss, time = recording("heavier than known")["diagram.arm.miss"][:, 0], recording("plain")["time"]
    assert 4.0 * recording("plain")["diagram.arm.miss"].max() < miss.max() == miss[time < 0.3].max()
    assert off_path("plain") < off_path("heavier than known") < 3e-4


@pytest.mark.native
def test_efforts_are_those_of_the_tree() -> None:
    scene = load_scene("robot_arm")
    sim, tree = simulation(scene), Tree(scene.builder.finalize())
    assert scene.schedule is not None and tree.names == _robot_arm.NAMES
    for step in range(4000):
        scene.schedule(sim, sim.time)
        sim.step()
        if step % 250 != 249:
            continue
        q, v, a = (sim.read(f"diagram.arm.{name}") for name in ("q", "rate", "wanted"))
        expected = tree.inverse_dynamics(q, v, a)[0]
        assert np.abs(expected).max() > 10.0
        np.testing.assert_allclose(
            sim.read("diagram.arm.effort")[0], expected, rtol=0.0, atol=3e-4 * np.abs(expected).max()
        )


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("control", ["computed_torque", "pid"])
def test_numpy_runs_it_alike(control: str) -> None:
    found = []
    for backend in ("native", "numpy"):
        scene = load_scene("robot_arm", control=control)
        sim = gpusim.Simulation(scene.builder.finalize(), backend=backend, config=scene.config)
        sim.control["start"] = 1.0
        sim.step(250)
        names = [name for name in scene.signals() if name != "sim.joint_drift"]
        found.append([np.array(sim.read(name, numpy=True)) for name in names])
    assert np.linalg.norm(found[0][0] - load_home(control)) > 0.01
    for native, numpy in zip(*found, strict=True):
        np.testing.assert_allclose(numpy, native, rtol=0.0, atol=1e-6 * max(1.0, float(np.abs(native).max())))


def load_home(control: str) -> np.ndarray:
    return np.array(simulation(load_scene("robot_arm", control=control)).read("site.tool.position"))


@pytest.mark.parametrize("control", ["computed_torque", "pid"])
def test_a_file_keeps_its_diagram(control: str, tmp_path: pathlib.Path) -> None:
    (d,) = load_scene("robot_arm", control=control).builder.diagrams
    assert isinstance(d, Diagram)
    d.save(tmp_path / "arm.yaml")
    again = Diagram.load(tmp_path / "arm.yaml")
    assert list(again.blocks) == list(d.blocks) and again.wires == d.wires
    for name, block in d.blocks.items():
        for key in block_kinds()[block.kind].parameters():
            assert np.array_equal(getattr(again.blocks[name], key), getattr(block, key)), (name, key)


@pytest.mark.native
def test_it_stays_at_home_until_it_is_started() -> None:
    scene = load_scene("robot_arm")
    sim, tree = simulation(scene), Tree(scene.builder.finalize())
    home = sim.read("site.tool.position")[0].copy()
    sim.step(1500)
    assert np.linalg.norm(sim.read("site.tool.position")[0] - home) < 1e-5
    torques = [_robot_arm.GEAR * sim.read(f"motor.{name}.torque")[0] for name in _robot_arm.NAMES]
    np.testing.assert_allclose(torques, tree.gravity_torques(tree.posture(sim))[0], atol=1e-3)


@pytest.mark.native
def test_an_operator_stops_it_anywhere() -> None:
    scene = load_scene("robot_arm")
    sim, path = simulation(scene, 2), path_of("plain")
    home = sim.read("site.tool.position")[0].copy()
    sim.control["start"], sim.control["speed"] = 1.0, 0.3
    sim.step(2500)
    assert path.distance(sim.read("site.tool.position")).max() < 1e-4
    sim.control["speed"] = [0.0, 0.3]
    sim.control["start"] = [1.0, 0.0]
    sim.step(1500)
    place = sim.read("site.tool.position").copy()
    assert path.distance(place)[0] < 1e-4 and np.linalg.norm(place[1] - home) < 1e-4
    assert np.abs(sim.read("site.tool.linear_velocity")).max() < 1e-4
    sim.control["speed"], sim.control["start"] = 0.3, [1.0, 1.0]
    sim.step(500)
    assert np.linalg.norm(sim.read("site.tool.position")[0] - place[0]) > 0.05


@pytest.mark.nightly
@pytest.mark.native
def test_efforts_end_where_the_joints_bear_no_more() -> None:
    sim = simulation(load_scene("robot_arm"))
    sim.step(50)
    sim.write("body.load.mass", 60.0)
    greatest = np.zeros(len(_robot_arm.LINKS))
    for _ in range(60):
        sim.step(5)
        efforts = [_robot_arm.GEAR * sim.read(f"motor.{link.name}.torque")[0] for link in _robot_arm.LINKS]
        greatest = np.maximum(greatest, np.abs(efforts))
    assert sim.read("diagram.arm.use").max() > 2.0
    share = greatest / [link.limit for link in _robot_arm.LINKS]
    assert 0.97 < share.max() < 1.03


@pytest.mark.native
def test_people_have_a_switch_and_a_slider() -> None:
    scene = load_scene("robot_arm")
    operator = Operator(simulation(scene), scene)
    assert list(operator.inputs) == ["start", "speed"]
    start, speed = operator.inputs["start"], operator.inputs["speed"]
    assert start.switch and (speed.lower, speed.upper, speed.unit) == (0.0, 0.5, "m/s")
    bound = {binding.command: binding.keys for binding in operator.mapping.bindings}
    assert bound == {"start": ("F",), "speed": ("S", "W")}


def test_distances_from_the_path() -> None:
    square = path_of("plain")
    h, r = square.straight, square.corner
    slant = (h + (r + 0.01) * math.sqrt(0.5),) * 2
    flat = [(0.5 * square.side + 0.01, 0.0, 0.0), (0.03, 0.01 - 0.5 * square.side, 0.0), (*slant, 0.0),
            (-0.5 * square.side, 0.02, 0.01)]  # fmt: skip
    points = np.asarray(square.plane.position) + np.array(flat) @ square.plane.matrix().T
    np.testing.assert_allclose(square.distance(points), 0.01, atol=1e-12)
    eight = path_of("eight by pid")
    on = np.pad(eight.eight(np.linspace(0.0, 6.0, 7)), ((0, 0), (0, 1)), constant_values=0.002)
    np.testing.assert_allclose(
        eight.distance(np.asarray(eight.plane.position) + on @ eight.plane.matrix().T), 0.002, atol=1e-6
    )
