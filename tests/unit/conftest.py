"""Fixtures of several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusim.backends.nvrtc import Nvrtc, NvrtcMissingError, load_nvrtc


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("GPUSIM_CACHE", str(folder))
    return folder


@pytest.fixture
def nvrtc_12() -> Nvrtc:
    try:
        return load_nvrtc(12)
    except NvrtcMissingError:
        pytest.skip('NVRTC 12 is not installed; pip install "nvidia-cuda-nvrtc-cu12<13"')
