"""``gpusim bench``: workloads, tables and files. What is measured is not judged: time belongs to benchmarks."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.bench import floor, machine, peer_models, peers, report, workloads
from gpusim.bench.__main__ import main as module_main
from gpusim.bench.drive import valve_labels
from gpusim.bench.models import joint_grid
from gpusim.bench.peer_case import PeerRecord
from gpusim.bench.piles import Heap
from gpusim.bench.runner import Options, Record, add_row_time, make_simulation, run_cases
from gpusim.bench.workloads import Case, Workload, chosen_cases
from gpusim.errors import UnknownNameError
from tests.message_snapshot import names, naming

LIFT = partial(workloads.scene_builder, "hydraulic_lift")


class Quickest(Options):
    """Options for runs whose figures nobody reads."""

    seconds = 0.001


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """One workload of one small case, for a moment."""
    case = Case("many_worlds", "lift", LIFT, 2)
    monkeypatch.setattr(workloads, "WORKLOADS", {"many_worlds": Workload("a test", lambda quick: iter([case]))})
    monkeypatch.setattr(Options, "seconds", 0.001)


def ignore(line: str) -> None:
    """Progress that nobody reads."""


def test_list_names_the_workloads(cli) -> None:
    result = cli("bench", "--list")
    assert result.exit_code == 0, result.output
    for name in ("many_worlds", "joint_grid", "latency", "rows"):
        assert name in result.stdout


def test_bench_writes_table_and_json(cli, tiny: None, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    result = cli("bench", "many_worlds", "--backend", "numpy", "--no-count", "--json", file)
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


def test_every_case_has_a_model() -> None:
    for case in chosen_cases(["many_worlds", "latency"], quick=False):
        assert case.build().finalize().bodies
    with pytest.raises(UnknownNameError):
        chosen_cases(["no"], quick=True)


def test_a_failing_case_is_reported_and_the_rest_run(capsys) -> None:
    def broken() -> gpusim.ModelBuilder:
        raise gpusim.ModelError("no such machine")

    cases = [Case("a", "broken", broken), Case("a", "lift", LIFT)]
    records = run_cases(cases, Quickest(backend="numpy", count=False), ignore)
    assert "no such machine" in records[0].error and not records[1].error
    report.show(records)
    assert "a, broken, 1 worlds failed" in capsys.readouterr().out


@pytest.mark.native
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_counting_does_not_change_the_bits(solver: str) -> None:
    from gpusim.bench.counted import Counter

    case = Case("a", "lift", LIFT, config={"joint_solver": solver}, threads=1, keep_threads=True)
    model = LIFT().finalize()
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
def test_floor_of_a_case() -> None:
    case = Case("a", "lift", LIFT, 2)
    (record,) = run_cases([case], Quickest(backend="native", threads=1), ignore)
    assert not record.error and record.floor is not None
    assert record.floor.us > 0.0 and record.floor.bytes_us > 0.0
    assert record.as_dict()["floor"]["bound"] in ("latency", "scalar code", "bandwidth", "arithmetic")


def test_floor_names_what_bounds() -> None:
    found = floor.Floor(100.0, 10.0, 0.0, 1e9, 1e9, 1e9, bytes_us=4.0, operations_us=2.0, scalar_us=20.0)
    assert found.us == 4.0 and found.share(8.0) == 0.5
    assert found.bound(8.0) == "bandwidth"
    assert found.bound(50.0) == "scalar code"
    assert found.bound(500.0) == "latency"


def test_moved_bytes_count_the_state_twice() -> None:
    sim = make_simulation(Case("a", "lift", LIFT, 4), LIFT().finalize(), "numpy", Options())
    state = sum(a.nbytes for a in sim.state.arrays.values())
    state += sum(a.nbytes for g in sim.state.groups for a in g.state.values())
    assert floor.moved_bytes(sim, None) == pytest.approx(2 * state / 4 + 8 * len(sim.model.controls))


@pytest.mark.native
def test_moved_bytes_of_a_staged_world_know_its_arrays() -> None:
    """Rows are read in every sweep of the colored solver."""
    config = {"joint_solver": "colored"}
    sim = make_simulation(Case("a", "lift", LIFT, 1, config), LIFT().finalize(), "native", Options())
    slab = sim.backend.layout  # type: ignore[union-attr]
    swept = floor._sizes(slab, floor.ROW_ARRAYS) + 2.0 * floor._sizes(slab, floor.SWEPT_ARRAYS)
    assert 0.0 < swept * sim.config.iterations < floor.moved_bytes(sim, slab)


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


def test_machine_is_measured() -> None:
    assert machine.bandwidth(1e6, 1, gpu=False) > 1e8
    assert machine.rate(np.float32, 1, gpu=False) > 1e8
    assert machine.scalar_rate(1) > 1e7


def test_gpu_figures_follow_from_its_attributes(monkeypatch) -> None:
    facts = {
        "MemoryClockRate": 1_000_000, "GlobalMemoryBusWidth": 1024, "ClockRate": 1_000_000, "MultiProcessorCount": 100,
        "ComputeCapabilityMajor": 9, "ComputeCapabilityMinor": 0,
    }  # fmt: skip
    monkeypatch.setattr(machine, "_gpu_attributes", lambda: facts)
    assert machine.bandwidth(1.0, 1, gpu=True) == pytest.approx(256e9)
    assert machine.rate(np.float32, 1, gpu=True) == pytest.approx(12.8e12)
    assert machine.rate(np.float64, 1, gpu=True) == pytest.approx(6.4e12)


def test_tables_without_rich(monkeypatch, capsys) -> None:
    real = builtins.__import__

    def without_rich(name: str, *arguments: object, **named: object) -> object:
        if name.partition(".")[0] == "rich":
            raise ImportError(name)
        return real(name, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_rich)
    report.print_table(("case", "worlds"), [("lift", "64")])
    assert capsys.readouterr().out == "case  worlds\nlift      64\n"
    assert report.markdown_table(("case", "worlds"), [("lift", "64")]).splitlines()[1] == "| --- | ---: |"


def test_peers_that_are_not_installed_are_named(monkeypatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    records = peers.run_peers(Options(), ignore)
    assert {r.peer for r in records} >= {"mujoco", "mujoco_warp", "newton", "rapier3d", "pybullet"}
    assert all(r.note == "not installed" for r in records)


def test_a_peer_that_fails_does_not_stop_the_others(monkeypatch) -> None:
    def broken(options: Options, models: object) -> object:
        raise RuntimeError("no display")

    def other(options: Options, things: Heap) -> Iterator[PeerRecord]:
        yield PeerRecord("csv", note=f"{things.turn.size} boxes")

    monkeypatch.setattr(peers, "PEERS", {"json": broken})
    monkeypatch.setattr(peers, "PILE_PEERS", {"csv": other})
    records = peers.run_peers(Options(), ignore)
    assert "no display" in records[0].note
    assert "1000 boxes" in [r.note for r in records if r.peer == "csv"]


@pytest.mark.nightly
def test_the_same_mechanisms_in_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    for text in (peer_models.chain_mjcf(), peer_models.boom_mjcf()):
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, 100)
        assert np.all(np.isfinite(data.qpos))


def test_a_table_is_whole_in_a_pipe(capsys) -> None:
    """Wider than any window; in a window less important columns give way."""
    pytest.importorskip("rich")
    head = ("ESTIMATE", "work in", "slab kB", "memory ns", "ns")
    row = ("H200: " + "x" * 150, "182 launches, 10.30 GB", "1612149", "0.0", "4483358" + 60 * "1")
    report.print_table(head, [row])
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[1] for name in head) and all(text in lines[3] for text in row)
    kept, _, dropped = report.narrowed(head, [row], 260)
    assert kept[0] == "ESTIMATE" and kept[-1] == "ns" and dropped == ["slab kB", "memory ns"]


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
    result = cli("bench", "many_worlds", *options, "--profile", "--no-count", "--json", file)
    assert result.exit_code == 0, result.output
    assert reported in result.stdout.replace("\n", " ")
    (record,) = json.loads(file.read_text())["results"]
    assert record["step_us"] > 0.0 and bool(record["stages"]) == ("native" in options)


def test_estimates_are_no_profiles(cli, tiny: None) -> None:
    result = cli("bench", "many_worlds", "--estimate", "h200", "--profile")
    assert result.exit_code == 2 and names(result.output, "--profile")


def test_the_module_takes_what_the_command_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``python -m gpusim.bench``."""
    assert module_main(["many_worlds", "--estimate", "h200", "--peers"]) == 2
    assert "leave --peers out" in capsys.readouterr().err
    assert module_main(["many_worlds", "--estimate", "h200", "--profile"]) == 2
    assert "leave --profile out" in capsys.readouterr().err
