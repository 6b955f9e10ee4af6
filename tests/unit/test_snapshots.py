from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, Snapshot, SolverConfig, Transform
from gpusim.control import Diagram
from gpusim.scene import load_scene
from tests.message_snapshot import naming

from .helpers import ball_body, bits, different
from .machine import machine

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
WORLDS = 3
ROW = "joint.rod.damping"


def builder(contacts: bool = False, mass: float = 1.0) -> ModelBuilder:
    b = machine()
    rod = ball_body(b, mass, 0.05, com=(0.1, 0, 0), xform=Transform((5, 0, 0)), label="rod")
    b.add_joint_revolute(-1, rod, Transform((5, 0, 0)), axis=(0, 1, 0), label="rod")
    late = ball_body(b, 1.0, 0.05, xform=Transform((6, 0, 0)), label="late")
    joint = b.add_joint_revolute(-1, late, Transform((6, 0, 0)), axis=(0, 0, 1), label="late")
    b.add_joint_force(joint, label="drive", delay=0.01)
    d = Diagram("d", rate=200.0)
    noise, lever = d.add("noise", "noise", sigma=0.3), d.add("input", "lever")
    total = d.add("sum", "total")
    d.connect(noise, "total.a")
    d.connect(lever, "total.b")
    d.connect(total, d.add("gain", "gain", gain=0.5))
    d.connect("gain", "command:servo")
    b.add_diagram(d)
    if contacts:
        ball = ball_body(b, xform=Transform((8, 0, 0.099)), linear_velocity=(0.5, 0, 0), label="ball")
        b.add_shape_sphere(ball, 0.1)
        b.add_shape_plane()
    return b


def simulation(backend: str, b: ModelBuilder | None = None, worlds: int = WORLDS, **options: Any) -> Simulation:
    model = (b or builder(backend == "native")).finalize()
    return Simulation(model, worlds, backend, config=SolverConfig(dt=2e-3), **options)


def drive(sim: Simulation, steps: int) -> Simulation:
    for _ in range(steps):
        time = sim.read("sim.time")
        sim.control["motor"] = np.sin(30.0 * time + np.arange(sim.num_worlds))
        sim.control["drive"], sim.control["lever"] = 1.0 + time, 0.2
        sim.step()
    return sim


def varied(backend: str) -> Simulation:
    sim = drive(simulation(backend), 15)
    each = np.array([1.0, 1.2, 0.9])
    sim.write("body.bucket.mass", 3.0 * each)
    sim.write("body.boom.inertia", np.diag([0.5, 2.0, 2.0]) * each[:, None, None])
    sim.write("motor.motor.stall_torque", 0.5 * each)
    sim.write("diagram.d.gain.gain", 0.5 * each)
    sim.write("force.drive.delay", 0.01 * np.array([1.0, 0.4, 0.0]))
    sim.write(ROW, 0.1 * each)
    sim.override(worlds=[2])
    return drive(sim, 15)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_continues_with_the_same_bits(backend: str) -> None:
    sim = varied(backend)
    kept = sim.state.copy()
    assert isinstance(kept, Snapshot)
    file = pickle.dumps(kept)
    drive(sim, 20)
    expected = [bits(sim, k) for k in range(WORLDS)]
    sim.write("body.bucket.mass", 7.0)
    sim.write("joint.rod.friction", 3.0)
    sim.reset()
    sim.state.restore(kept)
    fresh = simulation(backend)
    fresh.state.restore(pickle.loads(file))
    for restored in (sim, fresh):
        drive(restored, 20)
        assert [different(bits(restored, k), expected[k]) for k in range(WORLDS)] == [[]] * WORLDS
    np.testing.assert_array_equal(fresh.control.array, sim.control.array)
    np.testing.assert_array_equal(fresh.overridden.all(axis=1), (False, False, True))
    for restored in (sim, fresh):
        restored.reset()
        drive(restored, 5)
    assert [different(bits(fresh, k), bits(sim, k)) for k in range(WORLDS)] == [[]] * WORLDS


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_some_worlds_and_other_rows(backend: str) -> None:
    sim = varied(backend)
    kept = sim.state.copy()
    drive(sim, 20)
    for name in ("", "joint.rod.armature"):
        other, alone = (drive(simulation(backend), 9) for _ in range(2))
        if name:
            other.write(name, 0.2)
            alone.write(name, 0.2)
        alone.write(ROW, 1e-9)
        alone.write(ROW, 0.0)
        other.state.restore(kept, [False, True, False])
        np.testing.assert_allclose(other.read("body.bucket.mass"), (3.0, 3.6, 3.0))
        for k in (0, 2):
            assert different(bits(other, k), bits(alone, k)) == []
        drive(other, 20)
        assert different(bits(other, 1), bits(sim, 1)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_before_and_after_the_first_write_of_damping(backend: str) -> None:
    sim, calm = drive(simulation(backend), 10), drive(simulation(backend), 30)
    kept = sim.state.copy()
    sim.write(ROW, 5.0, worlds=1)
    drive(sim, 5)
    sim.state.restore(kept)
    assert np.all(sim.read(ROW) == 0.0)
    drive(sim, 20)
    assert [different(bits(sim, k), bits(calm, k)) for k in range(WORLDS)] == [[]] * WORLDS


@pytest.mark.parametrize("backend", BACKENDS)
def test_quarantine_comes_along(backend: str) -> None:
    sim = simulation(backend)
    healthy = sim.state.copy()
    sim.write("body.rod.linear_velocity", (0.0, 1e30, 0.0), worlds=1)
    with pytest.warns(UserWarning, match=naming("1")):
        sim.step(3)
    report, failed = sim.health_report(), sim.state.copy()
    fresh = simulation(backend)
    fresh.state.restore(failed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh.step(3)
        assert fresh.health_report() == report and list(fresh.health()) == [True, False, True]
        fresh.write(ROW, 1.0)
        fresh.step(3)
        assert fresh.health_report() == report and list(fresh.health()) == [True, False, True]
        fresh.state.restore(healthy, 1)
        fresh.step(3)
    assert fresh.health().all() and fresh.read("sim.time")[1] == pytest.approx(6e-3)
    fresh.write("body.rod.linear_velocity", (0.0, 1e30, 0.0), worlds=1)
    with pytest.warns(UserWarning, match=naming("1")):
        fresh.step(1)


def test_refuses_what_does_not_fit() -> None:
    sim = drive(simulation("numpy"), 3)
    before = [bits(sim, k) for k in range(WORLDS)]

    def like(b: ModelBuilder | None = None, worlds: int = WORLDS, **config: Any) -> Any:
        dtype = config.pop("dtype", "float64")
        return Simulation((b or builder()).finalize(), worlds, "numpy", dtype, SolverConfig(**config)).state.copy()

    labelled = builder()
    labelled.add_site(-1, label="more")
    refused: list[tuple[str, Any]] = [
        ("", like(builder(mass=1.001))),
        ("", like(labelled)),
        ("2 3", like(worlds=2)),
        ("scheme 'semi_implicit' 'second_order'", like(scheme="semi_implicit")),
        ("float32 float64", like(dtype="float32")),
        ("", sim.backend.memory.state.copy()),
        ("5", 5),
    ]
    for words, other in refused:
        with pytest.raises(ModelError, match=naming(f"Simulation.restore {words}")) as caught:
            sim.state.restore(other)
        assert len(re.findall(r"\. ", str(caught.value))) <= 1
    with pytest.raises(ModelError, match=naming("Simulation.restore world 3")):
        sim.state.restore(sim.state.copy(), 3)
    assert [different(bits(sim, k), before[k]) for k in range(WORLDS)] == [[]] * WORLDS


def test_machines_of_the_same_shapes() -> None:
    def lift(**options: Any) -> Simulation:
        scene = load_scene("hydraulic_lift", **options)
        return Simulation(scene.builder.finalize(), backend="numpy", config=scene.config)

    first = lift()
    first.step(5)
    with pytest.raises(ModelError, match=naming("Simulation.restore")):
        lift(mass=5000.0, variant="closed_center").state.restore(first.state.copy())
    lift().state.restore(first.state)


def test_a_copy_and_a_pickled_state_are_independent() -> None:
    sim = simulation("numpy")
    kept = sim.state.copy()
    again, live = kept.copy(), pickle.loads(pickle.dumps(sim.state))
    sim.write("body.rod.mass", 2.0)
    sim.write("motor.motor.stall_torque", 9.0)
    sim.control["motor"] = 0.3
    sim.step(2)
    for snapshot in (kept, again, live):
        assert isinstance(snapshot, Snapshot) and snapshot.arrays["time"][0] == 0.0
        sim.state.restore(snapshot)
        assert sim.read("body.rod.mass")[0] == 1.0 and sim.control["motor"][0] == 0.0
        assert sim.read("motor.motor.stall_torque")[0] == 0.5
