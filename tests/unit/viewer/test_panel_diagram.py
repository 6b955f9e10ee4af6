from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpusim.control import Diagram
from gpusim.recording.motion import MotionRecorder, load_motion
from gpusim.recording.player import MotionPlayer
from gpusim.scene import load_scene
from gpusim.viewer.panel import PanelState
from gpusim.viewer.panel.diagram_view import DiagramView, words
from gpusim.viewer.panel.layout import lay_out
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live, Played
from tests.unit.viewer.diagrams import cart, panel_state
from tests.unit.viewer.drawing import compare, require_egl
from tests.unit.viewer.persons import Person, needs_imgui, panel_state_of

ENTER = 257


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    require_egl()
    state = panel_state(tmp_path)
    state.diagram_shown = True
    one = Person(state, width=900, height=520)
    yield one
    one.eye.close()


def view_of(state: PanelState) -> DiagramView:
    found = state.diagrams()
    assert found is not None
    return found


def test_the_diagram_takes_the_lower_half_of_the_scene() -> None:
    without, layout = lay_out(640, 360, 150, 19, False), lay_out(640, 360, 150, 19, False, diagram=True)
    assert without.diagram.height == 0.0
    assert layout.scene.height + layout.diagram.height == without.scene.height
    assert layout.diagram.y == layout.scene.height and layout.diagram.width == layout.scene.width
    assert layout.left == without.left and layout.bar == without.bar


def test_values_are_those_of_the_simulation() -> None:
    state = panel_state(num_worlds=2)
    live = state.live
    assert live is not None
    live.sim.control["wish"] = [0.1, 0.4]
    live.sim.step(10)
    view = view_of(state)
    for world in (0, 1):
        values = view.values(world)
        assert set(values) == {w.name for w in live.sim.runtime.running[0].program.wires}  # type: ignore[union-attr]
        for name, value in values.items():
            np.testing.assert_array_equal(value, np.atleast_1d(live.sim.read(name)[world]))
    assert values["diagram.cart.wish"][0] > 0.2
    assert view_of(state) is view


def test_words_of_values() -> None:
    assert words(None) == "" and words(np.array([0.123456])) == "0.1235" and words(np.array([-0.0])) == "0"
    assert words(np.array([1.0, 2.5])) == "1, 2.5" and words(np.zeros(7)) == "7 numbers"


def test_zooming_keeps_what_lies_under_the_cursor() -> None:
    view = view_of(panel_state())
    view.fit(400.0, 200.0)
    whole = view.picture
    assert view.x >= -1e-9 and view.x + view.zoom * whole.width <= 400.0 + 1e-9
    box = view.picture.boxes["law"]
    at = view.x + view.zoom * (box.x + 5.0), view.y + view.zoom * (box.y + 5.0)
    before = view.zoom
    view.zoom_at(*at, 3.0)
    assert view.zoom == pytest.approx(before * 1.15**3)
    assert view.x + view.zoom * (box.x + 5.0) == pytest.approx(at[0])
    view.pick(*at)
    assert view.picked == "law"
    inner = view.picture.boxes["lamp/far"]
    view.pick(view.x + view.zoom * (inner.x + 5.0), view.y + view.zoom * (inner.y + 5.0))
    assert view.picked == "lamp/far"
    view.pick(-1e6, 0.0)
    assert view.picked == ""


def test_a_picked_block_does_not_lie_under_its_list() -> None:
    view = view_of(panel_state())
    view.fit(400.0, 200.0)
    x, box = view.x, view.picture.boxes["push"]
    view.pick(view.x + view.zoom * (box.x + 5.0), view.y + view.zoom * (box.y + 5.0))
    view.bring_into_view(300.0)
    assert view.picked == "push" and view.x + view.zoom * (box.x + box.width) == pytest.approx(292.0)
    view.move(x - view.x, 0.0)
    view.bring_into_view(300.0)
    assert view.x == pytest.approx(x), "once, not against the person's hand"


def test_several_diagrams_are_shown_one_by_one() -> None:
    made = []
    for label, command in (("a", "push"), ("b", "free")):
        d = Diagram(label)
        d.connect(d.add("input", f"{label}_x"), f"command:{command}")
        made.append(d)
    view = DiagramView(Live(cart(1, *made), load_scene("chain")))
    assert view.labels == ["a", "b"] and list(view.picture.boxes) == ["a_x", "push"]
    view.picked = "push"
    view.show("b")
    assert (
        list(view.picture.boxes) == ["b_x", "free"] and view.picked == "" and list(view.values(0)) == ["diagram.b.b_x"]
    )


@needs_imgui
def test_it_looks_as_it_was_looked_at(person: Person) -> None:
    state = person.panel_state
    assert state.operator is not None
    state.operator.set("wish", 0.5)
    state.operator.set("hold", 1.0)
    state.session.single_step(5)
    person.click("diagram block less")
    compare(person.look(), "panel_diagram")


@needs_imgui
def test_a_button_opens_and_closes_it(person: Person) -> None:
    small = person.panel.scene_area(900, 520)
    person.click("diagram")
    assert not person.panel_state.diagram_shown and "diagram canvas" not in person.panel_state.areas
    whole = person.panel.scene_area(900, 520)
    assert small.height < 0.5 * whole.height and not person.panel.covers(600, 400)
    person.click("diagram")
    assert person.panel.covers(600, 400) and not person.panel.covers(600, 100)


@needs_imgui
def test_scenes_without_diagrams_have_no_button(tmp_path: Path) -> None:
    require_egl()
    one = Person(panel_state_of("chain", tmp_path))
    assert one.panel_state.diagrams() is None and "diagram" not in one.panel_state.areas
    one.panel_state.diagram_shown = True
    one.wait()
    assert one.panel.layout(640, 360).diagram.height == 0.0
    one.eye.close()


@needs_imgui
def test_a_parameter_is_typed(person: Person) -> None:
    state = person.panel_state
    assert state.live is not None
    person.click("diagram block less")
    assert view_of(state).picked == "less"
    person.type("diagram parameter gain", "0.25")
    assert state.live.sim.read("diagram.cart.less.gain")[0] == 0.5, "not before it is finished"
    person.panel.events.key(ENTER, True)
    person.panel.events.key(ENTER, False)
    person.wait(3)
    assert state.live.sim.read("diagram.cart.less.gain")[0] == 0.25
    person.click("diagram block lamp/far")
    assert "diagram parameter gain" not in state.areas


@needs_imgui
def test_dragging_moves_and_the_wheel_zooms(person: Person) -> None:
    view, place = view_of(person.panel_state), person.panel_state.areas
    x, y, picked = view.x, view.y, view.picked
    person.drag("diagram canvas", 0.02, 0.22)
    assert view.x - x == pytest.approx(0.2 * place["diagram canvas"].width, abs=8.0) and view.y == y
    assert view.picked == picked, "a drag is no click"
    zoom = view.zoom
    person.point("diagram canvas")
    person.panel.events.scroll(0.0, 2.0)
    person.wait(2)
    assert view.zoom == pytest.approx(zoom * 1.15**2)
    person.click("diagram fit")
    assert (view.x, view.y) == pytest.approx((x, y))


def lamp_color(person: Person, block: str) -> np.ndarray:
    place = person.panel_state.areas[f"diagram block {block}"]
    picture = person.look()
    return picture[round(place.y + 0.5 * place.height), round(place.x + place.width)].astype(int)


@needs_imgui
def test_a_lamp_is_lit_by_its_wire(person: Person) -> None:
    state = person.panel_state
    assert state.operator is not None
    state.session.single_step(2)
    dark = lamp_color(person, "lamp/far")
    state.operator.set("wish", 0.5)
    state.session.single_step(3)
    lit = lamp_color(person, "lamp/far")
    assert lit[1] > 150 and lit[1] > lit[0] + 60, "green"
    assert dark[1] < 120


@needs_imgui
def test_a_recording_shows_what_was_recorded(tmp_path: Path) -> None:
    require_egl()
    state = panel_state()
    live = state.live
    assert live is not None and state.operator is not None
    with MotionRecorder(live.sim, tmp_path / "a.npz", rate=50.0) as recorder:
        live.record(recorder)
        state.operator.set("wish", 0.5)
        live.run_to(0.5, 60.0, smooth=False)
        last = view_of(state).values(0)
    played = PanelState(Session(Played(MotionPlayer(load_motion(tmp_path / "a.npz"), live.model)), paused=True))
    one = Person(played, width=900, height=520)
    one.click("diagram")
    view = view_of(played)
    first = view.values(0)
    assert first["diagram.cart.error"][0] == 0.0
    played.session.seek(0.5)
    for name, value in view.values(0).items():
        np.testing.assert_array_equal(value, last[name])
    one.click("diagram block less")
    assert view.picked == "less" and not view.parameters(view.picture.boxes["less"])
    assert "diagram parameter gain" not in played.areas
    one.eye.close()


def test_what_is_no_number_is_not_written() -> None:
    state = panel_state()
    assert state.live is not None
    view = view_of(state)
    view.edited["diagram.cart.less.gain"] = float("nan")
    view.write("diagram.cart.less.gain")
    assert state.live.sim.read("diagram.cart.less.gain")[0] == 0.5 and not view.edited
