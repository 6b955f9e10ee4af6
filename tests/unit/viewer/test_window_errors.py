from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpusim.viewer import ViewerError
from tests.unit.viewer.display import display_variables


@pytest.fixture(autouse=True)
def display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in display_variables().items():
        monkeypatch.setenv(name, value)


OPEN = """
from gpusim.viewer import ViewerError
from gpusim.viewer.window.screen import Screen
try:
    Screen("a", 64, 64, print)
except ViewerError as error:
    print(error)
"""


def reported(code: str = OPEN, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=240
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    return line


@pytest.mark.parametrize("name", ["", ":987"])
def test_no_display(name: str) -> None:
    line = reported(DISPLAY=name)
    assert line.startswith("no display: ") and "gpusim render" in line


def test_a_driver_that_is_too_old() -> None:
    line = reported(MESA_GL_VERSION_OVERRIDE="3.3")
    assert "no OpenGL 4.3 core profile" in line and "libgl1-mesa-dri" in line


def test_without_glfw() -> None:
    line = reported("import sys; sys.modules['glfw'] = None\n" + OPEN)
    assert line.startswith("a window needs glfw") and "pip install glfw" in line


def test_opengl_that_was_imported_with_the_other_platform_serves_a_window() -> None:
    code = "from OpenGL import GL\n" + OPEN + "print(type(__import__('OpenGL.platform').platform.PLATFORM).__name__)"
    assert reported(code, PYOPENGL_PLATFORM="glx") == "GLXPlatform"


def test_a_window_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    import glfw

    from gpusim.viewer.window.screen import Screen

    monkeypatch.setattr(glfw, "create_window", lambda *arguments: None)
    monkeypatch.setattr(glfw, "get_error", lambda: (glfw.PLATFORM_ERROR, b"X11: no room"))
    with pytest.raises(ViewerError):
        Screen("a", 64, 64, print)
