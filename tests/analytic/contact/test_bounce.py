"""D04: a ball bounces with restitution 1, 0.9, 0.7 and 0.5."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.backends import FASTEST

from ..reference_data import load
from . import models
from .runs import positions, read, simulation

CASES = {case["e"]: case for case in load("D04").record["cases"]}
RADIUS, G = 0.1, 9.81


def _flight(restitution: float, backend: str, dt: float, duration: float, **settings) -> tuple[np.ndarray, ...]:
    sim = simulation(models.bouncing_ball(restitution), backend, dt, **settings)
    z, v = [], []
    for step in range(round(duration / dt) + 1):
        sim.step(1 if step else 0)
        z.append(positions(sim)[0, 2] - RADIUS)
        speed = np.sqrt(2.0 * float(sim.read("sim.kinetic_energy")[0] / sim.read("body.ball.mass")[0]))
        v.append(np.copysign(speed, read(sim, "body.ball.linear_velocity")[2]))
    return np.arange(len(z)) * dt, np.array(z), np.array(v)


def _bounces(times: np.ndarray, z: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    before = np.flatnonzero((v[:-1] < -1e-3) & (v[1:] > 1e-3))
    fall = (v[before] + np.sqrt(np.maximum(v[before] ** 2 + 2.0 * G * z[before], 0.0))) / G
    return times[before] + fall, z[before + 1] + v[before + 1] ** 2 / (2.0 * G)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("restitution", CASES)
def test_impact_times_and_heights(restitution):
    case = CASES[restitution]
    expected, apex = np.array(case["impact_times"]), np.array(case["apex_heights"])
    count = min(int(np.sum(apex > 0.5 * G * 0.025**2)), len(expected)) - 1
    times, heights = _bounces(*_flight(restitution, FASTEST, 1e-3, expected[count - 1] + 0.02))
    assert len(times) == count
    assert np.abs(times / expected[:count] - 1.0).max() < 5e-3
    assert np.abs(heights / apex[1 : count + 1] - 1.0).max() < 1e-9
    # An impact takes place at the end of its step: each of them costs up to a step.
    late = times - expected[:count]
    assert np.all(late >= -1e-9) and np.all(late < 1e-3 * np.arange(1, count + 1))


def test_numpy_bounces():
    sim = simulation(models.bouncing_ball(0.7, 0.02), "numpy", 2e-3)
    sim.step(45)
    z, v = positions(sim)[0, 2] - RADIUS, read(sim, "body.ball.linear_velocity")[2]
    assert z + v * v / (2.0 * G) == pytest.approx(0.49 * 0.02, rel=1e-9)
    flown = 0.09 - math.sqrt(2.0 * 0.02 / G)
    rise = math.sqrt(2.0 * 0.49 * 0.02 / G)
    assert v == pytest.approx(G * (rise - flown), abs=G * 2e-3)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("settings", [{}, {"substeps": 4}], ids=["1", "4"])
def test_elastic_ball_keeps_its_energy(settings):
    _, z, v = _flight(1.0, FASTEST, 1e-3, 10.0, **settings)
    free = z > 5e-3
    assert np.abs((G * z + 0.5 * v * v)[free] / G - 1.0).max() < 1e-6


@pytest.mark.nightly
@pytest.mark.native
def test_elastic_ball_in_float32():
    _, z, v = _flight(1.0, FASTEST, 1e-3, 10.0, dtype="float32")
    free = z > 5e-3
    assert np.abs((G * z + 0.5 * v * v)[free] / G - 1.0).max() < 1e-3


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("dt", [2e-3, 1e-3, 5e-4])
@pytest.mark.parametrize("restitution", [0.9, 0.7, 0.5])
def test_comes_to_rest_after_zeno_time(restitution, dt):
    times, z, v = _flight(restitution, FASTEST, dt, CASES[restitution]["zeno_time"] + 0.2)
    late = times > CASES[restitution]["zeno_time"] + 0.1
    assert np.abs(v[late]).max() < 1e-4 and np.abs(z[late]).max() < 2e-5
    moving = times[np.abs(v) > 1e-3][-1]
    assert moving == pytest.approx(CASES[restitution]["zeno_time"], rel=2e-2)


@pytest.mark.native
def test_impact_times_converge_with_the_step():
    delays = []
    for dt in (2e-3, 1e-3, 5e-4):
        late = []
        for restitution in (0.9, 0.8137, 0.7, 0.6):
            ball = models.bouncing_ball(restitution, 1.0 + 0.01 * restitution)
            sim = simulation(ball, FASTEST, dt)
            first = math.sqrt(2.0 * (1.0 + 0.01 * restitution) / G)
            expected = first * (1.0 + 2.0 * sum(restitution**k for k in range(1, 6)))
            # The time of the sixth impact.
            hits, before = 0, 0.0
            while hits < 6:
                sim.step()
                v = float(sim.read_state()["linear_velocity"][0, 0, 2])
                hits += before < 0.0 < v
                before = v
            late.append(sim.time - expected)
        delays.append(np.mean(late))
    order = np.polyfit(np.log([2e-3, 1e-3, 5e-4]), np.log(delays), 1)[0]
    assert 0.7 < order < 1.4
    assert delays[1] < 6 * 1e-3
