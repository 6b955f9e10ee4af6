from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, SOLVERS, G, bits, both_backends, different, history, simulate

LAUNCHES = ("fused", "staged", "simd")


def hanging(mass: float = 2.0, **latch: Any) -> ModelBuilder:
    b = ModelBuilder()
    rod = b.add_body(mass, (0.02, 0.02, 0.01), xform=Transform((0, 0, -0.5)), label="rod")
    b.add_latch(-1, rod, at=(0, 0, 0), attached=True, label="grip", **latch)
    b.add_force(rod, (0, 0, -1.0), label="pull")
    return b


@pytest.mark.slow_numpy
@both_backends
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_growing_force_breaks_it_at_the_step_where_it_passes_the_limit(solver: str, backend: str) -> None:
    sim = simulate(hanging(break_force=50.0), dt=1e-3, backend=backend, joint_solver=solver)
    commands, attached, load = 0.5 * np.arange(1, 100), [], []
    for force in commands:
        sim.control["pull"] = force
        sim.step()
        attached.append(sim.read("joint.grip.attached")[0])
        load.append(-sim.read("sensor.grip.force")[0, 2])
    closed = 2.0 * G + 0.5 * (commands + np.concatenate([[0.0], commands[:-1]]))
    first = int(np.argmax(closed > 50.0))
    assert attached == [1.0] * first + [0.0] * (len(commands) - first)
    np.testing.assert_allclose(load[1 : first + 1], closed[1 : first + 1], atol=1e-6)
    assert 49.0 < load[first - 1] <= 50.0 < load[first] and np.abs(load[first + 1 :]).max() < 1e-9


@pytest.mark.slow_numpy
@both_backends
@pytest.mark.parametrize("substeps", [1, 3])
def test_worlds_break_alone_within_one_launch(substeps: int, backend: str) -> None:
    sim = simulate(hanging(break_force=31.0), 3, dt=1e-3, backend=backend, substeps=substeps)
    sim.write("body.rod.mass", [3.0, 3.2, 8.0])
    sim.step(1)
    assert sim.read("joint.grip.attached").tolist() == [1.0, 0.0, 0.0]
    sim.control["pull"] = 0.0
    sim.step(199)
    assert sim.read("joint.grip.attached").tolist() == [1.0, 0.0, 0.0]
    z = sim.read("body.rod.position")[:, 2]
    assert z[0] == pytest.approx(-0.5, abs=1e-9)
    assert z[1:] == pytest.approx(-0.5 - 0.5 * G * 0.199**2, abs=G * 0.2 * 1e-3)
    np.testing.assert_allclose(sim.read("body.rod.linear_velocity")[1:, 2], -G * 0.199, atol=G * 1e-3)


@both_backends
def test_a_torque_breaks_it_too(backend: str) -> None:
    """A cantilever of 2 kg bears m g 0.4 m = 7.848 N m, between 7.8 and 7.9."""
    b = ModelBuilder()
    for y, most in ((0.0, 7.8), (1.0, 7.9)):
        arm = b.add_body(2.0, (0.02, 0.02, 0.02), xform=Transform((0.4, y, 0)), label=f"arm{y:g}")
        b.add_latch(-1, arm, at=(0, y, 0), attached=True, break_torque=most, label=f"grip{y:g}")
    sim = simulate(b, dt=1e-3, backend=backend)
    sim.step(50)
    assert sim.read("joint.grip0.attached")[0] == 0.0 and sim.read("body.arm0.position")[0, 2] < -0.005
    assert sim.read("joint.grip1.attached")[0] == 1.0
    assert np.linalg.norm(sim.read("sensor.grip1.torque")[0]) == pytest.approx(7.848, abs=1e-6)


@pytest.mark.nightly
@both_backends
def test_a_bob_leaves_a_swinging_arm_where_its_pull_is_twice_its_weight(backend: str) -> None:
    """A pendulum released from horizontal pulls with 3 m g sin(a), so the bob breaks off at sin(a) = 2/3."""
    length, mass, step = 0.5, 1.0, 2e-4
    b = ModelBuilder()
    arm = b.add_body(1e-3, (1e-6, 1e-6, 1e-6), xform=Transform((length, 0, 0)), label="arm")
    b.add_joint_revolute(-1, arm, at=(0, 0, 0), axis=(0, 1, 0), label="hinge")
    bob = b.add_body(mass, (1e-6, 1e-6, 1e-6), xform=Transform((length, 0, 0)), label="bob")
    b.add_latch(arm, bob, at=(length, 0, 0), attached=True, break_force=2.0 * mass * G, label="grip")
    swing = solve_ivp(
        lambda t, y: (y[1], G / length * np.cos(y[0])), (0, 1), (0, 0), rtol=1e-10, dense_output=True,
        events=lambda t, y: np.sin(y[0]) - 2.0 / 3.0,
    )  # fmt: skip
    free, (angle, rate) = swing.t_events[0][0], swing.y_events[0][0]
    sim = simulate(b, dt=step, backend=backend)
    steps = round(free / step) + 500
    sim.step(steps)
    t = steps * step - free
    start = length * np.array([np.cos(angle), 0.0, -np.sin(angle)])
    speed = length * rate * np.array([-np.sin(angle), 0.0, -np.cos(angle)])
    path = start + t * speed + 0.5 * t**2 * np.array([0.0, 0.0, -G])
    np.testing.assert_allclose(sim.read("body.bob.position")[0], path, atol=3e-3)
    held = length * np.array([np.cos(angle), 0.0, -np.sin(angle)])
    assert np.linalg.norm(path - held) > 0.2 and sim.read("joint.grip.attached")[0] == 0.0


@pytest.mark.slow_numpy
@both_backends
def test_it_stays_open_until_a_write_or_a_reset(backend: str) -> None:
    sim = simulate(hanging(mass=8.0, break_force=30.0), 3, dt=1e-3, backend=backend)
    sim.step(100)
    assert not sim.read("joint.grip.attached").any()
    sim.write("body.rod.mass", 1.0)
    sim.control["pull"] = 0.0
    sim.write("body.rod.linear_velocity", 0.0)
    sim.step(1)
    sim.write("joint.grip.attached", 1.0, [0])
    sim.write("joint.grip.attached", 0.0, [1])
    sim.reset([2])
    assert sim.read("joint.grip.attached").tolist() == [1.0, 0.0, 1.0]
    start = sim.read("body.rod.position")[:, 2]
    sim.step(200)
    assert sim.read("joint.grip.attached").tolist() == [1.0, 0.0, 1.0]
    z = sim.read("body.rod.position")[:, 2]
    assert start[0] < -0.53 and z[0] == pytest.approx(start[0], abs=1e-3)
    assert z[1] < start[1] - 0.15
    assert z[2] == pytest.approx(-0.5, abs=1e-9)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_launches_break_with_the_same_bits(dtype: str) -> None:
    b = ModelBuilder()
    first = b.add_body(1.0, (0.01, 0.02, 0.03), xform=Transform((0.3, 0, 0)), label="first")
    b.add_joint_ball(-1, first, at=(0, 0, 0))
    second = b.add_body(1.0, (0.02, 0.01, 0.03), xform=Transform((0.6, 0.1, 0)), label="second")
    b.add_latch(first, second, at=(0.45, 0, 0), attached=True, break_force=25.0, break_torque=3.0, label="grip")
    third = b.add_body(0.5, (0.01, 0.01, 0.01), xform=Transform((0.8, 0.1, 0)), label="third")
    b.add_latch(second, third, at=(0.7, 0.1, 0), attached=True, break_force=11.0, label="tip")
    model, masses = b.finalize(), np.linspace(0.2, 1.5, 9)

    def run(backend: str, launch: str = "auto") -> Simulation:
        sim = Simulation(model, 9, backend, dtype, SolverConfig(dt=2e-3), launch=launch)
        sim.write("body.third.mass", masses)
        for _ in range(4):
            sim.step(40)
        return sim

    runs = [run("native", launch) for launch in LAUNCHES]
    for world in range(9):
        for other in runs[1:]:
            assert not different(bits(runs[0], world), bits(other, world))
    reference = run("numpy")
    for name in ("joint.grip.attached", "joint.tip.attached"):
        assert 0 < runs[0].read(name).sum() < 9
        assert np.array_equal(runs[0].read(name), reference.read(name))
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    for body in ("first", "second", "third"):
        ours, theirs = (sim.read(f"body.{body}.position") for sim in (runs[0], reference))
        np.testing.assert_allclose(ours, theirs, atol=tolerance)


def test_limits_are_checked_and_copies_keep_them() -> None:
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ModelError, match=naming("grip break_force")):
            hanging(break_force=wrong)
    assert not hanging().sensors
    b = ModelBuilder(gravity=NO_GRAVITY)
    for _ in range(2):
        copied = ModelBuilder.from_dict(hanging(break_force=20.0).to_dict())
        b.add_builder(copied, label_prefix=f"{len(b.bodies)}_")
    sim = simulate(b, dt=1e-3)
    sim.control["1_pull"] = 30.0
    found = [history(sim, f"joint.{joint.label}.attached", 5)[-1, 0] for joint in b.joints]
    assert found == [1.0, 0.0]
