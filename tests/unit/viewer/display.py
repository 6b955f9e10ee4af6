from __future__ import annotations

import atexit
import os
import shutil
import subprocess
from functools import cache

import pytest


@cache
def _display() -> str:
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write)
    atexit.register(server.wait)
    atexit.register(server.terminate)
    with os.fdopen(read) as answer:
        number = answer.readline().strip()
    return f":{number}" if number else ""


def display_variables() -> dict[str, str]:
    pytest.importorskip("glfw")
    if shutil.which("Xvfb") is None:
        pytest.skip("no screen for windows: Xvfb is not installed; apt install xvfb")
    name = _display()
    if not name:
        pytest.skip("Xvfb does not start")
    return {"DISPLAY": name, "WAYLAND_DISPLAY": "", "LIBGL_ALWAYS_SOFTWARE": "1"}
