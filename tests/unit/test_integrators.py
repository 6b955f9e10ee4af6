from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.viewer.operator.inputs import command_inputs
from tests.message_snapshot import naming

BACKENDS = [("numpy", "auto"), ("native", "fused"), ("native", "simd")]


def slider(**more: object) -> ModelBuilder:
    """Return a slide with a servo whose command is a rate, m/s."""
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    slide = b.add_joint_prismatic(-1, b.add_body(2.0, (1.0, 1.0, 1.0), label="cart"), axis=(1, 0, 0), label="slide")
    b.add_tracking_servo(slide, 4000.0, 200.0, target=0.1, label="servo")
    b.set_command_map("servo", **({"integrate": True, "activation_range": (-0.2, 0.4)} | more))
    return b


def simulation(b: ModelBuilder, worlds: int = 1, backend: str = "native", launch: str = "auto") -> Simulation:
    return Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=1e-3), launch=launch)


@pytest.mark.nightly
@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_the_rate_is_integrated_within_its_range(backend: str, launch: str) -> None:
    sim = simulation(slider(lower=-1.0, upper=0.5), 3, backend, launch)
    sim.control["servo"] = [0.3, 9.0, -0.25]
    sim.step(300)
    assert np.allclose(sim.read("servo.servo.activation"), [0.1 + 0.09, 0.1 + 0.15, 0.1 - 0.075], rtol=0, atol=1e-14)
    # The mean over the last step acts.
    middle = 0.1 + 0.2995 * np.array([0.3, 0.5, -0.25])
    assert np.allclose(sim.read("servo.servo.target"), middle, rtol=0, atol=1e-14)
    sim.step(2000)
    assert np.array_equal(sim.read("servo.servo.activation"), [0.4, 0.4, -0.2])
    assert np.allclose(sim.read("joint.slide.position"), [0.4, 0.4, -0.2], atol=1e-6)


def test_backends_and_launches_have_the_same_bits() -> None:
    found = []
    for backend, launch in BACKENDS:
        sim = simulation(slider(factor=0.7, offset=0.03), 4, backend, launch)
        sim.control["servo"] = [0.31, -0.77, 0.0, 1e-3]
        seen = []
        for _ in range(50):
            sim.step()
            seen.append([sim.read("servo.servo.activation"), sim.read("servo.servo.target")])
        found.append(np.array(seen))
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[1], found[2])


@pytest.mark.slow_numpy
@pytest.mark.parametrize(("backend", "launch"), BACKENDS)
def test_an_emergency_stop_holds_the_activation(backend: str, launch: str) -> None:
    sim = simulation(slider(), 1, backend, launch)
    sim.control["servo"] = 0.5
    sim.step(100)
    reached = sim.read("servo.servo.activation").copy()
    assert np.allclose(reached, 0.15)
    sim.override()
    sim.step(200)
    assert np.array_equal(sim.read("servo.servo.activation"), reached)
    assert np.allclose(sim.read("joint.slide.position"), reached, atol=1e-3)
    sim.release()
    sim.control["servo"] = -0.1
    sim.step(100)
    assert np.allclose(sim.read("servo.servo.activation"), reached - 0.01)
    sim.override({"servo": 0.2})
    sim.step(100)
    assert np.allclose(sim.read("servo.servo.activation"), reached + 0.01)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_reset_write_snapshot_and_pose(backend: str) -> None:
    b = slider(activation=0.05)
    b.add_pose("out", commands={"servo": 0.1}, activations={"servo": 0.3})
    sim = simulation(b, 3, backend)
    assert np.allclose(sim.read("servo.servo.activation"), 0.05) and np.allclose(sim.read("servo.servo.target"), 0.05)
    sim.reset([1], pose="out")
    sim.write("servo.servo.activation", -0.1, worlds=2)
    kept = sim.snapshot()
    sim.step(10)
    assert np.allclose(sim.read("servo.servo.activation"), [0.05, 0.301, -0.1])
    sim.restore(kept)
    sim.step(5)
    assert np.allclose(sim.read("servo.servo.activation"), [0.05, 0.3005, -0.1])
    sim.reset()
    assert np.allclose(sim.read("servo.servo.activation"), 0.05)


def test_a_delayed_rate() -> None:
    b = ModelBuilder()
    slide = b.add_joint_prismatic(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), axis=(1, 0, 0))
    b.add_joint_force(slide, label="push", delay=0.01)
    b.set_command_map("push", factor=5.0, integrate=True)
    sim = simulation(b)
    sim.control["push"] = 2.0
    sim.step(10)
    assert np.array_equal(sim.read("force.push.activation"), [0.0])
    sim.step(10)
    assert np.allclose(sim.read("force.push.activation"), 0.02)


def test_a_lag_has_a_range_and_a_first_activation_too() -> None:
    b = ModelBuilder()
    slide = b.add_joint_prismatic(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), axis=(1, 0, 0))
    b.add_joint_force(slide, label="push")
    b.set_command_map("push", lower=0.5, upper=2.0, time_constant=0.02, activation=0.0, activation_range=(-1.0, 1.5))
    sim = simulation(b)
    sim.control["push"] = 2.0
    sim.step(10)
    assert np.allclose(sim.read("force.push.activation"), 2.0 * (1.0 - np.exp(-0.5)))
    assert 0.0 < sim.read("force.push.force")[0] < sim.read("force.push.activation")[0]
    sim.step(100)
    assert np.array_equal(sim.read("force.push.activation"), [1.5])


def test_panels_offer_the_rate() -> None:
    item = command_inputs(slider(lower=-2.0, upper=0.5).finalize())["servo"]
    assert (item.lower, item.upper, item.safe) == (-2.0, 0.5, 0.0)
    item = command_inputs(slider().finalize())["servo"]
    assert (item.lower, item.upper, item.safe) == (-1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"time_constant": 0.1}, "integrates"),
        ({"integrate": False}, "activation_range"),
        ({"integrate": False, "activation_range": None, "activation": 0.1}, "activation"),
        ({"activation_range": (1.0, 1.0)}, "activation_range"),
        ({"activation": 0.5}, "activation"),
        ({"activation_range": "wide"}, "activation_range"),
    ],
)
def test_bad_integrators_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ModelError, match=naming(word)):
        slider(**arguments)


def test_a_pose_names_its_activations() -> None:
    with pytest.raises(ModelError, match=naming("activation")):
        slider().add_pose("p", activations={"servi": 0.1})
