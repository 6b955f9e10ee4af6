from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig
from gpusim.backends.cuda import builds as cuda_builds
from tests.builds import build_plain
from tests.unit import fake_cupy
from tests.unit.control.plants import plant

pytestmark = pytest.mark.native
WORLDS = 3


@pytest.fixture
def sims(monkeypatch: pytest.MonkeyPatch) -> list[Simulation]:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setattr(cuda_builds, "compile_cuda", build_plain)
    monkeypatch.setenv("GPUSIM_CUDA_BUILD", "full")
    monkeypatch.setattr("gpusim.backends.load_nvrtc", lambda: None)
    model, config = plant().finalize(), SolverConfig(dt=5e-3)
    made = [Simulation(model, WORLDS, backend, config=config) for backend in ("cuda", "native")]
    for sim in made:
        for world in range(WORLDS):
            sim.write("sim.gravity", (0.1 * world, 0.0, -0.5), worlds=world)
        sim.control["stick"] = np.array([0.5, -1.5, 2.0])
    return made


def assert_same(sims: list[Simulation]) -> None:
    arrays = [sim.state.variables() | {"control": sim.control.array} for sim in sims]
    for name, expected in arrays[1].items():
        assert np.ascontiguousarray(arrays[0][name]).tobytes() == np.ascontiguousarray(expected).tobytes(), name


@pytest.mark.nightly
def test_samples_are_those_of_native(sims: list[Simulation]) -> None:
    for sim in sims:
        sim.step(9)
    assert_same(sims)
    assert np.ptp(sims[0].control["push"]) > 0.0 and sims[0].state.arrays["diagram.all"][0, 0] > 1.0


def test_parameters_inputs_and_resets_reach_the_device(sims: list[Simulation]) -> None:
    for sim in sims:
        sim.step(5)
        sim.write("diagram.all.pid.kp", [0.0, 5.0], worlds=[0, 2])
        sim.control["stick"] = 1.0
        sim.step(5)
        sim.reset(np.arange(WORLDS) == 1)
        sim.step(3)
        sim.write("diagram.all.pid.kp", 1.0)
        sim.step(4, dt=0.03)
    assert_same(sims)


def test_commands_of_a_diagram_outlive_those_that_the_host_was_lent(sims: list[Simulation]) -> None:
    for sim in sims:
        lent = sim.control.array
        assert len(lent) == WORLDS
        sim.step(2)
        given = [sim.control["push"].copy()]
        sim.step()
        given.append(sim.control["push"].copy())
        assert np.all(np.abs(given) > 0.0)
    assert_same(sims)


def test_nothing_is_copied_to_the_host_between_samples(sims: list[Simulation], monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = sims[0]
    cuda.step(2)

    def refuse(self: Any, out: Any = None) -> Any:
        raise AssertionError("a copy to the host")

    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.FakeArray, "get", refuse)
        cuda.step(6)
    sims[1].step(8)
    assert_same(sims)
