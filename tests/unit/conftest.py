"""Fixtures of several files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gpusim.backends.cuda import builds as cuda_builds
from gpusim.backends.cuda.nvrtc import Nvrtc, NvrtcMissingError, load_nvrtc
from tests.builds import build_plain
from tests.unit import fake_cupy


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("GPUSIM_CACHE", str(folder))
    return folder


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(main: str, generated: dict[str, str], defines: dict[str, str], arch: str, fast: bool, quick: bool) -> Any:
        assert arch == "sm_90" and not fast
        return build_plain(main, generated, defines)

    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setattr(cuda_builds, "compile_cuda", build)
    monkeypatch.setenv("GPUSIM_CUDA_BUILD", "full")
    monkeypatch.setattr("gpusim.backends.load_nvrtc", lambda: None)


@pytest.fixture
def nvrtc_12() -> Nvrtc:
    try:
        return load_nvrtc(12)
    except NvrtcMissingError:
        pytest.skip('NVRTC 12 is not installed; pip install "nvidia-cuda-nvrtc-cu12<13"')
