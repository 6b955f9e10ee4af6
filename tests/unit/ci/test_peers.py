"""The workloads of ``gpusim bench`` in other simulators: ``python ci/peers``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from ci.peers import mujoco_peers, newton_peer, peers, report
from ci.peers.__main__ import main
from ci.peers.peer_case import PeerCase, PeerModel, PeerRecord
from ci.peers.peer_models import boom_mjcf, chain_mjcf, peer_models
from gpusim.bench import piles, workloads
from gpusim.bench.piles import Heap
from gpusim.bench.runner import Options, Record
from gpusim.bench.workloads import BIPED, CHAIN, HUMANOID_LYING, HUMANOID_MOVING, HUMANOID_STANDING, chosen_cases

NO_MUJOCO = 'MuJoCo is not installed; pip install "gpusim[mjcf]"'
PILES = {"pile_1000": (2, 2, False), "pile_8000": (2, 2, False), "pile_100000": (2, 2, True)}


class Quickest(Options):
    """Options for runs whose figures are not used."""

    seconds = 0.001


def ignore(line: str) -> None:
    """Ignore a line of progress."""


@pytest.mark.nightly
@pytest.mark.native
def test_gpusim_and_peers_in_one_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(workloads, "QUICK_PILES", PILES)
    monkeypatch.setattr(peers, "QUICK_PILES", PILES)
    monkeypatch.setattr(Options, "seconds", 0.001)
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    file = tmp_path / "pile.json"
    assert main(["pile_1000", "--backend", "native", "--quick", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "ns/point" in printed and "not installed" in printed
    written = json.loads(file.read_text())
    assert [record["workload"] for record in written["results"]] == ["pile_1000"]
    assert {peer["peer"] for peer in written["peers"]} == {"rapier3d", "pybullet", "mujoco"}
    assert main(["pile_1000", "--json", "pile.txt"]) == 2
    assert main(["piles"]) == 2
    assert "unknown workload 'piles'" in capsys.readouterr().err


def test_piles_have_a_ratio_to_the_first_peer() -> None:
    extra = piles.motion_figures(4, 16, 10.0, np.zeros((4, 3))) | {"overlap": 1e-3}
    own = Record("pile_1000", "8 boxes, 4 x 1 sweeps", 1, step_us=10.0, extra=extra)
    lone = Record("pile_8000", "9 boxes, 4 x 1 sweeps", 1, step_us=10.0, extra=extra)
    shares = {"collide_share": 0.25, "solve_share": 0.5}
    others = [PeerRecord("a", case="8 boxes", step_us=20.0, extra=extra | shares)]
    others += [PeerRecord("b", case="8 boxes", step_us=30.0, extra=extra), PeerRecord("c", note="not installed")]
    rows = report.pile_rows([own, lone], others)
    assert [row[-1] for row in rows] == ["0.50", "-", "1.00", "1.50"]
    assert {len(row) for row in rows} == {len(report.PILE_HEAD)}
    assert report.share_lines(others) == ["8 boxes a: solve 50.0 %, collide 25.0 %"]


def test_peers_that_are_not_installed_are_named(monkeypatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    records = peers.run_peers(Options(), ignore)
    assert {r.peer for r in records} >= {"mujoco", "mujoco_warp", "newton", "rapier3d", "pybullet"}
    assert all(r.note == "not installed" for r in records)


def test_a_peer_that_fails_does_not_stop_the_others(monkeypatch) -> None:
    def broken(options: Options, models: object) -> object:
        raise RuntimeError("no display")

    def other(options: Options, things: Heap) -> Iterator[PeerRecord]:
        yield PeerRecord("csv", note=f"{things.angle.size} boxes")

    monkeypatch.setattr(peers, "PEERS", {"json": broken})
    monkeypatch.setattr(peers, "PILE_PEERS", {"csv": other})
    records = peers.run_peers(Options(), ignore)
    assert "no display" in records[0].note
    assert "1000 boxes" in [r.note for r in records if r.peer == "csv"]


@pytest.mark.nightly
def test_the_same_mechanisms_in_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    for text in (chain_mjcf(), boom_mjcf()):
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, 100)
        assert np.all(np.isfinite(data.qpos))


@pytest.mark.parametrize("name", ["rapier3d", "pybullet", "mujoco"])
def test_the_same_pile_in_peers(name: str) -> None:
    pytest.importorskip(name)
    cases = peers.PILE_PEERS[name](Quickest(quick=True), piles.heap(2, 2))
    case = next(cases)
    assert isinstance(case, peers.PeerCase)
    case.advance(2)
    assert case.figures is not None
    found = case.figures(1.0)
    assert found["points"] >= 8 and found["rms_speed"] < 0.5 and found["overlap"] < 0.1


def test_peers_go_by_workloads() -> None:
    assert {own.workload for own in peer_models()} == {"many_worlds", "humanoid"}
    assert {own.workload for own in peer_models(["humanoid", "pile_1000"])} == {"humanoid"}
    assert peer_models(["latency"]) == []
    assert next(iter(peers.PEERS)) == "mujoco_warp", "where time is short"
    names = {case.name for name in ("many_worlds", "humanoid") for case in chosen_cases([name], False)}
    assert {own.name for own in peer_models()} <= names, "a table compares lines of one name"


@pytest.mark.parametrize("name", [HUMANOID_STANDING, HUMANOID_MOVING, HUMANOID_LYING])
def test_mujoco_times_the_same_states(name: str) -> None:
    pytest.importorskip("mujoco", reason=NO_MUJOCO)
    own = next(own for own in peer_models(["humanoid"]) if own.name == name)
    cases = mujoco_peers.mujoco(Options(quick=True), [own])
    one = next(cases)
    for _ in range(3):
        one.advance(own.restart or 20)
    many = next(cases)
    many.advance(20)
    assert (one.worlds, many.worlds) == (1, 64)
    data = _closed_over(one, "data")
    height = float(data.qpos[2])
    assert (height > 1.2) if own.restart else (height < 0.8 if own.hold else height == pytest.approx(0.15, abs=0.1))
    assert (np.abs(data.ctrl).max() > 0.0) == bool(own.hold)


def _closed_over(case: PeerCase, name: str) -> Any:
    function: Any = case.advance
    return dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in function.__closure__), strict=True))[
        name
    ]


class FakeWarp:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.worlds: list[tuple[Any, ...]] = []

    def is_cuda_available(self) -> bool:
        return True

    def put_model(self, model: Any) -> Any:
        return model

    def put_data(self, model: Any, data: Any, *, nworld: int, nconmax: int, njmax: int) -> Any:
        assert data.ncon <= nconmax and data.nefc <= njmax
        self.worlds.append((nworld, nconmax, njmax))
        return SimpleNamespace(qpos="qpos", qvel="qvel", qacc_warmstart="qacc", ctrl="ctrl")

    def make_data(self, model: Any, *, nworld: int) -> Any:
        self.worlds.append((nworld,))
        return SimpleNamespace(qpos="qpos", qvel="qvel", qacc_warmstart="qacc", ctrl="ctrl")

    def array(self, values: Any, dtype: Any) -> Any:
        return np.array(values, dtype=np.float32)

    def clone(self, array: str) -> str:
        return f"first {array}"

    def step(self, m: Any, d: Any) -> None:
        self.calls.append(("step",))

    def ScopedCapture(self) -> Any:  # noqa: N802
        return FakeCapture()

    def capture_launch(self, graph: Any) -> None:
        self.calls.append(("launch",))

    def copy(self, to: str, given: Any) -> None:
        self.calls.append(("copy", to))

    def synchronize(self) -> None:
        self.calls.append(("wait",))


class FakeCapture:
    graph = "graph"

    def __enter__(self) -> FakeCapture:
        return self

    def __exit__(self, *problem: object) -> None:
        pass


@pytest.fixture
def warp(monkeypatch: pytest.MonkeyPatch) -> FakeWarp:
    pytest.importorskip("mujoco", reason=NO_MUJOCO)
    fake = FakeWarp()
    for name in ("warp", "mujoco_warp"):
        monkeypatch.setitem(sys.modules, name, fake)
    return fake


def warp_cases(*models: PeerModel) -> list[PeerCase]:
    return list(mujoco_peers.mujoco_warp(Options(), models))


def test_mujoco_warp_gets_room_and_most_worlds_first(warp: FakeWarp) -> None:
    chosen = [own for own in peer_models() if own.name in (HUMANOID_LYING, CHAIN)]
    cases = warp_cases(*chosen)
    assert [case.worlds for case in cases] == [8192] * 3 + [1024] * 3 + [64] * 3
    assert warp.worlds[:3] == [(8192,), (8192, 24, 72), (8192, 24, 72)]
    assert "but Newton, because it has no PGS" in cases[2].note and "PGS" not in cases[1].note


def test_mujoco_warp_starts_again_and_gets_commands(warp: FakeWarp) -> None:
    standing, moving = (
        next(own for own in peer_models() if own.name == name) for name in (HUMANOID_STANDING, HUMANOID_MOVING)
    )
    first = warp_cases(standing)[0]
    warp.calls.clear()
    first.advance(2 * standing.restart)
    copied = [place for place, call in enumerate(warp.calls) if call[0] == "copy"]
    # the step that compiled counts; three arrays each time
    assert copied == [59, 60, 61, 122, 123, 124]
    assert warp.calls[-1] == ("wait",) and warp.calls.count(("launch",)) == 120
    warp.calls.clear()
    next(iter(mujoco_peers.mujoco_warp(Options(), [moving])))
    assert warp.calls.count(("copy", "ctrl")) == moving.settle // moving.hold
    assert warp.calls.count(("launch",)) == moving.settle


class FakeNewton(FakeWarp):
    def __init__(self) -> None:
        super().__init__()
        self.solvers = SimpleNamespace(SolverMuJoCo=self.SolverMuJoCo)

    class ModelBuilder:
        def add_mjcf(self, text: str) -> None:
            assert text.startswith("<mujoco>")

        def replicate(self, one: Any, worlds: int) -> None:
            self.worlds = worlds

        def finalize(self) -> Any:
            state = lambda: SimpleNamespace(joint_q="q", joint_qd="qd")  # noqa: E731
            return SimpleNamespace(worlds=self.worlds, state=state, control=lambda: "control")

    class SolverMuJoCo:
        made: ClassVar[list[tuple[Any, ...]]] = []
        steps: ClassVar[list[tuple[Any, ...]]] = []

        def __init__(self, model: Any, *, nconmax: Any, njmax: Any) -> None:
            self.made.append((model.worlds, nconmax, njmax))

        @staticmethod
        def register_custom_attributes(builder: Any) -> None:
            """Of MJCF."""

        def step(self, first: Any, second: Any, control: Any, contacts: Any, dt: float) -> None:
            self.steps.append((id(first), id(second), dt))


def test_newton_goes_there_and_back_and_leaves_out_what_it_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason=NO_MUJOCO)
    fake = FakeNewton()
    monkeypatch.setitem(sys.modules, "warp", fake)
    monkeypatch.setitem(sys.modules, "newton", fake)
    monkeypatch.setitem(sys.modules, "newton.solvers", fake.solvers)
    cases = list(newton_peer.newton(Options(quick=True), peer_models()))
    names = [CHAIN, BIPED, HUMANOID_STANDING, HUMANOID_LYING]
    assert [(case.name, case.worlds) for case in cases] == [(name, n) for n in (1024, 64) for name in names]
    solver = fake.SolverMuJoCo
    assert solver.made[0] == (1024, None, None) and solver.made[2] == (1024, newton_peer.PAIRS, 72)
    there, back = solver.steps[:2]
    assert there[:2] == back[:2][::-1] and there[2] == 1e-3 and solver.steps[-1][2] == pytest.approx(3e-3)
    fake.calls.clear()
    cases[2].advance(120)
    # it restarts every 60 steps, two arrays each time; the steps that compiled count
    assert [place for place, call in enumerate(fake.calls) if call[0] == "copy"] == [29, 30, 61, 62]
    assert fake.calls.count(("launch",)) == 60 and fake.calls[-1] == ("wait",)
