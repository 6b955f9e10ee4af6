from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.message_snapshot import naming

from .test_assembly import bricard, four_bar

CRANK, ROD, RATE = 0.04, 0.13, 100.0
CONSISTENT = {"joint.main.velocity": RATE, "joint.big.velocity": -RATE * (1 + CRANK / ROD)}


def slider_crank(armature: float = 0.0) -> Model:
    b, y = ModelBuilder(gravity=(0, 0, 0)), (0, 1, 0)
    crank = b.add_body(2.0, (0.01, 0.01, 0.01), label="crank")
    rod = b.add_body(0.5, (1e-5, 1e-3, 1e-3), com=(ROD / 2, 0, 0), xform=Transform((CRANK, 0, 0)), label="rod")
    piston = b.add_body(0.4, (1e-4, 1e-4, 1e-4), xform=Transform((CRANK + ROD, 0, 0)), label="piston")
    b.add_joint_revolute(-1, crank, axis=y, at=(0, 0, 0), armature=armature, label="main")
    b.add_joint_revolute(crank, rod, axis=y, at=(CRANK, 0, 0), label="big")
    b.add_joint_prismatic(-1, piston, axis=(1, 0, 0), at=(CRANK + ROD, 0, 0), label="slide")
    b.add_joint_planar_pin(rod, piston, axis=y, at=(CRANK + ROD, 0, 0), label="small")
    return b.finalize()


BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rates_in_a_loop_leave_the_piston_on_its_slide(backend: str) -> None:
    sim = Simulation(slider_crank(), backend=backend, config=SolverConfig(dt=1e-3))
    sim.write_state(CONSISTENT)
    assert np.abs(sim.read("body.piston.angular_velocity")).max() < 1e-9
    assert sim.read("sim.kinetic_energy")[0] == pytest.approx(51.473, abs=1e-3)
    for _ in range(3):
        sim.step()
        assert sim.read("sim.kinetic_energy")[0] == pytest.approx(51.473, abs=5e-3)
        assert np.abs(sim.read("body.piston.angular_velocity")).max() < 1e-9


def test_a_closing_joint_that_is_written_moves_its_child() -> None:
    for written in "ad":
        sim = Simulation(four_bar(None).finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
        sim.write_state({f"joint.{written}.velocity": 3.0})
        turned = sim.read("body.rocker.angular_velocity")[0, 1], sim.read("body.coupler.angular_velocity")[0, 1]
        assert turned == pytest.approx((3.0, 3.0 if written == "a" else 0.0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_partial_rates_become_those_of_the_loop(backend: str) -> None:
    sim = Simulation(slider_crank(), 2, backend, config=SolverConfig(dt=1e-3))
    sim.write_state({"joint.main.velocity": np.array([RATE, -3.0])})
    report = sim.project_velocities("joint.main.velocity")
    assert report.converged.all() and max(float(v.max()) for v in report.before.values()) > 1.0
    assert sim.read("joint.main.velocity") == pytest.approx([RATE, -3.0], rel=1e-12)
    assert sim.read("joint.big.velocity") == pytest.approx(np.array([RATE, -3.0]) * -(1 + CRANK / ROD), rel=1e-12)
    assert sim.read("sim.kinetic_energy")[0] == pytest.approx(51.4734, abs=1e-4)
    sim.step(20)
    sim.reset()
    assert sim.read("joint.big.velocity")[1] == pytest.approx(3.0 * (1 + CRANK / ROD), rel=1e-12)


def test_fitting_velocities_stay() -> None:
    sim = Simulation(slider_crank(), backend="numpy", config=SolverConfig(dt=1e-4))
    sim.write_state(CONSISTENT)
    sim.step(50)
    before = [sim.read(f"joint.{name}.velocity")[0] for name in ("main", "big", "slide", "small")]
    sim.project_velocities()
    assert [sim.read(f"joint.{name}.velocity")[0] for name in ("main", "big", "slide", "small")] == pytest.approx(
        before, rel=1e-4
    )


def test_nothing_held_changes_the_least_kinetic_energy() -> None:
    armature = 0.02
    sim = Simulation(slider_crank(armature), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.write("body.crank.angular_velocity", (0.0, RATE, 0.0))
    sim.project_velocities()
    # The rod turns with -crank/rod times the crank's rate about the piston's pin, which rests.
    turned = CRANK / ROD
    rod = 0.5 * (turned * ROD / 2) ** 2 + 1e-3 * turned**2
    expected = RATE * (0.01 + armature) / (0.01 + armature + rod)
    assert sim.read("joint.main.velocity")[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("builder", [four_bar(None), bricard(3)], ids=["four_bar", "bricard"])
def test_random_velocities_of_redundant_loops(builder: ModelBuilder) -> None:
    sim = Simulation(builder.finalize(), 3, backend="numpy", config=SolverConfig(dt=1e-3))
    sim.assemble()
    rng = np.random.default_rng(4)
    for label in sim.model.labels("body"):
        sim.write(f"body.{label}.linear_velocity", rng.normal(size=(3, 3)))
        sim.write(f"body.{label}.angular_velocity", rng.normal(size=(3, 3)))
    before = sim.read("sim.kinetic_energy")
    report = sim.project_velocities()
    assert report.converged.all()
    assert (sim.read("sim.kinetic_energy") < before).all()
    energy = sim.read("sim.kinetic_energy")
    sim.step(20)
    assert sim.read("sim.kinetic_energy") == pytest.approx(energy, rel=1e-3)


def test_rates_of_closing_joints_distances_and_tendons_are_held() -> None:
    b = four_bar(None)
    rope = b.add_joint_distance(-1, 1, at_a=(-1.0, 0, 2.0), at_b=(0.5, 0, 0.9), label="rope")
    b.add_tendon([(rope, 2.0), (0, 0.3)], label="sum")
    for name in ("d", "rope", "sum"):
        sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
        sim.write_state({"joint.a.velocity": 1.0})
        rate = sim.read(f"joint.{name}.velocity")[0]
        assert sim.project_velocities(f"joint.{name}.velocity").converged.all()
        assert sim.read(f"joint.{name}.velocity")[0] == pytest.approx(rate, rel=1e-9)


def test_rates_that_no_loop_allows_are_reported() -> None:
    sim = Simulation(slider_crank(), backend="numpy", config=SolverConfig(dt=1e-3))
    sim.write_state({"joint.main.velocity": RATE, "joint.big.velocity": RATE})
    report = sim.project_velocities("joint.*.velocity")
    assert not report.converged.any()


def test_only_velocities_are_held() -> None:
    sim = Simulation(slider_crank(), backend="numpy", config=SolverConfig(dt=1e-3))
    with pytest.raises(ModelError, match=naming("joint.main.position")):
        sim.project_velocities("joint.main.position")
    for hold in (np.zeros(2), 3, None):
        with pytest.raises(ModelError, match=naming("signals")):
            sim.project_velocities(hold)  # type: ignore[arg-type]


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), "x"])
def test_tolerances_are_numbers_of_at_least_zero(tolerance: Any) -> None:
    sim = Simulation(slider_crank(), backend="numpy", config=SolverConfig(dt=1e-3))
    with pytest.raises(ModelError, match=naming("Simulation.project_velocities")):
        sim.project_velocities(tolerance=tolerance)
