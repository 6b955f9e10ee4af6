from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Simulation, Transform
from gpusim.scene import Scene, load_scene, scene_parameters
from gpusim.viewer.operator import Operator
from gpusim.viewer.panel import PanelState
from gpusim.viewer.web.web_view import WebView
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live
from tests.browser import Browser, require_browser, wait_until

pytest.importorskip("viser")
pytestmark = pytest.mark.nightly

Found = TypeVar("Found")
GALLERY = Path(__file__).parents[3] / "docs" / "gallery" / "web_view.png"
SLIDER = "document.querySelector('[role=slider]')"


def hoist() -> Scene:
    """A red box that a servo moves up and down."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    box = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((0.0, 0.0, 0.5)), label="box")
    b.add_shape_box(box, (0.4, 0.4, 0.4), color=(0.9, 0.05, 0.05))
    rail = b.add_joint_prismatic(-1, box, Transform((0, 0, 0.5)), axis=(0, 0, 1), limit_lower=0.0, limit_upper=2.0)
    b.add_servo(rail, mode="position", stiffness=400.0, damping=40.0, target=0.0, label="height")
    return Scene("hoist", "", b, gpusim.SolverConfig(dt=0.01), 1.0)


def page_of(scene: Scene, backend: str = "numpy") -> WebView:
    sim = Simulation(scene.builder.finalize(), backend=backend, config=scene.config)
    live = Live(sim, scene)
    live.operator = Operator(sim, scene)
    parameters = scene_parameters(scene.name) if scene.name != "hoist" else ()
    return WebView(PanelState(Session(live), live.operator, parameters), port=0, camera=scene.camera)


def during(view: WebView, job: Callable[[], Found]) -> Found:
    """Run the view while the browser works."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(job)
        while not future.done():
            view.run(0.1)
        return future.result()


def red(picture: np.ndarray) -> np.ndarray:
    r, g, b = np.moveaxis(picture.astype(int), 2, 0)
    return (r > 60) & (r > 3 * g) & (r > 3 * b)


def middle(browser: Browser) -> float:
    rows = np.flatnonzero(red(browser.picture()[:, :280]).any(axis=1))
    return float(rows.mean()) if len(rows) > 10 else float("nan")


def test_a_browser_shows_the_box_and_its_slider_moves_it(tmp_path: Path) -> None:
    require_browser()
    with page_of(hoist()) as view, Browser(view.url, tmp_path, 640, 400) as browser:
        operator = view._state.operator
        assert operator is not None

        def drawn() -> bool:
            return bool(np.isfinite(middle(browser)))

        during(view, lambda: wait_until(drawn, "the box is drawn"))
        low = during(view, lambda: middle(browser))
        picture = during(view, browser.picture)[:, :280]
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 50

        def move() -> None:
            left, top, width, height = browser.place(f"{SLIDER}.parentElement")
            x, y, thumb, _ = browser.place(SLIDER)
            browser.drag(x + 0.5 * thumb, top + 0.5 * height, left + 0.75 * width, top + 0.5 * height)

        during(view, move)
        during(view, lambda: wait_until(lambda: operator.source("height") == "panel", "the slider moves the servo"))
        wished = operator.value("height")
        assert 1.0 < wished < 2.0
        view.run(2.0)
        sim = operator.sim
        assert sim.control["height"][0] == wished
        assert sim.read("body.box.position")[0, 2] == pytest.approx(0.5 + wished, abs=0.05)
        during(view, lambda: wait_until(lambda: middle(browser) < low - 40.0, "the picture shows the box higher up"))
        with Browser(view.url, tmp_path / "second", 640, 400) as second:
            during(view, lambda: wait_until(lambda: second.evaluate(f"!!{SLIDER}"), "the second page is there"))
            shown = during(view, lambda: second.evaluate(f"{SLIDER}.getAttribute('aria-valuenow')"))
            assert float(shown) == pytest.approx(wished, abs=0.011)


@pytest.mark.skipif(not os.environ.get("GPUSIM_UPDATE_PICTURES"), reason="GPUSIM_UPDATE_PICTURES=1 draws the gallery")
def test_the_picture_of_the_gallery(tmp_path: Path) -> None:
    from PIL import Image

    require_browser()
    closing = "document.querySelectorAll('.mantine-Notification-closeButton').forEach(e => e.click())"
    with page_of(load_scene("excavator"), "auto") as view:
        while view.session.time < 4.0:
            view.run(0.5)
        view.session.pause()
        with Browser(view.url, tmp_path, 1280, 720) as browser:
            during(view, lambda: wait_until(lambda: browser.evaluate(f"!!{SLIDER}"), "the page is there"))
            during(view, browser.picture)
            browser.evaluate(closing)
            picture = during(view, browser.picture)
        Image.fromarray(picture).save(GALLERY, optimize=True)
