from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.arrays import as_slice
from tests.message_snapshot import naming

from .helpers import SOLVERS, G, ball_body, bits, different, simulate, slider, wheel
from .machine import machine, scatter

STEPS = 40


def start(num_worlds: int = 1, **options: Any) -> Simulation:
    dtype = options.pop("dtype", "float64")
    sim = Simulation(machine().finalize(), num_worlds, dtype=dtype, config=SolverConfig(dt=2e-3, **options))
    sim.control["motor"], sim.control["lift"] = 0.8, 0.4
    return sim


PARAMETERS: list[tuple[str, Any]] = [
    ("body.bucket.mass", 5.5),
    ("body.boom.inertia", np.diag([0.7, 2.5, 2.2])),
    ("joint.hinge.damping", 17.0),
    ("joint.swing.friction_0", 1.3),
    ("joint.swing.limit_upper_0", -0.05),
    ("joint.crank.armature", 0.08),
    ("motor.motor.stall_torque", 1.1),
    ("motor.motor.gear_ratio", 12.0),
    ("motor.motor.electrical_time_constant", 0.0),
    ("cylinder.lift.supply_pressure", 2e7),
    ("cylinder.lift.flow_gain", 1e-8),
    ("cylinder.lift.dry_friction", 500.0),
    ("cylinder.lift.linear_orifice", 1.0),
    ("cylinder.lift.anticavitation_gain", 1e-7),
    ("spring.spring.stiffness", 300.0),
    ("servo.servo.effort_limit", 0.5),
    ("force.push.force_x", 12.0),
    ("sim.gravity", (0.0, 1.0, -5.0)),
]


@pytest.fixture(scope="module")
def worlds() -> Simulation:
    """Return one world per parameter, and one without changes."""
    sim = start(len(PARAMETERS) + 1)
    for world, (name, value) in enumerate(PARAMETERS):
        sim.write(name, value, worlds=world)
    sim.step(STEPS)
    return sim


@pytest.mark.nightly
@pytest.mark.parametrize("world", range(len(PARAMETERS)), ids=[name for name, _ in PARAMETERS])
def test_a_parameter_of_one_world_is_that_of_a_simulation_of_its_own(worlds: Simulation, world: int) -> None:
    name, value = PARAMETERS[world]
    alone = start()
    alone.write(name, value)
    alone.step(STEPS)
    assert different(bits(worlds, world), bits(alone, 0)) == []
    read = worlds.read(name)
    np.testing.assert_array_equal(read[world], value)
    default = start().read(name)[0]
    for other in range(worlds.num_worlds):
        if other != world:
            np.testing.assert_array_equal(read[other], default)
    if name not in (
        "cylinder.lift.linear_orifice",
        "cylinder.lift.anticavitation_gain",
    ):
        assert different(bits(worlds, world), bits(worlds, worlds.num_worlds - 1)) != []


def test_the_world_without_changes_is_the_plain_simulation(worlds: Simulation) -> None:
    alone = start()
    alone.step(STEPS)
    assert different(bits(worlds, worlds.num_worlds - 1), bits(alone, 0)) == []


def test_parameters_of_the_builder_and_written_ones_agree() -> None:
    sims = []
    for built in (True, False):
        b = machine()
        if built:
            b.bodies[4].mass = 5.5
            b.joints[0].params["damping"][:] = 17.0
        sim = simulate(b, dt=2e-3)
        if not built:
            sim.write("body.bucket.mass", 5.5)
            sim.write("joint.hinge.damping", 17.0)
        sim.step(STEPS)
        sims.append(sim)
    assert different(bits(sims[0], 0), bits(sims[1], 0)) == []


def test_an_inertia_that_is_written_acts_as_one_that_was_built() -> None:
    tensor, omega = np.diag([0.2, 0.4, 0.5]), (1.0, 2.0, 3.0)
    sims = []
    for inertia in ((0.1, 0.2, 0.25), tensor):
        b = ModelBuilder()
        b.add_body(1.0, inertia, angular_velocity=omega, label="top")
        sims.append(simulate(b))
    sims[0].write("body.top.inertia", tensor)
    for _ in range(2):
        np.testing.assert_allclose(sims[0].read("body.top.angular_velocity")[0], omega, rtol=1e-12)
        for sim in sims:
            sim.step(20)
        np.testing.assert_allclose(*(sim.read("body.top.orientation") for sim in sims), atol=1e-12)
        for sim in sims:
            sim.reset()


def test_simulations_of_one_model_do_not_share_anything_that_changes() -> None:
    model = machine().finalize()
    first, second = Simulation(model), Simulation(model)
    before = bits(second, 0)
    for name, value in (*PARAMETERS, ("joint.hinge.position", 0.2), ("cylinder.lift.pressure_a", 9e5)):
        first.write(name, value)
    first.control["motor"] = 0.7
    first.step(5)
    assert different(bits(second, 0), before) == []
    assert second.control["motor"][0] == 0.0
    third = Simulation(model)
    for name, _ in PARAMETERS:
        np.testing.assert_array_equal(second.read(name), third.read(name))
    assert different(bits(third, 0), before) == []


def test_closed_forms_with_a_parameter_for_each_world() -> None:
    """Closed forms: x = (g_x + F/m) t^2/2 and w = v0 exp(-c t/I)."""
    mass, push = np.array([1.0, 2.0, 5.0, 0.3]), 3.0
    b = ModelBuilder(gravity=(0, 0, 0))
    slider(b, 1.0)
    b.add_force(0, (push, 0, 0))
    wheel(b, 0.1, y=1.0, damping=1.0)
    sim = simulate(b, num_worlds=4)
    sim.write("body.slide.mass", mass)
    gravity = np.zeros((4, 3))
    gravity[:, 0] = (0.0, 1.0, -2.0, 3.0)
    sim.write("sim.gravity", gravity)
    damping = np.array([0.0, 0.5, 1.0, 2.0])
    sim.write("joint.wheel.damping", damping)
    sim.write("joint.wheel.velocity", 2.0)
    sim.step(100)
    np.testing.assert_allclose(sim.read("joint.slide.position"), 0.5 * (gravity[:, 0] + push / mass) * 0.01, rtol=1e-9)
    np.testing.assert_allclose(sim.read("joint.wheel.velocity"), 2.0 * np.exp(-damping / 0.1 * 0.1), rtol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_reset_restores_the_trajectory_bit_for_bit(solver: str) -> None:
    sim, calm = start(4, joint_solver=solver), start(4, joint_solver=solver)
    for s in (sim, calm):
        s.control["motor"] = (0.1, 0.4, 0.8, -0.5)
        s.step(12)
    first = [bits(sim, world) for world in range(4)]
    mask = np.array([False, True, False, True])
    sim.reset(mask)
    np.testing.assert_allclose(sim.read("sim.time"), (12 * 2e-3, 0.0, 12 * 2e-3, 0.0), rtol=1e-12)
    # Commands went back to their defaults there.
    np.testing.assert_array_equal(sim.control["motor"], (0.1, 0.0, 0.8, 0.0))
    sim.control["motor"] = (0.1, 0.4, 0.8, -0.5)
    sim.control["lift"] = 0.4
    sim.step(12)
    calm.step(12)
    for world in (1, 3):
        assert different(bits(sim, world), first[world]) == []
    for world in (0, 2):
        assert different(bits(sim, world), bits(calm, world)) == []


def test_reset_of_everything_and_of_one_world() -> None:
    sim = start(3)
    initial = [bits(sim, world) for world in range(3)]
    sim.write("body.bucket.mass", 4.0, worlds=1)
    sim.step(10)
    sim.reset(1)
    assert different(bits(sim, 1), initial[1]) == []
    assert different(bits(sim, 0), initial[0]) != []
    sim.reset([0, 2])
    assert different(bits(sim, 0), initial[0]) == []
    sim.step(3)
    sim.reset()
    assert [different(bits(sim, world), initial[world]) for world in range(3)] == [[], [], []]
    np.testing.assert_array_equal(sim.read("body.bucket.mass"), (3.0, 4.0, 3.0))
    with pytest.raises(gpusim.ModelError, match=naming("world")):
        sim.reset(3)


def test_writes_reach_the_chosen_worlds_only() -> None:
    sim = start(4)
    sim.step(10)
    before = [bits(sim, world) for world in range(4)]
    sim.write("joint.swing.position", (0.1, 0.2), worlds=2)
    sim.write("body.bucket.linear_velocity", (0.0, 0.1, 0.0), worlds=[2])
    sim.write("cylinder.lift.pressure_a", 7e5, worlds=np.array([False, False, True, False]))
    sim.write("joint.hinge.velocity", 0.3, worlds=2)
    for world in (0, 1, 3):
        assert different(bits(sim, world), before[world]) == []
    np.testing.assert_array_equal(sim.read("cylinder.lift.pressure_a")[2], 7e5)
    np.testing.assert_allclose(sim.read("joint.swing.position")[2], (0.1, 0.2), atol=1e-12)


def test_time_of_each_world() -> None:
    sim = start(2)
    sim.step(10)
    sim.reset(0)
    sim.step(5, dt=1e-3)
    np.testing.assert_allclose(sim.read("sim.time"), (5e-3, 25e-3), rtol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_float32_keeps_poses_in_float64_and_gaps_small(solver: str) -> None:
    # The machine stands a kilometer off: float32 poses would be 6e-5 m apart there.
    far = ModelBuilder()
    far.add_builder(machine(), Transform((1000.0, -500.0, 0.0)))
    sims = {}
    for dtype in ("float32", "float64"):
        sim = Simulation(far.finalize(), dtype=dtype, config=SolverConfig(dt=2e-3, joint_solver=solver))
        sim.control["motor"], sim.control["lift"] = 0.8, 0.4
        sim.step(40)
        assert np.all(sim.health())
        sims[dtype] = sim
    state = sims["float32"].state.arrays
    assert state["position"].dtype == state["orientation"].dtype == np.float64
    assert state["linear_velocity"].dtype == state["impulse"].dtype == np.float32
    assert sims["float32"].read("sim.joint_drift")[0] < 1e-4
    for body in ("boom", "rocker", "bucket"):
        x = [sims[d].read(f"body.{body}.position")[0] for d in ("float32", "float64")]
        np.testing.assert_allclose(x[0], x[1], atol=2e-3)


def test_float32_falls_exactly_enough() -> None:
    b = ModelBuilder()
    ball_body(b, label="x")
    sim = Simulation(b.finalize(), dtype="float32", config=SolverConfig(dt=1e-3))
    sim.step(300)
    assert sim.read("body.x.position")[0, 2] == pytest.approx(-0.5 * G * 0.09, abs=1e-5)


def test_scatter_writes_every_world() -> None:
    sim = start(5)
    for name, values in scatter(5).items():
        sim.write(name, values)
        np.testing.assert_allclose(sim.read(name), values, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_a_kept_state_comes_back_bit_for_bit(backend: str) -> None:
    def run(num_worlds: int) -> Simulation:
        sim = Simulation(machine().finalize(), num_worlds, backend=backend, config=SolverConfig(dt=2e-3))
        sim.control["motor"], sim.control["lift"] = 0.8, 0.4
        sim.step(10)
        return sim

    sim = run(2)
    kept = sim.state.copy()
    sim.step(10)
    once = bits(sim, 0)
    sim.state.restore(kept)
    sim.invalidate()
    sim.step(10)
    assert different(bits(sim, 0), once) == [] == different(bits(sim, 1), once)
    sim.state.restore(kept, [1])
    sim.invalidate()
    sim.step(10)
    assert different(bits(sim, 1), once) == [] != different(bits(sim, 0), once)
    free = ModelBuilder()
    ball_body(free)
    for words, other in (("3", run(3).state), ("", Simulation(free.finalize(), 2).state), ("5", 5)):
        with pytest.raises(gpusim.ModelError, match=naming(f"Simulation.restore {words}")):
            sim.state.restore(other)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [[], [3], [-1], [0, 1, 2], [2, 1], [0, 0, 2], [1, 3], [5, 6], [0, 2, 1, 3]])
def test_consecutive_indices_are_a_slice(given: list[int]) -> None:
    numbers, found = np.arange(9), as_slice(np.array(given, np.int64))
    assert numbers[found].tolist() == numbers[np.array(given, np.int64)].tolist()
    assert isinstance(found, slice) == (given in ([3], [0, 1, 2], [5, 6]))
