"""Probes of ``gpusim doctor``: tests of the computer's software and hardware.

Child processes test the display and the renderer, because a graphics driver may crash.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gpusim.backends.cuda.link import LIBRARIES
from gpusim.backends.cuda.nvrtc import load_nvrtc
from gpusim.backends.native.backend import thread_count
from gpusim.backends.native.compile import build_native, find_compiler
from gpusim.backends.requirements import MIN_VERSIONS, version_key
from gpusim.compile_cache import CompileError, cache_folder

TIMEOUT = 60.0
"""Wall time limit of a child process, s."""
CUDA_12, CUDA_13 = 12000, 13000
"""CUDA versions as the driver reports them: 13000 is CUDA 13.0."""
_REFUSED = 3
"""Exit code of a child process that has printed why the probe failed."""
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_COMPILER = "install g++ or clang++, or set CXX"
_OPENMP_PROBE = """\
#ifdef _OPENMP
#include <omp.h>
extern "C" int threads() { return omp_get_max_threads(); }
#else
extern "C" int threads() { return 0; }
#endif
"""
_DISPLAY_CODE = f"""
import glfw
glfw.ERROR_REPORTING = False
if not glfw.init():
    reason = glfw.get_error()[1]
    print(reason.decode(errors="replace") if reason else "glfw gives no reason")
    raise SystemExit({_REFUSED})
monitor = glfw.get_primary_monitor()
mode = glfw.get_video_mode(monitor) if monitor else None
print(f"{{mode.size.width}} x {{mode.size.height}} at {{mode.refresh_rate}} Hz" if mode else "no monitor")
"""
_PICTURE_CODE = f"""
import gpusim
from gpusim.viewer import Offscreen
from gpusim.viewer.gl.context import OffscreenContext
builder = gpusim.ModelBuilder()
builder.add_shape_sphere(builder.add_body(), 0.5)
try:
    context = OffscreenContext()
    major, minor = context.version
    context.close()
    with Offscreen(builder.finalize(), width=64, height=64) as eye:
        drawn = eye.image()
        print(f"OpenGL {{major}}.{{minor}} core, {{eye.renderer_name}}, quality {{eye.quality.name}}")
except gpusim.GpusimError as error:
    print(error)
    raise SystemExit({_REFUSED})
if drawn.min() == drawn.max():
    print("the picture of a ball is empty; update the graphics driver")
    raise SystemExit({_REFUSED})
"""

READERS = (
    ("mujoco", "MJCF files", "mjcf", ""),
    ("yourdfpy", "URDF files", "urdf", ""),
    ("trimesh", "mesh files", "urdf", ""),
    ("xacro", "xacro files", "xacro", ""),
    ("usd-core", "USD files", "usd", "pxr.Usd"),
    ("coacd", "convex parts of concave meshes", "decompose", ""),
    ("pillow", "terrain from PNG files", "terrain", "PIL.Image"),
    ("tifffile", "terrain from GeoTIFF files", "terrain", ""),
)
"""Packages that read files: (distribution, purpose, extra, module)."""


@dataclass(frozen=True)
class Finding:
    """Result of one probe: one line of the doctor's report.

    Attributes:
        name: the component that was probed.
        good: whether the component works.
        detail: version or path, or the problem.
        hint: how to fix the problem. Empty if the component works.
    """

    name: str
    good: bool
    detail: str
    hint: str = ""


def probe_computer() -> list[Finding]:
    """Check all software and hardware that ``gpusim run`` needs or can use."""
    python = Finding("Python", sys.version_info >= (3, 10), f"{platform.python_version()} at {sys.executable}")
    packages = [probe_package(name) for name in MIN_VERSIONS]
    others = [probe_compiler(), probe_openmp(), probe_cache(), probe_driver(), probe_cupy(), probe_nvrtc()]
    return [python, *packages, *others]


def probe_readers() -> list[Finding]:
    """Check the packages that read model files, meshes and terrain."""
    return [
        probe_package(name, f"for {purpose}", f'pip install "gpusim[{extra}]"', module)
        for name, purpose, extra, module in READERS
    ]


def probe_viewer() -> list[Finding]:
    """Check all software and hardware that ``gpusim view`` and ``gpusim render`` need or can use."""
    with ThreadPoolExecutor() as pool:  # each child takes a second
        others = [pool.submit(probe) for probe in (probe_display, probe_picture)]
        return [
            probe_package("PyOpenGL", "for all drawing", module="OpenGL"),
            probe_package("glfw", "for windows"),
            probe_package(
                "imgui-bundle", "for the operator panel", 'pip install "gpusim[panel]"', "gpusim.viewer.panel.bundle"
            ),
            probe_package("imageio-ffmpeg", "for films", 'pip install "gpusim[video]"', "imageio_ffmpeg"),
            probe_egl(),
            *(other.result() for other in others),
        ]


def probe_package(name: str, purpose: str = "", hint: str = "", module: str = "") -> Finding:
    """Import a package and check its version.

    Args:
        name: name of the distribution.
        purpose: purpose of an optional package, or empty if gpusim needs the package.
        hint: how to install the package, by default ``pip install --upgrade`` with the distribution's name.
        module: name of the module to import, by default the name of the distribution.
    """
    minimum = MIN_VERSIONS.get(name, "0")
    hint = hint or ("pip install --upgrade " + (f'"{name}>={minimum}"' if name in MIN_VERSIONS else name))
    try:
        found = version(name)
        if version_key(found) < version_key(minimum):
            return Finding(name, False, f"{found} is older than {minimum}", hint)
        importlib.import_module(module or name)
    except PackageNotFoundError:
        return Finding(name, False, purpose or "not installed", hint)
    except Exception as error:  # a broken installation can fail in any way
        return Finding(name, False, f"{type(error).__name__}: {error}", hint)
    return Finding(name, True, ", ".join(filter(None, (found, purpose))))


def probe_compiler() -> Finding:
    """Find a C++ compiler, for the native backend."""
    try:
        path = find_compiler()
    except CompileError as error:
        return Finding("C++ compiler", False, f"for the native backend; {error}", _COMPILER)
    first_line = _first_line([path, "--version"])
    if not first_line:
        return Finding("C++ compiler", False, f"{path} does not run", _COMPILER)
    return Finding("C++ compiler", True, f"{first_line} at {path}")


def probe_openmp() -> Finding:
    """Test OpenMP: build a small library with the build settings of the kernels."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library = ctypes.CDLL(str(build_native("openmp_probe.cu", {"openmp_probe.cu": _OPENMP_PROBE}, {})))
        threads = library.threads()
    except (CompileError, OSError) as error:
        return Finding("OpenMP", False, f"for all cores in the native backend; {error}")
    if threads == 0:
        what = "the compiler has none, so the native backend uses one core"
        return Finding("OpenMP", False, what, "install libgomp (g++) or libomp (clang++)")
    return Finding("OpenMP", True, f"{threads} threads; the native backend uses {thread_count()}")


def probe_cache() -> Finding:
    """Check that gpusim can write to the folder of compiled kernels."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (CompileError, OSError) as error:
        return Finding("cache folder", False, f"for compiled kernels; {error}", "set GPUSIM_CACHE to a writable folder")
    return Finding("cache folder", True, str(folder))


def driver_cuda_version() -> int:
    """Return the newest CUDA version that the NVIDIA driver supports, e.g. 13000, or 0 without a driver."""
    for name in LIBRARIES:
        try:
            number = ctypes.c_int(0)
            if ctypes.CDLL(name).cuDriverGetVersion(ctypes.byref(number)) == 0:
                return number.value
        except (OSError, AttributeError):
            continue
    return 0


def cuda_hint(driver: int) -> str:
    """Return instructions for a working CUDA backend.

    Args:
        driver: result of :func:`driver_cuda_version`.
    """
    if driver < CUDA_12:
        return "install an NVIDIA driver for CUDA 12 or newer"
    return f'pip install "gpusim[cuda{13 if driver >= CUDA_13 else 12}]"'


def probe_driver() -> Finding:
    """Find an NVIDIA GPU and its driver, for the cuda backend."""
    driver, command = driver_cuda_version(), shutil.which("nvidia-smi")
    query = "--query-gpu=name,driver_version,memory.total"
    card = _first_line([command, query, "--format=csv,noheader"]) if command else ""
    detail = ", ".join(filter(None, (card, f"CUDA {driver // 1000}.{driver % 1000 // 10}" if driver else "")))
    if driver >= CUDA_12:
        return Finding("NVIDIA driver", True, detail)
    return Finding("NVIDIA driver", False, f"for the cuda backend; {detail or 'no driver found'}", cuda_hint(driver))


def probe_cupy() -> Finding:
    """Count the devices that CuPy sees, for the cuda backend."""
    hint = cuda_hint(driver_cuda_version())
    try:
        cupy = importlib.import_module("cupy")
        devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises its own exception types
        return Finding("cupy", False, f"for the cuda backend; {error}", hint)
    return Finding("cupy", devices > 0, f"{cupy.__version__} sees {devices} GPU(s)", "" if devices else hint)


def probe_nvrtc() -> Finding:
    """Load NVRTC, which compiles the kernels for the cuda backend."""
    try:
        return Finding("NVRTC", True, load_nvrtc().name)
    except CompileError as error:
        return Finding("NVRTC", False, f"for the cuda backend; {error}", cuda_hint(driver_cuda_version()))


def probe_egl() -> Finding:
    """Load the EGL library, which the viewer needs to draw without a screen."""
    name = ctypes.util.find_library("EGL") or "libEGL.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        return Finding("EGL", False, "for drawing without a screen", "install libEGL (libegl1 of Mesa)")
    return Finding("EGL", True, name)


def probe_display() -> Finding:
    """Open the display, which windows need."""
    purpose = "for windows: gpusim view; gpusim render needs none"
    names = " and ".join(f"{name}={os.environ[name]}" for name in _DISPLAYS if os.environ.get(name))
    if sys.platform.startswith("linux") and not names:
        return Finding("display", False, f"{purpose}; neither {' nor '.join(_DISPLAYS)} is set")
    trouble, report = run_child(_DISPLAY_CODE)
    if trouble:
        return Finding("display", False, f"{names or 'none that opens'}, {purpose}; {trouble}")
    return Finding("display", True, ", ".join(filter(None, (names, report))))


def probe_picture() -> Finding:
    """Draw a ball without a window."""
    trouble, report = run_child(_PICTURE_CODE)
    if trouble:
        return Finding("drawing", False, f"pictures off screen; {trouble}", "install a graphics driver, or Mesa")
    return Finding("drawing", True, f"off screen: {report}")


def run_child(code: str) -> tuple[str, str]:
    """Run Python code in a child process.

    Returns:
        The problem or an empty string, and the last line that the child process printed. After a problem, the line is
        empty.
    """
    home = str(Path(__file__).parents[2])  # gpusim itself may not be installed
    path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": path}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, env=environment
        )
    except subprocess.TimeoutExpired:
        return f"it does not answer within {TIMEOUT:g} s", ""
    except OSError as error:
        return f"no process can be started ({error})", ""
    report, trouble = (text.strip().rpartition("\n")[2].strip() for text in (done.stdout, done.stderr))
    if done.returncode == 0:
        return "", report
    if done.returncode == _REFUSED:
        return report, ""
    if done.returncode < 0:
        return f"it crashes ({signal.Signals(-done.returncode).name})", ""
    return trouble or f"it ends with code {done.returncode}", ""


def _first_line(command: list[str]) -> str:
    """Return the first line that ``command`` prints, or an empty string if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().partition("\n")[0].strip()
