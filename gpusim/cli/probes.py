"""What ``gpusim doctor`` looks for on a computer: one small function for each thing."""

from __future__ import annotations

import ctypes
import importlib
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

from gpusim.backends.compile import CompileError, build_native, cache_folder, find_compiler
from gpusim.backends.native_backend import thread_count
from gpusim.backends.nvrtc import load_nvrtc
from gpusim.backends.requirements import LEAST, version_key
from gpusim.cli.mends import CUDA_12, cupy_packages, driver_cuda_version, has_nvidia_card, install, mend_cuda

_PACKAGES = ("numpy", "numba", "scipy", "matplotlib", "ruamel.yaml", "typer")
_OPENMP_PROBE = """\
#ifdef _OPENMP
#include <omp.h>
extern "C" int threads() { return omp_get_max_threads(); }
#else
extern "C" int threads() { return 0; }
#endif
"""


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        name: what was looked for.
        good: it is there and works.
        detail: version or path; or what is missing and what for.
        mend: the command that mends it; empty if it is good or no command does.
    """

    name: str
    good: bool
    detail: str
    mend: str = ""


def probe_computer() -> list[Finding]:
    """Everything that gpusim needs or can use here."""
    return [
        probe_python(),
        *(probe_package(name) for name in _PACKAGES),
        probe_compiler(),
        probe_openmp(),
        probe_cache(),
        probe_driver(),
        probe_cupy(),
        probe_nvrtc(),
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
        return Finding(name, False, f"{type(error).__name__}: {error}", f"pip install --upgrade {name}")
    found, least = str(getattr(module, "__version__", "")), LEAST.get(name, "0")
    if version_key(found) < version_key(least):
        return Finding(name, False, f"{found} is older than {least}", f'pip install --upgrade "{name}>={least}"')
    return Finding(name, True, found)


def probe_compiler() -> Finding:
    """A C++ compiler, for the native backend."""
    try:
        path = find_compiler()
    except CompileError as error:
        return Finding("C++ compiler", False, f"for the native backend; {error}", install("compiler"))
    first_line = _first_line([path, "--version"])
    if not first_line:
        return Finding("C++ compiler", False, f"{path} does not run; name another one in CXX", install("compiler"))
    return Finding("C++ compiler", True, f"{first_line} at {path}")


def probe_openmp() -> Finding:
    """OpenMP, with which the native backend uses all cores: a tiny library is built as the kernels are."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library = ctypes.CDLL(str(build_native("openmp_probe.cu", {"openmp_probe.cu": _OPENMP_PROBE}, {})))
        threads = library.threads()
    except (CompileError, OSError) as error:
        return Finding("OpenMP", False, f"for all cores in the native backend; not found out: {error}")
    if threads == 0:
        what = "for all cores in the native backend; the compiler has none, so it runs on one"
        return Finding("OpenMP", False, what, install("openmp"))
    return Finding("OpenMP", True, f"{threads} threads; the native backend takes {thread_count()}")


def probe_cache() -> Finding:
    """The folder of compiled kernels."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (CompileError, OSError) as error:
        what = f"for compiled kernels; {error}"
        return Finding("cache folder", False, what, "export GPUSIM_CACHE=FOLDER (one that can be written)")
    return Finding("cache folder", True, str(folder))


def probe_driver() -> Finding:
    """An NVIDIA GPU and its driver, for the cuda backend."""
    version = driver_cuda_version()
    serves = f"CUDA {version // 1000}.{version % 1000 // 10}" if version else ""
    command = shutil.which("nvidia-smi")
    query = "--query-gpu=name,driver_version,memory.total"
    first_line = _first_line([command, query, "--format=csv,noheader"]) if command else ""
    if first_line or version >= CUDA_12:
        old = "; too old: CUDA 12 or newer is needed" if 0 < version < CUDA_12 else ""
        detail = ", ".join(filter(None, (first_line, serves))) + old
        return Finding("NVIDIA driver", not old, detail, mend_cuda(version) if old else "")
    what = "the card has no driver" if has_nvidia_card() else "there is no NVIDIA GPU"
    return Finding("NVIDIA driver", False, f"for the cuda backend; {what}", mend_cuda(0))


def probe_cupy() -> Finding:
    """CuPy and the devices that it sees, for the cuda backend."""
    try:
        cupy = importlib.import_module("cupy")
        devices = cupy.cuda.runtime.getDeviceCount()
    except ImportError:
        what = "for the cuda backend; gpusim[cuda12] or gpusim[cuda13], whichever the driver serves"
        return Finding("cupy", False, what, mend_cuda())
    except Exception as error:  # cupy raises its own errors, which can't be named where it is not installed
        return Finding("cupy", False, f"{_cupy_version()} sees no GPU ({error})", mend_cuda())
    return Finding("cupy", devices > 0, f"{_cupy_version()} sees {devices} GPU(s)")


def probe_nvrtc() -> Finding:
    """NVRTC, which compiles the kernels for the cuda backend."""
    try:
        return Finding("NVRTC", True, load_nvrtc().name)
    except CompileError as error:
        return Finding("NVRTC", False, f"for the cuda backend; {error}", mend_cuda())


def probe_urdf() -> Finding:
    """The packages that read URDF files."""
    try:
        return Finding("URDF reader", True, f"yourdfpy {installed_version('yourdfpy')}")
    except PackageNotFoundError:
        return Finding("URDF reader", False, "for robot files", 'pip install "gpusim[urdf]"')


def _cupy_version() -> str:
    found = cupy_packages()
    return f"{found[0]} {installed_version(found[0])}" if found else "CuPy of unknown version"


def _first_line(command: list[str]) -> str:
    """First line that ``command`` prints; empty if it fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.splitlines()
    return lines[0].strip() if lines else ""
