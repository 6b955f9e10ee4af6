from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.scene import load_scene

STEP, STEPS, SWING = 5e-3, 200, 0.2
#: Speeds of pins across the track, m/s.
SHAKE = 0.2


def swing(geometric_stiffness: bool) -> tuple[float, float]:
    """Return the greatest joint gap (m) and energy error (J) of a swinging chain with mass ratio 1:1000."""
    scene = load_scene("chain", links=10, mass_ratio=1000.0, horizontal=False)
    config = gpusim.SolverConfig(dt=STEP, geometric_stiffness=geometric_stiffness)
    sim = gpusim.Simulation(scene.builder.finalize(), config=config)
    for label in sim.model.labels("body"):
        depth = float(sim.read(f"body.{label}.center_of_mass")[0, 2])
        sim.write(f"body.{label}.linear_velocity", (-SWING * depth, 0.0, 0.0))
        sim.write(f"body.{label}.angular_velocity", (0.0, -SWING, 0.0))
    start, gap, error = energy(sim), 0.0, 0.0
    for _ in range(STEPS // 10):
        sim.step(10)
        gap = max(gap, float(sim.read("sim.joint_drift")[0]))
        error = max(error, abs(energy(sim) - start))
    return gap, error


def energy(sim: gpusim.Simulation) -> float:
    """Kinetic plus potential energy, J."""
    return float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])


def test_a_swinging_chain_of_light_links_stays_whole() -> None:
    gap, error = swing(geometric_stiffness=True)
    assert gap < 1e-9
    assert error < 1e-2


def test_without_geometric_stiffness_the_chain_flies_apart() -> None:
    gap, error = swing(geometric_stiffness=False)
    assert not (gap < 1e-3 and error < 1.0)
    assert np.isfinite(gap)


def zigzag(tension: float) -> tuple[float, float, float]:
    pitch, links = 0.12, 6
    b, last = gpusim.ModelBuilder(), -1
    for k in range(links):
        place = gpusim.Transform((0.0, 0.0, -pitch * (k + 0.5)))
        body = b.add_body(2.5, (0.0149, 0.00323, 0.0124), xform=place, label=f"link{k}")
        b.add_joint_revolute(last, body, axis=(0, 1, 0), at=(0.0, 0.0, -pitch * k))
        last = body
    mass = tension / 9.81
    weight = b.add_body(mass, (0.01 * mass,) * 3, xform=gpusim.Transform((0.0, 0.0, -pitch * links)), label="weight")
    b.add_joint_revolute(last, weight, axis=(0, 1, 0), at=(0.0, 0.0, -pitch * links))
    sim = gpusim.Simulation(b.finalize(), config=gpusim.SolverConfig(dt=3e-3))
    aside = np.concatenate([[0.0], np.random.default_rng(0).normal(size=links - 1) * SHAKE, [0.0]])
    for k in range(links):
        sim.write(f"body.link{k}.linear_velocity", (0.5 * (aside[k] + aside[k + 1]), 0.0, 0.0))
        sim.write(f"body.link{k}.angular_velocity", (0.0, -(aside[k + 1] - aside[k]) / pitch, 0.0))
    first, start, gain, gap = float(sim.read("sim.kinetic_energy")[0]), energy(sim), 0.0, 0.0
    for _ in range(60):
        sim.step(10)
        gain = max(gain, energy(sim) - start)
        gap = max(gap, float(sim.read("sim.joint_drift")[0]))
    return first, gain, gap


@pytest.mark.parametrize("tension", [6e3, 8e3, 12e3])
def test_a_taut_track_that_shakes_gains_no_energy(tension: float) -> None:
    first, gain, gap = zigzag(tension)
    assert gain < first
    assert gap < 1e-8


@pytest.mark.parametrize("turn", [0.05, 0.1, 0.2])
def test_a_rotating_chain_stays_whole(turn: float) -> None:
    length, mass, step, b, outer = 0.2, 0.1, 5e-3, gpusim.ModelBuilder(gravity=(0.0, 0.0, 0.0)), -1
    speed, random = turn / step, np.random.default_rng(1)
    for k in range(11):
        at, kilos = (length * (k + 0.5), mass) if k < 10 else (length * 10 + 0.1, 5.0)
        moment = kilos * length**2 / 12.0
        motion = np.array([0.0, speed * at, 0.0]) + (0.1 * random.normal(size=3) if k < 10 else 0.0)
        rod = b.add_body(
            kilos,
            (0.3 * moment, moment, moment),
            xform=gpusim.Transform((at, 0.0, 0.0)),
            linear_velocity=tuple(motion),
            angular_velocity=(0.0, 0.0, speed),
        )
        b.add_joint_ball(outer, rod, at=(length * k, 0.0, 0.0))
        outer = rod
    sim = gpusim.Simulation(b.finalize(), config=gpusim.SolverConfig(dt=step))
    sim.step(10)
    start = energy(sim)
    sim.step(390)
    assert sim.read("sim.joint_drift_peak").max() < 1e-7
    assert abs(energy(sim) / start - 1.0) < 1e-3
