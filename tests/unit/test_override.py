from __future__ import annotations

import sys

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, UnknownNameError
from gpusim.backends.cuda import builds as cuda_builds
from gpusim.control import Diagram
from tests.builds import build_plain
from tests.message_snapshot import naming
from tests.unit import fake_cupy

WORLDS = 3


@pytest.fixture(
    params=["numpy", pytest.param("native", marks=pytest.mark.native), pytest.param("cuda", marks=pytest.mark.native)]
)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "cuda":
        monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
        monkeypatch.setattr(cuda_builds, "compile_cuda", build_plain)
        monkeypatch.setenv("GPUSIM_CUDA_BUILD", "full")
        monkeypatch.setattr("gpusim.backends.load_nvrtc", lambda: None)
    return str(request.param)


def machine(backend: str, diagram: bool = True) -> Simulation:
    b = ModelBuilder(gravity=(0, 0, 0))
    for name in ("driven", "free", "held"):
        body = b.add_body(2.0, (1, 1, 1), label=name)
        rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label=f"rail_{name}")
        if name == "held":
            b.add_servo(rail, stiffness=50.0, damping=5.0, label=name)
        else:
            b.add_joint_force(rail, limit=10.0, label=name)
    if diagram:
        d = Diagram("pusher")
        d.add("input", "wish", lower=-9.0, upper=9.0, default=2.0)
        d.connect("wish", d.add("gain", "twice", gain=2.0))
        d.connect("twice", "command:driven")
        b.add_diagram(d)
    return Simulation(b.finalize(), WORLDS, backend=backend, config=SolverConfig(dt=0.01))


def commands(sim: Simulation, name: str) -> list[float]:
    return [float(x) for x in sim.control[name]]


def test_all_commands_of_stopped_worlds_are_held(backend: str) -> None:
    sim = machine(backend)
    sim.control["free"], sim.control["held"] = 3.0, 0.5
    sim.step(5)
    reached = float(sim.read("joint.rail_held.position", numpy=True)[1])
    assert commands(sim, "driven") == [4.0] * 3 and reached > 0.0
    sim.override(worlds=[1])
    assert sim.overridden.all(axis=1).tolist() == [False, True, False]
    assert commands(sim, "driven") == [4.0, 0.0, 4.0]
    before = sim.read("body.driven.linear_velocity", numpy=True)[:, 0]
    for _ in range(3):
        sim.control["wish"], sim.control["free"] = 1.0, 5.0
        sim.step()
    assert commands(sim, "driven") == [2.0, 0.0, 2.0] and commands(sim, "free") == [5.0, 0.0, 5.0]
    assert commands(sim, "wish") == [1.0, 2.0, 1.0]
    assert commands(sim, "held")[1] == pytest.approx(reached, abs=1e-12)
    after = sim.read("body.driven.linear_velocity", numpy=True)[:, 0]
    assert after[0] > before[0] and after[1] == pytest.approx(before[1], abs=2.5e-2) and after[2] == after[0]
    sim.release()
    sim.step(2)
    assert not sim.overridden.all(axis=1).any()
    assert commands(sim, "driven") == [2.0, 4.0, 2.0]
    assert commands(sim, "free") == [5.0, 0.0, 5.0]


def test_a_reset_ends_it_and_a_copy_holds_it(backend: str) -> None:
    sim = machine(backend, diagram=False)
    sim.control["free"] = 1.0
    sim.step()
    sim.override()
    stopped = sim.state.copy()
    sim.reset([0, 1])
    assert sim.overridden.all(axis=1).tolist() == [False, False, True]
    sim.control["free"] = 1.0
    sim.step()
    assert commands(sim, "free") == [1.0, 1.0, 0.0]
    sim.state.restore(stopped, np.array([0]))
    sim.invalidate()
    sim.step(2)
    assert sim.overridden.all(axis=1).tolist() == [True, False, True] and commands(sim, "free") == [0.0, 1.0, 0.0]


def test_stopping_again_measures_nothing_again(backend: str) -> None:
    sim = machine(backend, diagram=False)
    sim.override(worlds=[0])
    sim.write("joint.rail_held.position", 0.25)
    sim.override()
    assert commands(sim, "held") == pytest.approx([0.0, 0.25, 0.25], abs=1e-12)
    with pytest.raises(ModelError, match=naming("Simulation.override")):
        sim.override(worlds=[7])


@pytest.mark.native
def test_native_has_the_bits_of_numpy() -> None:
    ends = []
    for backend in ("numpy", "native"):
        sim = machine(backend)
        sim.step(4)
        sim.override(worlds=[0, 2])
        sim.step(4)
        sim.release(worlds=[2])
        sim.step(4)
        ends.append(np.array(sim.control.array))
    assert np.array_equal(*ends)


def test_some_commands_at_given_values(backend: str) -> None:
    sim = machine(backend)
    sim.override({"driven": [1.0, -1.0]}, worlds=[0, 2])
    sim.control["free"] = 5.0
    sim.step(3)
    assert commands(sim, "driven") == [1.0, 4.0, -1.0] and commands(sim, "free") == [5.0] * 3
    assert sim.overridden[:, sim.model.controls["driven"]].tolist() == [True, False, True] and sim.overridden.sum() == 2
    sim.override({"driven": 7.0, "fr*": 0.0})
    sim.step()
    assert commands(sim, "driven") == [7.0] * 3 and commands(sim, "free") == [0.0] * 3
    sim.release("driven")
    sim.step()
    assert commands(sim, "driven") == [4.0] * 3 and commands(sim, "free") == [0.0] * 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"no": 1.0}, "command 'no'"),
        (3.0, "values 3.0"),
        ({"free": [1.0, 2.0]}, "'free' 3"),
        ({"free": "x"}, "'free'"),
        ({"free": float("nan")}, "'free' nan"),
    ],
)
def test_wrong_overrides(values: object, words: str) -> None:
    sim = machine("numpy")
    with pytest.raises((ModelError, UnknownNameError), match=naming(words)):
        sim.override(values)  # type: ignore[arg-type]
    assert not sim.overridden.any()


def test_writes_to_held_commands_are_never_seen(backend: str) -> None:
    sim = machine(backend, diagram=False)
    sim.override({"free": 0.5}, worlds=[0, 2])
    for write in (lambda: sim.control.update(free=5.0), lambda: sim.command(["free"]).write(np.full((3, 1), 5.0))):
        write()
        assert commands(sim, "free") == [0.5, 5.0, 0.5]
        write()
        sim.release("free", worlds=[2])
        assert commands(sim, "free") == [0.5, 5.0, 0.5]
        sim.override({"free": 0.5}, worlds=[2])


def test_a_stop_replaces_other_overrides(backend: str) -> None:
    sim = machine(backend, diagram=False)
    sim.override({"free": 3.0})
    sim.step()
    sim.override(worlds=[0, 1])
    sim.step()
    assert commands(sim, "free") == [0.0, 0.0, 3.0]
    sim.release()
    assert not sim.overridden.any()


def test_it_stays_when_a_joint_gets_a_row(backend: str) -> None:
    sim = machine(backend)
    sim.override({"free": 2.0})
    sim.step(3)
    sim.write("joint.rail_driven.damping", 0.5)
    sim.control["free"] = 0.0
    before = sim.read("body.free.linear_velocity", numpy=True)[:, 0]
    sim.step(10)
    gained = sim.read("body.free.linear_velocity", numpy=True)[:, 0] - before
    np.testing.assert_allclose(gained, 2.0 / 2.0 * 10 * 0.01, rtol=1e-6)
    assert commands(sim, "free") == [2.0] * 3
