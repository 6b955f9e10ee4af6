from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig
from tests.message_snapshot import naming

from .helpers import SOLVERS, ball_body, bits, different, simulate
from .machine import machine


def run(num_worlds: int, solver: str, dtype: str = "float64") -> Simulation:
    sim = Simulation(machine().finalize(), num_worlds, dtype=dtype, config=SolverConfig(dt=2e-3, joint_solver=solver))
    sim.control["motor"], sim.control["lift"] = 0.6, 0.3
    sim.step(10)
    return sim


@pytest.mark.parametrize("value", [1e200, 1e30])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_bad_world_stops_and_its_neighbors_do_not_notice(solver: str, value: float) -> None:
    sim, calm = run(3, solver), run(3, solver)
    sim.write("body.bucket.linear_velocity", (0.0, value, 0.0), worlds=1)
    with pytest.warns(UserWarning, match=naming("1")):
        sim.step(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(19)
    calm.step(20)
    np.testing.assert_array_equal(sim.health(), (True, False, True))
    report = sim.health_report()
    assert re.fullmatch(r"world 1: (body|cylinder) '\w+' has \w+ = .* after t = 0.02 s", report), report
    for world in (0, 2):
        assert different(bits(sim, world), bits(calm, world)) == []
    # It stands still where it was when the step failed.
    assert sim.read("sim.time")[1] == pytest.approx(0.02)
    for name in ("body.bucket.position", "joint.hinge.position", "cylinder.lift.pressure_a"):
        assert np.all(np.isfinite(sim.read(name)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_reset_revives_a_stopped_world(solver: str) -> None:
    sim, fresh = run(2, solver), Simulation(machine().finalize(), config=SolverConfig(dt=2e-3, joint_solver=solver))
    sim.write("joint.hinge.velocity", 1e120, worlds=0)
    with pytest.warns(UserWarning, match=naming("0")):
        sim.step(1)
    sim.reset(np.array([True, False]))
    assert np.all(sim.health())
    assert sim.health_report() == "all worlds are fine"
    for s in (sim, fresh):
        s.control["motor"], s.control["lift"] = 0.6, 0.3
        s.step(15)
    assert different(bits(sim, 0), bits(fresh, 0)) == []


def test_the_culprit_of_an_actuator_is_named() -> None:
    sim = run(2, "direct")
    sim.write("cylinder.lift.pressure_a", 1e308, worlds=1)
    with pytest.warns(UserWarning, match=naming("1")):
        sim.step(3)
    np.testing.assert_array_equal(sim.health(), (True, False))
    assert "world 1" in sim.health_report()


def test_float32_overflow_stops_the_world() -> None:
    sim, calm = run(2, "direct", "float32"), run(2, "direct", "float32")
    sim.write("body.crank.angular_velocity", (0.0, 1e30, 0.0), worlds=0)
    with pytest.warns(UserWarning, match=naming("0")):
        sim.step(5)
    calm.step(5)
    assert different(bits(sim, 1), bits(calm, 1)) == []


def test_every_stopped_world_has_its_line() -> None:
    b = ModelBuilder()
    ball_body(b, label="stone")
    sim = simulate(b, num_worlds=4)
    with pytest.warns(UserWarning):
        sim.write("body.stone.linear_velocity", (1e12, 0, 0), worlds=2)
        sim.step(5)
        sim.write("body.stone.angular_velocity", (0, 1e300, 0), worlds=0)
        sim.step(5)
    lines = sim.health_report().splitlines()
    assert [line.split(":")[0] for line in lines] == ["world 0", "world 2"]
    assert all("body 'stone'" in line for line in lines)
    np.testing.assert_array_equal(sim.health(), (False, True, False, True))
    np.testing.assert_allclose(sim.read("sim.time"), (5e-3, 10e-3, 0.0, 10e-3), atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_large_machines_are_not_taken_for_broken(backend: str) -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_body(mass=5e6, inertia=(5e9,) * 3, label="superstructure", angular_velocity=(0.0, 0.0, 0.3))
    sim = Simulation(b.finalize(), backend=backend)
    sim.step(10)
    assert sim.health()[0]
    assert sim.read("body.superstructure.angular_velocity")[0] == pytest.approx([0.0, 0.0, 0.3])
    sim.write("body.superstructure.angular_velocity", (0.0, 0.0, 1e10))
    with pytest.warns(UserWarning, match=naming("superstructure")):
        sim.step(1)
    assert not sim.health()[0]
