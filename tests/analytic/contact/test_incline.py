"""D02: a block on an incline sticks below the friction angle and slides above it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.backends import FASTEST

from ..reference_data import load
from . import models
from .runs import march, positions, simulation

CASES = load("D02").record["cases"]
SLIDING = [(case["angle_deg"], case["mu"]) for case in CASES if not case["stick"]]
STICKING = [(case["angle_deg"], case["mu"]) for case in CASES if case["stick"]]


def _slide(angle: float, friction: float, backend: str, dt: float, times: list[float], **settings) -> np.ndarray:
    """Distance down the slope at the times, m."""
    slope = math.radians(angle)
    sim = simulation(models.incline(slope, friction), backend, dt, **settings)
    start, down = positions(sim)[0], np.array([math.cos(slope), 0.0, -math.sin(slope)])
    return march(sim, times, lambda s: (positions(s)[0] - start) @ down)


def _distance(angle: float, friction: float) -> list[float]:
    case = next(c for c in CASES if (c["angle_deg"], c["mu"]) == (angle, friction))
    return [case["s_1s"], case["s_2s"]]


@pytest.mark.native
@pytest.mark.parametrize("case", SLIDING)
def test_slides_as_far_as_coulomb_says(case):
    found = _slide(*case, FASTEST, 1e-3, [1.0, 2.0])
    expected = np.array(_distance(*case))
    assert np.all(np.abs(found - expected) < 1e-3 * expected + np.array([3e-6, 0.0]))


@pytest.mark.native
@pytest.mark.parametrize("case", SLIDING)
def test_substeps_slide_as_far(case):
    found = _slide(*case, FASTEST, 4e-3, [1.0, 2.0], substeps=4)
    expected = np.array(_distance(*case))
    assert np.all(np.abs(found - expected) < 1e-3 * expected + 5e-6)


@pytest.mark.nightly
@pytest.mark.native
def test_sticks_for_ten_minutes():
    found = _slide(20.0, 0.5, FASTEST, 5e-3, [1.0, 5.0, 60.0, 600.0])
    assert np.abs(found).max() < 1e-6


@pytest.mark.native
@pytest.mark.parametrize(("angle", "friction"), STICKING[1:])
def test_sticks_next_to_the_friction_angle(angle, friction):
    found = _slide(angle, friction, FASTEST, 5e-3, [10.0, 20.0, 120.0])
    assert np.abs(found - found[0]).max() < 1e-6
    assert np.abs(found).max() < 2e-5


@pytest.mark.nightly
@pytest.mark.parametrize("substeps", [1, 4])
def test_numpy_sticks_and_slides(substeps):
    assert np.abs(_slide(20.0, 0.5, "numpy", 5e-3, [0.05], substeps=substeps)).max() < 1e-6
    angle = math.radians(30.0)
    expected = 0.5 * models.G * (math.sin(angle) - 0.5 * math.cos(angle)) * 0.05**2
    assert _slide(30.0, 0.5, "numpy", 5e-3, [0.05], substeps=substeps)[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("angle", "friction"), STICKING[:2])
def test_float32_does_not_creep(angle, friction):
    found = _slide(angle, friction, FASTEST, 5e-3, [10.0, 60.0], dtype="float32")
    assert np.abs(found[1] - found[0]) < 1e-6
