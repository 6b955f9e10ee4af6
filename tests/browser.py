"""A headless browser for tests, driven by Chrome's DevTools protocol."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome-headless-shell")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run"),
    *("--disable-gpu-vsync", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--no-default-browser-check"),
)
PATIENCE = 240.0
INACTIVE = "Not attached to an active page"


def require_browser() -> str:
    """Return the path of a browser, or skip the test."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    return found


class Browser:
    """A page of a headless Chromium. Use it in a ``with`` statement.

    Args:
        url: address of the page.
        folder: folder of the browser's profile.
        width, height: size of the page, pixels.
    """

    def __init__(self, url: str, folder: Path, width: int = 960, height: int = 540) -> None:
        from websockets.sync.client import connect

        profile = folder / "profile"
        profile.mkdir(parents=True, exist_ok=True)
        command = [require_browser(), *OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        size = f"--window-size={width},{height}"
        self._process = subprocess.Popen(
            [*command, size, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            port_file = profile / "DevToolsActivePort"
            wait_until(
                lambda: port_file.is_file() and len(port_file.read_text().splitlines()) > 1, "the browser starts"
            )
            port = port_file.read_text().splitlines()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE) as answer:
                page = next(p for p in json.load(answer) if p["type"] == "page")
            self._socket = connect(page["webSocketDebuggerUrl"], max_size=None)
            self._number = 0
            self.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
            self.call("Page.navigate", url=url)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def call(self, method: str, **parameters: Any) -> Any:
        """Return the answer of the browser to a method of the protocol."""
        answer = self._answer(method, parameters)
        assert "error" not in answer, answer
        return answer["result"]

    def _answer(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the result or the error of a method."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer: dict[str, Any] = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("id") == self._number:
                return answer

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def picture(self) -> np.ndarray:
        """Return the page, uint8 (height, width, 3)."""
        from PIL import Image

        answer: dict[str, Any] = {}

        def answered() -> bool:
            answer.clear()
            answer.update(self._answer("Page.captureScreenshot", {"format": "png"}))
            return INACTIVE not in str(answer.get("error"))

        wait_until(answered, "the page is active")
        assert "result" in answer, answer
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(answer["result"]["data"]))).convert("RGB"))

    def place(self, script: str) -> tuple[float, float, float, float]:
        box = f"(e => {{const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]}})({script})"
        x, y, width, height = self.evaluate(box)
        return x, y, width, height

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Press the left button at a point, move, and release it."""
        mouse: dict[str, Any] = {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **mouse)
        if (x, y) != (to_x, to_y):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=to_x, y=to_y, button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=to_y, **mouse)

    def click(self, script: str) -> None:
        """Click the middle of an element."""
        left, top, width, height = self.place(script)
        x, y = left + 0.5 * width, top + 0.5 * height
        self.drag(x, y, x, y)

    def close(self) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(timeout=10)
        except Exception:  # noqa: BLE001 (the browser may be gone already)
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def wait_until(done: Callable[[], Any], what: str, work: Callable[[], None] = lambda: time.sleep(0.05)) -> None:
    """Call ``work`` until ``done`` returns a true value."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, f"waited {PATIENCE:g} s until {what}"
        work()
