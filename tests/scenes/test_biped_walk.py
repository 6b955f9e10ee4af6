from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Transform
from gpusim.scene import Scene, load_scene
from gpusim.scenes.machines import _walk_control, _walk_plan, biped_walk
from gpusim.scenes.machines._biped import FOOT, SIDES, SOLE, poses, standing
from gpusim.scenes.machines._walk_plan import LEG, Footprint, footprints, leg_angles
from tests.message_snapshot import naming
from tests.scenes.runs import recorded

STRIDE = 5
SHORT = 2
WAYS: dict[str, dict[str, Any]] = {
    "board unseen": {"seen": False},
    "pushed ahead": {"side": 0.0},
    "pushed back": {"side": 180.0},
    "pushed over the foot that bears": {"side": 270.0},
    "odd steps, thick board, right bend": {"steps": 3, "board": 0.03, "turn": -60.0},
    "long steps, slippery, unpushed": {"length": 0.2, "friction": 0.4, "push": 0.0},
    "1 ms": {"dt": 1e-3},
    "5 ms": {"dt": 5e-3},
}


def run_of(scene: Scene, worlds: int = 1, dt: float | None = None, write: Any = None) -> dict[str, np.ndarray]:
    config = scene.config if dt is None else replace(scene.config, dt=dt)
    sim = gpusim.Simulation(scene.builder.finalize(), worlds, backend="native", config=config)
    if write:
        write(sim)
    return recorded(scene, sim, STRIDE)


@cache
def plan() -> _walk_plan.Plan:
    return biped_walk.walk()[0]


def test_a_legs_angles_bring_its_sole_where_it_is_to_be() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        yaw = rng.uniform(-0.6, 0.6)
        pelvis = np.array([[*rng.uniform(-1.0, 1.0, 3), yaw]])
        for side, sign in SIDES:
            c, s = np.cos(yaw), np.sin(yaw)
            x, y = rng.uniform(-0.15, 0.15), sign * 0.09 + rng.uniform(-0.08, 0.08)
            place = pelvis[0, :3] + (c * x - s * y, s * x + c * y, rng.uniform(-0.72, -0.6))
            sole = np.array([[*place, yaw + rng.uniform(-0.4, 0.4)]])
            angles = leg_angles(pelvis, sole, sign)[0]
            posture = {f"{side}_{name}": float(angle) for name, angle in zip(LEG, angles, strict=True)}
            half = 0.5 * yaw
            base = Transform(tuple(pelvis[0, :3]), (0.0, 0.0, float(np.sin(half)), float(np.cos(half))))
            foot = poses(posture, base)[f"{side}_foot"]
            np.testing.assert_allclose(foot.apply(np.asarray(SOLE)), place, atol=1e-12)
            turn = sole[0, 3]
            ahead = [np.cos(turn), np.sin(turn), 0.0]
            np.testing.assert_allclose(foot.matrix() @ [1.0, 0.0, 0.0], ahead, atol=1e-12)
            assert angles[3] > 0.0


def test_footprints_lie_on_an_arc() -> None:
    turn, length = 0.2, 0.1
    radius = 0.5 * length / np.sin(0.5 * turn)
    found = footprints([(length, turn)] * 8)
    assert [side for side, _ in found] == ["l", "r"] * 4
    for k, (side, foot) in enumerate(found):
        angle, sign = (k + 1) * turn, 1.0 if side == "l" else -1.0
        along = radius - sign * 0.09
        expected = (along * np.sin(angle), radius - along * np.cos(angle), 0.0, angle)
        np.testing.assert_allclose((foot.x, foot.y, foot.z, foot.yaw), expected, atol=1e-12)


def test_the_pendulums_equation_is_solved_to_second_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """p = cos k t has the solution c = p/(1 + k^2/w^2), away from both ends."""
    ratio, k, errors = 0.08, 3.0, []
    for grid in (0.02, 0.01, 0.005):
        monkeypatch.setattr(_walk_plan, "GRID", grid)
        time = np.arange(0.0, 16.0 + 0.5 * grid, grid)
        zmp = np.column_stack([np.cos(k * time), 0.0 * time])
        found = _walk_plan._pendulum(zmp, ratio)[:, 0]
        inside = (time > 7.0) & (time < 9.0)
        errors.append(np.abs(found - zmp[:, 0] / (1.0 + ratio * k * k))[inside].max())
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.1)
    assert errors[1] / errors[2] == pytest.approx(4.0, abs=0.1)


@pytest.mark.nightly
def test_the_planned_pressure_is_inside_the_sole_that_bears() -> None:
    found = plan()
    masses = _walk_plan._Masses(standing(biped_walk.STANDING_BEND)[0])
    ground = _walk_plan._ground(found.time, found.steps, _walk_plan.Pace())
    pressed = _walk_plan._zmp_of_masses(masses, found.pelvis, found.feet, ground)
    for side, _ in SIDES:
        other = "r" if side == "l" else "l"
        alone = (found.supports[side] == 1.0) & (found.supports[other] == 0.0)
        assert np.abs(pressed - found.zmp)[alone].max() < 1e-4
        off = pressed[alone] - found.feet[side][alone, :2]
        yaw = found.feet[side][alone, 3]
        own = np.column_stack(
            [np.cos(yaw) * off[:, 0] + np.sin(yaw) * off[:, 1], np.cos(yaw) * off[:, 1] - np.sin(yaw) * off[:, 0]]
        )
        assert (np.abs(own) < np.array(FOOT[:2]) - 0.015).all()


def test_feet_that_bear_stand_still() -> None:
    found = plan()
    for side, _ in SIDES:
        stands = found.supports[side] == 1.0
        moved = np.abs(np.diff(found.feet[side], axis=0)).max(axis=-1)
        assert moved[stands[1:] & stands[:-1]].max() == 0.0
        assert found.feet[side][:, 2].min() >= 0.0


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("way", WAYS)
def test_it_walks_otherwise(way: str) -> None:
    given = {"steps": SHORT} | WAYS[way]
    dt = given.pop("dt", None)
    scene = load_scene("biped_walk", **given)
    run = run_of(scene, dt=dt)
    broken = [check.statement for check in scene.checks if not check.passes(run)]
    assert [statement for statement in broken if dt != 5e-3 or "stall torque" not in statement] == []
    assert run["sim.joint_drift"].max() < 1e-9
    assert run["diagram.robot.load"].max() < (1.0 if dt != 5e-3 else 2.0)


@pytest.mark.nightly
@pytest.mark.native
def test_worlds_with_other_masses_and_soles_walk() -> None:
    worlds = 5
    rng = np.random.default_rng(5)
    shares = 1.0 + rng.uniform(-1.0, 1.0, (worlds, 64)) * np.where(np.arange(64) < 63, 0.02, 0.1)
    scene = load_scene("biped_walk", steps=SHORT)

    def off_by(sim: gpusim.Simulation, rows: slice) -> None:
        for kind, what, columns in (("body", "mass", range(64)), ("shape", "friction", [63] * 64)):
            for k, label in zip(columns, sim.model.labels(kind), strict=False):
                name = f"{kind}.{label}.{what}"
                sim.write(name, sim.read(name, numpy=True) * shares[rows, k])

    run = run_of(scene, worlds, write=lambda sim: off_by(sim, slice(None)))
    assert [check.statement for check in scene.checks if not check.passes(run)] == []
    alone = run_of(scene, 1, write=lambda sim: off_by(sim, slice(3, 4)))
    np.testing.assert_array_equal(alone["body.pelvis.position"][:, 0], run["body.pelvis.position"][:, 3])
    assert np.ptp(run["body.pelvis.position"][-1, :, 0]) > 1e-6


@pytest.mark.nightly
@pytest.mark.native
def test_without_balance_it_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_walk_control, "GAIN", 0.0)
    scene = load_scene("biped_walk", steps=SHORT)
    run = run_of(scene)
    assert run["body.pelvis.position"][..., 2].min() < 0.5
    broken = {check.statement for check in scene.checks if not check.passes(run)}
    assert {
        statement for statement in broken if "lands" in statement or "stands still" in statement or "leans" in statement
    }


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"steps": 1}, "2 200"),
        ({"length": 0.3}, "0.13 0.22"),
        ({"board": 0.05}, "0 0.03"),
        ({"push": 200.0}, "0 80"),
        ({"turn": 120.0}, "-90 90"),
        ({"side": 400.0}, "-360"),
        ({"friction": 0.0}, "0.3 1.5"),
    ],
)
def test_what_is_wrong_is_reported(given: dict[str, Any], reported: str) -> None:
    with pytest.raises(gpusim.ModelError, match=naming(reported)):
        load_scene("biped_walk", **given)


def test_a_footprint_ahead_is_by_its_own_directions() -> None:
    foot = Footprint(1.0, 2.0, 0.1, np.pi / 2).ahead(0.5, 0.2, 0.3)
    np.testing.assert_allclose((foot.x, foot.y, foot.z, foot.yaw), (0.8, 2.5, 0.1, np.pi / 2 + 0.3))
