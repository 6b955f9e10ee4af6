from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ci.peers import peers
from gpusim.bench import runner, workloads
from gpusim.bench.runner import Record

CI = Path(__file__).parents[2] / "ci"


@pytest.fixture
def gpu_check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(CI))
    spec = importlib.util.spec_from_file_location("gpu_check", CI / "gpu_check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(out: Path, **others: Any) -> Namespace:
    return Namespace(**{"out": out, "backend": "native", "few": True, "limit": 600.0, "step": "launch", **others})


@pytest.mark.nightly
@pytest.mark.native
def test_launches(gpu_check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = gpu_check.step_launch(options(tmp_path))
    assert result["failed"] == "" and not result["left_out"]
    assert [row["result"] for row in result["cases"]] == ["same"] * 3
    assert "two live simulations: boom_crane, flyball: same" in capsys.readouterr().out


@pytest.mark.native
def test_cases_without_a_build_or_a_package(
    gpu_check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [" ".join(case) for case in gpu_check.LAUNCHES]
    (tmp_path / "gpu_check.json").write_text(json.dumps({"compile": {"unready": names}}))
    result = gpu_check.step_launch(options(tmp_path, few=False))
    two = [f"two live simulations: {pair}" for pair in ("walker, robot", "boom_crane, flyball")]
    assert result["left_out"] == [*names, *two] and "not compiled in time" in result["failed"]
    monkeypatch.setitem(sys.modules, "gpusim.scenes.mechanisms.dc_motor_rig", None)
    case = "dc_motor_rig", "float32", "direct", "fused"
    assert gpu_check._compare(case, "native", 10).startswith("skipped: ")
    assert gpu_check._compare(("nowhere", *case[1:]), "native", 10).startswith("UnknownNameError")


@pytest.mark.parametrize("backend", ["cuda", pytest.param("native", marks=pytest.mark.native)])
def test_builds_are_known_before_they_are_compiled(gpu_check: ModuleType, backend: str) -> None:
    launches = gpu_check.LAUNCHES
    cases = [("walker", "float64", "direct", "fused"), launches[0], *launches[2:6:2], launches[1]]
    builds = gpu_check.builds_of(cases, backend)
    signals = [variant.name for variant, _ in builds if variant.main == "signals.cu"]
    assert len(signals) == (2 if backend == "cuda" else 0) == len(set(signals))
    builds = [build for build in builds if build[0].main != "signals.cu"]
    names = [variant.name for variant, _ in builds]
    shapes = "with contacts" if backend == "cuda" else "with triangle meshes"  # general kernels have all shapes
    assert names[0].startswith(f"fused direct float32 in float64 {shapes}") and builds[0][1] == cases[1:3]
    assert names[-1].startswith(f"fused direct float64 {shapes}")
    assert len(names) == (5 if backend == "cuda" else 4) == len(set(names))


def test_the_report(gpu_check: ModuleType) -> None:
    launch = {"cases": [{"case": "a", "result": "same"}], "left_out": [], "failed": "", "seconds": 1.0}
    results = {"launch": launch, "sanitize": {"skipped": "needs a GPU", "failed": "", "seconds": 0.1}}
    text = gpu_check.markdown(results | {"bits": {"failed": "slope: x | y", "seconds": 2.0}})
    assert "| launch | passed | 1.0 | 1 cases |" in text and "| sanitize | skipped | 0.1 | needs a GPU |" in text
    assert "| bits | failed | 2.0 | slope: x / y |" in text


def measured(workload: str, case: str, worlds: int, dtype: str = "float32") -> Record:
    return Record(workload, case, worlds, dtype=dtype, world_steps=1e6)


def test_benchmarks_begin_with_the_humanoid_and_end_in_time(
    gpu_check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def run_cases(cases: Any, chosen: Any, tell: Any, enough: Any, done: Any) -> list[Record]:
        assert [case.worlds for case in cases] == sorted((case.worlds for case in cases), reverse=True)
        begun.append(cases[0].workload)
        if begun.count("many_worlds"):
            monkeypatch.setattr(time, "monotonic", lambda: 1e9)
        return [measured(cases[0].workload, "x", 1)]

    monkeypatch.setattr(runner, "run_cases", run_cases)
    monkeypatch.setattr(
        peers, "run_peers", lambda chosen, tell, names, enough: begun.append(f"peers of {names[0]}") or []
    )
    left: list[dict[str, Any]] = []
    end = time.monotonic() + 600.0
    result = gpu_check.step_bench(options(tmp_path, step="bench", quick=True, workloads=""), end, left.append)
    assert begun == ["humanoid", "peers of humanoid", "many_worlds"]
    assert result["left_out"] == ["many_worlds (perhaps not all)", "latency", "rows", "joint_grid"]
    assert result["failed"] == "" and "Left out" in result["table"]
    assert [one["failed"] for one in left] == ["not finished"] * len(begun)


@pytest.mark.nightly
@pytest.mark.native
def test_where_time_goes(gpu_check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = importlib.import_module("gpu_profile")
    case = workloads.Case("x", "lift", partial(workloads.scene_builder, "hydraulic_lift"), 2)
    wrong = replace(case, name="wrong", launch="sideways")
    cases = [case, replace(case, name="big", worlds=1, launch="staged"), wrong]
    monkeypatch.setattr(profile, "profiled_cases", lambda quick: cases)
    left: list[dict[str, Any]] = []
    own = options(tmp_path, quick=True)
    report = gpu_check.step_profile(own, time.monotonic() + 600.0, left.append)
    assert [found.get("launch") for found in report["cases"].values()] == ["fused", None, "staged"]
    assert report["failed"].startswith("wrong, 2 worlds: UnknownNameError") and len(left) == 3
    assert report["nsight"] == {"skipped": "needs a GPU"}
    lines = gpu_check.markdown({"profile": report | {"seconds": 1.0, "failed": ""}}).splitlines()
    assert "| profile | passed | 1.0 | 3 cases; Nsight Compute: needs a GPU |" in lines
    assert any(line.startswith("- fused, ") and " us a step: lift, 2 worlds float32: solve " in line for line in lines)
    late = gpu_check.step_profile(own, time.monotonic() - 1.0, left.append)
    assert late["failed"] == "" and all(found == {"error": "no time"} for found in late["cases"].values())


def test_what_is_profiled_has_most_worlds(gpu_check: ModuleType) -> None:
    profile = importlib.import_module("gpu_profile")
    cases = profile.profiled_cases(False)
    assert [(case.workload, case.worlds) for case in cases] == [
        ("many_worlds", 8192), ("many_worlds", 8192), ("humanoid", 8192), ("pile_100000", 1),
    ]  # fmt: skip


def test_metrics_of_nsight_compute(gpu_check: ModuleType) -> None:
    profile = importlib.import_module("gpu_profile")
    head = '"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"'
    own = '"0","run_worlds",'
    lines = [
        "==PROF== Connected to process 12", head, own + '"GPU Speed Of Light Throughput","Duration","us","1,234.5",""',
        own + '"Occupancy","Achieved Occupancy","%","42.1",""', own + '"Occupancy","","","","Rule"',
    ]  # fmt: skip
    assert profile.read_metrics(lines) == {
        "GPU Speed Of Light Throughput: Duration": "1,234.5 us", "Occupancy: Achieved Occupancy": "42.1 %",
    }  # fmt: skip
    assert profile.read_metrics(["==ERROR== ERR_NVGPUCTRPERM"]) == {}


def test_builds_of_benchmarks_have_their_models_sizes(gpu_check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = importlib.import_module("gpu_profile")
    case = workloads.Case("many_worlds", "lift", partial(workloads.scene_builder, "hydraulic_lift"), 512)
    monkeypatch.setattr(profile, "PROFILED", {"many_worlds": ("lift",)})
    monkeypatch.setattr(workloads, "WORKLOADS", {"many_worlds": workloads.Workload("", lambda quick: iter([case]))})
    usual, clocked = gpu_check.bench_builds(False)
    assert "FIXED_n_bodies" in usual.generated["sizes.cuh"] and clocked.name == f"{usual.name}, clocked"
