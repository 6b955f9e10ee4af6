from __future__ import annotations

import numpy as np
import pytest

import gpusim
from tests.backends import FASTEST

from ..reference_data import load
from . import models
from .runs import march, read, simulation, total_energy

RECORD = load("D12").record
RADIUS, OFFSET = 0.02, 0.005


def _observe(sim: gpusim.Simulation) -> list[float]:
    axis = gpusim.Transform((0.0, 0.0, 0.0), read(sim, "body.top.orientation")).rotate(np.array([0.0, 0.0, 1.0]))
    arm = RADIUS * np.array([0.0, 0.0, 1.0]) - OFFSET * axis
    tilt = np.degrees(np.arccos(np.clip(axis[2], -1.0, 1.0)))
    return [tilt, float(read(sim, "body.top.angular_momentum") @ arm), total_energy(sim)]


@pytest.mark.native
@pytest.mark.parametrize("dt", [1e-3, 5e-4])
def test_turns_over(dt):
    times = np.arange(0.0, 4.0, 0.01)
    found = march(simulation(models.tippe_top(), FASTEST, dt), times, _observe)
    upside_down = times[np.argmax(found[:, 0] > 90.0)]
    assert found[-1, 0] > 140.0
    assert upside_down == pytest.approx(RECORD["t_tilt_90"], rel=0.3)
    assert found[0, 1] == pytest.approx(RECORD["jellett0"], rel=1e-9)
    assert np.abs(found[:, 1] / found[0, 1] - 1.0).max() < 1e-4
    assert np.diff(found[:, 2]).max() < 1e-9 * found[0, 2]


@pytest.mark.native
def test_substeps_keep_the_jellett_integral():
    found = march(simulation(models.tippe_top(), FASTEST, 1e-3, substeps=8), [0.0, 0.2, 0.5], _observe)
    assert np.abs(found[:, 1] / found[0, 1] - 1.0).max() < 1e-3


@pytest.mark.native
def test_without_sliding_it_stays_up():
    found = march(simulation(models.tippe_top(None), FASTEST, 5e-4), [2.0, 3.0], _observe)
    assert np.all(found[:, 0] < 30.0)


def test_numpy_follows_the_reference():
    found = march(simulation(models.tippe_top(), "numpy", 1e-3), [0.0, 0.02], _observe)
    assert found[1, 0] == pytest.approx(load("D12").columns["tilt_deg"][2], abs=0.01)
    assert abs(found[1, 1] / found[0, 1] - 1.0) < 1e-5
