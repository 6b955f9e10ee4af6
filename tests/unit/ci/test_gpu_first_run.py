from __future__ import annotations

import ctypes
import importlib
import importlib.util
import itertools
import json
import shutil
import subprocess
import time
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ci.cards import CARDS
from ci.peers import peers
from gpusim.backends.codegen.kernel_sources import kernel_sources
from gpusim.backends.cuda import nvrtc
from gpusim.bench import machine, runner, workloads
from gpusim.bench.runner import Options, Record, run_cases
from gpusim.bench.workloads import Case, scene_builder
from tests.unit import fake_cupy

CI = Path(__file__).parents[3] / "ci"
LIFT = Case("many_worlds", "lift", partial(scene_builder, "hydraulic_lift"), 3)


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, CI / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gpu_check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(CI))
    return script("gpu_check")


@pytest.mark.usefixtures("stand_in")
def test_the_name_of_a_card_comes_from_names_that_cupy_has() -> None:
    names = fake_cupy.Device.attributes
    assert len(names) == 108 and "ComputeCapabilityMajor" not in names
    assert machine.gpu_name() == "NVIDIA H100"


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.usefixtures("stand_in")
def test_the_bench_step_runs(gpu_check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "WORKLOADS", {"many_worlds": workloads.Workload("", lambda quick: iter([LIFT] * 2))})
    monkeypatch.setattr(peers, "run_peers", lambda *unused: [])
    options = Namespace(out=tmp_path, backend="cuda", quick=True, workloads="many_worlds")
    left: list[dict[str, Any]] = []
    result = gpu_check.step_bench(options, time.monotonic() + 600.0, left.append)
    assert result["failed"] == "" and [r["step_us"] > 0.0 for r in result["bench"]["results"]] == [True, True]
    assert [len(one["bench"]["results"]) for one in left[:2]] == [1, 2]
    assert result["bench"]["machine"]["gpu"] == "NVIDIA H100"


def test_one_case_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_case(case: Case, model: Any, backend: str, options: Options, record: Record) -> None:
        if case.worlds == 3:
            raise KeyError("ComputeCapabilityMajor")
        record.step_us = 1.0

    monkeypatch.setattr(runner, "run_case", run_case)
    cases, done = [LIFT, Case("many_worlds", "lift", LIFT.build, 4)], list[Record]()
    records = run_cases(cases, Options("numpy"), lambda line: None, done=done.append)
    assert records == done and "ComputeCapabilityMajor" in records[0].error
    assert records[1].step_us == 1.0 and not records[1].error


def test_nsight_compute_leaves_the_clocks_alone(gpu_check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    profile, commands = importlib.import_module("gpu_profile"), []

    def run(command: list[str], **unused: Any) -> Any:
        commands.append(command)
        return SimpleNamespace(stdout="", stderr="", returncode=0)

    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(subprocess, "run", run)
    assert "skipped" in profile.nsight(1.0)
    at = commands[0].index("--clock-control")
    assert commands[0][0] == "ncu" and commands[0][at + 1] == "none"


@pytest.mark.native
def test_builds_of_first_launches_and_benchmarks_come_first(
    gpu_check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list(gpu_check.STEPS)
    assert steps.index("compile") < steps.index("launch") < steps.index("bench") < steps.index("compile_rest")
    assert steps.index("compile_rest") < steps.index("bits")
    walker, later = gpu_check.LAUNCHES[0], ("walker", "float64", "colored", "staged")
    monkeypatch.setattr(gpu_check, "bench_builds", lambda quick: [SimpleNamespace(name="timed")])
    wanted = gpu_check._builds_to_compile(Namespace(quick=False, backend="cuda"), [walker, later], "sm_90", bench=True)
    kinds = [
        "timed" if v.name == "timed" else "native" if a == "native" else "first" if walker in c else "rest"
        for a, v, c in wanted
    ]
    groups = [kind for kind, _ in itertools.groupby(kinds)]
    assert groups == ["first", "timed", "native", "rest"]


def test_slow_scenes_are_compared_last(gpu_check: ModuleType) -> None:
    from gpu_cases import SLOW

    from gpusim.scene import list_scenes

    cases = gpu_check.all_cases()
    slow = [case[0] in SLOW for case in cases[len(gpu_check.LAUNCHES) :]]
    assert set(SLOW) <= set(list_scenes()) and slow == sorted(slow) and any(slow)
    assert cases[: len(gpu_check.LAUNCHES)] == list(gpu_check.LAUNCHES)


@pytest.mark.native
def test_a_case_of_bits_ends_in_time(gpu_check: ModuleType) -> None:
    case = "slope", "float64", "direct", "fused"
    assert gpu_check._compare(case, "native", 40, limit=-1.0) == "same in 10 of 40 steps"
    assert gpu_check._compare(case, "native", 40, limit=600.0) == "same"
    rows = [{"case": "a", "result": "same in 10 of 40 steps"}, {"case": "b", "result": "same"}]
    bits = {"cases": rows, "steps": 40, "worlds": 3, "left_out": [], "failed": "", "seconds": 1.0}
    assert "2 runs of 40 steps in 3 worlds; 1 with fewer steps" in gpu_check.markdown({"bits": bits})


def test_builds_are_listed_for_a_whole_card(gpu_check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = importlib.import_module("gpu_cases")
    monkeypatch.setattr(cases, "why_missing", lambda backend: "no GPU")
    before = fake_cupy.Device.attributes["MultiProcessorCount"]
    with cases.Builds().instead("cuda"):
        own = cases.simulation_of(("walker", "float32", "direct", "fused"), "cuda", 8192)[0].backend
        assert own._processors == CARDS["h100"].gpu.processors == 132
        assert own._shape.tiles > 132 and "slab" not in own.memory.arrays
    assert fake_cupy.Device.attributes["MultiProcessorCount"] == before


def test_the_builtins_of_nvrtc_are_loaded_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, Any]] = []

    def load(path: str, mode: int = ctypes.DEFAULT_MODE) -> Any:
        loaded.append((Path(path).name, mode))
        if "builtins" not in Path(path).name:
            raise OSError("enough")

    names = "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.setattr(ctypes, "CDLL", load)
    for path in (str(tmp_path / names[0]), names[0]):
        with pytest.raises(OSError, match="enough"):
            nvrtc.LibraryNvrtc(path)
    assert loaded == [(names[1], ctypes.RTLD_GLOBAL), (names[0], ctypes.DEFAULT_MODE), (names[0], ctypes.DEFAULT_MODE)]


def test_blocks_do_not_wait_for_ever() -> None:
    assert "__trap()" in kernel_sources()["tickets.cuh"]


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("shared", [232448, 1024])
def test_preflight(
    shared: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(fake_cupy.Device.attributes, "MaxSharedMemoryPerBlockOptin", shared)
    monkeypatch.setattr(fake_cupy.Function, "_caps", {})
    monkeypatch.setenv("OUT", str(tmp_path))
    case = replace(LIFT, worlds=6, config={"dt": 1e-3}, restart=50)
    assert script("gpu_preflight").main([case]) == 0
    found = json.loads((tmp_path / "preflight.json").read_text())
    assert found["machine"]["gpu"] == "NVIDIA H100" and found["machine"]["compute_capability"] == "90"
    assert found["attributes"]["MultiProcessorCount"] == 4 and 0.0 <= found["difference"] < 1e-6
    shapes = {shape.partition("worlds, ")[2] for shape in found["ns"]}
    assert {"4 lanes, 16 warps", "32 lanes, 16 warps"} <= shapes and all(ns > 0.0 for ns in found["ns"].values())
    assert ("4 lanes, 4 warps" in shapes) == (shared == 1024)
    assert "cuda against NumPy" in capsys.readouterr().out


def test_preflight_looks_at_what_the_benchmarks_time() -> None:
    names = [(case.name, case.worlds) for case in script("gpu_preflight").first_cases()]
    assert names[0] == ("boom with cylinder", 8192) and ("humanoid lying", 8192) in names
