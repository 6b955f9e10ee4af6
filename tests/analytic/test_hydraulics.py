"""Hydraulic cylinders, DC motors and springs against their references."""

from __future__ import annotations

import pytest

from tests.backends import on_backends

from .bars import HYDRAULICS, MOTORS, SPRINGS, TEST_HORIZON, Row, failures
from .cases import run

pytestmark = pytest.mark.nightly

NUMPY_CASES = ("case1a", "case1d", "hold_boom", "case2b", "case2d", "case3a")


def _name(row: Row) -> str:
    return f"{row.case}-{1e3 * row.settings['dt']:g}ms"


def _params(rows: tuple[Row, ...]) -> list:
    brief = [row for row in rows if row.case in NUMPY_CASES and row.settings["dt"] > 5e-3]
    return on_backends(rows, brief, _name)


def _check(row: Row, backend: str) -> None:
    brief = backend == "numpy" and row.settings["dt"] < 5e-3
    result = run(row.case, **row.settings, backend=backend, horizon=TEST_HORIZON.get(row.case) if brief else None)
    assert not failures(result, row.bar)


@pytest.mark.parametrize(("row", "backend"), _params(HYDRAULICS))
def test_hydraulics(row, backend):
    _check(row, backend)


@pytest.mark.parametrize(("row", "backend"), _params(MOTORS))
def test_motors(row, backend):
    _check(row, backend)


@pytest.mark.parametrize(("row", "backend"), _params(SPRINGS))
def test_springs(row, backend):
    _check(row, backend)
