from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import gpusim
from ci.gpu_report import markdown_table
from gpusim.bench import report, workloads
from gpusim.bench.drive import valve_labels
from gpusim.bench.models import joint_grid
from gpusim.bench.runner import Options, Record, add_row_time, run_cases
from gpusim.bench.workloads import Case, Workload, chosen_cases
from gpusim.errors import UnknownNameError
from tests.message_snapshot import names, naming

LIFT = partial(workloads.scene_builder, "hydraulic_lift")


class Quickest(Options):
    seconds = 0.001


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("many_worlds", "lift", LIFT, 2)
    monkeypatch.setattr(workloads, "WORKLOADS", {"many_worlds": Workload("a test", lambda quick: iter([case]))})
    monkeypatch.setattr(Options, "seconds", 0.001)


def ignore(line: str) -> None:
    """Ignore a progress line."""


def test_list_names_the_workloads(cli) -> None:
    result = cli("bench", "--list")
    assert result.exit_code == 0, result.output
    for name in ("many_worlds", "joint_grid", "latency", "rows"):
        assert name in result.stdout


def test_bench_writes_table_and_json(cli, tiny: None, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    result = cli("bench", "many_worlds", "--backend", "numpy", "--json", file)
    assert result.exit_code == 0, result.output
    assert "many_worlds" in result.stdout and "us/step" in result.stdout
    written = json.loads(file.read_text())
    assert written["machine"]["cpu"] and written["machine"]["gpusim"] == gpusim.__version__
    (record,) = written["results"]
    assert record["worlds"] == 2 and record["backend"] == "numpy" and record["dtype"] == "float32"
    assert record["world_steps"] > 0.0 and record["chunks"] >= 5
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["worlds"], "'worlds'"),
        (["rows", "--threads", "0"], "--threads 1"),
        (["rows", "--json", "bench.txt"], ".json"),
        (["rows", "--json", "no/such/folder.json"], ""),
    ],
)
def test_bad_input(cli, arguments: list[str], message: str) -> None:
    result = cli("bench", *arguments)
    assert result.exit_code == 2
    assert names(result.output, message)


@pytest.mark.nightly
def test_every_case_has_a_model() -> None:
    for case in chosen_cases(["many_worlds", "latency"], quick=False):
        assert case.build().finalize().bodies
    with pytest.raises(UnknownNameError):
        chosen_cases(["no"], quick=True)


def test_a_failing_case_is_reported_and_the_rest_run(capsys) -> None:
    def broken() -> gpusim.ModelBuilder:
        raise gpusim.ModelError("no such machine")

    cases = [Case("a", "broken", broken), Case("a", "lift", LIFT)]
    records = run_cases(cases, Quickest(backend="numpy"), ignore)
    assert "no such machine" in records[0].error and not records[1].error
    report.show(records)
    assert "a, broken, 1 worlds failed" in capsys.readouterr().out


def test_row_time_is_the_difference_of_two_runs() -> None:
    few = Record("rows", "a", 1, step_us=100.0, extra={"rows": 1000.0, "sweeps": 10.0})
    many = Record("rows", "b", 1, step_us=500.0, extra={"rows": 1000.0, "sweeps": 50.0})
    add_row_time([few, many])
    assert many.extra["ns_per_row_sweep"] == pytest.approx(10.0)


def test_joint_grid_hangs_together() -> None:
    model = joint_grid(3, 4).finalize()
    assert len(model.bodies) == 12
    assert len(model.joints) == 4 + 2 * 4 + 3 * 3
    sim = gpusim.Simulation(model, backend="numpy", config=gpusim.SolverConfig(joint_solver="colored"))
    sim.step(5)
    assert float(sim.read("sim.joint_drift")[0]) < 1e-3
    with pytest.raises(gpusim.ModelError, match=naming("joint_grid 0 4")):
        joint_grid(0, 4)


def test_only_valves_are_commanded() -> None:
    assert valve_labels(LIFT().finalize())
    assert not valve_labels(workloads.scene_builder("dc_motor_rig").finalize())


def test_markdown_aligns_numbers_right() -> None:
    assert markdown_table(("case", "worlds"), [("lift", "64")]).splitlines()[1] == "| --- | ---: |"


def test_a_table_is_whole_in_a_pipe(capsys) -> None:
    head = ("case", "note", "slab kB", "memory ns", "ns")
    row = ("H200: " + "x" * 150, "182 launches, 10.30 GB", "1612149", "0.0", "4483358" + 60 * "1")
    report.print_table(head, [row])
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[1] for name in head) and all(text in lines[3] for text in row)
    kept, _, dropped = report.narrowed(head, [row], 260, ("slab kB", "memory ns", "note"))
    assert kept[0] == "case" and kept[-1] == "ns" and dropped == ["slab kB", "memory ns"]
    assert report.narrowed(report.HEAD, [], 10)[2] == list(report.DROPPED_FIRST)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["--backend", "native"], "lift, 2 worlds float32 fused: solve "),
        (["--backend", "numpy"], "lift, 2 worlds float32: not profiled: profile: only the native and the cuda backend"),
    ],
)
def test_a_profile_reports_where_time_goes_or_why_not(cli, tiny: None, tmp_path: Path, options, reported: str) -> None:
    file = tmp_path / "bench.json"
    result = cli("bench", "many_worlds", *options, "--profile", "--json", file)
    assert result.exit_code == 0, result.output
    assert reported in result.stdout.replace("\n", " ")
    (record,) = json.loads(file.read_text())["results"]
    assert record["step_us"] > 0.0 and bool(record["stages"]) == ("native" in options)
