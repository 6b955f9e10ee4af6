from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Simulation, Transform, UnknownNameError
from gpusim.scene import Plot, load_scene
from gpusim.viewer import ViewerError
from gpusim.viewer.overlays.canvas import Box
from gpusim.viewer.panel.history import SECONDS, History, decimals, number
from gpusim.viewer.panel.layout import lay_out
from gpusim.viewer.panel.ranges import signal_range
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.viewer.drawing import compare, require_egl
from tests.unit.viewer.persons import Person, needs_imgui, panel_state_of

PANEL = Path(__file__).parents[3] / "viewer" / "panel"


@pytest.fixture
def person(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Person]:
    require_egl()
    one = Person(panel_state_of(request.param, tmp_path))
    yield one
    one.eye.close()


def on(name: str) -> Any:
    return pytest.mark.parametrize("person", [name], indirect=True)


# What is shown.


def falling(num_worlds: int = 1) -> Simulation:
    b = ModelBuilder()
    b.add_body(mass=1.0, inertia=(1.0,) * 3, xform=Transform((0, 0, 1)), label="ball")
    return Simulation(b.finalize(), num_worlds, backend=FASTEST, config=gpusim.SolverConfig(dt=0.05))


def test_history_keeps_the_last_seconds() -> None:
    sim = falling()
    history = History(sim, [Plot("Energy", "kJ", ["sim.kinetic_energy", "sim.potential_energy"], scale=1e-3)])
    history.sample()
    history.sample()
    assert len(history.course(history.scopes[0])[0]) == 1
    for _ in range(30):
        sim.step(10)
        history.sample()
    times, values = history.course(history.scopes[0])
    assert times[-1] == pytest.approx(15.0) and times[0] == pytest.approx(15.0 - SECONDS) and values.shape == (21, 2)
    assert values[-1, 0] == pytest.approx(0.5e-3 * (9.81 * 15.0) ** 2)
    sim.reset()
    history.sample()
    assert history.course(history.scopes[0])[0].tolist() == [0.0]


def test_vectors_give_a_line_for_each_component() -> None:
    sim = falling(3)
    sim.write("body.ball.linear_velocity", (1.0, 2.0, 0.0), worlds=2)
    history = History(sim, [Plot("Speed", "m/s", ["body.ball.linear_velocity"])], worlds=[0, 2])
    history.sample()
    (scope,) = history.scopes
    assert [trace.label for trace in scope.traces] == [f"ball linear velocity {axis}" for axis in "xyz"]
    assert history.course(scope)[1][0].tolist() == [0.0, 0.0, 0.0]
    history.show(2)
    assert history.course(scope)[1][0].tolist() == pytest.approx([1.0, 2.0, 0.0])
    history.show(1)
    assert history.world == 2
    with pytest.raises(UnknownNameError, match=naming("'Speed' 'body.bal.position'")):
        History(sim, [Plot("Speed", "m/s", ["body.bal.position"])])


def test_gauges_know_what_the_parameters_report() -> None:
    model = load_scene("hydraulic_lift").builder.finalize()
    assert signal_range(model, "cylinder.lift.position") == (0.0, 0.5)
    assert signal_range(model, "cylinder.lift.pressure_b") == (1e5, 1e7)
    assert signal_range(model, "cylinder.lift.spool") == (-1.0, 1.0)
    assert signal_range(model, "cylinder.lift.force") is None
    assert signal_range(model, "joint.rail.position") is None  # without limits
    assert signal_range(model, "sim.kinetic_energy") is None


@pytest.mark.parametrize("value, span, text", [(0.1234, 0.5, "0.123"), (13.71, 20.0, "13.7"), (512.3, 4e3, "512")])
def test_numbers_have_fitting_decimals(value: float, span: float, text: str) -> None:
    assert number(value, span) == text


def test_numbers_have_no_minus_zero() -> None:
    assert number(-1e-9, 1.0) == "0.00" and number(0.5, 1.0, "+") == "+0.50" and number(np.nan, 1.0) == "-"
    assert decimals(0.0) == 2 and decimals(1e-12) == 4


@pytest.mark.parametrize("width, height", [(640, 360), (1280, 720), (1920, 1080)])
@needs_imgui
def test_the_scene_keeps_half_of_the_picture(width: int, height: int) -> None:
    from gpusim.viewer.panel.theme import Sizes

    sizes = Sizes.of(width, height)
    layout = lay_out(width, height, sizes.column, sizes.bar, scopes=True)
    assert layout.scene.width >= 0.5 * width and layout.scene.height > 0.9 * height
    assert layout.left.width + layout.scene.width + layout.right.width == width
    assert layout.bar.y == layout.scene.height and layout.bar.y + layout.bar.height == height
    assert sizes.font >= 11.0
    assert lay_out(width, height, sizes.column, sizes.bar, scopes=False).scene.width > layout.scene.width


@needs_imgui
@on("boom_crane")
def test_small_windows_belong_to_the_scene(person: Person) -> None:
    whole = Box(0.0, 0.0, 300, 200)
    assert person.panel.scene_area(300, 200) == whole and not person.panel.fits(300, 200)
    assert person.panel.layout(400, 360).right.width == 0.0 and person.panel.layout(400, 360).left.width > 100.0
    person.panel.frame(300, 200, 0.1)
    assert not person.panel.covers(5.0, 5.0) and not person.panel.has_list


def test_areas_hold_points() -> None:
    area = Box(10.0, 20.0, 30.0, 40.0)
    assert area.holds(10.0, 20.0) and area.holds(39.9, 59.9)
    assert not area.holds(40.0, 30.0) and not area.holds(20.0, 60.0) and not area.holds(9.9, 30.0)


# Clicks.


@needs_imgui
@on("hydraulic_lift")
def test_a_slider_moves_the_machine(person: Person) -> None:
    panel_state = person.panel_state
    sim, operator = panel_state.session.source.sim, panel_state.operator  # type: ignore[attr-defined]
    assert operator is not None
    person.drag("command lift", 0.5, 0.9)
    assert 0.7 < operator.value("lift") < 0.9 and operator.source("lift") == "panel"
    panel_state.session.single_step(20)
    assert sim.control["lift"][0] == operator.value("lift")
    assert sim.read("cylinder.lift.position")[0] > 0.01
    person.click("command lift", button=1)
    panel_state.session.single_step()
    assert operator.source("lift") == "" and sim.control["lift"][0] == 0.0


@needs_imgui
@on("hydraulic_lift")
def test_a_switch_sets_the_brake(person: Person) -> None:
    operator = person.panel_state.operator
    assert operator is not None
    person.click("command lift.brake")
    assert operator.value("lift.brake") == 1.0
    person.click("command lift.brake")
    assert operator.value("lift.brake") == 0.0 and operator.source("lift.brake") == "panel"


@needs_imgui
@on("hydraulic_lift")
def test_the_big_red_button(person: Person) -> None:
    panel_state = person.panel_state
    operator, sim = panel_state.operator, panel_state.session.source.sim  # type: ignore[attr-defined]
    assert operator is not None
    person.drag("command lift", 0.5, 1.0)
    panel_state.session.single_step(10)
    person.click("stop")
    assert operator.stopped
    person.drag("command lift", 0.5, 1.0)
    panel_state.session.single_step()
    assert sim.control["lift"][0] == 0.0 and sim.control["lift.brake"][0] == 1.0
    person.click("stop")
    assert not operator.stopped and operator.value("lift.brake") == 1.0


@needs_imgui
@on("boom_crane")
def test_buttons_run_the_time(person: Person) -> None:
    session = person.panel_state.session
    person.click("step")
    person.click("step")
    assert session.time == pytest.approx(0.02) and session.paused
    person.click("reset")
    assert session.time == 0.0
    person.click("run")
    assert not session.paused
    person.click("run")
    assert session.paused
    person.click("slower")
    assert session.speed == 0.5
    person.click("faster")
    person.click("faster")
    assert session.speed == 2.0


@needs_imgui
@on("boom_crane")
def test_boxes_turn_overlays_on(person: Person) -> None:
    before = person.look()
    assert "overlay pressure" not in person.panel_state.areas
    person.click("Overlays", share=0.2)
    person.click("overlay pressure", share=0.1)
    assert person.panel_state.shown == {"pressure"}
    area = person.panel.scene_area(640, 360)
    middle = np.s_[: int(area.height), int(area.x) : int(area.x + area.width)]
    assert np.abs(before[middle].astype(int) - person.look()[middle]).max() > 60
    person.click("overlay pressure", share=0.1)
    assert person.panel_state.shown == set()


@needs_imgui
def test_parameters_restart_the_scene(tmp_path: Path) -> None:
    require_egl()
    person = Person(panel_state_of("boom_crane", tmp_path), height=720)
    panel_state, session = person.panel_state, person.panel_state.session
    before, operator = session.source, panel_state.operator
    assert operator is not None
    person.click("Parameters", share=0.2)
    assert panel_state.values["tip_mass"] == "500" and panel_state.changed() == {}
    person.type("parameter tip_mass", "750")
    assert person.panel.wants_keyboard and panel_state.changed() == {"tip_mass": "750"}
    person.click("restart")
    assert session.source is not before and panel_state.changed() == {} and not person.panel.wants_keyboard
    sim = session.source.sim  # type: ignore[attr-defined]
    assert sim.runtime.parameter("mass")[0, 0] == pytest.approx(1050.0) and operator.sim is sim
    person.type("parameter tip_mass", "-1")
    person.click("restart")
    assert session.source.sim is sim and "'tip_mass' must be at least 0, got -1" in panel_state.message  # type: ignore[attr-defined]
    person.eye.close()


@needs_imgui
@on("hydraulic_lift")
def test_record_and_replay(person: Person) -> None:
    panel_state = person.panel_state
    operator, session = panel_state.operator, panel_state.session
    sim = session.source.sim  # type: ignore[attr-defined]
    assert operator is not None
    session.single_step(5)
    person.click("record")
    assert operator.recording and session.time == 0.0
    session.single_step(2)
    person.drag("command lift", 0.5, 0.8)
    session.single_step(20)
    person.click("record")
    assert not operator.recording and panel_state.record_path.is_file()
    state = {name: np.array(array) for name, array in sim.read_state().items()}
    person.click("replay")
    assert operator.replaying and session.time == 0.0
    session.single_step(22)
    assert all(np.array_equal(state[name], array, equal_nan=True) for name, array in sim.read_state().items())
    person.click("replay")
    assert not operator.replaying


@needs_imgui
@on("boom_crane")
def test_the_panel_takes_the_mouse_where_it_is(person: Person) -> None:
    person.panel.events.cursor(320.0, 150.0)
    person.wait()
    assert not person.panel.has_list and not person.panel.covers(320.0, 150.0)
    person.point("run")
    assert person.panel.covers(20.0, 50.0) and not person.panel.has_list and not person.panel.wants_keyboard


@needs_imgui
@on("boom_crane")
def test_a_hidden_panel_costs_nothing(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    sim = person.panel_state.session.source.sim  # type: ignore[attr-defined]
    read, names = sim.read, []
    monkeypatch.setattr(sim, "read", lambda name, *more, **options: names.append(name) or read(name, *more, **options))
    person.point("run")
    person.panel.visible = False
    names.clear()
    person.panel.frame(640, 360, 0.1)
    assert not names
    assert not person.panel.has_list and not person.panel.covers(20.0, 50.0)
    assert person.panel.scene_area(640, 360) == Box(0.0, 0.0, 640, 360)
    person.panel.visible = True
    person.wait()
    person.panel_state.session.single_step(10)
    person.wait()
    assert names


@needs_imgui
@on("boom_crane")
def test_inputs_of_diagrams_are_on_the_panel(person: Person) -> None:
    operator = person.panel_state.operator
    assert operator is not None
    operator.add_input("height", 0.0, 2.0, initial=1.0, safe=1.0, unit="m", springs=False)
    operator.add_input("lamp", 0.0, 1.0, switch=True)
    person.wait()
    person.drag("command height", 0.5, 0.0)
    person.click("command lamp")
    assert operator.value("height") == 0.0 and operator.value("lamp") == 1.0


@needs_imgui
@on("four_bar")
def test_a_scene_without_commands(person: Person) -> None:
    assert not [name for name in person.panel_state.areas if name.startswith("command")]
    person.click("stop")
    assert person.panel_state.operator is not None and person.panel_state.operator.stopped


@needs_imgui
def test_two_panels_side_by_side() -> None:
    require_egl()
    first, second = Person(panel_state_of("boom_crane")), Person(panel_state_of("hydraulic_lift"))
    first.drag("command lift", 0.5, 1.0)
    second.wait()
    first.wait()
    assert first.panel_state.operator is not None and second.panel_state.operator is not None
    assert first.panel_state.operator.value("lift") == 1.0 and second.panel_state.operator.value("lift") == 0.0
    first.eye.close()
    second.drag("command lift", 0.5, 0.0)
    assert second.panel_state.operator.value("lift") == -1.0
    with pytest.raises(ViewerError):
        first.eye.image()
    second.eye.close()


# Pictures.


@pytest.mark.nightly
@needs_imgui
@pytest.mark.parametrize("name, seconds", [("hydraulic_lift", 2.4), ("boom_crane", 4.0)])
def test_pictures(name: str, seconds: float) -> None:
    require_egl()
    panel_state = panel_state_of(name)
    history = panel_state.history()
    assert history is not None
    for _ in range(round(seconds / 0.04)):
        panel_state.session.single_step(4)
        history.sample()
    person = Person(panel_state)
    compare(person.look(), f"panel_{name}")
    person.eye.close()


@needs_imgui
def test_the_stop_is_seen() -> None:
    require_egl()
    panel_state = panel_state_of("boom_crane")
    panel_state.jitter = 0.0004
    assert panel_state.operator is not None
    panel_state.operator.emergency_stop()
    person = Person(panel_state)
    compare(person.look(), "panel_stopped")
    person.eye.close()


# Without imgui.


def test_imgui_is_imported_in_one_file() -> None:
    users = [file.name for file in sorted(PANEL.parent.rglob("*.py")) if "imgui_bundle" in file.read_text()]
    assert users == ["bundle.py"]
    assert not re.search(r"imgui|OpenGL", "".join(f.read_text() for f in (PANEL.parent / "operator").glob("[!_]*.py")))


@pytest.mark.nightly
def test_missing_imgui_is_reported() -> None:
    code = """
import sys
sys.modules["imgui_bundle"] = None
import gpusim.viewer.panel
try:
    gpusim.viewer.panel.Panel
except gpusim.viewer.ViewerError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    (line,) = done.stdout.splitlines()
    assert line.startswith("the operator panel needs imgui-bundle") and 'pip install "gpusim[panel]"' in line
