from __future__ import annotations

import re

import numpy as np
import pytest

from gpusim.viewer.web import web_view
from tests.backends import FASTEST
from tests.cli.recordings import record_motion
from tests.message_snapshot import names
from tests.unit.test_rerun_stream import Viewer

SMALL = ("--backend", FASTEST, "--dt", "0.01")
PAGE = ("--web", "--port", "0", "--duration", "0.4", *SMALL)


@pytest.fixture
def view(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setenv("WAYLAND_DISPLAY", "")
    return lambda *arguments: cli("view", *arguments)


@pytest.fixture
def pages(monkeypatch):
    pytest.importorskip("viser")
    found: list[web_view.WebView] = []
    opened = web_view.WebView._start

    def start(self: web_view.WebView) -> None:
        found.append(self)
        opened(self)

    monkeypatch.setattr(web_view.WebView, "_start", start)
    return found


def test_a_scene_runs_on_a_page_without_a_screen(view, pages) -> None:
    result = view("double_pendulum", *PAGE, "--set", "length1=1.5", "--record", "a.npz")
    assert result.exit_code == 0, result.output
    assert re.search(r"double_pendulum: http://127\.0\.0\.1:\d+ ", result.output)
    assert "frames/s; jitter" in result.output and "a.npz: " in result.output
    (page,) = pages
    assert 0.2 < page.session.time < 0.6 and page._state.operator is not None


def test_options_of_the_picture_reach_the_page(view, pages) -> None:
    options = (
        "--num-worlds",
        "3",
        "--max-worlds",
        "2",
        "--follow",
        "rod1",
        "--no-panel",
        "--paused",
        "--camera",
        "top",
    )
    result = view("double_pendulum", *PAGE, *options)
    assert result.exit_code == 0, result.output
    (page,) = pages
    assert page.session.time == 0.0 and page.worlds == [0, 1] and page._followed == 0
    assert page._state.operator is None and page._home.forward[2] < -0.99


def test_a_recording_plays_on_a_page(view, cli, pages) -> None:
    record_motion("a.npz")
    result = view("a.npz", "--web", "--port", "0", "--duration", "0.3")
    assert result.exit_code == 0, result.output
    assert pages[0].session.source.length is not None


def test_a_policy_drives_a_page_and_its_goal_is_a_slider(view, pages) -> None:
    pytest.importorskip("gymnasium")
    from gpusim.envs import MlpPolicy

    gains = np.array([[12.0, -1.0, 0.0, 0.0, 0.0, 0.0]])
    MlpPolicy([(gains, [0.0])], "tanh", "gpusim.envs.tasks.hydraulic_lift:HydraulicLift").save("lift.npz")
    result = view("hydraulic_lift", "--policy", "lift.npz", "--web", "--port", "0", "--duration", "0.4", *SMALL[:2])
    assert result.exit_code == 0, result.output
    assert "goal.height" in [item.name for item, _ in pages[0]._panel._inputs]


@pytest.mark.parametrize(
    "options, named",
    [
        (("--web", "--port", "70000"), "port 70000"),
        (("--web", "--host", "203.0.113.7"), "host '203.0.113.7'"),
        (("--web", "--overlay", "contacts"), "--overlay --web"),
        (("--rerun", "here"), "'here rerun+http"),
        (("--rerun", "rerun+http://127.0.0.1:1/proxy"), "'rerun+http://127.0.0.1:1/proxy 'rerun'"),
    ],
)
def test_bad_options(view, options: tuple[str, ...], named: str) -> None:
    pytest.importorskip("viser")
    pytest.importorskip("rerun")
    result = view("double_pendulum", "--duration", "0.1", *SMALL, *options)
    assert result.exit_code == 2 and names(result.output, named), result.output


def test_a_recording_of_motion_is_not_streamed(view) -> None:
    pytest.importorskip("rerun")
    record_motion("a.npz")
    result = view("a.npz", "--rerun", "rerun+http://127.0.0.1:1/proxy")
    assert result.exit_code == 2 and names(result.output, "--rerun recording")


def test_a_run_is_streamed_to_a_viewer(view, tmp_path) -> None:
    viewer = Viewer(tmp_path / "seen.rrd")
    try:
        result = view("double_pendulum", "--rerun", viewer.address, "--duration", "0.6", *SMALL)
        assert result.exit_code == 0, result.output
        assert viewer.address in result.output
        assert len(viewer.wait_for("/scene/rod1", "Transform3D:translation", 8)) >= 8
    finally:
        viewer.close()
