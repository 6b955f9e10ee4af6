from __future__ import annotations

import numpy as np
import pytest

from gpusim.contact.patch import patch_friction
from tests.backends import FASTEST

from ..reference_data import load
from . import models
from .runs import march, read, simulation

CASES = {(c["v0"], c["w0"]): c for c in load("D03_").record["stop_results"]}
RADIUS = 0.1


def test_integrals_are_those_of_the_table():
    table = load("D03b")
    eps = table.columns["eps_v_over_aw"]
    for pressure in ("hertz", "uniform"):
        force, torque = patch_friction(eps, pressure)
        # The reference is a quadrature, good to about 1e-6.
        assert np.abs(force - table.columns[f"f_{pressure}"]).max() < 3e-6
        assert np.abs(torque - table.columns[f"t_{pressure}"]).max() < 3e-6


def _observe(sim) -> list[float]:
    velocity, rate = read(sim, "body.disk.linear_velocity"), read(sim, "body.disk.angular_velocity")
    return [float(np.hypot(velocity[0], velocity[1])), RADIUS * rate[2], read(sim, "body.disk.position")[0]]


def _at_rest(case: tuple[float, float], dt: float, **settings) -> tuple[np.ndarray, np.ndarray]:
    times = np.arange(0.0, CASES[case]["t_stop"] + 0.05, dt)
    return times, march(simulation(models.spinning_disk(*case), FASTEST, dt, **settings), times, _observe)


@pytest.mark.nightly
def test_numpy_stops_sliding_and_spinning_together():
    sim = simulation(models.spinning_disk(0.04, 0.4), "numpy", 5e-4)
    found = march(sim, [0.0165, 0.02], _observe)
    assert CASES[(2.0, 20.0)]["t_stop"] / 50.0 == pytest.approx(0.0182, abs=1e-4)
    assert np.all(found[0, :2] > 3e-3) and np.all(np.abs(found[1, :2]) < 1e-9)
    assert found[1, 2] == pytest.approx(CASES[(2.0, 20.0)]["x_stop"] / 2500.0, rel=1e-2)


@pytest.mark.native
@pytest.mark.parametrize("settings", [{}, {"substeps": 4}], ids=["1", "4"])
@pytest.mark.parametrize("case", CASES)
def test_stops_in_time(case, settings):
    expected = CASES[case]
    times, found = _at_rest(case, 1e-3, **settings)
    stops = [times[np.flatnonzero(found[:, k] > 1e-3)[-1]] for k in (0, 1) if case[k] > 0.0]
    assert np.ptp(stops) <= 2e-3 + 1e-9
    assert stops == pytest.approx([expected["t_stop"]] * len(stops), rel=5e-3)
    assert found[-1, 2] == pytest.approx(expected["x_stop"], rel=1e-3, abs=1e-6)
    angle = float(np.trapezoid(found[:, 1], times)) / RADIUS
    assert angle == pytest.approx(expected["angle_stop"], rel=5e-3, abs=1e-6)
    assert np.abs(found[-10:, :2]).max() < 1e-9


@pytest.mark.native
@pytest.mark.parametrize("case", [(2.0, 5.0), (0.5, 60.0)])
def test_speeds_follow_the_reference(case):
    table = load("D03_").columns
    mine = (table["v0"] == case[0]) & (table["w0"] == case[1])
    times, found = _at_rest(case, 1e-3)
    speed = np.interp(table["t"][mine], times, found[:, 0])
    rim = np.interp(table["t"][mine], times, found[:, 1])
    assert np.abs(speed - table["v"][mine]).max() < 3e-3
    assert np.abs(rim - RADIUS * table["w"][mine]).max() < 3e-3


@pytest.mark.native
def test_ratio_of_the_speeds_at_the_end():
    """v/(R w) approaches 0.6530 from above."""
    case = (2.0, 20.0)
    times, found = _at_rest(case, 2.5e-4)
    k = int(np.searchsorted(times, CASES[case]["t_stop"] - 5e-3))
    assert found[k, 0] / found[k, 1] == pytest.approx(load("D03_").record["terminal_eps"], abs=0.01)
