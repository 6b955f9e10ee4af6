from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Transform
from gpusim.recording.motion import MotionRecorder, load_motion
from gpusim.recording.player import MotionPlayer
from gpusim.scene import Scene, load_scene
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live, Played
from gpusim.viewer.window.window import FrameInfo, Window
from tests.unit.viewer.display import display_variables

SIZE = {"width": 320, "height": 180}
SHIFT, CTRL = 1, 2


@pytest.fixture(autouse=True)
def display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in display_variables().items():
        monkeypatch.setenv(name, value)


def ball_scene(mass: float = 2.0, balls: int = 1) -> Scene:
    b = gpusim.ModelBuilder()
    b.add_shape_plane(-1)
    for k in range(balls):
        ball = b.add_body(mass=mass, inertia=(0.02, 0.02, 0.02), xform=Transform((0.6 * k, 0, 1)), label=f"ball{k}")
        b.add_shape_sphere(ball, 0.2)
    return Scene("balls", "Balls.", b, gpusim.SolverConfig(dt=0.005), 2.0)


def live_of(scene: Scene, num_worlds: int = 1) -> Live:
    return Live(gpusim.Simulation(scene.builder.finalize(), num_worlds, backend="numpy", config=scene.config), scene)


class PanelState:
    def __init__(self, session: Session, **more: Any) -> None:
        self.session = session
        self.window = Window(session, **{**SIZE, **more})
        self.glfw = self.window.screen.glfw
        self.now = 0.0
        self.frames()

    def frames(self, count: int = 1) -> np.ndarray:
        for _ in range(count):
            self.window.frame(self.now)
            self.now += 0.02
        return self.window.picture()

    def key(self, key: int, bits: int = 0, action: int | None = None) -> None:
        self.window.event("key", key, 0, self.glfw.PRESS if action is None else action, bits)

    def drag(self, button: int, *path: tuple[float, float], bits: int = 0, hold: bool = False) -> None:
        self.window.event("cursor", *path[0])
        self.window.event("button", button, self.glfw.PRESS, bits)
        for place in path[1:]:
            self.window.event("cursor", *place)
            self.frames()
        if not hold:
            self.window.event("button", button, self.glfw.RELEASE, bits)

    def place_of(self, body: int, world: int = 0) -> tuple[float, float]:
        sight = self.window.sight
        point = sight.poses.position[world, body] + sight.stage.offsets[world]
        pixel, _ = sight.camera().project(point, sight.width, sight.height)
        return float(pixel[0]), float(pixel[1])


@pytest.fixture
def panel_state() -> Iterator[PanelState]:
    d = PanelState(Session(live_of(ball_scene()), paused=True))
    yield d
    d.window.close()


def differ(a: np.ndarray, b: np.ndarray) -> float:
    return float((np.abs(a.astype(int) - b).max(axis=2) > 24).mean())


def test_it_opens_and_shows_the_scene(panel_state: PanelState) -> None:
    picture = panel_state.frames()
    assert picture.shape == (180, 320, 3) and picture.std() > 5.0
    assert panel_state.window.screen.version in ((4, 6), (4, 5), (4, 3))
    x, y = panel_state.place_of(0)
    ball, floor = picture[int(y), int(x)].astype(int), picture[170, 20].astype(int)
    assert np.abs(ball - floor).max() > 24


def test_pause_go_on_and_single_step(panel_state: PanelState) -> None:
    g = panel_state.glfw
    panel_state.frames(3)
    assert panel_state.session.source.time == 0.0
    panel_state.key(g.KEY_RIGHT)
    panel_state.key(g.KEY_RIGHT, action=g.REPEAT)
    assert panel_state.session.source.time == pytest.approx(0.01)
    panel_state.key(g.KEY_SPACE)
    panel_state.key(g.KEY_SPACE, action=g.RELEASE)
    before = panel_state.frames()
    after = panel_state.frames(12)
    assert panel_state.session.source.time == pytest.approx(0.26, abs=0.021) and differ(before, after) > 0.01
    panel_state.key(g.KEY_SPACE)
    time = panel_state.session.source.time
    assert differ(panel_state.frames(), panel_state.frames(3)) == 0.0 and panel_state.session.source.time == time


def test_orbit_pan_zoom_and_home(panel_state: PanelState) -> None:
    start = panel_state.frames()
    panel_state.drag(panel_state.glfw.MOUSE_BUTTON_LEFT, (20, 20), (60, 30), (100, 40))
    orbited = panel_state.frames()
    assert differ(start, orbited) > 0.02
    panel_state.drag(panel_state.glfw.MOUSE_BUTTON_MIDDLE, (20, 20), (60, 60))
    panned = panel_state.frames()
    assert differ(orbited, panned) > 0.02
    panel_state.window.event("scroll", 0.0, -3.0)
    assert differ(panned, panel_state.frames()) > 0.02
    panel_state.key(panel_state.glfw.KEY_H)
    assert differ(start, panel_state.frames()) < 0.005


def test_a_click_picks_and_f_follows(panel_state: PanelState) -> None:
    plain = panel_state.frames()
    panel_state.drag(0, panel_state.place_of(0))
    assert panel_state.window.sight.picked is not None
    reported = panel_state.frames()
    assert differ(plain, reported) > 0.02
    panel_state.key(panel_state.glfw.KEY_F)
    place = panel_state.place_of(0)
    panel_state.key(panel_state.glfw.KEY_SPACE)
    panel_state.frames(12)
    assert panel_state.place_of(0) == pytest.approx(place, abs=1e-6)
    panel_state.key(panel_state.glfw.KEY_F)
    panel_state.frames(4)
    assert panel_state.place_of(0) != pytest.approx(place, abs=1.0)


def test_dragging_a_body(panel_state: PanelState) -> None:
    live = panel_state.session.source
    assert isinstance(live, Live)
    panel_state.key(panel_state.glfw.KEY_SPACE)
    x, y = panel_state.place_of(0)
    panel_state.drag(0, (x, y), (x + 40, y - 30), bits=CTRL, hold=True)
    held = panel_state.frames(60)
    assert live.sim.read("body.ball0.applied_force")[0, 2] == pytest.approx(2.0 * 9.81, rel=0.05)
    assert float(live.sim.read("body.ball0.position")[0, 2]) > 0.5
    panel_state.window.event("button", 0, panel_state.glfw.RELEASE, 0)
    assert not live.sim.read("body.ball0.applied_force").any()
    panel_state.frames(60)
    assert float(live.sim.read("body.ball0.position")[0, 2]) == pytest.approx(0.2, abs=0.05)
    spring = np.all(np.abs(held.astype(int) - [219, 26, 107]) < 40, axis=2)
    assert spring.sum() > 10


def test_reset_and_slow_motion(panel_state: PanelState) -> None:
    g = panel_state.glfw
    panel_state.key(g.KEY_SPACE)
    panel_state.frames(20)
    panel_state.key(g.KEY_R)
    assert panel_state.session.source.time == 0.0
    panel_state.key(g.KEY_LEFT_BRACKET)
    panel_state.frames(11)
    assert panel_state.session.time == pytest.approx(0.1, abs=0.011)
    panel_state.key(g.KEY_RIGHT_BRACKET)
    assert panel_state.session.speed == 1.0


def test_restart_with_another_model() -> None:
    def rebuild(changes: Mapping[str, Any]) -> Live:
        return live_of(ball_scene(balls=int(changes.get("balls", 1))))

    d = PanelState(Session(live_of(ball_scene()), rebuild=rebuild))
    with d.window:
        d.drag(0, d.place_of(0))
        one = d.frames()
        d.session.restart({"balls": 3})
        three = d.frames()
        assert len(d.window.sight.stage.model.bodies) == 3 and d.window.sight.picked is None
        assert differ(one, three) > 0.01
        d.key(d.glfw.KEY_R, SHIFT)
        d.frames()
        assert len(d.window.sight.stage.model.bodies) == 1 and d.session.generation == 2


def test_many_worlds_in_a_grid() -> None:
    for drawn in (4, 2):
        d = PanelState(Session(live_of(ball_scene(), num_worlds=6), paused=True), max_worlds=drawn)
        with d.window:
            assert d.window.sight.worlds == list(range(drawn))
            d.drag(0, d.place_of(0, world=drawn - 1))
            picked = d.window.sight.picked
            assert picked is not None and picked.world == drawn - 1


def test_keys_of_overlays_draw_over_the_scene(panel_state: PanelState) -> None:
    from gpusim.viewer.overlays import overlays

    plain = panel_state.frames()
    box = next(overlay for overlay in overlays() if overlay.name == "boxes")
    panel_state.key(getattr(panel_state.glfw, f"KEY_{box.key.upper()}"))
    assert panel_state.window.overlays == {"boxes"}
    assert differ(plain, panel_state.frames()) > 0.002
    panel_state.key(getattr(panel_state.glfw, f"KEY_{box.key.upper()}"))
    assert differ(plain, panel_state.frames()) == 0.0


def test_the_keys_are_listed(panel_state: PanelState) -> None:
    plain = panel_state.frames()
    panel_state.key(panel_state.glfw.KEY_F1)
    assert differ(plain, panel_state.frames()) > 0.1
    names = [binding.name for binding in panel_state.window.controls.bindings.values()]
    assert {"Space", "Shift+R", "[", "F"} < set(names)
    parts = 1
    while panel_state.window.controls.help:
        panel_state.key(panel_state.glfw.KEY_F1)
        last = panel_state.frames()
        parts += 1
    assert 2 < parts < 12 and differ(plain, last) == 0.0


class Panel:
    def __init__(self) -> None:
        self.events: list[str] = []
        self.drawn = self.closed = 0
        self.x = 0.0

    def event(self, kind: str, *details: Any) -> bool:
        self.events.append(kind)
        if kind == "cursor":
            self.x = details[0]
        return kind == "key" or (kind in ("button", "cursor") and self.x < 160)

    def draw(self, shown: FrameInfo) -> None:
        from OpenGL import GL

        assert (shown.width, shown.height) == (320, 180)
        assert GL.glGetIntegerv(GL.GL_DRAW_FRAMEBUFFER_BINDING) == 0
        self.drawn += 1

    def close(self) -> None:
        self.closed += 1


def test_a_guest_draws_on_top_and_has_the_events_first(panel_state: PanelState) -> None:
    panel = Panel()
    panel_state.window.add_client(panel)
    before = panel_state.window.sight.camera()
    panel_state.key(panel_state.glfw.KEY_SPACE)
    panel_state.drag(0, (10, 20), (60, 20))
    assert panel_state.session.paused and panel_state.window.sight.camera() == before
    panel_state.drag(0, (300, 20), (250, 20), (100, 20))
    assert panel_state.window.sight.camera() != before
    panel_state.drag(0, (300, 20), (301, 20))
    assert panel.drawn > 3 and set(panel.events) >= {"key", "cursor", "button"}
    panel_state.window.close()
    assert panel.closed == 1


def test_the_size_of_the_window_may_change(panel_state: PanelState) -> None:
    panel_state.glfw.set_window_size(panel_state.window.screen.handle, 400, 200)
    for _ in range(20):
        if panel_state.frames().shape == (200, 400, 3):
            break
    assert panel_state.window.picture().shape == (200, 400, 3)
    assert (panel_state.window.sight.width, panel_state.window.sight.height) == (400, 200)


def test_the_loop_runs_to_its_end_at_its_rate() -> None:
    with Window(Session(live_of(ball_scene())), **SIZE) as window:
        jitter = window.run(duration=0.7)
        assert jitter.frames > 5
        assert window.session.time == pytest.approx(0.7, abs=0.15)
        window.session.quit()
        assert window.run().frames == 0


def test_closing_in_mid_record_leaves_a_motion_to_play(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    live = live_of(ball_scene())
    with MotionRecorder(live.sim, path, rate=50.0) as recorder:
        live.record(recorder)
        d = PanelState(Session(live))
        with d.window:
            d.frames(20)
            d.glfw.set_window_should_close(d.window.screen.handle, True)
            assert d.window.screen.closed()
    assert os.listdir(tmp_path) == ["a.npz"]
    motion = load_motion(path)
    assert len(motion) == 21 and motion.center_of_mass[-1, 0, 0, 2] < 0.5
    played = PanelState(Session(Played(MotionPlayer(motion, live.model)), paused=True))
    with played.window:
        first = played.frames()
        played.key(played.glfw.KEY_RIGHT, SHIFT)
        assert played.session.time == pytest.approx(motion.duration)
        assert differ(first, played.frames()) > 0.01
        played.key(played.glfw.KEY_LEFT)
        assert played.session.time == pytest.approx(motion.duration - 0.02)
        before = played.frames()
        played.drag(0, played.place_of(0))
        assert differ(before, played.frames()) > 0.02
        played.drag(0, played.place_of(0), bits=CTRL)
        assert "recording cannot be pulled" in played.session.note


def test_a_window_and_pictures_without_one_in_the_same_program(panel_state: PanelState) -> None:
    from gpusim.viewer import Offscreen

    before = panel_state.frames()
    source = panel_state.session.source
    assert isinstance(source, Live)
    with Offscreen(source.sim, width=64, height=36) as eye:
        assert eye.image().std() > 5.0
    assert differ(before, panel_state.frames()) == 0.0


def test_a_scene_of_the_library_runs() -> None:
    scene = load_scene("hydraulic_lift")
    sim = gpusim.Simulation(scene.builder.finalize(), backend="numpy", config=scene.config)
    d = PanelState(Session(Live(sim, scene)), camera=scene.camera)
    with d.window:
        d.frames(5)
    assert 0.02 < d.session.time < 0.101


def test_chosen_worlds_and_cameras() -> None:
    live = live_of(ball_scene(balls=2), 4)
    live.sim.write("body.ball0.position", (0.0, 0.0, 3.0), worlds=2)
    d = PanelState(Session(live, paused=True), worlds=[2], camera="top")
    try:
        assert d.window.sight.worlds == [2] and d.window.sight.stage.num_worlds == 1
        assert d.window.sight.poses.position[0, 0, 2] == pytest.approx(3.0)
        assert d.window.sight.camera().forward[2] < -0.99
        d.window.sight.picked = d.window.sight.pick(*d.place_of(0))
        assert d.window.sight.picked is not None and d.window.sight.picked.body == 0
    finally:
        d.window.close()
    camera = PinholeCamera((5.0, 1.0, 2.0), (0.0, 1.0, 1.0))
    d = PanelState(Session(live_of(ball_scene()), paused=True), camera=camera)
    try:
        assert d.window.sight.camera().position == pytest.approx(camera.position)
        d.drag(0, (100, 100), (200, 120))
        assert d.window.sight.camera().position != pytest.approx(camera.position, abs=0.1)
        d.key(d.glfw.KEY_H)
        assert d.window.sight.camera().position == pytest.approx(camera.position)
    finally:
        d.window.close()


def test_a_body_that_is_followed_by_name_is_in_the_middle_and_stays_there_after_a_restart() -> None:
    def rebuild(changes: Mapping[str, Any]) -> Live:
        return live_of(ball_scene(balls=changes["balls"]))

    d = PanelState(Session(live_of(ball_scene(balls=3)), rebuild=rebuild))
    sight = d.window.sight
    with pytest.raises(gpusim.UnknownNameError):
        sight.follow_body("ball7")
    sight.follow_body("ball1")
    d.frames(5)
    try:
        assert d.place_of(1) == pytest.approx((160.0, 90.0), abs=1.0)
        d.session.restart({"balls": 2})
        d.frames(5)
        assert d.window.sight is not sight and d.window.sight.followed is not None
        assert d.place_of(1) == pytest.approx((160.0, 90.0), abs=1.0)
        d.session.restart({"balls": 1})
        d.frames(5)
        assert d.window.sight.followed is None
    finally:
        d.window.close()
