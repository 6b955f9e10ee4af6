"""The multibody references: A01 to E01 with both joint solvers, both precisions and both schemes."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("case", MULTIBODY)
def test_one_substep_meets_the_bar(case):
    result = run(case, horizon=TEST_HORIZON.get(case))
    assert not failures(result, MULTIBODY[case])


@pytest.mark.parametrize("case", EIGHT_SUBSTEPS)
def test_eight_substeps_meet_the_bar(case):
    result = run(case, substeps=8, horizon=TEST_HORIZON_EIGHT[case])
    assert not failures(result, EIGHT_SUBSTEPS[case])


@pytest.mark.parametrize("sweeps", [1, 4])
@pytest.mark.parametrize("case", MULTIBODY)
def test_colored_sweeps_stay_together(case, sweeps):
    result = run(case, joint_solver="colored", substeps=8, iterations=sweeps, horizon=0.1)
    assert not failures(result, Bar(gap=GAP_COLORED))


def test_colored_sweeps_carry_the_heavy_chain():
    result = run("B03", joint_solver="colored", substeps=8, iterations=4, horizon=0.4)
    assert not failures(result, Bar(error=B03_COLORED_STRETCH, gap=GAP_COLORED))


@pytest.mark.parametrize("case", MULTIBODY)
def test_float32_stays_together(case):
    result = run(case, dtype="float32", horizon=0.5)
    assert not failures(result, Bar(gap=GAP_FLOAT32))


@pytest.mark.parametrize("case", MULTIBODY)
def test_papers_scheme_stays_together(case):
    result = run(case, scheme="papers", horizon=0.5)
    assert not failures(result, Bar(gap=GAP_COLORED))
