from __future__ import annotations

import contextlib
import io
import socket
import sys
import urllib.request
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Simulation, Transform
from gpusim.scene import Plot, Scene, list_scenes, load_scene, scene_parameters
from gpusim.stage import Poses, Stage
from gpusim.viewer import ViewerError
from gpusim.viewer.operator import Operator
from gpusim.viewer.panel import PanelState
from gpusim.viewer.web.server import open_server
from gpusim.viewer.web.web_view import WebView
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.viewer.operators import FRAME, arm, machine
from tests.unit.viewer.persons import played_pendulum

viser = pytest.importorskip("viser")


def falling(num_worlds: int = 1) -> Simulation:
    """A ball that falls freely from 5 m over a plane, next to a box that rests."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    ball = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((1.0, 2.0, 5.0)), label="ball")
    b.add_shape_sphere(ball, 0.5, color=(1.0, 0.0, 0.0))
    b.add_shape_box(-1, (0.3, 0.2, 0.1), xform=Transform((0.0, 0.0, 0.1)))
    return Simulation(b.finalize(), num_worlds, backend=FASTEST, config=gpusim.SolverConfig(dt=0.01))


def state_of(sim: Simulation, plots: tuple[Plot, ...] = (), **options: Any) -> PanelState:
    scene = Scene("test", "", ModelBuilder(), sim.config, 1.0, list(plots))
    live = Live(sim, scene)
    live.operator = Operator(sim, scene)
    return PanelState(Session(live, **options), live.operator)


class Page:
    def __init__(self, state: PanelState, **options: Any) -> None:
        self.view = WebView(state, port=0, **options)
        self.state, self.now = state, 0.0
        self.frames(1)

    def frames(self, count: int) -> None:
        for _ in range(count):
            self.view.frame(self.now)
            self.now += FRAME

    def handles(self) -> list[Any]:
        return list(self.view._server.gui._gui_input_handle_from_uuid.values())

    def handle(self, label: str) -> Any:
        return next(handle for handle in self.handles() if handle.label == label)

    def use(self, label: str, value: Any = True) -> None:
        handle = self.handle(label)
        handle._impl.value, handle._impl.update_timestamp = value, 0.0
        for changed in list(handle._impl.update_cb):
            changed(viser.GuiEvent(client=Browser(), client_id=1, target=handle))
        self.frames(1)

    def node(self, name: str) -> Any:
        return self.view._server.scene.get_handle_by_name(name)

    def ball(self) -> Any:
        stage = self.view._scene.stage
        return next(self.node(f"/stage/{b.first}") for b in stage.batches if stage.body[b.first] == 0)


class Browser:
    def __init__(self) -> None:
        self.camera = type("Camera", (), {})()

    def atomic(self) -> Any:
        return contextlib.nullcontext()


@pytest.fixture
def page(request):
    pages: list[Page] = []

    def opened(state: PanelState, **options: Any) -> Page:
        pages.append(Page(state, **options))
        return pages[-1]

    yield opened
    for one in pages:
        one.view.close()


# The picture.


def test_a_falling_ball_is_where_the_closed_form_puts_it(page) -> None:
    shown = page(state_of(falling()))
    ball = shown.ball()
    assert ball.batched_positions == pytest.approx(np.array([[1.0, 2.0, 5.0]]))
    assert ball.batched_scales == pytest.approx(np.array([[0.5, 0.5, 0.5]]))
    assert ball.batched_colors.tolist() == [[255, 0, 0]]
    shown.frames(30)
    time = shown.state.session.time
    assert 0.4 < time < 0.6
    assert ball.batched_positions[0] == pytest.approx([1.0, 2.0, 5.0 - 0.5 * 9.81 * time**2], abs=1e-5)


def test_only_changed_poses_are_sent(page) -> None:
    shown = page(state_of(falling(), paused=True))
    before = shown.view._scene.updates
    shown.frames(20)
    assert shown.view._scene.updates == before == 0
    shown.use("Time", "Step")
    assert shown.view._scene.updates == 1


def test_meshes_and_transforms_are_those_of_the_stage(page) -> None:
    sim = gpusim.Simulation(load_scene("boom_crane").builder.finalize(), backend=FASTEST)
    shown = page(state_of(sim))
    sim.step(20)
    shown.view.update()
    stage = Stage(sim.model)
    transforms = stage.transforms(Poses.of(sim))
    for batch in stage.batches:
        node = shown.node(f"/stage/{batch.first}")
        points = node.vertices[:: max(1, len(node.vertices) // 20)]
        for k in range(batch.count):
            w, *xyz = node.batched_wxyzs[k]
            turned = Transform(node.batched_positions[k], (*xyz, w)).apply(points * node.batched_scales[k])
            expected = points @ transforms[batch.first + k, :, :3].T + transforms[batch.first + k, :, 3]
            assert turned == pytest.approx(expected, abs=2e-5)


def test_textures_and_colors_of_vertices_are_kept(page) -> None:
    b = ModelBuilder()
    body = b.add_body(mass=1.0, inertia=(1, 1, 1), xform=Transform((0.0, 0.0, 1.0)))
    picture = np.zeros((4, 4, 3), np.uint8)
    picture[..., 2] = 200
    b.add_visual(body, "box", (0.3, 0.3, 0.3), texture=picture)
    b.add_visual(body, "sphere", 0.2, color=(0.2, 0.4, 0.6), alpha=0.5)
    shown = page(state_of(Simulation(b.finalize(), backend=FASTEST)))
    kinds = {type(node).__name__: node for node in shown.view._server.scene._handle_from_node_name.values()}
    trimesh = pytest.importorskip("trimesh")
    loaded = trimesh.load(io.BytesIO(kinds["BatchedGlbHandle"].glb_data), file_type="glb")
    (box,) = loaded.geometry.values()
    assert np.asarray(box.visual.material.baseColorTexture)[0, 0].tolist()[:3] == [0, 0, 200]
    assert box.extents == pytest.approx([0.6, 0.6, 0.6])
    assert kinds["BatchedMeshHandle"].batched_opacities == pytest.approx([0.5], abs=0.01)


def test_worlds_lie_side_by_side_or_alone(page) -> None:
    sim = falling(4)
    sim.write("body.ball.position", [1.0, 2.0, 9.0], [2])
    shown = page(state_of(sim, paused=True))
    assert len(shown.ball().batched_positions) == 4
    shown.use("World", "2")
    assert shown.ball().batched_positions == pytest.approx(np.array([[1.0, 2.0, 9.0]]))
    assert shown.state.world == 2
    shown.use("World", "all")
    assert len(shown.ball().batched_positions) == 4


def test_a_followed_body_stays_in_the_middle(page) -> None:
    shown = page(state_of(falling()))
    shown.use("Follow", "ball")
    start = shown.ball().batched_positions[0] + shown.node("/stage").position
    shown.frames(30)
    assert shown.ball().batched_positions[0, 2] < 4.5
    assert shown.ball().batched_positions[0] + shown.node("/stage").position == pytest.approx(start, abs=1e-4)


def test_a_view_moves_the_camera_of_its_browser(page) -> None:
    shown = page(state_of(falling(), paused=True))
    browser, handle = Browser(), shown.handle("Camera")
    handle._impl.value = "top"
    for changed in handle._impl.update_cb:
        changed(viser.GuiEvent(client=browser, client_id=1, target=handle))
    shown.frames(1)
    away = np.subtract(browser.camera.position, browser.camera.look_at)
    assert away[2] > 0.99 * np.linalg.norm(away)


def test_grounds_lie_in_their_planes(page) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1, xform=Transform((0.0, 0.0, 0.2)))
    b.add_shape_plane(-1, xform=Transform.from_axis_angle((0.0, 3.0, 0.0), (1.0, 0.0, 0.0), 0.5))
    plate = b.add_body(mass=1.0, inertia=(1, 1, 1), xform=Transform((0.0, 0.0, 9.0)), label="plate")
    b.add_visual(plate, "plane", color=(0.0, 1.0, 0.0))
    sim = Simulation(b.finalize(), 2, backend=FASTEST, config=gpusim.SolverConfig(dt=0.01))
    shown = page(state_of(sim))
    level, *tilted = (shown.node(f"/stage/ground_{k}_{w}") for k, w in ((0, 0), (1, 0), (1, 1)))
    assert level.position[2] == pytest.approx(0.2) and level.infinite_grid
    for handle in tilted:
        w, *xyz = handle.wxyz
        assert Transform((0, 0, 0), (*xyz, w)).matrix()[:, 2] == pytest.approx(
            [0.0, -np.sin(0.5), np.cos(0.5)], abs=1e-6
        )
    carried = shown.node("/stage/ground_2_0")
    assert tuple(carried.color) == (0, 255, 0)
    shown.frames(20)
    assert carried.position[2] == pytest.approx(sim.read("body.plate.position")[0, 2], abs=1e-5) != 9.0


# The controls.


def test_a_slider_drives_its_command_and_follows_it(page) -> None:
    sim = arm(servos=2)
    shown = page(state_of(sim))
    slider = shown.handle("s0 (rad)")
    assert (slider.min, slider.max, slider.value) == (-0.5, 1.5, 0.2)
    shown.use("s0 (rad)", 0.8)
    shown.frames(2)
    assert sim.control["s0"][0] == 0.8 and sim.control["s1"][0] == 0.2
    shown.state.operator.set("s0", -0.1, "gamepad")
    shown.frames(20)
    assert slider.value == pytest.approx(-0.1)


def test_a_change_by_the_server_is_no_wish_of_the_user(page) -> None:
    shown = page(state_of(arm()))
    shown.handle("s0 (rad)").value = 0.5
    shown.frames(2)
    assert shown.state.operator.source("s0") == ""


def test_a_wish_that_fails_is_shown_and_the_run_goes_on(page) -> None:
    shown = page(state_of(arm()))
    shown.use("s0 (rad)", float("nan"))
    shown.frames(20)
    assert shown.state.operator.source("s0") == "" and "'s0'" in shown.state.session.note
    assert "s0" in shown.view._panel._status.content and shown.state.session.time > 0.2


def test_switches_and_the_emergency_stop(page) -> None:
    sim = machine("drum", brake_force=100.0)
    shown = page(state_of(sim))
    shown.use("jack.brake", True)
    shown.use("drum", 0.5)
    shown.frames(1)
    assert sim.control["jack.brake"][0] == 1.0 and sim.control["drum"][0] == 0.5
    shown.use("EMERGENCY STOP")
    shown.frames(20)
    assert shown.state.operator.stopped and sim.control["drum"][0] == 0.0
    drum = shown.handle("drum")
    assert drum.disabled and drum.value == 0.0
    shown.use("RELEASE STOP")
    shown.frames(20)
    assert not shown.state.operator.stopped and not drum.disabled


def test_time_is_paused_stepped_reset_and_slowed(page) -> None:
    shown = page(state_of(falling()))
    session = shown.state.session
    shown.frames(10)
    shown.use("Time", "Pause / run")
    time = session.time
    assert session.paused and time > 0.1
    shown.use("Time", "Step")
    assert session.time == pytest.approx(time + 0.01)
    shown.use("Time", "Reset")
    assert session.time == 0.0 and shown.ball().batched_positions[0, 2] == 5.0
    shown.use("Speed", "0.2")
    assert session.speed == 0.2
    shown.use("Time", "Pause / run")
    shown.frames(31)
    assert session.time == pytest.approx(0.2 * 30 * FRAME, abs=0.01)


def test_a_recording_has_a_timeline_and_no_inputs(page, tmp_path) -> None:
    shown = page(PanelState(Session(played_pendulum(tmp_path), paused=True)))
    shown.use("Position", 0.5)
    assert shown.state.session.time == pytest.approx(0.5, abs=0.02)
    assert "EMERGENCY STOP" not in [handle.label for handle in shown.handles()]


def test_scopes_show_the_signals_of_the_last_seconds(page) -> None:
    shown = page(state_of(falling(), (Plot("Height", "m", ["body.ball.position"], ["ball"]),)))
    shown.frames(30)
    (_, chart), *_ = shown.view._scopes._charts
    time, x, y, z = chart.data
    assert [line["label"] for line in chart.series[1:]] == ["ball x", "ball y", "ball z"]
    assert x == pytest.approx(1.0) and y == pytest.approx(2.0)
    now = shown.view._scopes._sent[0][0]
    assert time[-1] == 0.0 and time[0] == pytest.approx(-now)
    assert z == pytest.approx(5.0 - 0.5 * 9.81 * (now + time) ** 2)
    assert chart.scales["y"]["range"][0] < z.min() and chart.scales["y"]["range"][1] > 5.0


def test_a_restart_with_other_parameters_shows_the_new_model(page) -> None:
    def live(changes: Any) -> Live:
        scene = load_scene("chain", **changes)
        sim = gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=scene.config)
        found = Live(sim, scene)
        found.operator = Operator(sim, scene)
        return found

    first = live({"links": 4})
    state = PanelState(
        Session(first, paused=True, rebuild=live), first.operator, scene_parameters("chain"), {"links": "4"}
    )
    shown = page(state)
    before = len(shown.view._scene.stage)
    shown.use("links", "7")
    shown.use("Restart with these")
    assert state.session.generation == 1 and len(state.session.source.model.bodies) > len(first.model.bodies)
    assert len(shown.view._scene.stage) > before
    shown.use("links", "no number")
    shown.use("Restart with these")
    shown.frames(20)
    assert state.session.generation == 1 and "links" in state.message


@pytest.mark.nightly
@pytest.mark.parametrize("name", list_scenes())
def test_every_scene_has_a_page(page, name: str) -> None:
    scene = load_scene(name)
    sim = Simulation(scene.builder.finalize(), 2, backend=FASTEST, config=scene.config)
    live = Live(sim, scene)
    live.operator = Operator(sim, scene)
    state = PanelState(Session(live, paused=True), live.operator, scene_parameters(name))
    shown = page(state, camera=scene.camera)
    shown.use("Time", "Step")
    nodes = [shown.node(f"/stage/{batch.first}") for batch in shown.view._scene.stage.batches]
    assert all(np.all(np.isfinite(node.batched_positions)) for node in nodes if node is not None)
    labels = [handle.label.split(" (")[0] for handle in shown.handles()]
    assert set(labels) >= {item.name for item in live.operator.inputs.values() if not item.idle}


# Server and notebook.


def test_a_notebook_shows_the_page_and_steps_by_itself() -> None:
    sim = arm()
    with gpusim.viewer.notebook(sim) as view:
        assert f'src="{view.url}"' in view._repr_html_()
        with urllib.request.urlopen(view.url, timeout=60) as answer:
            assert answer.status == 200 and b"<html" in answer.read().lower()
        sim.step(50)
        view.update()
        assert view.session.time == pytest.approx(0.5)
        view.session.source.operator.set("s0", 1.0)
        view.update()
        assert sim.control["s0"][0] == 1.0
        view.run(0.2)
        assert 0.55 < sim.time < 0.8
    for call in (view.update, view.run, view._repr_html_):
        with pytest.raises(ViewerError, match=naming("page closed")):
            call()
    wrong: dict[str, Any] = {"None simulation": (None,), "scene 'arm'": (sim, "arm")}
    for words, given in wrong.items():
        with pytest.raises(ViewerError, match=naming(words)):
            gpusim.viewer.notebook(*given)
    with pytest.raises(gpusim.ModelError, match=naming("world 7")):
        gpusim.viewer.notebook(sim, worlds=[7])


@pytest.mark.messages_vary
def test_a_port_in_use_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ViewerError, match=naming(f"port {other.getsockname()[1]} --port")):
            open_server("127.0.0.1", other.getsockname()[1])


@pytest.mark.parametrize(
    "host, port, named",
    [("127.0.0.1", 70000, "port 70000"), ("203.0.113.7", 0, "host '203.0.113.7'"), (3, 0, "host 3")],
)
def test_hosts_and_ports_that_cannot_be_used(host: str, port: int, named: str) -> None:
    with pytest.raises(ViewerError, match=naming(named)):
        open_server(host, port)


def test_a_missing_viser_is_named_with_its_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ViewerError, match=naming('viser pip install "gpusim[web]')):
        open_server()
