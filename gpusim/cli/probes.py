"""What ``gpusim doctor`` looks for on a computer: one small function for each thing."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

_PACKAGES = ("numpy", "numba", "scipy", "matplotlib")
_COMPILERS = ("g++", "clang++", "c++")
_CUPY_DISTRIBUTIONS = ("cupy-cuda12x", "cupy-cuda13x", "cupy")


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        name: what was looked for.
        good: it is there and works.
        detail: version or path; or what is missing, what for, and the mend.
    """

    name: str
    good: bool
    detail: str


def probe_computer() -> list[Finding]:
    """Everything that gpusim needs or can use here."""
    return [
        probe_python(),
        *(probe_package(name) for name in _PACKAGES),
        probe_compiler(),
        probe_driver(),
        probe_cupy(),
        probe_egl(),
        probe_urdf(),
    ]


def probe_python() -> Finding:
    """The interpreter."""
    return Finding("Python", sys.version_info >= (3, 10), f"{platform.python_version()} at {sys.executable}")


def probe_package(name: str) -> Finding:
    """A package that gpusim cannot run without: imported, because versions that don't fit fail only then."""
    try:
        module = importlib.import_module(name)
    except Exception as error:
        return Finding(name, False, f"{type(error).__name__}: {error}; pip install --upgrade {name}")
    return Finding(name, True, str(getattr(module, "__version__", "")))


def probe_compiler() -> Finding:
    """A C++ compiler, for the native backend."""
    for command in filter(None, (os.environ.get("CXX"), *_COMPILERS)):
        path = shutil.which(command)
        first_line = _first_line([path, "--version"]) if path else ""
        if first_line:
            return Finding("C++ compiler", True, f"{first_line} at {path}")
    return Finding("C++ compiler", False, "for the native backend; install g++ or clang, or name one in CXX")


def probe_driver() -> Finding:
    """An NVIDIA GPU and its driver, for the cuda backend."""
    command = shutil.which("nvidia-smi")
    query = "--query-gpu=name,driver_version,memory.total"
    first_line = _first_line([command, query, "--format=csv,noheader"]) if command else ""
    if first_line:
        return Finding("NVIDIA driver", True, first_line)
    return Finding("NVIDIA driver", False, "for the cuda backend; needs an NVIDIA GPU and its driver")


def probe_cupy() -> Finding:
    """CuPy and the devices that it sees, for the cuda backend."""
    try:
        cupy = importlib.import_module("cupy")
        devices = cupy.cuda.runtime.getDeviceCount()
    except ImportError:
        return Finding("cupy", False, 'for the cuda backend; pip install "gpusim[cuda12]" or "gpusim[cuda13]"')
    except Exception as error:  # cupy raises its own errors, which can't be named where it is not installed
        return Finding("cupy", False, f"{_cupy_version()} sees no GPU ({error})")
    return Finding("cupy", devices > 0, f"{_cupy_version()} sees {devices} GPU(s)")


def probe_egl() -> Finding:
    """The EGL library, with which the viewer draws where there is no screen."""
    name = ctypes.util.find_library("EGL") or "libEGL.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        return Finding("EGL", False, "for drawing without a screen; install libegl1 (Debian) or mesa-libEGL (Fedora)")
    return Finding("EGL", True, name)


def probe_urdf() -> Finding:
    """The packages that read URDF files."""
    try:
        return Finding("URDF reader", True, f"yourdfpy {installed_version('yourdfpy')}")
    except PackageNotFoundError:
        return Finding("URDF reader", False, 'for robot files; pip install "gpusim[urdf]"')


def _cupy_version() -> str:
    for name in _CUPY_DISTRIBUTIONS:
        try:
            return installed_version(name)
        except PackageNotFoundError:
            continue
    return "of unknown version"


def _first_line(command: list[str]) -> str:
    """First line that ``command`` prints; empty if it fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.splitlines()
    return lines[0].strip() if lines else ""
