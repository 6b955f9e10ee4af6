"""What ``gpusim doctor`` looks for that pictures and windows need. What may crash or hang runs in a child process."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gpusim.cli.mends import install
from gpusim.cli.probes import Finding

TIMEOUT = 60.0
"""Wall time that a child process may take, s."""
_REFUSED = 3
"""Exit code of a child that found out what is wrong; its last line tells."""
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@dataclass(frozen=True)
class _Package:
    """A Python package.

    Attributes:
        name: of the distribution.
        purpose: what it is for.
        pip: what brings it.
        code: uses it; may print more about it.
    """

    name: str
    purpose: str
    pip: str
    code: str


_PACKAGES = (
    _Package("PyOpenGL", "for all drawing", "pip install pyopengl", "import OpenGL"),
    _Package("glfw", "for windows: gpusim view", "pip install glfw", "import glfw"),
    _Package(
        "imgui-bundle",
        "for the operator panel of gpusim view",
        'pip install "gpusim[panel]"',
        "import gpusim.viewer.panel.bundle",
    ),
    _Package(
        "imageio-ffmpeg",
        "for films: gpusim render --out x.mp4",
        'pip install "gpusim[video]"',
        "import imageio_ffmpeg; print('ffmpeg', imageio_ffmpeg.get_ffmpeg_version())",
    ),
)

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


def probe_viewer() -> list[Finding]:
    """Everything that ``gpusim view`` and ``gpusim render`` need or can use here."""
    with ThreadPoolExecutor() as pool:  # the children take a second each
        others = [pool.submit(probe) for probe in (probe_egl, probe_display, probe_picture)]
        return [*probe_packages(), *(other.result() for other in others)]


def probe_packages() -> list[Finding]:
    """The Python packages."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_probe_package, _PACKAGES))


def _probe_package(package: _Package) -> Finding:
    try:
        number = version(package.name)
    except PackageNotFoundError:
        return Finding(package.name, False, package.purpose, package.pip)
    trouble, told = run_child(package.code)
    if trouble:
        mend = package.pip.replace("install", "install --upgrade")
        return Finding(package.name, False, f"{number}, {package.purpose}; {trouble}", mend)
    return Finding(package.name, True, ", ".join(filter(None, (number, told, package.purpose))))


def probe_egl() -> Finding:
    """The EGL library, with which the viewer draws where there is no screen."""
    name = ctypes.util.find_library("EGL") or "libEGL.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        return Finding("EGL", False, "for drawing without a screen", install("egl"))
    return Finding("EGL", True, name)


def probe_display() -> Finding:
    """A screen for windows."""
    purpose = "for windows: gpusim view; gpusim render needs none"
    names = " and ".join(f"{name}={os.environ[name]}" for name in _DISPLAYS if os.environ.get(name))
    if sys.platform.startswith("linux") and not names:
        return Finding("display", False, f"{purpose}; neither {' nor '.join(_DISPLAYS)} is set")
    trouble, told = run_child(_DISPLAY_CODE)
    if trouble:
        return Finding("display", False, f"{names or 'none that opens'}, {purpose}; {trouble}")
    return Finding("display", True, ", ".join(filter(None, (names, told))))


def probe_picture() -> Finding:
    """OpenGL without a window: a picture of a ball."""
    trouble, told = run_child(_PICTURE_CODE)
    if trouble:
        return Finding("drawing", False, f"pictures off screen; {trouble}", install("opengl"))
    return Finding("drawing", True, f"off screen: {told}")


def run_child(code: str) -> tuple[str, str]:
    """Run Python code in a process of its own.

    Returns:
        What is wrong, empty if nothing is; and the last line that it printed.
    """
    home = str(Path(__file__).parents[2])  # of gpusim itself, which may not be installed
    path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": path}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, env=environment
        )
    except subprocess.TimeoutExpired:
        return f"it hangs: nothing after {TIMEOUT:g} s", ""
    except OSError as error:
        return f"no process can be started ({error})", ""
    told, trouble = _last_line(done.stdout), _last_line(done.stderr)
    if done.returncode == 0:
        return "", told
    if done.returncode == _REFUSED:
        return told, ""
    if done.returncode < 0:
        return f"it crashes ({_signal_name(-done.returncode)})", ""
    return trouble or f"it ends with code {done.returncode}", ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
