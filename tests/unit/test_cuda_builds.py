from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ModelError, Simulation, SolverConfig
from gpusim.backends import background_builds
from gpusim.backends.background_builds import BackgroundBuild
from gpusim.backends.codegen.variants import REGISTERS, RELOCATABLE
from gpusim.backends.cuda import builds as cuda_builds
from gpusim.backends.cuda import compile as compiler
from gpusim.backends.cuda.backend import SPECIALIZED_FROM, CudaBackend
from gpusim.backends.cuda.builds import ENVIRONMENT
from gpusim.backends.cuda.link import LinkError
from gpusim.backends.cuda.nvrtc import Compiled, Nvrtc
from gpusim.compile_cache import CompileError
from gpusim.scene import load_scene
from tests.builds import build_plain
from tests.message_snapshot import naming
from tests.unit import fake_cupy


class Compiler:
    def __init__(self) -> None:
        self.asked: list[bool] = []
        self.waiting: list[BackgroundBuild] = []
        self.cached = False
        self.found = 0

    def compile_cuda(self, *given: Any, quick: bool = False) -> Path:
        self.asked.append(quick)
        return build_plain(*given)

    def find_cubin(self, *given: Any) -> Path | None:
        self.found += self.cached
        return build_plain(*given) if self.cached else None

    def put(self, build: BackgroundBuild) -> None:
        self.waiting.append(build)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    made = Compiler()
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setattr("gpusim.backends.load_nvrtc", lambda: None)
    monkeypatch.setattr(cuda_builds, "compile_cuda", made.compile_cuda)
    monkeypatch.setattr(cuda_builds, "find_cubin", made.find_cubin)
    monkeypatch.setattr(cuda_builds, "compile_full", made.compile_cuda)
    monkeypatch.setattr(cuda_builds, "waiting_builds", lambda: made)
    return made


def lift(backend: str = "cuda") -> Simulation:
    return Simulation(load_scene("hydraulic_lift").builder.finalize(), 2, backend, config=SolverConfig(dt=1e-3))


@pytest.mark.native
def test_a_simulation_begins_with_quick_builds_and_changes_over(stand_in: Compiler) -> None:
    sim, other = lift(), lift("native")
    assert stand_in.asked and all(stand_in.asked)
    for _ in range(3):
        sim.step(2)
        other.step(2)
    quick = len(stand_in.asked)
    assert quick == len(stand_in.waiting)
    stand_in.cached = True
    for build in stand_in.waiting:
        build.make()
    sim.step(2)
    other.step(2)
    assert stand_in.asked[quick:] == [False] * quick, "each made once more, by the thread"
    assert stand_in.found == quick, "and taken from the cache"
    taken = stand_in.found
    sim.step(2)
    other.step(2)
    assert stand_in.found == taken, "once"
    for name, array in other.state.variables().items():
        np.testing.assert_array_equal(sim.state.variables()[name], array, err_msg=name)


@pytest.mark.native
@pytest.mark.parametrize(
    ("way", "cached", "quick"), [("auto", True, False), ("full", False, False), ("quick", False, True)]
)
def test_nothing_is_made_next_to_where_it_is_not_wanted(
    stand_in: Compiler, monkeypatch: pytest.MonkeyPatch, way: str, cached: bool, quick: bool
) -> None:
    stand_in.cached = cached
    monkeypatch.setenv(ENVIRONMENT, way)
    lift().step()
    assert bool(stand_in.found) == cached and set(stand_in.asked) == (set() if cached else {quick})
    assert not stand_in.waiting


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("shared_build_is_there", [False, True])
def test_many_worlds_change_over_to_a_build_of_their_own_sizes(
    stand_in: Compiler, monkeypatch: pytest.MonkeyPatch, shared_build_is_there: bool
) -> None:
    ready = {False: shared_build_is_there, True: False}
    taken: list[tuple[str, bool]] = []

    def of_model(generated: dict[str, str]) -> bool:
        return "FIXED_n_bodies" in generated["sizes.cuh"]

    def find_cubin(main: str, generated: dict[str, str], *given: Any) -> Path | None:
        if not ready[of_model(generated)]:
            return None
        taken.append(("found", of_model(generated)))
        return build_plain(main, generated, *given)

    def compile_cuda(main: str, generated: dict[str, str], *given: Any, quick: bool = False) -> Path:
        taken.append(("quick" if quick else "full", of_model(generated)))
        return build_plain(main, generated, *given)

    monkeypatch.setattr(cuda_builds, "find_cubin", find_cubin)
    monkeypatch.setattr(cuda_builds, "compile_cuda", compile_cuda)
    monkeypatch.setattr(cuda_builds, "compile_full", compile_cuda)
    sim, other = (many_lifts(backend) for backend in ("cuda", "native"))
    first = ("found" if shared_build_is_there else "quick", False)
    for own in (sim, other):
        own.step(2)
    assert set(taken) == {first} and len(stand_in.waiting) == len(taken)
    taken.clear()
    for build in stand_in.waiting:
        build.make()
    assert set(taken) == {("full", True)}
    ready[True], wanted = True, len(taken)
    taken.clear()
    for own in (sim, other):
        own.step(2)
    assert taken == [("found", True)] * wanted
    for name, array in other.state.variables().items():
        np.testing.assert_array_equal(sim.state.variables()[name], array, err_msg=name)


@pytest.mark.native
@pytest.mark.parametrize("specialize", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_who_decides_on_sizes_gets_no_other_build(stand_in: Compiler, specialize: bool) -> None:
    sim = many_lifts("cuda", specialize=specialize)
    assert isinstance(sim.backend, CudaBackend)
    for variant in (sim.backend._variant("fused.cu"), sim.backend._variant("fused.cu", shared=True)):
        assert variant.full is None and ("FIXED_n_bodies" in variant.generated["sizes.cuh"]) == specialize


def many_lifts(backend: str, **options: Any) -> Simulation:
    model = load_scene("hydraulic_lift").builder.finalize()
    return Simulation(model, SPECIALIZED_FROM, backend, config=SolverConfig(dt=1e-3), **options)


def pile(backend: str = "cuda") -> Simulation:
    return Simulation(load_scene("pile").builder.finalize(), 2, backend, config=SolverConfig(dt=1e-3), launch="fused")


@pytest.mark.nightly
@pytest.mark.native
def test_quick_builds_with_contacts_are_linked_of_parts(stand_in: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "quick")
    asked: list[tuple[str, bool, tuple[str, ...]]] = []
    met = threading.Barrier(2)

    def compile_cuda(main: str, *given: Any, quick: bool = False, options: tuple[str, ...] = ()) -> Path:
        asked.append((main, quick, options))
        if options:
            met.wait(60.0)
        return Path(main) if options else build_plain(main, *given)

    def link(paths: list[Path], arch: str) -> Path:
        assert [path.name for path in paths] == ["fused.cu", "collide.cu"]
        raise LinkError("the driver is too old")

    monkeypatch.setattr(cuda_builds, "compile_cuda", compile_cuda)
    monkeypatch.setattr(cuda_builds, "link_cubins", link)
    monkeypatch.setattr(cuda_builds, "load_linker", lambda: None)
    sim, other = pile(), pile("native")
    assert sorted(asked[:2]) == [
        ("collide.cu", False, (RELOCATABLE, REGISTERS)), ("fused.cu", False, (RELOCATABLE,)),
    ]  # fmt: skip
    assert asked[2] == ("fused.cu", True, ())
    assert isinstance(sim.backend, CudaBackend) and sim.backend.builds.unlinked == "the driver is too old"
    for own in (sim, other):
        own.step(2)
    np.testing.assert_array_equal(sim.state.variables()["position"], other.state.variables()["position"])
    asked.clear()

    def no_linker() -> None:
        raise LinkError("there is no driver")

    monkeypatch.setattr(cuda_builds, "load_linker", no_linker)
    pile()
    assert asked == [("fused.cu", True, ())]
    lift()
    assert asked[1:] == [("fused.cu", True, ())]


def test_an_unknown_way_is_reported(stand_in: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "slow")
    with pytest.raises(ModelError, match=naming("GPUSIM_CUDA_BUILD 'slow'")):
        lift()


def test_full_builds_are_made_one_after_another_and_failures_stay_there() -> None:
    done = threading.Event()
    order: list[str] = []

    def make(name: str, fails: bool = False) -> Callable[[], Path]:
        def made() -> Path:
            order.append(name)
            if fails:
                raise CompileError("the disk is full")
            return Path(name)

        return made

    def no_process() -> Path:
        raise OSError("no more processes")

    first, broken = BackgroundBuild(make("first")), BackgroundBuild(make("broken", fails=True))
    stuck = BackgroundBuild(no_process)
    last = BackgroundBuild(lambda: (done.set(), Path("last"))[1])
    for build in (first, broken, stuck, last):
        background_builds.waiting_builds().put(build)
    assert done.wait(30.0)
    assert order == ["first", "broken"]
    assert first.path == Path("first") and broken.path is None and stuck.path is None
    assert first.ended and broken.ended and stuck.ended


@pytest.mark.nightly
@pytest.mark.native
def test_builds_that_fail_keep_no_other_waiting(stand_in: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    sim = Simulation(load_scene("pile").builder.finalize(), 1, "cuda", config=SolverConfig(dt=1e-3), launch="staged")
    assert isinstance(sim.backend, CudaBackend)
    assert len(stand_in.waiting) == 2
    stand_in.waiting[0].make()
    assert not sim.backend.builds.arrived()

    def fail(*given: Any) -> Path:
        raise CompileError("the disk is full")

    monkeypatch.setattr(cuda_builds, "compile_full", fail)
    stand_in.waiting[1].make()
    assert sim.backend.builds.arrived() and not sim.backend.builds.arrived()


@pytest.mark.messages_vary  # NVRTC's words
def test_full_builds_are_made_by_a_process_of_their_own(
    nvrtc_12: Nvrtc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GPUSIM_CACHE", str(tmp_path))
    given = "k.cu", {"k.cu": 'extern "C" __global__ void k(double* x) { x[0] = OWN; }'}, {"OWN": "2.0"}, "sm_90", False
    path = cuda_builds.compile_full(*given)
    assert path.is_relative_to(tmp_path) and compiler.find_cubin(*given) == path
    with pytest.raises(CompileError, match=naming("k.cu sm_90 OWN")):
        cuda_builds.compile_full(*given[:2], {}, *given[3:])


def test_a_process_ends_well_next_to_a_full_build(nvrtc_12: Nvrtc, tmp_path: Path) -> None:
    text = (
        "import time\n"
        "from gpusim.backends import background_builds as f\n"
        "from gpusim.backends.cuda.builds import compile_full\n"
        "source = 'extern \"C\" __global__ void k(double* x) { x[0] = 2.0; }'\n"
        "given = 'k.cu', {'k.cu': source}, {}, 'sm_90', False\n"
        "f.waiting_builds().put(f.BackgroundBuild(lambda: compile_full(*given)))\n"
        "time.sleep(0.2)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=os.environ | {"GPUSIM_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_quick_and_full_builds_lie_next_to_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[list[str]] = []

    class Nvrtc:
        name, version, archs = "NVRTC of a test", (12, 9), (90,)

        def compile(self, main: str, sources: dict[str, str], options: list[str]) -> Compiled:
            asked.append(options)
            return Compiled(b"cubin", "")

    monkeypatch.setenv("GPUSIM_CACHE", str(tmp_path))
    monkeypatch.setattr(compiler, "load_nvrtc", lambda: Nvrtc)
    monkeypatch.setattr(Nvrtc, "compile", Nvrtc().compile)
    given = "k.cu", {"k.cu": "__global__ void k() {}"}, {}, "sm_90"
    quick = compiler.compile_cuda(*given, quick=True)
    assert compiler.find_cubin(*given) is None
    full = compiler.compile_cuda(*given)
    assert quick != full and compiler.find_cubin(*given) == full
    assert [compiler.QUICK in options for options in asked] == [True, False]
    monkeypatch.setattr(Nvrtc, "version", (12, 4))
    assert compiler.compile_cuda(*given, quick=True) == full and len(asked) == 2
