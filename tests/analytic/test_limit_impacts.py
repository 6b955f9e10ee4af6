"""Impacts on joint limits and cylinder stops: restitution, energy, order of the step size."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.typing import Array
from tests.message_snapshot import naming

SOLVERS = ("direct", "colored")


def apexes(sim: Simulation, seconds: float, count: int) -> Array:
    heights = [0.0, 0.0]
    found = []
    for _ in range(round(seconds / sim.config.dt)):
        sim.step()
        heights.append(float(sim.read_state()["position"][0, 0, 2]))
        if heights[-2] > heights[-3] and heights[-2] >= heights[-1]:
            found.append(heights[-2])
    return np.array(found[:count])


def falling_slider(restitution: float) -> ModelBuilder:
    """1 kg on a vertical slide, 1 m above its lower limit."""
    b = ModelBuilder()
    body = b.add_body(1.0, (0.01,) * 3, xform=Transform((0, 0, 1.0)), label="body")
    b.add_joint_prismatic(-1, body, axis=(0, 0, 1), limit_lower=0.0, limit_restitution=restitution, label="slide")
    return b


@pytest.mark.native
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("restitution", [1.0, 0.7, 0.5])
def test_slider_bounces_to_e_squared(solver: str, restitution: float) -> None:
    config = SolverConfig(dt=1e-3, joint_solver=solver)
    sim = Simulation(falling_slider(restitution).finalize(), backend="native", config=config)
    expected = restitution ** (2.0 * np.arange(1, 5))
    # Steps miss the apex by up to g h^2/8, and the first maximum is the start.
    np.testing.assert_allclose(apexes(sim, 4.0, 5)[1:], expected, atol=2e-6)


def pendulum_loss(dt: float, solver: str) -> float:
    b = ModelBuilder()
    body = b.add_body(1.0, (0.01,) * 3, xform=Transform((1.0, 0, 0)), label="body")
    b.add_joint_revolute(
        -1, body, child_xform=Transform((-1.0, 0, 0)), axis=(0, 1, 0), limit_upper=1.2, limit_restitution=1.0
    )
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt, joint_solver=solver))
    errors = []
    for _ in range(6):
        sim.step(round(0.5 / dt))
        errors.append(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])
    return float(np.abs(errors).max())


@pytest.mark.native
@pytest.mark.parametrize("solver", SOLVERS)
def test_pendulum_keeps_its_energy(solver: str) -> None:
    coarse, fine = pendulum_loss(2e-3, solver), pendulum_loss(5e-4, solver)
    assert coarse < 1e-3 * 9.81
    assert fine < 1e-4 * 9.81
    assert fine < 0.5 * coarse


@pytest.mark.native
def test_cylinder_stop_gives_back_its_share() -> None:
    b = ModelBuilder()
    load = b.add_body(1.0, (0.01,) * 3, xform=Transform((0, 0, 2.0)), label="load")
    b.add_joint_prismatic(-1, load, axis=(0, 0, 1), label="guide")
    b.add_hydraulic_cylinder(
        -1, load, area_a=1e-12, area_b=1e-12, volume_a=1e-6, volume_b=1e-6, stroke_min=1.0, stroke_max=3.0,
        flow_gain=1e-9, stop_restitution=0.5, label="rod",
    )  # fmt: skip
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1e-3))
    np.testing.assert_allclose(apexes(sim, 1.6, 3)[1:], (1.25, 1.0625), atol=2e-5)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_a_slider_rattles_in_a_clearance_shorter_than_a_step(backend: str) -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    body = b.add_body(1.0, (0.01,) * 3, linear_velocity=(2.0, 0, 0), label="body")
    b.add_joint_prismatic(-1, body, axis=(1, 0, 0), limit_lower=-5e-4, limit_upper=5e-4, limit_restitution=1.0)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
    speeds = []
    for _ in range(12):
        sim.step()
        speeds.append(float(sim.read_state()["linear_velocity"][0, 0, 0]))
    np.testing.assert_allclose(speeds, 2.0 * (-1.0) ** np.arange(1, 13), rtol=1e-9)


def test_restitution_is_a_share() -> None:
    with pytest.raises(ModelError, match=naming("limit_restitution")):
        falling_slider(1.5)
