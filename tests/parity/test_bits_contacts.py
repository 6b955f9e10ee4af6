from __future__ import annotations

import numpy as np
import pytest

from tests.builds import optimize_as_shipped, optimize_less

from .bits import CONTACTS, Runner, cases, check_64_worlds, check_neighbors, differing

pytestmark = pytest.mark.nightly


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("name", "dtype", "solver"), cases(CONTACTS))
def test_neighbors_places_launches_and_threads(name: str, dtype: str, solver: str) -> None:
    check_neighbors(name, dtype, solver)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("name", CONTACTS)
def test_64_worlds_and_run_to_run(name: str) -> None:
    check_64_worlds(name)


@pytest.mark.native
def test_the_optimizer_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, order, states = Runner("rattleback", "float32", "direct"), np.arange(4), []
    for optimize in (optimize_as_shipped, optimize_less):
        with monkeypatch.context() as own:
            optimize(own)
            own.setattr("gpusim.backends.native.backend._LIBRARIES", {})
            states.append(runner.state(order, launch="fused", threads=1))
    assert differing(*states, order, order) == []
