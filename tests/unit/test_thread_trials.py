from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gpusim
from gpusim.backends.native import team as trials
from gpusim.backends.native.team import Team
from gpusim.bench.piles import pile


def stepped(team: Team, seconds: float, cost: Callable[[int], float]) -> list[int]:
    sizes, spent = [], 0.0
    while spent < seconds:
        sizes.append(team.size)
        spent += cost(team.size)
        team.record(cost(team.size))
    return sizes


@pytest.mark.parametrize(
    "most, cost, best",
    [
        (16, lambda n: 1e-3 / n, 16),
        (12, lambda n: 1e-3 / n, 12),
        (16, lambda n: 1e-3 / n + 1e-4 * n, 4),
        pytest.param(16, lambda n: 1e-5 * n, 1, marks=pytest.mark.nightly),
        (2, lambda n: 0.3 / n, 2),
        (1, lambda n: 1e-3, 1),
    ],
)
def test_the_fastest_number_of_threads_is_found(most: int, cost: Callable[[int], float], best: int) -> None:
    team = Team(most)
    stepped(team, 10.0, cost)
    sizes = stepped(team, 20.0, cost)
    time = np.array([cost(n) for n in sizes])
    assert time[np.array(sizes) == best].sum() > 0.9 * time.sum()


def test_threads_leave_a_busy_computer_and_return() -> None:
    team = Team(2)
    assert set(stepped(team, 0.1, lambda n: 0.01 / n)) == {2}
    stepped(team, 1.0, lambda n: 0.01 * n**3)
    assert np.mean(stepped(team, 10.0, lambda n: 0.01 * n**3)) < 1.05
    stepped(team, 5.0, lambda n: 0.01 / n)
    assert np.mean(stepped(team, 10.0, lambda n: 0.01 / n)) > 1.95


@pytest.mark.nightly
@pytest.mark.native
def test_trials_keep_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "TRIAL", 1)
    monkeypatch.setattr(trials, "FIRST", 0.0)
    monkeypatch.setattr(trials, "LONGEST", 0.0)
    monkeypatch.setattr(trials, "RARE", 0.0)
    states, sizes = [], set()
    for threads in (1, 4):
        config = gpusim.SolverConfig(dt=4e-3, joint_solver="colored")
        model = pile(5, 4).finalize()
        sim = gpusim.Simulation(
            model, backend="native", dtype="float32", launch="staged", threads=threads, config=config
        )
        for _ in range(40):
            sizes.add(sim.backend.team)  # type: ignore[attr-defined]
            sim.step()
        states.append(sim.read_state())
    assert len(sizes) > 1
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name], err_msg=name)
