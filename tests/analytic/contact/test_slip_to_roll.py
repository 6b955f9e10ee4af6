from __future__ import annotations

import numpy as np
import pytest

from tests.backends import FASTEST

from ..reference_data import load
from . import models
from .runs import march, read, simulation

RADIUS, FRICTION, G = 0.1, 0.2, 9.81
STARTS = [(2.0, 0.0), (0.0, 30.0), (1.0, -20.0)]
#: Enough that the point gives way too little to matter: 8 sweeps leave 1.1e-6 of the speed, 32 sweeps 7e-8.
SWEEPS = 32


def _end(speed: float, spin: float) -> tuple[float, float]:
    return 2.0 * abs(speed - RADIUS * spin) / (7.0 * FRICTION * G), (5.0 * speed + 2.0 * RADIUS * spin) / 7.0


def _observe(sim) -> list[float]:
    # Means of the velocities around t: next to the end of sliding, signals return those of half a step before.
    work = sim.runtime.forward()
    after = work.h_prev / (work.h_prev + work.h)
    twist = work.twist_before[:, 0] + after * (work.twist - work.twist_before)[:, 0]
    speed, rate = twist[0, 0], twist[0, 4]
    return [speed, speed - RADIUS * rate, read(sim, "body.ball.position")[0]]


def _run(start, backend, dt, times, **settings) -> np.ndarray:
    return march(simulation(models.sliding_sphere(*start), backend, dt, **settings), times, _observe)


def test_closed_form_is_the_record():
    record = load("D01").record
    assert _end(2.0, 0.0) == pytest.approx((record["t_roll"], record["v_final"]), rel=1e-12)


@pytest.mark.native
@pytest.mark.parametrize("start", STARTS)
def test_slides_with_the_friction_of_coulomb(start):
    t_roll, v_roll = _end(*start)
    times = np.arange(0.01, t_roll + 0.02, 0.001)
    found = _run(start, FASTEST, 1e-3, times, iterations=SWEEPS)
    slides = times < t_roll - 1e-3
    push = np.sign(RADIUS * start[1] - start[0]) * FRICTION * G
    assert np.abs(found[slides, 0] - (start[0] + push * times[slides])).max() < 1e-9
    x = start[0] * times + 0.5 * push * times**2
    assert np.abs(found[slides, 2] - x[slides]).max() < 1e-9
    slip0 = abs(start[0] - RADIUS * start[1])
    first = times[np.argmax(np.abs(found[:, 1]) < 1e-5 * slip0)]
    assert t_roll <= first + 1e-9 and first < t_roll + 2e-3
    assert abs(first - t_roll) < 0.01 * t_roll  # a step is 0.3 %
    assert abs(found[-1, 0] - v_roll) < 1e-6 * slip0


@pytest.mark.native
def test_rolls_on():
    t_roll, v_roll = _end(2.0, 0.0)
    found = _run((2.0, 0.0), FASTEST, 1e-3, [2.0], iterations=SWEEPS)[0]
    x_roll = load("D01").record["x_at_roll"]
    assert abs(found[0] - v_roll) < 2e-6 and abs(found[1]) < 3e-6
    assert abs(found[2] - (x_roll + v_roll * (2.0 - t_roll))) < 2e-6


@pytest.mark.native
def test_default_sweeps_are_nearly_as_good():
    _, v_roll = _end(2.0, 0.0)
    found = _run((2.0, 0.0), FASTEST, 1e-3, [0.3, 2.0])
    assert np.abs(found[:, 0] - v_roll).max() < 1.2e-5


@pytest.mark.native
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
def test_with_eight_substeps(dt):
    _, v_roll = _end(2.0, 0.0)
    found = _run((2.0, 0.0), FASTEST, dt, [0.1, 0.3], substeps=8)
    assert abs(found[0, 0] - (2.0 - FRICTION * G * 0.1)) < 1e-6 * 2.0
    assert abs(found[1, 0] - v_roll) < 1e-6 * 2.0


def test_numpy_comes_to_roll():
    t_roll, v_roll = _end(0.1, 0.0)
    found = _run((0.1, 0.0), "numpy", 1e-3, [0.01, 0.02], iterations=SWEEPS)
    assert 0.01 < t_roll < 0.019
    assert found[0, 0] == pytest.approx(0.1 - FRICTION * G * 0.01, abs=1e-9)
    assert found[1, 0] == pytest.approx(v_roll, abs=1e-6) and abs(found[1, 1]) < 1e-6


@pytest.mark.nightly
@pytest.mark.native
def test_float32():
    _, v_roll = _end(2.0, 0.0)
    assert abs(_run((2.0, 0.0), FASTEST, 1e-3, [1.0], dtype="float32")[0, 0] - v_roll) < 2e-5
