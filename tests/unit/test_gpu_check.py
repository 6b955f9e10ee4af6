"""The checks for a machine with a GPU, ci/gpu_check.py, as far as they go without one."""

from __future__ import annotations

import importlib.util
import json
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

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


@pytest.mark.native
def test_launches(gpu_check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of models with joints and contacts, and of two simulations in turn."""
    result = gpu_check.step_launch(options(tmp_path))
    assert result["failed"] == "" and not result["left_out"]
    assert [row["result"] for row in result["cases"]] == ["same"] * 3
    assert "two live simulations: boom_crane, flyball: same" in capsys.readouterr().out


@pytest.mark.native
def test_cases_without_a_build_or_a_package(
    gpu_check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Are left out or skipped, and told; launches that are what the check is for fail it."""
    names = [" ".join(case) for case in gpu_check.LAUNCHES]
    (tmp_path / "gpu_check.json").write_text(json.dumps({"compile": {"unready": names}}))
    result = gpu_check.step_launch(options(tmp_path, few=False))
    two = [f"two live simulations: {pair}" for pair in ("walker, robot", "boom_crane, flyball")]
    assert result["left_out"] == [*names, *two] and "not compiled in time" in result["failed"]
    monkeypatch.setitem(sys.modules, "gpusim.scenes.dc_motor_rig", None)
    case = "dc_motor_rig", "float32", "direct", "fused"
    assert gpu_check._compare(case, "native", 10).startswith("skipped: ")
    assert gpu_check._compare(("nowhere", *case[1:]), "native", 10).startswith("UnknownNameError")


@pytest.mark.parametrize("backend", ["cuda", pytest.param("native", marks=pytest.mark.native)])
def test_builds_are_known_before_they_are_compiled(gpu_check: ModuleType, backend: str) -> None:
    """And those of LAUNCHES come first; on a GPU a staged model has two, and each type of numbers one for signals."""
    launches = gpu_check.LAUNCHES
    cases = [("walker", "float64", "direct", "fused"), launches[0], *launches[2:6:2], launches[1]]
    builds = gpu_check.builds_of(cases, backend)
    signals = [variant.name for variant, _ in builds if variant.main == "signals.cu"]
    assert len(signals) == (2 if backend == "cuda" else 0) == len(set(signals))
    builds = [build for build in builds if build[0].main != "signals.cu"]
    names = [variant.name for variant, _ in builds]
    assert names[0].startswith("fused direct float32 in float64 with contacts") and builds[0][1] == cases[1:3]
    assert names[-1].startswith("fused direct float64 with contacts")
    assert len(names) == (5 if backend == "cuda" else 4) == len(set(names))


def test_the_report(gpu_check: ModuleType) -> None:
    """A line a step: failed, skipped or passed."""
    launch = {"cases": [{"case": "a", "result": "same"}], "left_out": [], "failed": "", "seconds": 1.0}
    results = {"launch": launch, "sanitize": {"skipped": "needs a GPU", "failed": "", "seconds": 0.1}}
    text = gpu_check.markdown(results | {"bits": {"failed": "slope: x | y", "seconds": 2.0}})
    assert "| launch | passed | 1.0 | 1 cases |" in text and "| sanitize | skipped | 0.1 | needs a GPU |" in text
    assert "| bits | failed | 2.0 | slope: x / y |" in text
