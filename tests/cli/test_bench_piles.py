from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.bench import phases, piles, report, workloads
from gpusim.bench.runner import Options, Record, make_simulation
from gpusim.bench.workloads import Case, chosen_cases
from tests.message_snapshot import naming

PILES = {"pile_1000": (2, 2, False), "pile_8000": (2, 2, False), "pile_100000": (2, 2, True)}


@pytest.fixture
def tiny_piles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "QUICK_PILES", PILES)
    monkeypatch.setattr(Options, "seconds", 0.001)


@pytest.mark.nightly
@pytest.mark.native
def test_pile_reports_contacts_motion_and_shares(cli, tiny_piles: None, tmp_path: Path) -> None:
    file = tmp_path / "pile.json"
    result = cli("bench", "pile_1000", "--backend", "native", "--quick", "--json", file)
    assert result.exit_code == 0, result.output
    assert "ns/point" in result.stdout
    written = json.loads(file.read_text())
    (record,) = written["results"]
    assert record["extra"]["points"] >= 4 and record["extra"]["ns_per_point"] > 0.0
    assert record["threads"] == 1 and record["stages"]


@pytest.mark.nightly
@pytest.mark.native
def test_phases_of_a_staged_step_are_all_named() -> None:
    case = Case("pile_1000", "boxes", partial(piles.pile, 2, 1), config={"dt": piles.DT}, launch="staged", threads=1)
    sim = make_simulation(case, case.build().finalize(), "native", Options())
    with pytest.raises(gpusim.ModelError, match=naming("staged")):
        phases.profile(make_simulation(case, case.build().finalize(), "numpy", Options()))
    stages, kernels = phases.profile(sim, 2)
    assert {"broad_phase", "narrow_phase", "color_contacts", "prepare", "solve", "relax", "drift"} <= set(stages)
    assert "calls" in stages
    assert "other" not in stages
    assert "find_manifold" in kernels
    record = Record("pile_1000", "4 boxes", 1, stages=stages, kernels=kernels)
    assert "sweep contacts" in report.share_lines([record])[0]


def test_heap_is_the_same_each_time_and_touches_nowhere() -> None:
    objects = piles.heap(3, 2, spheres=True)
    again = piles.heap(3, 2, spheres=True)
    assert objects.position.tobytes() == again.position.tobytes() and objects.angle.tobytes() == again.angle.tobytes()
    assert objects.ball.sum() == 9 and objects.position[:, 2].min() > piles.HALF
    assert np.abs(objects.position[:, :2]).max() + piles.HALF < objects.half_width
    assert len(piles.pile(3, 2, spheres=True).finalize().bodies) == 18
    with pytest.raises(gpusim.ModelError, match=naming("0 1")):
        piles.heap(0, 1)


def test_large_piles_run_on_cpus_only_where_named() -> None:
    assert all(case.backend == "cuda" for case in chosen_cases([], True) if case.workload == "pile_100000")
    assert all(case.backend == "" for case in chosen_cases(["pile_100000"], True))
