from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.compiler.loops import constraints_in_loops
from gpusim.scene import load_scene
from tests.robustness import loops

AXIS = (0.0, 1.0, 0.0)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_machines_with_loops(first: int) -> None:
    assert {seed: wrong for seed in range(first, first + 10) if (wrong := loops.run(seed, 0.5))} == {}


@pytest.mark.native
@pytest.mark.parametrize("seed", [313, 464, 852, 1240, 1456, pytest.param(991, marks=pytest.mark.nightly)])
def test_fast_loops_close_in_every_step(seed: int) -> None:
    assert loops.run(seed) == ""


@pytest.mark.native
@pytest.mark.parametrize("seed", [484, 504])
def test_corrections_lift_no_loop_that_cannot_close(seed: int) -> None:
    assert loops.run(seed) == ""


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
@pytest.mark.parametrize("seed", [734, 1193])
def test_loops_close_when_the_passes_end_early(seed: int, backend: str) -> None:
    assert loops.run(seed, 0.04, backend) == ""


@pytest.mark.native
@pytest.mark.parametrize("dt", [5e-3, 1e-2])
def test_corrections_leave_stiff_springs_alone(dt: float) -> None:
    sim = Simulation(load_scene("flyball").builder.finalize(), backend="native", config=SolverConfig(dt=dt))
    energies = []
    for _ in range(round(5.0 / dt)):
        sim.step()
        energies.append(float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0]))
    assert sim.read("sim.joint_drift_peak")[0] < 1e-5
    assert max(energies) - energies[0] < 0.05


def _jam(seed: int) -> ModelBuilder:
    rng = np.random.default_rng(seed)
    b, parent, x = ModelBuilder(), -1, 0.0
    for _ in range(2):
        low, wide, high = rng.uniform(0.1, 0.5, 3)
        corners = (x, 0.0), (x, low), (x + wide, high + 0.05), (x + wide, 0.0)
        bodies = []
        for (x0, z0), (x1, z1) in zip(corners[:-1], corners[1:], strict=True):
            mass, length = float(10.0 ** rng.uniform(-2.0, 1.5)), float(np.hypot(x1 - x0, z1 - z0))
            inertia = tuple(mass * length**2 * np.array([0.1, 0.09, 0.03]))
            bodies.append(b.add_body(mass, inertia, xform=Transform((0.5 * (x0 + x1), 0.0, 0.5 * (z0 + z1)))))
        for first, second, (along, up) in (
            (parent, bodies[0], corners[0]), (bodies[0], bodies[1], corners[1]), (parent, bodies[2], corners[3])
        ):  # fmt: skip
            limits = {"limit_lower": -float(rng.uniform(0.02, 0.6)), "limit_upper": float(rng.uniform(0.02, 0.6))}
            friction = float(10.0 ** rng.uniform(-2.0, 1.0))
            b.add_joint_revolute(first, second, axis=AXIS, at=(along, 0.0, up), friction=friction, **limits)
        b.add_joint_ball(bodies[1], bodies[2], at=(corners[2][0], 0.0, corners[2][1]))
        parent, x = bodies[int(rng.integers(3))], x + float(rng.uniform(0.1, 0.6))
    return b


@pytest.mark.native
@pytest.mark.parametrize("dt", [1e-3, 5e-3])
@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (10, 12, 13, 32, 38, 46))]
)
def test_friction_that_slides_does_not_open_a_loop(seed: int, dt: float) -> None:
    sim = Simulation(_jam(seed).finalize(), backend="native", config=SolverConfig(dt=dt))
    sim.step(round(1.5 / dt))
    assert sim.health().all(), sim.health_report()
    assert sim.read("sim.joint_drift_peak", numpy=True)[0] < 1e-5


def _gripper(friction: float, closing: str) -> ModelBuilder:
    b = ModelBuilder()
    frame = Transform.from_axis_angle((0, 0, 0), (1, 2, 3), 0.3)
    parent, x = -1, 0.0

    def hinge(parent: int, child: int, at: tuple[float, float, float], axis: tuple[float, float, float]) -> int:
        where, turned = tuple(frame.apply(at)), tuple(frame.rotate(axis))
        return b.add_joint_revolute(parent, child, at=where, axis=turned, friction=friction, limit_lower=-0.8)

    for k in range(7):
        body = b.add_body(1.0, (0.01, 0.01, 0.01), com=(0.1, 0, 0), xform=frame * Transform((x, 0, 1)))
        hinge(parent, body, (x, 0, 1), (AXIS, (0, 0, 1), (1, 0, 0))[k % 3])
        parent, x = body, x + 0.2
    drivers = []
    for side in (1, -1):
        places = ((x, 0, 1 + 0.03 * side), (x + 0.01, 0, 1 + 0.01 * side), (x + 0.035, 0, 1 + 0.045 * side))
        driver, knuckle, finger = (b.add_body(0.03, (3e-6, 1.8e-5, 1.9e-5), xform=frame * Transform(p)) for p in places)
        drivers.append(hinge(parent, driver, places[0], AXIS))
        hinge(parent, knuckle, places[1], AXIS)
        hinge(driver, finger, places[2], AXIS)
        end = (x + 0.04, 0.0, 1 + 0.02 * side)
        if closing == "ball":
            b.add_joint_ball(knuckle, finger, at=tuple(frame.apply(end)))
        else:
            hinge(knuckle, finger, end, AXIS)
    b.add_gear(drivers[0], drivers[1], ratio=-1.0)
    return b


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
@pytest.mark.parametrize("closing", ["ball", "hinge"])
def test_redundant_rows_with_friction_do_not_disturb_the_others(backend: str, closing: str) -> None:
    sim = Simulation(_gripper(0.3, closing).finalize(), backend=backend, config=SolverConfig(dt=2e-3))
    start = float(sim.read("sim.kinetic_energy", numpy=True)[0] + sim.read("sim.potential_energy", numpy=True)[0])
    for _ in range(6):
        sim.step(10)
        energy = float(sim.read("sim.kinetic_energy", numpy=True)[0] + sim.read("sim.potential_energy", numpy=True)[0])
        assert energy <= start + 1e-9
    assert sim.health().all(), sim.health_report()
    assert sim.read("sim.joint_drift_peak", numpy=True)[0] < 1e-9
    assert sim.read("sim.not_converged", numpy=True)[0] == 0


def _stretched(low: float) -> ModelBuilder:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    places = {"crank": (0.0, 0, 0.1), "rocker": (0.5, 0, 0.15), "coupler": (0.25, 0, 0.25)}
    crank, rocker, coupler = (
        b.add_body(1.0, (0.01, 0.01, 0.01), xform=Transform(p), label=name) for name, p in places.items()
    )
    b.add_joint_revolute(-1, crank, axis=AXIS, at=(0, 0, 0), limit_lower=low, limit_upper=3.0, label="crank")
    b.add_joint_revolute(-1, rocker, axis=AXIS, at=(0.5, 0, 0))
    b.add_joint_revolute(crank, coupler, axis=AXIS, at=(0, 0, 0.2))
    b.add_joint_ball(rocker, coupler, at=(0.5, 0, 0.3))
    return b


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_a_limit_that_a_loop_cannot_reach_presses_and_does_no_more(backend: str) -> None:
    sim = Simulation(_stretched(2.5).finalize(), backend=backend, config=SolverConfig(dt=5e-3))
    for _ in range(60):
        sim.step(10)
        assert sim.health().all(), sim.health_report()
        assert sim.read("sim.kinetic_energy", numpy=True)[0] < 1.0
    assert sim.read("sim.joint_drift_peak", numpy=True)[0] < 1e-4


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_a_limit_within_reach_of_a_loop_is_recovered(backend: str) -> None:
    sim = Simulation(_stretched(0.3).finalize(), backend=backend, config=SolverConfig(dt=5e-3))
    sim.step(200)
    assert sim.read("joint.crank.position", numpy=True)[0] > 0.3 - 1e-3
    assert sim.health().all(), sim.health_report()


def test_constraints_in_loops() -> None:
    ground = 5
    joined = [{ground, 0}, {0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}]
    found = constraints_in_loops(joined, np.array([True] * 5 + [False]))
    assert found.tolist() == [False, False, True, True, True, False]
    # Ground is one body: a gear over two hinges of it closes a loop, and so does a coupling of one joint's own motions.
    dynamic = np.array([True, True, False])
    assert constraints_in_loops([{2, 0}, {2, 1}, {2, 0, 1}], dynamic).all()
    assert constraints_in_loops([{2, 0}, {2, 0}], dynamic).all()
    assert not constraints_in_loops([{2, 0}, {2, 1}], dynamic).any()
    # A coupling of three bodies may be the nearest common ancestor.
    assert constraints_in_loops([{0, 1, 2}, {1, 2}], np.array([True] * 3 + [False])).all()
    assert constraints_in_loops([{1, 2}, {0, 1, 2}], np.array([True] * 3 + [False])).all()


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_a_loop_that_cannot_close_fails_its_world(backend: str) -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    first, last = (b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((x, 0, 0))) for x in (0.5, 1.5))
    mover = b.add_body(1.0, (1, 1, 1), xform=Transform((2, 0, 0)), linear_velocity=(200.0, 0, 0), kinematic=True)
    b.add_joint_revolute(-1, first, axis=AXIS, at=(0, 0, 0))
    b.add_joint_revolute(first, last, axis=AXIS, at=(1, 0, 0))
    b.add_joint_revolute(last, mover, axis=AXIS, at=(2, 0, 0), label="mover")
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-2))
    with pytest.warns(UserWarning):
        sim.step(200)
    assert not sim.health().all()
    assert "its loop cannot close" in sim.health_report()


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_a_limit_in_a_loaded_loop_is_reached(backend: str) -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, -9.81))
    low, high = (b.add_body(0.5, (0.01,) * 3, xform=Transform((0.45, 0, z))) for z in (0.25, 0.75))
    slider = b.add_body(5.0, (0.1,) * 3, xform=Transform((0, 0, 1)))
    b.add_joint_revolute(-1, low, axis=AXIS, at=(0.3, 0, 0))
    b.add_joint_revolute(low, high, axis=AXIS, at=(0.6, 0, 0.5), limit_lower=0.01, label="elbow")
    b.add_joint_planar_pin(high, slider, axis=AXIS, at=(0.3, 0, 1))
    b.add_joint_prismatic(-1, slider, axis=(0, 0, 1), at=(0, 0, 1))
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=5e-3))
    sim.step(150)
    assert sim.read("joint.elbow.position", numpy=True)[0] == pytest.approx(0.01, abs=1e-6)
