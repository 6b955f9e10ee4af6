from __future__ import annotations

import numpy as np
import pytest

from gpusim.backends.native import backend as native_backend
from tests.builds import optimize_less

from .bits import HEAPS, LARGE, Runner, cases, check_64_worlds, check_neighbors, differing

pytestmark = [pytest.mark.nightly, pytest.mark.native]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "dtype", "solver"), cases((*HEAPS, *LARGE)))
def test_neighbors_places_launches_and_threads(name: str, dtype: str, solver: str) -> None:
    check_neighbors(name, dtype, solver)


@pytest.mark.nightly
@pytest.mark.parametrize("name", HEAPS)
def test_64_worlds_and_run_to_run(name: str) -> None:
    check_64_worlds(name)


def test_kernels_without_unused_code_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, order = Runner("slope", "float64", "direct"), np.arange(2)
    general = runner.state(order, 60, launch="fused", threads=1)
    monkeypatch.setattr(native_backend, "general_sizes", lambda sizes: sizes)
    optimize_less(monkeypatch)  # no other test uses this build
    assert differing(general, runner.state(order, 60, launch="fused", threads=1), order, order) == []
