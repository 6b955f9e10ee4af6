"""The multibody references: A01 to E01 with both joint solvers, both precisions and both schemes."""

from __future__ import annotations

import pytest

from tests.backends import on_backends

from .bars import (
    B03_COLORED_STRETCH,
    EIGHT_SUBSTEPS,
    GAP_COLORED,
    GAP_FLOAT32,
    MULTIBODY,
    TEST_HORIZON,
    TEST_HORIZON_EIGHT,
    Bar,
    failures,
)
from .cases import run

NUMPY_HORIZON = {"A02": 1.2, "A05": 0.5, "C03": 0.5}
#: Compared time (s) with 8 substeps on the native backend.
NATIVE_HORIZON_EIGHT = 2.0


def _horizon(case: str, backend: str) -> float | None:
    return NUMPY_HORIZON.get(case, TEST_HORIZON.get(case)) if backend == "numpy" else None


@pytest.mark.nightly
@pytest.mark.parametrize(("case", "backend"), on_backends(MULTIBODY, NUMPY_HORIZON))
def test_one_substep_meets_the_bar(case, backend):
    result = run(case, backend=backend, horizon=_horizon(case, backend))
    assert not failures(result, MULTIBODY[case])


@pytest.mark.nightly
@pytest.mark.parametrize(("case", "backend"), on_backends(EIGHT_SUBSTEPS, ["C03"]))
def test_eight_substeps_meet_the_bar(case, backend):
    horizon = TEST_HORIZON_EIGHT[case] if backend == "numpy" else NATIVE_HORIZON_EIGHT
    result = run(case, backend=backend, substeps=8, horizon=horizon)
    assert not failures(result, EIGHT_SUBSTEPS[case])


@pytest.mark.nightly
@pytest.mark.parametrize("sweeps", [1, 4])
@pytest.mark.parametrize(("case", "backend"), on_backends(MULTIBODY, ["A02"]))
def test_colored_sweeps_stay_together(case, backend, sweeps):
    result = run(case, backend=backend, joint_solver="colored", substeps=8, iterations=sweeps, horizon=0.1)
    assert not failures(result, Bar(gap=GAP_COLORED))


@pytest.mark.parametrize(("case", "backend"), on_backends(["B03"]))
def test_colored_sweeps_carry_the_heavy_chain(case, backend):
    result = run(case, backend=backend, joint_solver="colored", substeps=8, iterations=4, horizon=0.4)
    assert not failures(result, Bar(error=B03_COLORED_STRETCH, gap=GAP_COLORED))


@pytest.mark.nightly
@pytest.mark.parametrize(("case", "backend"), on_backends(MULTIBODY, ["A05"]))
def test_float32_stays_together(case, backend):
    result = run(case, backend=backend, dtype="float32", horizon=0.5)
    assert not failures(result, Bar(gap=GAP_FLOAT32))


@pytest.mark.slow_numpy
@pytest.mark.parametrize(("case", "backend"), on_backends(MULTIBODY, ["B01"]))
def test_papers_scheme_stays_together(case, backend):
    result = run(case, backend=backend, scheme="semi_implicit", horizon=0.5)
    assert not failures(result, Bar(gap=GAP_COLORED))
