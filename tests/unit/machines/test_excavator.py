from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.scene import Scene, load_scene
from gpusim.scenes.machines._digger import joint_angles
from gpusim.viewer.operator import command_inputs
from gpusim.viewer.operator.patterns import choose_mapping, find_functions
from tests.message_snapshot import naming

pytestmark = pytest.mark.native
WORKING = ("boom", "stick", "bucket", "swing")
DRIVING = ("left_track", "right_track")


def excavator(worlds: int = 1, **values: object) -> tuple[Scene, gpusim.Simulation]:
    scene = load_scene("excavator", **values)
    return scene, gpusim.Simulation(scene.builder.finalize(), num_worlds=worlds, backend="native", config=scene.config)


def test_it_has_117_bodies_and_levers_for_every_function() -> None:
    scene = load_scene("excavator", stones=0)
    assert len(scene.builder.bodies) == 117
    inputs = command_inputs(scene.builder.finalize())
    assert find_functions(inputs) == {name: name for name in WORKING}
    for pattern in ("iso", "sae", "auto"):
        mapping = choose_mapping(inputs, pattern)
        assert {binding.command for binding in mapping.bindings} >= {*WORKING, *DRIVING, "swing_brake"}


def test_the_way_is_within_reach() -> None:
    boom, stick, bucket = joint_angles(2.1, 0.07, np.radians(-130.0))
    tip = 0.55 + 0.95j + 1.6 * np.exp(1j * boom) + 0.9 * np.exp(1j * (boom + stick))
    tip += 0.45 * np.exp(1j * (boom + stick + bucket))
    assert tip == pytest.approx(2.1 + 0.07j)


@pytest.mark.nightly
def test_worlds_have_the_bits_that_they_have_alone() -> None:
    commands = np.random.default_rng(5).uniform(-1.0, 1.0, (4, len(WORKING), 8))

    def run(pick: list[int]) -> np.ndarray:
        sim = excavator(len(pick), undercarriage="fixed", stones=12)[1]
        for block in commands:
            for name, values in zip(WORKING, block, strict=True):
                sim.control[name] = values[pick]
            sim.step(12)
        names = [f"body.{body.label}.position" for body in sim.model.bodies]
        return np.stack([np.array(sim.read(name, numpy=True)) for name in names], axis=1)

    together = run(list(range(8)))
    assert np.ptp(together, axis=0).max() > 0.01
    for world in (0, 3, 7):
        np.testing.assert_array_equal(run([world])[0], together[world])


@pytest.mark.nightly
def test_a_bucket_pressed_onto_the_ground_does_not_keep_the_swing_switching() -> None:
    sim = excavator(undercarriage="fixed", stones=0)[1]
    sim.control["boom"] = -1.0
    sim.step(600)
    assert sim.read("sim.contacts")[0] > 0
    assert sim.read("sim.not_converged")[0] == 0


@pytest.mark.nightly
def test_energy_closes_while_it_works() -> None:
    scene = load_scene("excavator", undercarriage="fixed", stones=0)
    config = gpusim.SolverConfig(dt=2e-3, max_pairs=128)  # as many as the others have, whose build it shares
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=config)
    audit = gpusim.EnergyAudit(sim)
    for k in range(300):
        for name in WORKING:
            sim.control[name] = 0.6 * min(k / 150.0, 1.0)
        audit.step()
    balance = audit.balance()
    assert balance.turnover[0] > 1000.0
    assert balance.relative_error[0] < 0.03


@pytest.mark.nightly
def test_random_input_on_tracks_breaks_nothing() -> None:
    scene, sim = excavator(stones=0)
    random = np.random.default_rng(11)
    gap = 0.0
    for _ in range(10):
        for name in (*WORKING, *DRIVING):
            sim.control[name] = float(random.uniform(-1.0, 1.0))
        for _ in range(5):
            sim.step(round(0.1 / scene.config.dt))
            gap = max(gap, float(sim.read("sim.joint_drift")[0]))
    assert sim.health().all(), sim.health_report()
    assert gap < 1e-4
    assert np.hypot(*sim.read("body.chassis.position")[0, :2]) > 0.05
    assert abs(sim.read("body.chassis.position")[0, 2]) < 0.05


BAD = [("stones", 61), ("stones", -1), ("flow", 0.0), ("pressure", 1e5), ("power", 0.0)]


@pytest.mark.parametrize("name, value", BAD)
def test_bad_parameters_are_reported(name: str, value: float) -> None:
    with pytest.raises(gpusim.ModelError, match=naming(f"'excavator' '{name}'")):
        load_scene("excavator", **{name: value})
