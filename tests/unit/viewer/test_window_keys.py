from __future__ import annotations

from pathlib import Path

import pytest

from gpusim.recording.motion import MotionRecorder
from gpusim.viewer.operator import Operator
from gpusim.viewer.overlays import Frame, overlays
from gpusim.viewer.overlays.canvas import Canvas
from gpusim.viewer.overlays.panels import has_room
from gpusim.viewer.window.operator_client import OperatorClient
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sketches import Sketches, key_pages
from gpusim.viewer.window.sources import Live
from tests.unit.viewer.operators import machine
from tests.unit.viewer.persons import played_pendulum
from tests.unit.viewer.test_window_steering import FROM_ABOVE, free_box, panel_state


def test_the_list_of_keys_is_made_of_what_they_do() -> None:
    controls, _ = panel_state(free_box())
    controls.bind("w", "edges", lambda: None, group="Overlays")
    controls.bind("o", "open the valve", lambda: None)
    found = {group.title: {line.keys: line.what for line in group.lines} for group in controls.key_groups()}
    assert list(found) == ["Mouse", "Window", "Overlays"]
    assert found["Mouse"]["Ctrl+left drag"] == "pull a body with a spring" and found["Mouse"]["wheel"] == "zoom"
    assert set(found["Mouse"]) >= {"left drag", "middle drag", "Shift+left drag", "click"}
    assert found["Window"]["Shift+R"] == "restart with the same parameters" and found["Window"]["O"] == "open the valve"
    assert found["Overlays"] == {"W": "edges"}
    assert sum(len(group) for group in found.values()) == len(controls.bindings) + 6


def test_keys_that_drive_are_listed_with_their_commands_and_go_before_the_windows() -> None:
    controls, _ = panel_state(free_box())
    controls.bind("w", "edges", lambda: None, group="Overlays")
    operator = Operator(machine("boom", "stick", "bucket"))
    controls.others.append(operator)
    found = {group.title: {line.keys: line.what for line in group.lines} for group in controls.key_groups()}
    assert found["Operator"]["E"] == "emergency stop" == found["Operator"]["gamepad back"]
    assert found["Operator"]["Shift+E"] == "release the stop"
    assert found["Commands (ISO, no gamepad)"] == {
        "S W, left y": "stick", "K I, right y": "boom", "J L, right x": "bucket",
    }  # fmt: skip
    assert found["Overlays"] == {"Ctrl+W": "edges"}
    client = OperatorClient(operator)
    assert client.event("key", ord("W"), 0, 1, 0) and not client.event("key", ord("W"), 0, 1, 2)


@pytest.mark.parametrize("width, height", [(320, 180), (344, 340), (960, 540), (1920, 1080)])
def test_the_list_of_keys_is_complete_in_small_pictures_too(width: int, height: int) -> None:
    controls, _ = panel_state(free_box())
    for overlay in overlays():
        controls.bind(overlay.key, overlay.description, lambda: None, group="Overlays")
    controls.others.append(Operator(machine("boom", "stick", "bucket")))
    groups, canvas = controls.key_groups(), Canvas(FROM_ABOVE, width, height)
    pages = key_pages(canvas, groups)
    rows = [row for page in pages for row in page if row.value]
    for row, line in zip(rows, [line for group in groups for line in group.lines], strict=True):
        assert row.value == line.keys and (row.text == line.what or (width < 640 and row.text.endswith("...")))
    assert all(has_room(canvas, "Keys 9/9", page) for page in pages)
    assert (len(pages) == 1) == (height > 400)
    controls.key("f1")
    sketches, seen = Sketches(controls.session, controls), 0
    while controls.help:
        sketches.draw(Frame(controls.sight.stage, controls.sight.poses, FROM_ABOVE), canvas)
        seen += controls.help > 0
        controls.help += controls.help > 0
        canvas = Canvas(FROM_ABOVE, width, height)
    assert seen == len(pages)


def test_notes_report_what_is_played_and_recorded(tmp_path: Path) -> None:
    controls, sim = panel_state(free_box())
    live = controls.session.source
    assert isinstance(live, Live)
    sketches = Sketches(controls.session, controls)
    assert sketches.notes() == []
    with MotionRecorder(sim, tmp_path / "boom.npz") as recorder:
        live.record(recorder)
        live.single_step(4)
        (row,) = sketches.notes()
        assert row.text == "recording boom.npz 0.02 s" and row.color is not None
        controls.panel_reports = True
        assert sketches.notes() == []
        controls.session.note = "a recording cannot be pulled"
        assert [row.text for row in sketches.notes()] == [controls.session.note]
    session = Session(played_pendulum(tmp_path), paused=True)
    controls.panel_reports = False
    assert [row.text for row in Sketches(session, controls).notes()] == ["playback 0.00 / 1.00 s", "paused"]
