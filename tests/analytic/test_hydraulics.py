"""Hydraulic cylinders, DC motors and springs against their references."""

from __future__ import annotations

import pytest

from .bars import HYDRAULICS, MOTORS, SPRINGS, TEST_HORIZON, Row, failures
from .cases import run


def _name(row: Row) -> str:
    return f"{row.case}-{1e3 * row.settings['dt']:g}ms"


def _horizon(row: Row) -> float | None:
    return TEST_HORIZON.get(row.case) if row.settings["dt"] < 5e-3 else None


@pytest.mark.parametrize("row", HYDRAULICS, ids=_name)
def test_hydraulics(row):
    assert not failures(run(row.case, **row.settings, horizon=_horizon(row)), row.bar)


@pytest.mark.parametrize("row", MOTORS, ids=_name)
def test_motors(row):
    assert not failures(run(row.case, **row.settings, horizon=_horizon(row)), row.bar)


@pytest.mark.parametrize("row", SPRINGS, ids=_name)
def test_springs(row):
    assert not failures(run(row.case, **row.settings, horizon=_horizon(row)), row.bar)
