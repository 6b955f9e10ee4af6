"""Estimates of a GPU's time from counts: critical paths, their bounds, and what is told of cards that are unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ci.estimate.__main__ import main
from ci.estimate.counted import WIDTHS, Counter, Operations
from ci.estimate.counts import COUNTED_STEPS, ROW_ARRAYS, SWEPT_ARRAYS, count_operations, moved_bytes
from ci.estimate.gpu_estimate import (
    Estimate,
    Estimator,
    estimate,
    estimate_staged,
    find_card,
    table,
    touched_bytes,
    with_measured,
)
from gpusim import Simulation, SolverConfig
from gpusim.bench.piles import pile
from gpusim.bench.runner import Options, Record, make_simulation
from gpusim.bench.workloads import BOOM, CHAIN, LIFT, MODELS, Case
from gpusim.errors import UnknownNameError
from tests.message_snapshot import naming

SIZES = {"rows": 5, "pairs": 0, "sides": 2, "block": 6, "elements": 3, "bodies": 4}
H200 = find_card("H200")


@pytest.fixture(scope="module")
def chain() -> tuple[Operations, dict[str, int], int]:
    """Counts of a chain's step."""
    sim = Simulation(MODELS[CHAIN]().finalize(), 1, "native", config=SolverConfig(dt=1e-3), threads=1, launch="fused")
    sim.step(5)
    counter = Counter(sim)
    counter.take()
    sim.step(10)
    return counter.take() / 10, sim.backend.sizes, sim.backend.layout.size  # type: ignore[attr-defined]


@pytest.mark.nightly
@pytest.mark.native
def test_a_critical_path_is_all_operations_or_their_share(
    chain: tuple[Operations, dict[str, int], int],
) -> None:
    counts = chain[0]
    paths = np.array(counts.critical)
    assert paths[0] == pytest.approx(counts.total)
    assert (np.diff(paths) <= 0.0).all(), "more threads, no longer path"
    assert (paths * np.array(WIDTHS) >= counts.total * (1.0 - 1e-12)).all()
    assert counts.phases > 50.0


@pytest.mark.nightly
@pytest.mark.native
def test_more_worlds_hide_latency_until_the_card_is_full(chain: tuple[Operations, dict[str, int], int]) -> None:
    found = [estimate(*chain, worlds, H200) for worlds in (64, 1024, 8192, 65536)]
    times = [own.ns for own in found]
    assert times == sorted(times, reverse=True)
    assert all(own.ns == max(own.issue_ns, own.latency_ns, own.memory_ns) for own in found)
    assert found[0].shape.lanes > found[-1].shape.lanes


def test_the_bounds_are_what_they_say() -> None:
    """By hand, for a world in shared memory."""
    counts = Operations(0.0, 500.0, 10.0, (500.0, 300.0, 180.0, 100.0, 90.0, 80.0, 80.0, 80.0, 80.0))
    own = estimate(counts, SIZES, 6000, 8192, H200)
    assert own.shape.shared
    lanes = own.shape.lanes
    path = counts.critical[WIDTHS.index(lanes)]
    cycle = 1e9 / (1.75e9 * 132)  # ns, of all multiprocessors together
    assert own.issue_ns == pytest.approx(lanes / 32 * path * 4.8 / (4 * 0.6) * cycle)
    assert own.latency_ns == pytest.approx((path * 4.8 * 6.0 + 10 * 60.0) / own.resident * cycle)
    assert own.resident == pytest.approx(own.shape.worlds * (228 * 1024 // own.shape.shared))
    assert own.memory_ns == 0.0


def test_what_no_cache_holds_comes_from_memory() -> None:
    """By hand, for worlds with more work than shared memory has room for, of which a step touches a part."""
    counts = Operations(0.0, 500.0, 10.0, (500.0, 300.0, 180.0, 100.0, 90.0, 80.0, 80.0, 80.0, 80.0))
    own = estimate(counts, SIZES, 200_000, 8192, H200, 60_000)
    assert not own.shape.shared and own.resident * 132 * 60_000 > 50 << 20
    assert own.memory_ns == pytest.approx(1e9 * 2 * 60_000 / (0.6 * 4.8e12))
    assert estimate(counts, SIZES, 200_000, 8192, H200, 500).memory_ns == 0.0
    assert estimate(counts, SIZES, 200_000, 8192, H200).memory_ns > 3.0 * own.memory_ns


@pytest.mark.native
def test_a_step_touches_what_it_needs_of_its_slab() -> None:
    """All but padding of a chain; of a pile's room for pairs what is there."""
    chain = Simulation(MODELS[CHAIN]().finalize(), 1, "native", config=SolverConfig(dt=1e-3), threads=1, launch="fused")
    size = chain.backend.layout.size  # type: ignore[attr-defined]
    assert 0.95 * size < touched_bytes(chain) <= size
    few, many = (
        Simulation(
            pile(2, 4).finalize(), 1, "native", config=SolverConfig(max_pairs=n), threads=1, launch="fused"
        ) for n in (80, 1000)
    )  # fmt: skip
    sizes = [sim.backend.layout.size for sim in (few, many)]  # type: ignore[attr-defined]
    assert sizes[1] > 2 * sizes[0]
    assert touched_bytes(many) < 1.2 * touched_bytes(few)


@pytest.mark.nightly
@pytest.mark.native
def test_a_pile_is_launches_and_bytes() -> None:
    config = {"dt": 1 / 120, "iterations": 1, "joint_solver": "colored"}
    model = pile(4, 4).finalize()
    sims = [Simulation(model, 1, "native", config=SolverConfig(substeps=n, **config), launch="staged") for n in (2, 4)]
    first, last = (estimate_staged(sim, H200) for sim in sims)
    substep = (last.launches - first.launches) / 2
    assert substep == int(substep) and 20 < substep < 50
    assert last.waits == 48 + 8 + 4 * 4 * 12  # coloring, the grid; warm start, push and two sweeps of a substep
    assert last.us == pytest.approx(1e6 * last.bytes / (0.6 * 4.8e12) + 3.0 * last.launches + 1.5 * last.waits)
    lines = list(table(H200, [(Case("pile", "a pile", pile), last), (Case("pile", "unknown", pile), None)]))
    assert len({len(line) for line in lines}) == 1
    assert f"{last.launches} launches" in lines[1][5]


@pytest.mark.nightly
@pytest.mark.native
def test_the_command_marks_what_it_reports(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "estimates.json"
    assert main(["h100", "many_worlds", "--quick", "--json", str(file)]) == 0
    reported = capsys.readouterr().out
    rows = json.loads(file.read_text())["estimates"]
    assert len(rows) > 3 and all(row["ESTIMATE"].startswith("H100: ") and float(row["ns"]) > 0.0 for row in rows)
    assert "ESTIMATE" in reported and "nothing was measured on a card" in reported and "boom" in reported


@pytest.mark.nightly
@pytest.mark.native
def test_measured_and_estimated_times_next_to_each_other() -> None:
    options = Options("native", "float32", None, True)
    boom = Case("many_worlds", BOOM, MODELS[BOOM], 64)
    ran = Record("many_worlds", BOOM, 64, dtype="float32", world_steps=1e6)
    failed, other = replace(ran, error="no"), replace(ran, case="another")
    head, row = with_measured([ran, failed, other], [boom], Estimator(options, H200))
    assert row[:3] == (BOOM, "64", "1000.0")
    assert float(row[2]) / float(row[3]) == pytest.approx(float(row[4]), abs=0.01)
    assert "ESTIMATE" in head[3]


@pytest.mark.native
def test_critical_paths_stay_as_short_as_was_asked() -> None:
    """Warp time of a world-step at 8192 worlds, beside what it was with a block a world (ci/bench/gpu_estimate.md)."""
    estimator = Estimator(Options("native", "float32", None, True), H200)
    for name, before, times in ((BOOM, 5700.0, 3.93), (CHAIN, 7857.0, 1.8)):
        found = estimator.of(Case("many_worlds", name, MODELS[name], 8192))
        assert isinstance(found, Estimate) and before / found.warp_operations >= times
        assert found.issue_ns > 0.0 and found.ns < 60.0


def test_an_unknown_card_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownNameError, match=naming("'rtx'")):
        find_card("rtx")
    assert main(["rtx", "many_worlds"]) == 2
    assert "unknown card 'rtx'" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_counting_does_not_change_the_bits(solver: str) -> None:
    case = Case("a", "lift", MODELS[LIFT], config={"joint_solver": solver}, threads=1, keep_threads=True)
    model = MODELS[LIFT]().finalize()
    plain, counting = (make_simulation(case, model, "native", Options()) for _ in range(2))
    counter = Counter(counting)
    for sim in (plain, counting):
        sim.step(20)
    operations = counter.take()
    assert operations.total > 1000.0
    assert operations.float32 > 1000.0 or solver == "direct"  # which computes in float64
    for name, array in plain.state.arrays.items():
        assert array.tobytes() == counting.state.arrays[name].tobytes(), name
    assert counter.take().total == 0.0


@pytest.mark.native
def test_moved_bytes_count_the_state_once_and_rows_in_every_sweep() -> None:
    config = {"joint_solver": "colored", "substeps": 3}
    model = MODELS[LIFT]().finalize()
    sim = make_simulation(Case("a", "lift", MODELS[LIFT], 1, config), model, "native", Options())
    slab = sim.backend.layout  # type: ignore[union-attr]
    memory = np.zeros(slab.size, np.uint8)
    rows, swept = (sum(slab.view(memory, n, 1).nbytes for n in names) for names in (ROW_ARRAYS, SWEPT_ARRAYS))
    state = sum(a.nbytes for a in sim.state.arrays.values())
    state += sum(a.nbytes for g in sim.state.groups for a in g.state.values())
    substep = 2 * (slab.size - state) + sim.config.iterations * (rows + 2 * swept)
    assert rows > 0 and swept > 0
    assert moved_bytes(sim, slab) == pytest.approx(2 * state + 8 * len(model.controls) + 3 * substep)


@pytest.mark.native
def test_operations_are_counted_in_the_state_that_is_timed() -> None:
    """After all steps to settle, or from the start for what does not last."""
    model = MODELS[CHAIN]().finalize()
    chain = Case("many_worlds", CHAIN, MODELS[CHAIN], settle=70)
    sim = make_simulation(chain, model, "native", Options())
    for case, before, steps in ((chain, 70, COUNTED_STEPS), (replace(chain, settle=0, restart=20), 0, 20)):
        by_hand = Simulation(model, 1, "native", "float32", sim.config, launch="fused", threads=1)
        by_hand.step(before)
        counter = Counter(by_hand)
        by_hand.step(steps)
        found = counter.take() / steps  # before the other counts: they share their counters
        assert count_operations(case, model, sim) == found
