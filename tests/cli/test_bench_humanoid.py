from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpusim
from ci.peers.humanoid_mjcf import humanoid_mjcf
from ci.peers.peer_models import GYMNASIUM
from gpusim.bench import humanoid
from gpusim.bench.drive import motor_labels, run_driven
from gpusim.bench.runner import Options, Record, Start, measure, run_cases
from gpusim.bench.workloads import (
    CHAIN,
    HUMANOID_LYING,
    HUMANOID_MOVING,
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
    other = mujoco.MjModel.from_xml_string(humanoid_mjcf(options=GYMNASIUM))
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
    mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)
    dt, steps = 1e-3, 250
    other = mujoco.MjModel.from_xml_string(humanoid_mjcf(options=GYMNASIUM))
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
        begun.prepare(steps)
        sim.step(steps)
    assert sim.taken == [0, 4, 4, 0, 4, 0, 10, 0, 1]
    never: Any = Steps()
    Start(never, 0).prepare(1000)
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


def test_enough_ends_a_run() -> None:
    case = Case("many_worlds", CHAIN, MODELS[CHAIN], 1)
    reported: list[str] = []
    records = run_cases([case, case, case], Options("numpy"), reported.append, lambda: len(reported) > 0)
    assert len(records) == len(reported) == 1


def test_a_crowd_consists_of_equal_humanoids() -> None:
    model = humanoid.humanoid(lying=True, count=3).finalize()
    sim = gpusim.Simulation(model, 1, "numpy", config=gpusim.SolverConfig(dt=humanoid.DT))
    sim.step(3)
    position = sim.state.arrays["position"][0, :-1].reshape(3, len(humanoid.LINKS), 3)  # without the world
    offset = humanoid.SPACING * np.array([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)])
    np.testing.assert_allclose(position - offset[:, None], np.tile(position[0], (3, 1, 1)), atol=1e-9)
    assert model.bodies[len(humanoid.LINKS)].label == "humanoid1_torso"


def test_mujocos_crowd_has_the_same_bodies() -> None:
    mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)
    model = humanoid.humanoid(count=3).finalize()
    theirs = mujoco.MjModel.from_xml_string(humanoid_mjcf(count=3))
    names = [theirs.body(k).name for k in range(1, theirs.nbody)]
    assert names == [body.label for body in model.bodies]
