from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Simulation, SolverConfig
from gpusim.backends.cuda import builds as cuda_builds
from gpusim.command_schedule import Schedule
from gpusim.errors import ModelError, UnknownNameError
from gpusim.recording.recorder import load_recording
from gpusim.signals import program_loop
from gpusim.signals.rollout import _Rollout
from tests.builds import build_plain
from tests.message_snapshot import naming
from tests.unit import fake_cupy
from tests.unit.control.plants import plant

STEPS, EVERY, DT = 13, 3, 0.01
RECORD = [
    "joint.rail.position",
    "joint.rail.velocity",
    "diagram.all.sine",
    "diagram.all.noise",
    "body.*.linear_velocity",
]


def cart(worlds: int = 1, backend: str = "native", **options: Any) -> Simulation:
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for label in ("left", "right"):
        body = b.add_body(mass=2.0, inertia=(0.1, 0.1, 0.1), label=label)
        b.add_force(body, (1.0, 0.0, 0.0), label=label)
    return Simulation(b.finalize(), worlds, backend, config=SolverConfig(dt=DT, scheme="semi_implicit"), **options)


def controlled(worlds: int, backend: str, **options: Any) -> Simulation:
    sim = Simulation(plant().finalize(), worlds, backend, config=SolverConfig(dt=5e-3), **options)
    sim.write("sim.gravity", np.linspace((0.0, 0.0, -0.5), (0.3, 0.0, -0.5), worlds))
    return sim


def bits(sim: Simulation) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in sim.state.variables().items()} | {
        "control": np.array(sim.control.array).tobytes()
    }


def stepped(sim: Simulation, commands: dict[str, Any], record: Any) -> np.ndarray:
    seen, samples = sim.observe(record), []
    sim._programs._run, sim._programs._made = None, [sim.runtime.backend, *(r.parameters for r in sim.runtime.running)]
    for step in range(STEPS):
        for name, values in commands.items():
            sim.control[name] = values[step]
        sim.step()
        if (step + 1) % EVERY == 0:
            samples.append(np.array(seen.read()))
    return np.array(samples)


def test_the_velocity_is_the_sum_of_the_impulses() -> None:
    """Momentum balance: m v = sum F dt."""
    sim, forces = cart(3), np.random.default_rng(1).uniform(-5.0, 5.0, (STEPS, 3))
    found = sim.rollout(STEPS, {"left": forces, "right": 4.0}, record="body.*.linear_velocity", every=EVERY)
    assert found.shape == (STEPS // EVERY, 3, 6)
    wanted = np.cumsum(forces, axis=0)[EVERY - 1 :: EVERY] * DT / 2.0
    np.testing.assert_allclose(found[:, :, 0], wanted[: STEPS // EVERY], rtol=1e-12)
    np.testing.assert_allclose(found[:, 0, 3], 4.0 * DT / 2.0 * EVERY * np.arange(1, 5), rtol=1e-12)
    assert sim.time == pytest.approx(STEPS * DT)


@pytest.mark.native
@pytest.mark.parametrize("worlds, launch", [(1, "fused"), (3, "fused"), (19, "simd"), (2, "staged")])
def test_the_bits_are_those_of_single_steps(worlds: int, launch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sims = [controlled(worlds, "native", launch=launch, threads=2) for _ in range(2)]
    commands = {"stick": np.random.default_rng(2).uniform(-2.0, 2.0, (STEPS, worlds))}
    wanted = stepped(sims[1], commands, RECORD)
    if launch != "staged":  # one call: no Python between the steps
        monkeypatch.setattr(program_loop, "sample_programs", None)
        monkeypatch.setattr(_Rollout, "_one_by_one", None)
    np.testing.assert_array_equal(sims[0].rollout(STEPS, commands, record=RECORD, every=EVERY), wanted)
    assert bits(sims[0]) == bits(sims[1])


@pytest.mark.native
def test_step_with_diagrams_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    sims = [controlled(3, "native") for _ in range(2)]
    for sim in sims:
        sim.step(2)
        sim.write("diagram.all.pid.kp", [1.0, 3.0], worlds=[0, 2])
        sim.override({"push": 0.25}, worlds=1)
        sim.control["stick"] = 0.7
    stepped(sims[1], {}, RECORD)
    monkeypatch.setattr(program_loop, "sample_programs", None)
    sims[0].step(STEPS)
    assert bits(sims[0]) == bits(sims[1])
    assert sims[0].control["push"][1] == 0.25 != sims[0].control["push"][0]


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_any_signal_can_be_recorded(backend: str) -> None:
    sims = [controlled(2, backend) for _ in range(2)]
    commands, record = {"stick": np.linspace(-2.0, 2.0, STEPS)}, [*RECORD, "joint.rail.*"]
    found = sims[0].rollout(STEPS, commands, record=record, every=EVERY)
    np.testing.assert_array_equal(found, stepped(sims[1], commands, record))
    assert bits(sims[0]) == bits(sims[1])


@pytest.mark.native
def test_the_cuda_backend_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setattr(cuda_builds, "compile_cuda", build_plain)
    monkeypatch.setenv("GPUSIM_CUDA_BUILD", "full")
    monkeypatch.setattr("gpusim.backends.load_nvrtc", lambda: None)
    sims = [controlled(3, backend) for backend in ("cuda", "native")]
    commands = np.random.default_rng(3).uniform(-2.0, 2.0, (STEPS, 3))
    given = fake_cupy.fake(commands)
    prepared = _Rollout(sims[0].runtime, STEPS, {"stick": given}, RECORD, EVERY)
    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.FakeArray, "get", None)
        found = prepared.run(sims[0].step)
    np.testing.assert_array_equal(found.get(), sims[1].rollout(STEPS, {"stick": commands}, record=RECORD, every=EVERY))
    assert bits(sims[0]) == bits(sims[1])


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_a_schedule_acts_by_its_mean(backend: str) -> None:
    sim, ramp = cart(2, backend), Schedule([(0.0, 0.0), (1.0, 10.0)])
    for _ in range(2):
        found = sim.rollout(STEPS, {"left": ramp, "r*": np.zeros((STEPS, 1))}, record=["body.*.linear_velocity"])
    end = 2 * STEPS * DT
    np.testing.assert_allclose(found[-1, :, 0], 10.0 * end**2 / 2.0 / 2.0, rtol=1e-12)
    assert not found[..., 3].any()


def test_a_wildcard_takes_the_numbers_of_its_commands() -> None:
    values = np.random.default_rng(5).uniform(-1.0, 1.0, (STEPS, 2, 2))
    sims = [cart(2, "numpy") for _ in range(2)]
    found = [
        sims[0].rollout(STEPS, {"*": values}, record="body.*.position"),
        sims[1].rollout(STEPS, {"left": values[..., 0], "right": values[..., 1]}, record="body.*.position"),
    ]
    np.testing.assert_array_equal(*found)
    shared = sims[0].rollout(STEPS, {"*": values[:, 0]}, record="body.*.linear_velocity")
    assert np.ptp(shared[-1] - shared[0], axis=0) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_short_and_empty_rollouts(backend: str) -> None:
    sim = cart(2, backend)
    assert sim.rollout(2, {"left": 1.0}, record="body.left.position", every=3).shape == (0, 2, 3)
    assert sim.rollout(0, {"left": []}, record="body.left.position").shape == (0, 2, 3)
    assert sim.time == pytest.approx(2 * DT)


@pytest.mark.native
def test_a_failed_world_keeps_its_last_state() -> None:
    forces = np.ones((STEPS, 3))
    forces[4:, 1] = 1e200
    sim = cart(3)
    with pytest.warns(UserWarning, match=naming("1")):
        found = sim.rollout(STEPS, {"left": forces}, record="body.left.position")
    assert sim.health().tolist() == [True, False, True]
    assert not np.ptp(found[4:, 1], axis=0).any()
    np.testing.assert_array_equal(found[:, 0], found[:, 2])


def test_recordings_get_their_samples(tmp_path: Path) -> None:
    sim = cart(1, "numpy")
    with gpusim.record(sim, tmp_path / "a.npz", ["body.left.position"], rate=50.0):
        for _ in range(4):
            sim.rollout(3, {"left": 1.0}, record="body.left.position")
    found = load_recording(tmp_path / "a.npz")
    np.testing.assert_allclose(found.time, 0.02 * np.arange(7))


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"steps": -1}, ModelError, "steps -1 0"),
        ({"steps": 2.0}, ModelError, "steps 2.0 0"),
        ({"every": 0}, ModelError, "every 0 1"),
        ({"commands": [1.0]}, ModelError, "commands"),
        ({"commands": {"left": np.ones(STEPS + 1)}}, ModelError, f"'left' ({STEPS + 1},) {STEPS} 2"),
        ({"commands": {"left": np.ones((STEPS, 3))}}, ModelError, f"'left' ({STEPS}, 3) {STEPS} 2"),
        ({"commands": {"*": np.ones((STEPS, 3))}}, ModelError, f"'*' ({STEPS}, 3) {STEPS} 2"),
        ({"commands": {"left": np.full(STEPS, np.nan)}}, ModelError, "'left'"),
        ({"commands": {"middle": 1.0}}, UnknownNameError, "middle"),
        ({"record": "body.middle.position"}, UnknownNameError, "body.middle.position"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], error: type[Exception], words: str) -> None:
    sim = cart(2, "numpy")
    before = bits(sim)
    with pytest.raises(error, match=naming(words)):
        sim.rollout(**({"steps": STEPS, "record": "body.*.position"} | change))
    assert bits(sim) == before
