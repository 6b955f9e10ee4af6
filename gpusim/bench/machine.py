"""Description of the computer and the software, for the header of a report."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "numpy",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "mujoco",
    "mujoco-warp",
    "warp-lang",
    "newton",
    "pybullet",
    "rapier3d",
)


def describe() -> dict[str, Any]:
    """Return a description of the computer and the software, for the header of a report."""
    from gpusim import __version__

    facts: dict[str, Any] = {
        "gpusim": __version__,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "cores": available_cores(),
        "compiler": compiler_name(),
        "gpu": gpu_name(),
    }
    return facts | {name: found for name in PACKAGES if (found := package_version(name))}


def commit() -> str:
    """Return the git commit, or an empty string outside a checkout. A "+" at the end means that files have changed."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    head = _output(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"])
    changed = _output(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"])
    return head + ("+" if head and changed else "")


def cpu_name() -> str:
    """Return the model name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return _output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.processor() or platform.machine()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiler_name() -> str:
    """Return the first line of the version text of the C++ compiler, or an empty string."""
    from gpusim.backends.native.compile import find_compiler
    from gpusim.errors import GpusimError

    try:
        return _output([find_compiler(), "--version"]).partition("\n")[0]
    except GpusimError:
        return ""


def gpu_name() -> str:
    """Return the name of the GPU that CuPy finds, or an empty string."""
    try:
        import cupy

        name = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    except Exception:  # CuPy raises its own errors if the driver is missing
        return ""
    return name.decode() if isinstance(name, bytes) else str(name)


def package_version(name: str) -> str:
    """Return the version of an installed Python package, or an empty string."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
