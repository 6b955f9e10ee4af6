from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig
from gpusim.backends.background_builds import BackgroundBuild
from gpusim.backends.native import specialization
from gpusim.backends.native.compile import find_native
from gpusim.compile_cache import CompileError
from gpusim.scene import load_scene

pytestmark = pytest.mark.native


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[BackgroundBuild]:
    waiting: list[BackgroundBuild] = []

    class Queue:
        put = staticmethod(waiting.append)

    def find(*given: Any) -> Path | None:
        return find_native(*given) if any(build.ended for build in waiting) else None

    monkeypatch.setattr(specialization, "waiting_builds", Queue)
    monkeypatch.setattr(specialization, "find_native", find)
    monkeypatch.setattr(specialization, "compile_apart", lambda compiler, *given: compiler(*given))
    monkeypatch.setattr(specialization, "LOOKS_AFTER", 0.0)
    monkeypatch.setattr(specialization, "MAKES_AFTER", 0.0)
    return waiting


def pendulum(worlds: int = 1, **options: Any) -> Simulation:
    model = load_scene("double_pendulum").builder.finalize()
    return Simulation(model, worlds, "native", config=SolverConfig(dt=1e-3), **options)


def library(sim: Simulation) -> Any:
    return sim.backend._library  # type: ignore[union-attr]


def equal(sim: Simulation, other: Simulation) -> bool:
    mine, yours = sim.state.arrays, other.state.arrays
    return all(np.array_equal(mine[name], yours[name], equal_nan=True) for name in mine)


@pytest.mark.nightly
@pytest.mark.parametrize("options", [{"launch": "fused"}, {"launch": "staged"}, {"worlds": 9, "launch": "simd"}])
def test_a_long_run_takes_specialized_kernels_with_the_same_bits(
    queue: list[BackgroundBuild], options: dict[str, Any]
) -> None:
    sim, never = pendulum(**options), pendulum(**options, specialize=False)
    first = library(sim)
    sim.step(3)
    assert len(queue) == 1 and library(sim) is first  # the build is still being made
    queue[0].make()
    assert queue[0].path is not None
    for own in (sim, never):
        own.step(2 if own is sim else 5)
    assert library(sim) is not first and library(never) is first
    sim.step(20)
    never.step(20)
    assert equal(sim, never)
    again = pendulum(**options)
    again.step(1)
    assert library(again) is library(sim) and len(queue) == 1


def test_a_build_that_fails_leaves_the_run_alone(queue: list[BackgroundBuild], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> Path:
        raise CompileError("the disk is full")

    monkeypatch.setattr(specialization, "compile_apart", fail)
    sim = pendulum()
    first = library(sim)
    sim.step(1)
    queue[0].make()
    sim.step(2)
    assert queue[0].ended and library(sim) is first and len(queue) == 1


def test_short_runs_make_none(queue: list[BackgroundBuild], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "MAKES_AFTER", math.inf)
    sim = pendulum()
    sim.step(5)
    assert not queue
