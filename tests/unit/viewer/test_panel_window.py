from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gpusim import Simulation
from gpusim.cli.main import app
from gpusim.description.operator_names import KEYS
from gpusim.recording.motion import MotionRecorder
from gpusim.scene import load_scene, scene_parameters
from gpusim.viewer.operator import Operator, OperatorRecording
from gpusim.viewer.panel import PanelState
from gpusim.viewer.panel.panel_client import PanelClient, add_operator
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live, Played
from gpusim.viewer.window.window import FrameInfo, Window
from tests.unit.viewer.display import display_variables
from tests.unit.viewer.persons import played_pendulum

PRESS, RELEASE = 1, 0
SHIFT, CTRL = 1, 2


class Driver:
    def __init__(self, panel: bool = True, num_worlds: int = 1, played: Played | None = None) -> None:
        scene = load_scene("hydraulic_lift")
        sim = Simulation(scene.builder.finalize(), num_worlds, backend="numpy", config=scene.config)
        live = Live(sim, scene)
        self.operator = live.operator = Operator(live.sim, scene)
        self.session = Session(played or live, paused=True)
        self.window = Window(self.session, width=640, height=360, quality="software", camera=scene.camera)
        parameters = scene_parameters("hydraulic_lift")
        self.panel_state = PanelState(self.session) if played else PanelState(self.session, self.operator, parameters)
        self.titles: list[str] = []
        self.window.screen.set_title = self.titles.append  # type: ignore[method-assign]
        client = add_operator(self.window, self.panel_state, panel=panel)
        self.picture = np.zeros((360, 640, 3), dtype=np.uint8)
        self.window.add_client(self)
        self.now = 0.0
        self.frames(2)
        if panel:
            assert client is not None
            self.panel: PanelClient = client

    def frames(self, count: int = 1) -> np.ndarray:
        for _ in range(count):
            self.window.frame(self.now)
            self.now += 0.02
        return self.picture[::-1]

    # A client that photographs what the others have drawn.

    def event(self, kind: str, *details: Any) -> bool:
        return False

    def draw(self, shown: FrameInfo) -> None:
        from OpenGL import GL

        GL.glPixelStorei(GL.GL_PACK_ALIGNMENT, 1)
        GL.glReadPixels(0, 0, shown.width, shown.height, GL.GL_RGB, GL.GL_UNSIGNED_BYTE, self.picture)

    def close(self) -> None:
        pass

    # Hands.

    def key(self, name: str, action: int = PRESS, bits: int = 0) -> None:
        self.window.event("key", KEYS[name], 0, action, bits)

    def place(self, name: str, share: float = 0.5) -> tuple[float, float]:
        area = self.panel_state.areas[name]
        return area.x + share * area.width, area.y + 0.5 * area.height

    def drag(self, *path: tuple[float, float]) -> None:
        self.window.event("cursor", *path[0])
        self.frames()
        self.window.event("button", 0, PRESS, 0)
        self.frames()
        for place in path[1:]:
            self.window.event("cursor", *place)
            self.frames()
        self.window.event("button", 0, RELEASE, 0)
        self.frames()

    def eye(self) -> np.ndarray:
        return np.array(self.window.sight.camera().position)


@pytest.fixture(autouse=True)
def display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in display_variables().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def driver() -> Iterator[Driver]:
    pytest.importorskip("imgui_bundle")
    one = Driver()
    yield one
    one.window.close()


def test_a_slider_in_the_window(driver: Driver) -> None:
    before = driver.eye()
    driver.drag(driver.place("command lift"), driver.place("command lift", 0.8), (320.0, 300.0))
    assert driver.operator.value("lift") == 1.0 and driver.operator.source("lift") == "panel"
    assert np.array_equal(driver.eye(), before)
    driver.drag(driver.place("run"), driver.place("run"))
    driver.frames(15)
    sim = driver.operator.sim
    assert not driver.session.paused and sim.time > 0.1
    assert sim.read("cylinder.lift.position")[0] > 0.005


def test_the_scene_has_its_part_of_the_window(driver: Driver) -> None:
    area = driver.panel.room(640, 360)
    assert (driver.window.sight.width, driver.window.sight.height) == (int(area.width), int(area.height))
    picture = driver.frames()
    middle = picture[: int(area.height), int(area.x) : int(area.x + area.width)]
    assert middle.mean() > 120 and picture[60:, : int(area.x)].mean() < 80
    load = driver.window.sight.poses.position[0, 0]
    (x, y), _ = driver.window.sight.camera().project(load, int(area.width), int(area.height))
    driver.window.event("cursor", area.x + x, area.y + y)
    driver.window.event("button", 0, PRESS, 0)
    driver.window.event("button", 0, RELEASE, 0)
    assert driver.window.sight.picked is not None and driver.window.sight.picked.body == 0


def test_orbiting_over_the_panel_is_still_orbiting(driver: Driver) -> None:
    before = driver.eye()
    driver.drag((320.0, 150.0), (250.0, 160.0), driver.place("stop"))
    assert not driver.operator.stopped and not np.allclose(driver.eye(), before)
    assert driver.operator.source("lift") == ""
    before = driver.eye()
    driver.window.event("cursor", *driver.place("command lift"))
    driver.frames()
    driver.window.event("scroll", 0.0, 3.0)
    driver.frames()
    assert np.array_equal(driver.eye(), before)


def test_a_press_right_after_the_panel_is_the_scenes(driver: Driver) -> None:
    driver.window.event("cursor", *driver.place("command lift"))
    driver.frames(2)
    before = driver.eye()
    driver.window.event("cursor", 320.0, 150.0)
    driver.window.event("button", 0, PRESS, 0)
    driver.window.event("cursor", 260.0, 150.0)
    driver.frames()
    driver.window.event("button", 0, RELEASE, 0)
    driver.frames()
    assert not np.allclose(driver.eye(), before) and driver.operator.source("lift") == ""


def test_an_open_list_has_the_mouse_over_the_scene_too(driver: Driver) -> None:
    driver.panel_state.parameters = [replace(driver.panel_state.parameters[0], name="shape", type="a | b")]
    driver.panel_state.values["shape"] = "a"
    driver.drag(driver.place("Parameters", 0.2), driver.place("Parameters", 0.2))
    driver.drag(driver.place("parameter shape"), driver.place("parameter shape"))
    assert driver.panel.panel.has_list
    before = driver.eye()
    driver.drag((320.0, 150.0), (260.0, 150.0))
    assert np.array_equal(driver.eye(), before) and not driver.panel.panel.has_list
    driver.drag((320.0, 150.0), (260.0, 150.0))
    assert not np.allclose(driver.eye(), before)


def test_the_emergency_stop_by_button_and_key(driver: Driver) -> None:
    driver.drag(driver.place("stop"), driver.place("stop"))
    assert driver.operator.stopped
    driver.key("E", bits=SHIFT)
    assert not driver.operator.stopped
    driver.key("E")
    driver.session.single_step()
    assert driver.operator.stopped and driver.operator.sim.control["lift.brake"][0] == 1.0
    driver.key("R")
    driver.session.single_step()
    assert driver.session.time == pytest.approx(0.001) and driver.operator.sim.control["lift.brake"][0] == 1.0


def test_keys_drive_unless_they_are_typed(driver: Driver) -> None:
    driver.key("2")
    driver.frames(20)
    assert driver.operator.value("lift") == 1.0 and driver.operator.source("lift") == "keyboard"
    driver.drag(driver.place("Parameters", 0.2), driver.place("Parameters", 0.2))
    driver.drag(driver.place("parameter mass"), driver.place("parameter mass"))
    driver.key("2", RELEASE)
    driver.frames(20)
    assert driver.operator.value("lift") == 0.0
    driver.key("E")
    driver.key("1")
    driver.window.event("char", ord("1"))
    driver.frames(3)
    assert not driver.operator.stopped and driver.operator.value("lift") == 0.0
    assert driver.panel_state.values["mass"].endswith("1")


def test_tab_hides_the_panel(driver: Driver) -> None:
    driver.key("TAB")
    shown = driver.frames(2)
    assert shown[60:, :100].mean() > 120 and driver.window.sight.width == 640
    driver.key("TAB")
    driver.key("TAB", RELEASE)
    assert driver.frames(2)[60:, :100].mean() < 80


def test_overlays_are_the_windows(driver: Driver) -> None:
    driver.key("P")
    assert driver.panel_state.shown == driver.window.overlays == {"pressure"}
    driver.drag(driver.place("Overlays", 0.2), driver.place("Overlays", 0.2))
    driver.drag(driver.place("overlay pressure", 0.1), driver.place("overlay pressure", 0.1))
    assert driver.window.overlays == set()


def test_the_timeline_of_a_playback_is_dragged(tmp_path: Path) -> None:
    pytest.importorskip("imgui_bundle")
    driver = Driver(played=played_pendulum(tmp_path))
    before, picture = driver.eye(), driver.frames().copy()
    assert "playback 0.00 / 1.00 s" in driver.titles[-1]
    driver.drag(driver.place("timeline", 0.02), driver.place("timeline", 0.5), (320.0, 100.0))
    assert driver.session.time == pytest.approx(0.5, abs=0.02)
    assert np.array_equal(driver.eye(), before)
    area = driver.panel.room(640, 360)
    scene = np.s_[: int(area.height), int(area.x) :]
    assert np.abs(picture[scene].astype(int) - driver.frames()[scene]).max() > 60
    driver.frames(20)
    assert f"playback {driver.session.time:.2f} / 1.00 s" in driver.titles[-1]
    # it follows
    driver.drag(driver.place("run"), driver.place("run"))
    began = driver.session.time
    driver.frames(10)
    assert driver.session.time > began + 0.1
    driver.drag(driver.place("timeline", 0.5), (1000.0, driver.place("timeline")[1]))
    assert driver.session.time == pytest.approx(1.0) and driver.session.paused
    driver.window.close()


def test_a_recorded_run_says_so_in_the_title(driver: Driver, tmp_path: Path) -> None:
    live = driver.panel_state.live
    assert live is not None
    with MotionRecorder(live.sim, tmp_path / "boom.npz") as recorder:
        live.record(recorder)
        driver.session.single_step(20)
        driver.frames(15)
        assert "● recording boom.npz 0.02 s" in driver.titles[-1]
        live.record(None)
    driver.frames(15)
    assert "recording" not in driver.titles[-1]


def test_the_panel_shows_the_world_of_the_picked_body() -> None:
    pytest.importorskip("imgui_bundle")
    driver = Driver(num_worlds=4)
    assert driver.panel_state.world == 0 and list(driver.panel_state.worlds) == [0, 1, 2, 3]
    sight, area = driver.window.sight, driver.panel.room(640, 360)
    for world in (3, 2):
        load = sight.poses.position[world, 0] + sight.stage.offsets[world]
        (x, y), _ = sight.camera().project(load, int(area.width), int(area.height))
        driver.drag((area.x + x, area.y + y))
        assert driver.panel_state.world_name() == f"world {world} of 4"
    driver.drag((area.x + 3.0, 3.0))
    assert driver.panel_state.world == 0
    driver.window.close()


def test_f1_and_the_panel_list_the_same_keys(driver: Driver) -> None:
    groups = {group.title: {line.keys: line.what for line in group.lines} for group in driver.panel_state.all_keys()}
    assert driver.panel_state.all_keys() == driver.window.controls.key_groups()
    assert groups["Panel"]["Tab"] == "show or hide the panel" and "E" in groups["Operator"]
    assert groups["Commands (automatic, no gamepad)"] == {"1 2, left y": "lift", "F5, a": "lift.brake"}
    assert set(groups["Overlays"]) == {overlay.key.upper() for overlay in driver.panel_state.overlays}
    assert {"Space", "Shift+R", "F1", "Escape"} < set(groups["Window"]) and "wheel" in groups["Mouse"]
    before = driver.frames().copy()
    driver.key("F1")
    area = driver.panel.room(640, 360)
    scene = np.s_[: int(area.height), int(area.x) : int(area.x + area.width)]
    assert np.abs(before[scene].astype(int) - driver.frames(2)[scene]).max() > 60
    driver.key("P", PRESS, CTRL)
    assert driver.window.overlays == {"pressure"}


def test_closing_in_mid_record_leaves_a_recording_to_replay(driver: Driver, tmp_path: Path) -> None:
    driver.panel_state.record_path = tmp_path / "drive.jsonl"
    driver.drag(driver.place("record"), driver.place("record"))
    driver.key("2")
    driver.frames(10)
    driver.session.single_step(5)
    driver.window.close()
    recording = OperatorRecording.load(tmp_path / "drive.jsonl")
    assert recording.steps == 5 and recording.changes == {0: {"lift": driver.operator.value("lift")}}
    assert driver.operator.value("lift") > 0.5


def test_without_a_panel_keys_drive() -> None:
    driver = Driver(panel=False)
    driver.key("1")
    driver.frames(20)
    assert driver.operator.value("lift") == -1.0 and driver.window.sight.width == 640
    driver.key("1", PRESS, CTRL)
    driver.key("F5")
    driver.frames()
    assert driver.operator.value("lift.brake") == 1.0
    driver.window.close()


# As a user types it.

SMALL = ("--size", "400x240", "--backend", "numpy", "--dt", "0.01", "--duration", "0.3")


def test_gpusim_view_has_a_panel() -> None:
    done = CliRunner().invoke(app, ["view", "boom_crane", *SMALL])
    assert done.exit_code == 0, done.output
    assert "frames/s" in done.output and "imgui" not in done.output


def test_a_recorded_motion_has_a_panel_too(tmp_path: Path) -> None:
    motion = str(tmp_path / "a.npz")
    done = CliRunner().invoke(app, ["view", "boom_crane", "--no-panel", "--record", motion, *SMALL])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["view", motion, "--size", "400x240", "--duration", "0.2"])
    assert done.exit_code == 0 and "frames/s" in done.output, done.output


def test_gpusim_view_without_imgui(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("gpusim.viewer.panel.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "imgui_bundle", None)
    done = CliRunner().invoke(app, ["view", "boom_crane", *SMALL])
    assert done.exit_code == 0 and 'pip install "gpusim[panel]"' in done.output, done.output
    done = CliRunner().invoke(app, ["view", "boom_crane", "--no-panel", *SMALL])
    assert done.exit_code == 0 and "imgui" not in done.output, done.output


@pytest.mark.parametrize(
    "mapping, words",
    [
        ("cat", "unknown mapping 'cat'"),
        ("iso", "no command of this scene has a label with boom in it; take the mapping 'auto'"),
        ("gone.toml", "mapping file 'gone.toml': it cannot be read"),
    ],
)
def test_bad_mappings_end_with_a_sentence(mapping: str, words: str) -> None:
    done = CliRunner().invoke(app, ["view", "boom_crane", "--mapping", mapping, *SMALL])
    assert done.exit_code == 2 and words in done.output, done.output
