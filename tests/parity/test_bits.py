from __future__ import annotations

import os

import numpy as np
import pytest

from .bits import (
    COMBINATIONS,
    CONTACTS,
    ELSEWHERE,
    HEAPS,
    LARGE,
    SCENES,
    Runner,
    cases,
    check_64_worlds,
    check_neighbors,
    differing,
)

FREE = [name for name in SCENES if name not in (*CONTACTS, *HEAPS, *LARGE, *ELSEWHERE)]


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("name", "dtype", "solver"), cases(FREE))
def test_neighbors_places_launches_and_threads(name: str, dtype: str, solver: str) -> None:
    check_neighbors(name, dtype, solver)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("name", FREE)
def test_64_worlds_and_run_to_run(name: str) -> None:
    check_64_worlds(name)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("dtype", "solver"), COMBINATIONS)
def test_staged_launches_on_two_threads(dtype: str, solver: str) -> None:
    runner, order = Runner("four_bar", dtype, solver), np.arange(64)
    two = runner.state(order, 2, launch="staged", threads=2)
    assert differing(two, runner.state(order, 2, launch="staged", threads=1), order, order) == []
    assert differing(two, runner.state(order, 2, launch="fused", threads=1), order, order) == []


@pytest.mark.native
def test_the_number_of_threads_is_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, order, states = Runner("four_bar", "float32", "direct"), np.arange(8), []
    for threads in ("1", "2", "3"):
        monkeypatch.setitem(os.environ, "GPUSIM_THREADS", threads)
        sim = runner.make(order)
        assert sim.backend.threads == int(threads)  # type: ignore[union-attr]
        states.append(runner.run(sim, order, 100))
    for other in states[1:]:
        assert differing(other, states[0], order, order) == []


@pytest.mark.gpu
@pytest.mark.native
@pytest.mark.parametrize("launch", ["fused", "staged"])
@pytest.mark.parametrize(("dtype", "solver"), COMBINATIONS)
@pytest.mark.parametrize("name", SCENES)
def test_cuda_gives_the_bits_of_native(name: str, dtype: str, solver: str, launch: str) -> None:
    runner, order = Runner(name, dtype, solver), np.arange(8)
    expected = runner.state(order, backend="native", launch="fused")
    got = runner.state(order, backend="cuda", launch=launch)
    assert differing(got, expected, order, order) == []
    shuffled = np.random.default_rng(2).permutation(64)
    many = runner.state(shuffled, 100, backend="cuda", launch=launch)
    few = runner.state(order, 100, backend="native")
    assert differing(few, many, order, np.argsort(shuffled)[:8]) == []
