from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from tests.backends import FASTEST

from ..reference_data import load
from . import models
from .runs import march, read, simulation, total_energy

REFERENCE = load("D11")
#: Overlaps and gaps below the slop stay as they are: with 1e-5 m the stone may hover at 1e-3 of its energy, which
#: would hide the order of convergence.
SLOP = 1e-9


def _observe(sim: gpusim.Simulation) -> list[float]:
    turn = gpusim.Transform((0.0, 0.0, 0.0), read(sim, "body.stone.orientation"))
    rate = turn.inverse().rotate(read(sim, "body.stone.angular_velocity"))
    return [*rate, *read(sim, "body.stone.position"), total_energy(sim)]


def _run(dt: float, times: Any, backend: str = FASTEST, spin: float | None = None, **settings: Any) -> np.ndarray:
    record = REFERENCE.record
    if spin is not None:
        record = record | {"initial": record["initial"] | {"w_body": [0.0, 0.0, spin]}}
    return march(simulation(models.rattleback(record), backend, dt, **settings), times, _observe)


def _expected(times: Any) -> np.ndarray:
    rows = np.rint(np.asarray(times) / 0.02).astype(int)
    return REFERENCE.table("w1_body", "w2_body", "w3_body", "xCOM", "yCOM", "zCOM")[rows]


@pytest.mark.native
def test_starts_with_the_recorded_energy():
    assert _run(1e-3, [0.0])[0, 6] == pytest.approx(REFERENCE.record["energy0_J"], abs=1e-12)


@pytest.mark.native
@pytest.mark.parametrize(("dt", "late", "energy"), [(1e-3, 0.02, 0.06), (5e-4, 5e-3, 0.015), (1.25e-4, 1e-3, 1e-3)])
def test_reverses_in_time(dt, late, energy):
    times = np.arange(0.0, 3.2, 0.02)
    found, reference = _run(dt, times), REFERENCE.columns["w3_body"][: len(times)]
    assert _first_zero(times, found[:, 2]) == pytest.approx(_first_zero(times, reference), rel=late)
    assert np.abs(found[:, 6] / found[0, 6] - 1.0).max() < energy


def _first_zero(times: np.ndarray, spin: np.ndarray) -> float:
    k = int(np.argmax(spin > 0.0))
    return float(times[k - 1] - spin[k - 1] * (times[k] - times[k - 1]) / (spin[k] - spin[k - 1]))


@pytest.mark.native
def test_spun_the_other_way_it_keeps_turning():
    found = _run(1e-3, np.arange(0.0, 6.0, 0.1), spin=5.0)
    assert np.all(found[:, 2] > 1.0)


@pytest.mark.native
def test_second_order():
    errors = [
        np.abs(_run(dt, [0.1], contact_slop=SLOP)[0, :3] - _expected([0.1])[0, :3]).max() for dt in (1e-3, 5e-4, 2.5e-4)
    ]
    assert errors[0] < 0.02
    assert np.polyfit(np.log2([4.0, 2.0, 1.0]), np.log2(errors), 1)[0] > 1.5


@pytest.mark.native
@pytest.mark.parametrize(("substeps", "late", "energy"), [(2, 5e-3, 0.015), (4, 1e-3, 2e-3)])
def test_reverses_in_time_by_substeps(substeps, late, energy):
    times = np.arange(0.0, 3.2, 0.02)
    found, reference = _run(1e-3, times, substeps=substeps), REFERENCE.columns["w3_body"][: len(times)]
    assert _first_zero(times, found[:, 2]) == pytest.approx(_first_zero(times, reference), rel=late)
    assert np.abs(found[:, 6] / found[0, 6] - 1.0).max() < energy


@pytest.mark.native
def test_substeps_are_as_good_as_steps():
    found = _run(1e-3, [0.1, 0.5], substeps=8)
    assert np.abs(found[0, :3] - _expected([0.1])[0, :3]).max() < 2e-4
    assert np.abs(found[:, 6] / REFERENCE.record["energy0_J"] - 1.0).max() < 5e-5


def test_numpy_rolls():
    found = _run(1e-3, [0.02], "numpy")
    assert np.abs(found[0, :3] - _expected([0.02])[0, :3]).max() < 0.02
    assert np.abs(found[0, 3:6] - _expected([0.02])[0, 3:6]).max() < 1e-5
