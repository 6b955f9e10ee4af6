from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusim.recording.motion import MotionRecorder
from gpusim.viewer.panel import PanelState
from gpusim.viewer.panel.layout import lay_out
from gpusim.viewer.window.session import Session
from tests.unit.viewer.drawing import compare, require_egl
from tests.unit.viewer.persons import Person, needs_imgui, panel_state_of, played_pendulum


def reddish(picture: np.ndarray) -> int:
    line = picture[-19:].astype(int)
    return int(((line[..., 0] > 150) & (line[..., 1] < 90) & (line[..., 2] < 90)).sum())


def test_a_timeline_lies_over_the_status_line() -> None:
    without, layout = lay_out(640, 360, 150, 19, False), lay_out(640, 360, 150, 19, False, timeline=16)
    assert without.timeline.height == 0.0 and layout.timeline.height == 16 and layout.timeline.width == 640
    assert layout.scene.height == without.scene.height - 16 == layout.timeline.y and layout.bar == without.bar


@needs_imgui
def test_the_timeline_is_dragged_and_follows(tmp_path: Path) -> None:
    require_egl()
    session = Session(played_pendulum(tmp_path), paused=True)
    panel_state = PanelState(session)
    assert panel_state.health() == ("playback", True)
    person = Person(panel_state)
    area = panel_state.areas["timeline"]
    assert area.width > 600 and area.y > 300
    person.drag("timeline", 0.1, 0.75)
    assert session.time == pytest.approx(0.75, abs=0.02) and session.paused
    person.drag("timeline", 0.75, 0.0)
    assert session.time == 0.0

    def bright() -> float:
        row = person.look()[int(area.y + 0.5 * area.height), int(area.x) : int(area.x + area.width)]
        return float(np.flatnonzero(row[:, 2] > 150).mean()) / area.width

    session.seek(0.25)
    assert bright() == pytest.approx(0.25, abs=0.03)
    session.seek(0.8)
    assert bright() == pytest.approx(0.8, abs=0.03)
    person.point("run")
    picture = person.look()
    assert (picture[-17:].max(axis=2) > 200).sum() > 100
    compare(picture, "panel_playback")
    # while it runs, a held slider holds the time
    session.toggle_pause()
    person.point("timeline", 0.4)
    person.panel.events.button(0, True)
    for k in range(5):
        session.frame(0.02 * k)
        person.wait()
    assert session.time == pytest.approx(0.4, abs=0.02) and not session.paused
    person.eye.close()


@needs_imgui
def test_a_run_that_is_recorded_has_a_red_dot(tmp_path: Path) -> None:
    require_egl()
    panel_state = panel_state_of("four_bar")
    person = Person(panel_state)
    live = panel_state.live
    assert live is not None and reddish(person.look()) == 0
    with MotionRecorder(live.sim, tmp_path / "boom.npz") as recorder:
        live.record(recorder)
        assert reddish(person.look()) > 20
        live.record(None)
    assert reddish(person.look()) == 0
    person.eye.close()


@needs_imgui
def test_scopes_and_commands_are_those_of_one_world() -> None:
    require_egl()
    panel_state = panel_state_of("hydraulic_lift", num_worlds=4)
    live, operator = panel_state.live, panel_state.operator
    assert live is not None and operator is not None
    for world in range(4):
        live.sim.write("cylinder.lift.pressure_a", 1e6 * (world + 1), worlds=world)
    person = Person(panel_state)
    assert list(panel_state.worlds) == [0, 1, 2, 3] and panel_state.world_name() == "world 0 of 4"
    history = panel_state.history()
    assert history is not None
    scope = next(scope for scope in history.scopes if "pressure a" in scope.traces[0].signal.replace("_", " "))
    assert history.course(scope)[1][-1, 0] == pytest.approx(1e6 * scope.traces[0].scale)
    live.sim.control.array[:, 0] = [0.0, 0.0, 0.0, 0.5]
    first = person.look()
    panel_state.world = 3
    picture = person.look()
    assert panel_state.world_name() == "world 3 of 4" and panel_state.history() is history
    assert history.course(scope)[1][-1, 0] == pytest.approx(4e6 * scope.traces[0].scale)
    compare(picture, "panel_world")
    assert np.abs(first.astype(int) - picture)[:, :130].max() > 60
    person.drag("command lift", 0.75, 1.0)
    panel_state.session.single_step()
    assert live.sim.control["lift"].tolist() == [1.0] * 4
    person.eye.close()


@needs_imgui
def test_one_world_needs_no_number() -> None:
    panel_state = panel_state_of("four_bar")
    assert panel_state.world_name() == ""


@needs_imgui
def test_the_keys_are_listed_with_what_they_do(tmp_path: Path) -> None:
    require_egl()
    person = Person(panel_state_of("hydraulic_lift"), height=720)
    operator = person.panel_state.operator
    assert operator is not None and person.panel_state.all_keys() == operator.key_groups()
    before = person.look()
    person.click("Keys", share=0.2)
    assert np.abs(before.astype(int) - person.look())[400:, :130].max() > 60
    person.eye.close()
