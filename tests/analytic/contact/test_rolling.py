from __future__ import annotations

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform
from tests.backends import FASTEST, on_backends

from ..reference_data import load
from . import models
from .runs import march, read, simulation

RECORD = load("D06").record
DIRECTIONS = {"y": (0.0, 1.0, 0.0), "xy": (0.5, np.sqrt(0.75), 0.0)}
BALLS = (0, 7, 12, 24)


@pytest.mark.nightly
@pytest.mark.parametrize(("direction", "backend"), on_backends(DIRECTIONS, ["xy"]))
def test_plate_and_balls_speed_up(direction, backend):
    """The mean of |dv ball|^2 + |dv plate|^2 is below 1e-6 m2/s2."""
    along = np.array(DIRECTIONS[direction])
    builder = models.balls_on_a_plate()
    builder.add_force(0, tuple(150.0 * along), label="push")
    sim = simulation(builder, backend, 1e-3)
    times = np.linspace(0.1, 1.0, 10) if backend == FASTEST else np.array([0.005, 0.01])
    names = ["plate", *(f"ball{k}" for k in BALLS)]
    found = march(sim, times, lambda s: [read(s, f"body.{name}.linear_velocity") for name in names])
    rates = np.array([RECORD["a_box"]] + [RECORD["a_ball"]] * len(BALLS))
    errors = np.sum((found - times[:, None, None] * rates[None, :, None] * along) ** 2, axis=2)
    assert np.mean(errors[:, 0]) + np.max(np.mean(errors[:, 1:], axis=0)) < 1e-6


@pytest.mark.nightly
@pytest.mark.parametrize(("dtype", "backend"), on_backends(["float32"], []))
def test_float32(dtype, backend):
    builder = models.balls_on_a_plate()
    builder.add_force(0, (0.0, 150.0, 0.0), label="push")
    sim = simulation(builder, backend, 1e-3, dtype=dtype, max_pairs=64)  # few enough for a build that others share
    found = march(sim, [0.5], lambda s: [read(s, "body.plate.linear_velocity"), read(s, "body.ball3.linear_velocity")])
    expected = 0.5 * np.array([[0.0, RECORD["a_box"], 0.0], [0.0, RECORD["a_ball"], 0.0]])
    assert np.sum((found[0] - expected) ** 2) < 1e-6


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", FASTEST])
def test_rolling_friction_never_turns_into_a_drive(backend):
    rough = Material(friction=0.9, rolling_friction=0.01)
    b = ModelBuilder(gravity=(0, 0, -9.81))
    b.add_shape_sphere(-1, 0.5, material=rough)
    body = b.add_body(1.0, (0.004,) * 3, xform=Transform((0.1, 0.0, 0.5916079783)), angular_velocity=(0.0, 3.0, 2.0))
    b.add_shape_sphere(body, 0.1, material=rough)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=2e-3))
    energy, turned = [], 0.0
    for _ in range(100):
        sim.step(2)
        found = sim.contacts()
        if found.touching.any():
            turned = max(turned, float(np.abs(np.sum(found.torque * found.normal, axis=1)).max()))
            energy.append(float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0]))
    assert len(energy) > 50 and turned == pytest.approx(0.0, abs=1e-12)
    assert np.diff(energy).max() < 1e-4 * np.ptp(energy)
