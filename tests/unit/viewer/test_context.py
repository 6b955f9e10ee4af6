from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpusim.viewer.gl.quality import choose_quality
from tests.unit.viewer.drawing import require_egl

PACKAGES = "sudo apt install libegl1 libgl1 libgl1-mesa-dri"

WITHOUT = """
import ctypes
class Without(ctypes.CDLL):
    def __init__(self, name, *rest, **more):
        if str(name).startswith({names!r}):
            raise OSError("no such library")
        super().__init__(name, *rest, **more)
ctypes.cdll = ctypes.LibraryLoader(Without)
"""

DRAW = """
import gpusim.viewer.gl.context
try:
    gpusim.viewer.gl.context.OffscreenContext()
except gpusim.viewer.ViewerError as error:
    print(error)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries have other names elsewhere")


def reported(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=240
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    return line


@pytest.mark.nightly
@pytest.mark.parametrize("names, library", [(("libEGL",), "EGL"), (("libGL", "libOpenGL"), "OpenGL")])
def test_missing_libraries_are_named_with_their_packages(names: tuple[str, ...], library: str) -> None:
    require_egl()
    line = reported(WITHOUT.format(names=names) + DRAW)
    assert line.startswith(f"cannot draw: the {library} library is missing") and PACKAGES in line


def test_no_driver() -> None:
    require_egl()
    line = reported(DRAW, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent.json")
    assert "no display that works" in line and PACKAGES in line


@pytest.mark.nightly
def test_a_driver_that_is_too_old() -> None:
    require_egl()
    if "llvmpipe" not in reported("from gpusim.viewer.gl.context import *; print(OffscreenContext().renderer_name)"):
        pytest.skip("only Mesa can pretend to be old")
    assert "no OpenGL 4.3 core profile" in reported(DRAW, MESA_GL_VERSION_OVERRIDE="3.3")


def test_opengl_that_was_imported_for_a_window_is_reported() -> None:
    code = "import OpenGL.platform\n" + DRAW
    line = reported(code, PYOPENGL_PLATFORM="glx")
    assert "imported before with the platform GLXPlatform" in line and "PYOPENGL_PLATFORM=egl" in line


FORKED = """
import multiprocessing, threading
import numpy as np
from gpusim.viewer import Offscreen, ViewerError
from tests.unit.viewer.models import pendulum

def picture(number=0):
    try:
        with Offscreen(pendulum(), width=64, height=36) as eye:
            return eye.image()
    except ViewerError as error:
        return str(error)

first = picture()
pictures, threads = {}, []
for k in range(4):
    threads.append(threading.Thread(target=lambda k=k: pictures.setdefault(k, picture())))
    threads[-1].start()
for thread in threads:
    thread.join()
assert all(np.array_equal(pictures[k], first) for k in range(4)), pictures
with Offscreen(pendulum(), width=64, height=36) as eye:
    caught = []
    def borrow():
        try:
            eye.image()
        except ViewerError as error:
            caught.append(str(error))
    thread = threading.Thread(target=borrow)
    thread.start(), thread.join()
    assert "belongs to the thread" in caught[0], caught
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map_async(picture, [0]).get(timeout=200)[0])
"""


@pytest.mark.nightly
def test_threads_draw_and_forked_processes_say_why_not() -> None:
    require_egl()
    assert "was forked from one that had drawn" in reported(FORKED, PYTHONPATH=os.pathsep.join(sys.path))


@pytest.mark.parametrize(
    "renderer, tier",
    [
        ("llvmpipe (LLVM 19.1.7, 256 bits)", "software"),
        ("softpipe", "software"),
        ("Google SwiftShader", "software"),
        ("NVIDIA H200/PCIe/SSE2", "high"),
    ],
)
def test_the_tier_goes_by_the_name_of_the_renderer(renderer: str, tier: str) -> None:
    assert choose_quality("auto", renderer).name == tier
    assert choose_quality("medium", renderer).name == "medium"
