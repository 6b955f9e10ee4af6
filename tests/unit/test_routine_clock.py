from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpusim import ModelError, Simulation, SolverConfig
from gpusim.backends.codegen.kernel_sources import gpu_sources, kernel_sources
from gpusim.backends.codegen.schedule_source import routines_of
from gpusim.backends.codegen.variants import clocked_variant, make_variant
from gpusim.backends.cuda import builds as cuda_builds
from gpusim.backends.cuda.compile import QUICK, compile_cubin
from gpusim.backends.cuda.nvrtc import Nvrtc
from gpusim.bench import phases, routine_clock
from gpusim.bench.phases import can_profile, profile, twin_of
from gpusim.bench.routine_clock import ROUTINES, STEP, clock_routines
from gpusim.scene import load_scene
from gpusim.solver.nodes import Build
from tests.builds import build_plain
from tests.message_snapshot import naming
from tests.unit import fake_cupy


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routine_clock, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(phases, "BUSY_BYTES", 1)

    def compile_cuda(*given, **options: object) -> Path:
        return build_plain(*given)

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setattr("gpusim.backends.load_nvrtc", lambda: None)
    for name in ("compile_cuda", "find_cubin"):
        monkeypatch.setattr(cuda_builds, name, compile_cuda)


def pile(backend: str, launch: str = "fused") -> Simulation:
    model = load_scene("pile", count=2).builder.finalize()
    return Simulation(model, 9, backend, config=SolverConfig(dt=2e-3), launch=launch, specialize=False)


def lift(backend: str, launch: str = "fused") -> Simulation:
    model = load_scene("hydraulic_lift").builder.finalize()
    return Simulation(model, 9, backend, config=SolverConfig(dt=1e-3), launch=launch, specialize=False)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("build", "backend"), [(lift, "native"), (pile, "cuda")])
def test_routines_are_clocked_and_steps_stay_the_same(stand_in: None, backend: str, build) -> None:
    sim, other = build(backend), build("native")
    shares = clock_routines(sim, 30)
    other.step(30)
    assert sum(shares.get(name, 0.0) for name in STEP) == pytest.approx(1.0)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    inner = "direct_solve" if build is lift else "free_solve"
    assert 0.0 < shares[inner] < shares["solve"] < shares["substep"] < 1.0
    for own in (sim, other):  # and in the usual build again
        own.step(2)
    for name, array in other.state.variables().items():
        np.testing.assert_array_equal(sim.state.variables()[name], array, err_msg=name)


@pytest.mark.native
@pytest.mark.nightly
@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_a_step_is_reported_by_stage_and_kernel_on_a_gpu(stand_in: None, launch: str) -> None:
    sim, other = pile("cuda", launch), pile("native", launch)
    assert can_profile(sim)
    stages, kernels = profile(sim, 2)
    assert {"broad_phase", "narrow_phase", "solve", "drift"} <= set(stages)
    assert ("find_manifold" if launch == "staged" else "free_solve") in kernels
    assert all(time > 0.0 for time in (*stages.values(), *kernels.values()))
    other.step(4 if launch == "fused" else 3)
    for name, array in other.state.variables().items():
        np.testing.assert_array_equal(sim.state.variables()[name], array, err_msg=name)


@pytest.mark.native
def test_a_twin_goes_on_with_the_same_commands() -> None:
    sim = lift("native")
    sim.control["lift"] = 0.4
    sim.step(3)
    twin = twin_of(sim, "staged")
    for own in (sim, twin):
        own.step(4)
    for name, array in sim.state.variables().items():
        np.testing.assert_array_equal(twin.state.variables()[name], array, err_msg=name)


def test_what_can_not_be_clocked_is_reported() -> None:
    with pytest.raises(ModelError, match=naming("launch 'numpy' backend 'cuda' 'native'")):
        clock_routines(lift("numpy", "auto"))


def test_there_is_room_for_all_routines() -> None:
    most = max(
        len(routines_of(Build(direct, True, False, swept, coupled)))
        for direct in (False, True) for swept in (False, True) for coupled in (False, True)
    )  # fmt: skip
    assert f"#define MAX_ROUTINES {ROUTINES}\n" in kernel_sources()["routine_clock.cuh"]
    assert most <= ROUTINES


@pytest.mark.nightly
def test_a_clocked_build_compiles_for_a_gpu(nvrtc_12: Nvrtc) -> None:
    variant, names = clocked_variant(make_variant("fused.cu", np.float64, np.float32, True, shared=True))
    assert variant.generated["order.cuh"].count("RoutineClock clock_") == len(names)
    sources = gpu_sources(variant.main, variant.generated)
    extra = [QUICK] if nvrtc_12.version >= (12, 8) else []
    ptx = compile_cubin(nvrtc_12, variant.main, sources, variant.defines, "sm_90", extra=extra).ptx
    assert "routine_cycles" in ptx and "%clock64" in ptx
    usual = replace(variant, generated=make_variant("fused.cu", np.float64, np.float32, True, shared=True).generated)
    assert "RoutineClock" not in "".join(usual.generated.values())
