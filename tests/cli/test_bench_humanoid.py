"""The humanoid of ``gpusim bench``: the same one here and in MuJoCo, its states, and how they are timed."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import gpusim
from gpusim.bench import humanoid, mujoco_peers, newton_peer, peers
from gpusim.bench.counted import Counter
from gpusim.bench.drive import motor_labels, run_driven
from gpusim.bench.floor import COUNTED_STEPS, count_operations
from gpusim.bench.peer_case import PeerCase, PeerModel
from gpusim.bench.peer_models import GYMNASIUM, peer_models
from gpusim.bench.runner import Options, Record, Start, make_simulation, measure, run_cases
from gpusim.bench.workloads import (
    BIPED,
    CHAIN,
    HUMANOID_LYING,
    HUMANOID_MOVING,
    HUMANOID_STANDING,
    MODELS,
    Case,
    chosen_cases,
)

NO_MUJOCO = 'MuJoCo is not installed; pip install "gpusim[mjcf]"'


def bodies_of(mujoco: Any, model: Any) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Mass, center of mass and inertia in the body's axes of MuJoCo's bodies."""
    found = []
    for k in range(1, model.nbody):
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, model.body_iquat[k])
        axes = turn.reshape(3, 3)
        found.append((model.body_mass[k], model.body_ipos[k], axes @ np.diag(model.body_inertia[k]) @ axes.T))
    return found


def test_it_has_the_parts_of_gymnasiums() -> None:
    """Counts and mass of the file as MuJoCo 4.0 compiles it."""
    model = humanoid.humanoid().finalize()
    assert (len(model.bodies), model.contact.num_shapes, len(model.controls)) == (13, 18, 17)
    assert sum(joint.kind == "d6" for joint in model.joints) == 10 and len(model.joints) == 12
    assert sum(body.mass for body in model.bodies) == pytest.approx(42.1160305, abs=1e-6)
    candidates = model.contact.candidates
    assert candidates is not None and sum(map(len, candidates)) == 126
    assert motor_labels(model) == set(model.controls)


def test_mujoco_reads_the_same_bodies_and_pairs() -> None:
    mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)
    own = humanoid.humanoid().finalize()
    other = mujoco.MjModel.from_xml_string(humanoid.humanoid_mjcf(options=GYMNASIUM))
    assert (other.nv, other.nu, other.opt.timestep) == (23, 17, humanoid.DT)
    assert other.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4 and other.opt.solver == mujoco.mjtSolver.mjSOL_PGS
    for body, (mass, com, inertia) in zip(own.bodies, bodies_of(mujoco, other), strict=True):
        assert body.mass == pytest.approx(mass, rel=1e-12)
        assert body.com == pytest.approx(com, abs=1e-15)
        assert body.inertia == pytest.approx(inertia, abs=1e-7)
    assert other.jnt_range[1:].ravel() == pytest.approx(
        np.concatenate([_limits(joint) for joint in own.joints if joint.kind == "d6"])
    )


def _limits(joint: Any) -> np.ndarray:
    return np.stack([joint.params["limit_lower"], joint.params["limit_upper"]], axis=1).ravel()


@pytest.mark.native
def test_it_moves_as_in_mujoco() -> None:
    """In free flight, thrown, with all motors at work: what differs is of second order in the step."""
    mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)
    dt, steps = 1e-3, 250
    other = mujoco.MjModel.from_xml_string(humanoid.humanoid_mjcf(options=GYMNASIUM))
    other.opt.timestep = dt
    # limits and contacts are not of one law, so they are left out
    other.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT) | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    data = mujoco.MjData(other)
    builder = humanoid.humanoid()
    builder.pairs.clear()
    for shape in builder.shapes:
        shape.mask = 0
    for joint in builder.joints:
        if joint.kind == "d6":
            joint.params["limit_lower"] = np.full_like(joint.params["limit_lower"], -np.inf)
            joint.params["limit_upper"] = np.full_like(joint.params["limit_upper"], np.inf)
    sim = gpusim.Simulation(builder.finalize(), 1, "native", "float64", gpusim.SolverConfig(dt=dt), threads=1)
    shares = np.random.default_rng(0).uniform(-0.2, 0.2, other.nu)
    for k, share in enumerate(shares):
        sim.control[other.actuator(k).name] = share
        data.ctrl[k] = humanoid.COMMAND_RANGE * share
    mujoco.mj_step(other, data, steps)
    sim.step(steps)
    for body in sim.model.bodies:
        # MuJoCo's poses are of the step before
        found = np.asarray(sim.read(f"body.{body.label}.position"))[0]
        assert found == pytest.approx(_pose(mujoco, other, data, body.label), abs=2e-5), body.label


def _pose(mujoco: Any, model: Any, data: Any, label: str) -> np.ndarray:
    mujoco.mj_kinematics(model, data)
    return np.array(data.body(label).xpos)


@pytest.mark.native
def test_it_stands_for_a_while_and_lies_still() -> None:
    config = gpusim.SolverConfig(dt=humanoid.DT)
    standing = gpusim.Simulation(humanoid.humanoid().finalize(), 1, "native", config=config, threads=1)
    standing.step(humanoid.STANDING_STEPS)
    assert float(standing.read("body.torso.position")[0, 2]) == pytest.approx(humanoid.STANDING, abs=0.05)
    assert int(standing.read("sim.contacts")[0]) == 2
    lying = gpusim.Simulation(humanoid.humanoid(lying=True).finalize(), 1, "native", config=config, threads=1)
    lying.step(humanoid.SETTLE)
    assert int(lying.read("sim.contacts")[0]) == 7
    assert np.abs(lying.state.arrays["linear_velocity"]).max() < 1e-3


def test_both_states_have_cases_of_all_sizes() -> None:
    cases = chosen_cases(["humanoid"], False)
    assert {case.worlds for case in cases if case.name == HUMANOID_LYING} == {64, 1024, 8192}
    assert all(case.config["dt"] == humanoid.DT and not case.pile for case in cases)
    assert all(case.backend == ("cuda" if case.settle and case.worlds == 8192 else "") for case in cases)
    assert {case.name for case in cases if case.config.get("joint_solver") == "colored"} == {
        f"{HUMANOID_LYING}, colored"
    }
    assert all(bool(case.settle) != bool(case.restart) for case in cases)
    assert {case.name for case in cases if case.hold} == {HUMANOID_MOVING}


class Steps:
    """A simulation that counts its steps and starts."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.num_worlds, self.backend_name, self.control = 1, "numpy", {"m": 0.0}
        self.model = SimpleNamespace(groups=[], controls={"m": 0})
        self.given: list[float] = []

    def step(self, n: int) -> None:
        self.taken.append(n)
        self.given.append(float(np.ravel(self.control["m"])[0]))

    def reset(self) -> None:
        self.taken.append(0)


def test_what_does_not_last_starts_again() -> None:
    sim: Any = Steps()
    begun = Start(sim, 10)
    for steps in (4, 4, 4, 10, 1):
        begun.room_for(steps)
        sim.step(steps)
    assert sim.taken == [0, 4, 4, 0, 4, 0, 10, 0, 1]
    never: Any = Steps()
    Start(never, 0).room_for(1000)
    assert never.taken == []


def test_chunks_end_with_their_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sim: Any = Steps()
    case = Case("humanoid", "standing", humanoid.humanoid, restart=6)
    measure(sim, case, 0.01, Record("humanoid", "standing", 1))
    runs = "".join(f" {n}" if n else "|" for n in sim.taken).split("|")[1:]
    assert all(0 < sum(map(int, run.split())) <= 6 for run in runs)
    held: Any = Steps()
    measure(held, replace(case, restart=0, hold=3), 0.01, Record("humanoid", "moving", 1))
    assert max(held.taken) == 3 and len(set(held.given)) > 3


def test_motors_get_other_commands_after_some_steps() -> None:
    sim: Any = Steps()
    run_driven(sim, 50, 20)
    assert sim.taken == [20, 20, 10] and len(set(sim.given)) == 3
    again: Any = Steps()
    run_driven(again, 50, 20)
    assert again.given == sim.given
    still: Any = Steps()
    run_driven(still, 50)
    assert still.taken == [50] and still.given == [0.0]


@pytest.mark.native
def test_operations_are_counted_in_the_state_that_is_timed() -> None:
    """After all steps to settle, or from the start for what does not last."""
    model = MODELS[CHAIN]().finalize()
    chain = Case("many_worlds", CHAIN, MODELS[CHAIN], settle=70)
    sim = make_simulation(chain, model, "native", Options())
    for case, before, steps in ((chain, 70, COUNTED_STEPS), (replace(chain, settle=0, restart=20), 0, 20)):
        by_hand = gpusim.Simulation(model, 1, "native", "float32", sim.config, launch="fused", threads=1)
        by_hand.step(before)
        counter = Counter(by_hand)
        by_hand.step(steps)
        found = counter.take() / steps  # before the other counts: they share their counters
        assert count_operations(case, model, sim) == found


def test_enough_ends_a_run() -> None:
    case = Case("many_worlds", CHAIN, MODELS[CHAIN], 1)
    reported: list[str] = []
    records = run_cases([case, case, case], Options("numpy", count=False), reported.append, lambda: len(reported) > 0)
    assert len(records) == len(reported) == 1


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
    """Warp and MuJoCo Warp in one, which note what they are asked for."""

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
    """A graph."""

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
    assert "but Newton, for it has no PGS" in cases[2].note and "PGS" not in cases[1].note


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
    """Newton as well."""

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
    # it starts anew every 60 steps, two arrays each time; the steps that compiled count
    assert [place for place, call in enumerate(fake.calls) if call[0] == "copy"] == [29, 30, 61, 62]
    assert fake.calls.count(("launch",)) == 60 and fake.calls[-1] == ("wait",)
