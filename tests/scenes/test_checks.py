from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import gpusim
from gpusim.scene import Scene, list_scenes, load_scene
from gpusim.scenes.machines import _rollers
from tests.scenes.runs import recorded

STRIDE = 10
STEPS, CONTACT_STEPS, HEAP = 20, 5, 10
SCENES = list(list_scenes())
LONG = ("excavator", "rtk_m")
Recording = dict[str, np.ndarray]


def _simulated(scene: Scene, backend: str) -> gpusim.Simulation:
    return gpusim.Simulation(scene.builder.finalize(), backend=backend, config=scene.config)


@cache
def whole_run(name: str) -> Recording:
    scene = load_scene(name)
    return recorded(scene, _simulated(scene, "native"), STRIDE)


def _broken(name: str, recording: Recording) -> list[str]:
    return [check.statement for check in load_scene(name).checks if not check.passes(recording)]


def _commanded(time: np.ndarray, speed: float) -> tuple[np.ndarray, float]:
    fine = np.linspace(0.0, float(time[-1]), 20001)
    forward, left, turn = (np.array([table.value(t) for t in fine]) for table in _rollers.commands(speed).values())
    half = 0.5 * fine[1]
    yaw = np.concatenate([[0.0], np.cumsum(half * (turn[1:] + turn[:-1]))])
    velocity = np.stack([forward * np.cos(yaw) - left * np.sin(yaw), forward * np.sin(yaw) + left * np.cos(yaw)])
    path = np.concatenate([np.zeros((2, 1)), np.cumsum(half * (velocity[:, 1:] + velocity[:, :-1]), 1)], 1)
    return np.stack([np.interp(time, fine, x) for x in path], axis=1), float(np.hypot(*np.diff(path)).sum())


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("name", "share", "height"), [("omni_vehicle", 5e-3, 1e-4), ("mecanum_vehicle", 0.01, 1e-4)])
def test_vehicles_on_rollers_go_as_they_are_reported(name: str, share: float, height: float) -> None:
    run = whole_run(name)
    place, (reported, way) = run["body.platform.position"][:, 0], _commanded(run["time"], 0.5)
    assert np.abs(place[:, :2] - place[0, :2] - reported).max() <= share * way
    assert np.abs(place[:, 2] - _rollers.RADIUS).max() <= height
    aside = (run["time"] > 3.0) & (run["time"] < 4.4)
    assert np.mean(run["body.platform.linear_velocity"][aside, 0, 1]) == pytest.approx(0.5, abs=share)
    assert np.mean(run["body.platform.angular_velocity"][aside, 0, 2]) == pytest.approx(0.0, abs=share)


@pytest.mark.nightly
@pytest.mark.native
def test_krt100m_crosses_its_kerb_within_five_centimeters_of_its_line() -> None:
    assert abs(whole_run("krt100m")["body.chassis.position"][-1, 0, 1]) < 0.05


@pytest.mark.native
def test_the_chassis_on_the_rig_comes_back_from_the_shaker() -> None:
    run = whole_run("suspension_rig")
    time, height = run["time"], run["joint.guide.position"][:, 0]
    before = height[(time > 5.5) & (time < 6.0)].mean()
    assert height[time > 6.0].max() - before > 0.04
    assert height[-1] == pytest.approx(before, abs=5e-3)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("name", SCENES)
def test_scene_fulfills_its_checks(name: str, request: pytest.FixtureRequest) -> None:
    if name in LONG:
        request.getfixturevalue("long_run")
    recording = whole_run(name)
    assert all(np.isfinite(values).all() for values in recording.values())
    assert load_scene(name).checks
    assert not _broken(name, recording)


def _frozen(values: np.ndarray) -> np.ndarray:
    return np.repeat(values[:1], len(values), axis=0)


def _mirrored(values: np.ndarray) -> np.ndarray:
    return -values


def _drifting(values: np.ndarray) -> np.ndarray:
    ramp = np.linspace(0.0, 0.05, len(values)).reshape(-1, *[1] * (values.ndim - 1))
    return values + ramp * max(1.0, float(np.abs(values).max()))


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("name", SCENES)
def test_every_check_can_fail(name: str, request: pytest.FixtureRequest) -> None:
    if name in LONG:
        request.getfixturevalue("long_run")
    recording = whole_run(name)
    broken: set[str] = set()
    for spoil in (_frozen, _mirrored, _drifting):
        spoiled = {key: values if key == "time" else spoil(values) for key, values in recording.items()}
        broken.update(_broken(name, spoiled))
    assert broken == {check.statement for check in load_scene(name).checks}


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("name", SCENES)
def test_numpy_runs_a_scene_as_the_kernels_do(name: str) -> None:
    scenes = load_scene(name), load_scene(name)
    if (count := len(scenes[0].builder.shapes)) > HEAP:
        pytest.skip(f"{count} shapes take minutes on NumPy. tests/parity/test_contacts.py compares contacts instead")
    steps = CONTACT_STEPS if scenes[0].builder.shapes else STEPS
    backends = ("numpy", "native")
    runs = [recorded(s, _simulated(s, b), steps, steps) for s, b in zip(scenes, backends, strict=True)]
    for signal in scenes[0].signals():
        expected = runs[1][signal]
        share = 1e-5 if signal in ("diagram.robot.margin", "diagram.robot.load") else 1e-6
        np.testing.assert_allclose(
            runs[0][signal], expected, rtol=0, atol=share * max(1.0, float(np.abs(expected).max())), err_msg=signal
        )


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCENES)
def test_plots_name_each_line_or_none(name: str) -> None:
    for plot in load_scene(name).plots:
        assert len(plot.labels) in (0, len(plot.signals)), plot.title
