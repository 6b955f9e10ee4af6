from __future__ import annotations

import math

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Simulation, Transform
from gpusim.model.model import Model
from gpusim.scene import Camera, load_scene
from gpusim.stage.poses import Poses
from gpusim.viewer import PinholeCamera, ViewerError
from gpusim.viewer.overlays import overlays
from gpusim.viewer.window.controls import Controls
from gpusim.viewer.window.navigation import Navigator
from gpusim.viewer.window.picked import Picked, quaternion_of
from gpusim.viewer.window.picking import Hit
from gpusim.viewer.window.pulling import STRONGEST, Pull, mass_at_point, spring_wrench, why_not_pulled
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live
from gpusim.viewer.window.view_state import ViewState
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.viewer.models import SHAPES

SIZE = (640, 360)
FROM_ABOVE = PinholeCamera((0.0, -0.1, 7.0), (0.0, 0.0, 1.0))


def free_box(gravity: float = 0.0, kinematic: bool = False, mass: float = 3.0) -> Model:
    """A box of 0.4 m about (0, 0, 1), free to move."""
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity))
    box = b.add_body(
        mass=mass, inertia=(0.08, 0.08, 0.08), xform=Transform((0, 0, 1)), kinematic=kinematic, label="box"
    )
    b.add_shape_box(box, (0.2, 0.2, 0.2))
    return b.finalize()


def panel_state(model: Model, num_worlds: int = 1, dt: float = 0.005) -> tuple[Controls, Simulation]:
    sim = Simulation(model, num_worlds, backend=FASTEST, config=gpusim.SolverConfig(dt=dt))
    scene = load_scene("double_pendulum")
    scene.schedule = None
    session = Session(Live(sim, scene))
    worlds = list(range(num_worlds))
    sight = ViewState(model, worlds, session.poses(worlds), *SIZE)
    sight.navigator.look(PinholeCamera((0.0, -4.0, 1.0), (0.0, 0.0, 1.0)))
    return Controls(session, sight), sim


def run(controls: Controls, seconds: float, start: float = 0.0) -> float:
    sight = controls.sight
    for k in range(round(seconds * 50) + 1):
        controls.aim_pull()
        controls.session.frame(start + k / 50)
        sight.show(controls.session.poses(sight.worlds))
    return start + seconds


# Camera.


@pytest.mark.parametrize("up", [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.6, 0.0, 0.8)])
def test_the_camera_turns_about_the_vertical_of_the_stage(up: tuple[float, float, float]) -> None:
    vertical = np.array(up)
    steering = Navigator(vertical)
    start = PinholeCamera((3.0, -4.0, 2.5), (0.1, 0.2, 0.3), up)
    steering.look(start)
    assert np.allclose(steering.camera().position, start.position)
    height = (np.subtract(start.position, start.target)) @ vertical
    steering.orbit(0.4, 0.0)
    camera = steering.camera()
    assert camera.distance == pytest.approx(start.distance)
    assert (np.subtract(camera.position, camera.target)) @ vertical == pytest.approx(height)
    assert camera.axes()[0] @ vertical == pytest.approx(0.0, abs=1e-12)
    steering.orbit(0.0, 0.1)
    assert np.subtract(steering.camera().position, camera.target) @ vertical > height


def test_pan_keeps_what_is_grabbed_under_the_cursor_and_zoom_comes_closer() -> None:
    steering = Navigator(np.array([0.0, 0.0, 1.0]))
    steering.look(PinholeCamera((0.0, -4.0, 1.0), (0.0, 0.0, 1.0)))
    steering.pan(0.25, 0.1)
    pixel, _ = steering.camera().project((0.0, 0.0, 1.0), *SIZE)
    assert pixel == pytest.approx([320 + 0.25 * 360, 180 + 0.1 * 360])
    steering.zoom(2.0)
    assert steering.camera().distance == pytest.approx(4.0 * 0.88**2)


def test_the_eye_that_follows_stays_above_the_ground() -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    b.add_shape_sphere(b.add_body(xform=Transform((0, 0, 1))), 0.2)
    sight = panel_state(b.finalize())[0].sight
    sight.navigator.look(PinholeCamera((0.0, -4.0, -2.0), (0.0, 0.0, 1.0)))
    assert sight.camera().position[2] == pytest.approx(-2.0)
    sight.follow(sight.pick(320, 180) or Hit(0, 0, np.zeros(3), 0.0))
    assert 0.0 < sight.camera().position[2] < 0.2


def test_home_and_following() -> None:
    controls, sim = panel_state(free_box(gravity=10.0))
    sight = controls.sight
    controls.key("f")
    assert "click a body first" in controls.session.note and sight.followed is None
    sight.picked = sight.pick(320, 180)
    controls.key("f")
    before = np.subtract(sight.camera().position, sight.center(sight.picked))
    run(controls, 0.6)
    assert float(sim.read("body.box.position")[0, 2]) < -0.7
    assert np.subtract(sight.camera().position, sight.center(sight.picked)) == pytest.approx(before)
    controls.key("f")
    assert sight.followed is None
    controls.key("h")
    pixel, _ = sight.camera().project(sight.center(sight.picked), *SIZE)
    assert abs(pixel[0] - 320) < 60 and abs(pixel[1] - 180) < 60


def test_a_scene_has_its_own_camera() -> None:
    model = free_box()
    own = Camera((0.0, -9.0, 1.0), (0.0, 0.0, 1.0))
    sight = ViewState(model, [0], Poses.from_model(model), *SIZE, own)
    assert sight.camera().position == pytest.approx(own.position)
    other = ViewState(model, [0], Poses.from_model(model), *SIZE, Camera())
    assert other.camera().distance < 3.0


# Picking.


@pytest.mark.parametrize("kind", SHAPES)
def test_rays_meet_every_shape_where_its_picture_is(kind: str) -> None:
    b = ModelBuilder()
    body = b.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0))
    SHAPES[kind](b, body)
    model = b.finalize()
    sight = ViewState(model, [0], Poses.from_model(model), *SIZE)
    sight.navigator.look(PinholeCamera((0.1, -4.0, 0.05), (0.0, 0.0, 0.0)))
    hit = sight.pick(320, 180)
    assert hit is not None and hit.body == body and 3.5 < hit.distance < 4.01
    assert hit.point == pytest.approx(np.array(sight.camera().position) + hit.distance * sight.camera().forward)
    assert sight.pick(5, 180) is None


def test_the_nearest_body_is_picked_and_walls_hide() -> None:
    b = ModelBuilder()
    for k, y in enumerate((2.0, 0.0, 1.0)):
        b.add_shape_sphere(b.add_body(xform=Transform((0.0, y, 1.0)), label=f"ball{k}"), 0.2)
    # so far aside that only a part of the bodies is behind it, and it is no glass
    b.add_shape_box(-1, (0.1, 0.1, 0.1), xform=Transform((0.6, -1.0, 1.0)))
    b.add_shape_sphere(b.add_body(xform=Transform((1.5, 3.0, 1.0)), label="hidden"), 0.01)
    model = b.finalize()
    sight = ViewState(model, [0], Poses.from_model(model), *SIZE)
    sight.navigator.look(PinholeCamera((0.0, -4.0, 1.0), (0.0, 0.0, 1.0)))
    hit = sight.pick(320, 180)
    assert hit is not None and hit.body == 1 and hit.point == pytest.approx([0.0, -0.2, 1.0], abs=0.01)
    pixel, _ = sight.camera().project((0.6, -1.0, 1.0), *SIZE)
    blocked = sight.pick(*pixel)
    assert blocked is None or blocked.body == 3


def before_a_ground(name: str) -> ViewState:
    b = ModelBuilder()
    b.add_shape_sphere(b.add_body(xform=Transform((0.0, 2.0, 1.0)), label="ball"), 0.2)
    facing = Transform.from_axis_angle((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), 0.5 * math.pi)  # its solid half at y > 0
    if name == "level plane":
        b.add_shape_plane(-1, xform=Transform((0.0, 0.0, 2.0)))
    elif name == "leaning plane":
        b.add_shape_plane(-1, xform=facing)
    elif name == "plane on a body":
        b.add_shape_plane(b.add_body(xform=facing, kinematic=True, label="board"))
    elif name == "height field":
        b.add_shape_height_field(-1, np.full((8, 8), 0.0), (0.1, 0.1), base=-0.1, xform=facing)
    model = b.finalize()
    sight = ViewState(model, [0], Poses.from_model(model), *SIZE)
    eye = (0.0, 0.0, 6.0) if name == "level plane" else (0.0, -4.0, 1.0)
    sight.navigator.look(PinholeCamera(eye, (0.0, 2.0, 1.0)))
    return sight


@pytest.mark.parametrize("name", ["level plane", "leaning plane", "plane on a body", "height field"])
def test_grounds_hide_what_is_behind_them(name: str) -> None:
    sight = before_a_ground(name)
    hit = sight.pick(320, 180)
    if name == "plane on a body":
        assert hit is not None and sight.stage.model.bodies[hit.body].label == "board"
        assert hit.point == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)
    else:
        assert hit is None
    camera = PinholeCamera((0.0, 4.0, 1.0), (0.0, 2.0, 1.0))
    sight.navigator.look(camera)
    hit = sight.pick(320, 180)
    assert hit is not None and sight.stage.model.bodies[hit.body].label == "ball"


def test_the_floor_of_the_picture_and_what_is_not_drawn_from_below_hide_nothing() -> None:
    sight = before_a_ground("nothing")
    assert not sight.stage.grounds[0].solid
    sight.navigator.look(PinholeCamera((0.0, 2.0, -9.0), (0.0, 2.0, 1.0), up=(0.0, 1.0, 0.0)))
    assert sight.pick(320, 180) is not None
    sight = before_a_ground("leaning plane")
    sight.navigator.look(PinholeCamera((0.0, 9.0, 1.0), (0.0, 0.0, 1.0)))
    assert sight.pick(320, 180) is not None
    sight = before_a_ground("level plane")
    sight.navigator.look(PinholeCamera((0.0, 2.0, 0.0), (0.0, 2.0, 6.0), up=(0.0, 1.0, 0.0)))
    assert sight.pick(320, 180) is not None
    sight.navigator.look(PinholeCamera((0.0, 2.0, 6.0), (0.0, 2.0, 1.0), up=(0.0, 1.0, 0.0)))
    assert sight.pick(320, 180) is None


def test_worlds_are_picked_where_they_are_drawn() -> None:
    controls, _ = panel_state(free_box(), num_worlds=4)
    sight = controls.sight
    sight.navigator.look(FROM_ABOVE)
    for world in range(4):
        place = sight.poses.position[world, 0] + sight.stage.offsets[world]
        pixel, _ = sight.camera().project(place, *SIZE)
        hit = sight.pick(*pixel)
        assert hit is not None and (hit.world, hit.body) == (world, 0)


def test_what_is_reported_about_a_body() -> None:
    controls, sim = panel_state(free_box())
    sim.write("body.box.linear_velocity", (3.0, 4.0, 0.0))
    sim.write("body.box.orientation", (0.0, 0.0, math.sin(0.5), math.cos(0.5)))
    picked = Picked.read(controls.session.source, 0, 0)
    lines = picked.lines()
    assert lines[0] == "box" and lines[1] == "at 0, 0, 1 m"
    assert lines[2] == "turned 57.3° about 0.00, 0.00, 1.00"
    assert lines[3] == "speed 5 m/s, 0 rad/s" and lines[4] == "mass 3 kg"


def test_quaternions_of_matrices() -> None:
    for vector in np.random.default_rng(2).normal(size=(20, 3)):
        q = gpusim.rotations.quaternion_from_rotation_vector(vector)
        found = quaternion_of(gpusim.rotations.matrix_from_quaternion(q))
        assert np.abs(found @ q) == pytest.approx(1.0)


# Pulling.


def test_the_spring_is_critically_damped_at_its_frequency() -> None:
    mass, x, v, dt = 2.0, 0.0, 0.0, 1e-4
    arm = np.zeros(3)
    course = []
    for _ in range(10000):
        force, _ = spring_wrench(np.array([0.1 - x, 0, 0]), np.array([v, 0, 0]), arm, mass, mass)
        v += dt * force[0] / mass
        x += dt * v
        course.append(x)
    t, omega = 1e-4 * np.arange(1, 10001), math.tau * 2.0
    assert course == pytest.approx(0.1 * (1.0 - np.exp(-omega * t) * (1.0 + omega * t)), abs=1e-4)
    assert max(course) <= 0.1


def test_the_force_is_bounded_and_turns_the_body_about_its_center() -> None:
    arm = np.array([0.0, 0.5, 0.0])
    force, torque = spring_wrench(np.array([1e6, 0.0, 0.0]), np.zeros(3), arm, 2.0, 1.0)
    assert force == pytest.approx([2.0 * STRONGEST, 0.0, 0.0])
    assert torque == pytest.approx(np.cross(arm, force))


def test_the_mass_at_the_end_of_a_rod_is_a_quarter() -> None:
    inertia = np.diag([1e-6, 1.0 / 12.0, 1.0 / 12.0])
    assert mass_at_point(1.0, inertia, np.array([0.5, 0.0, 0.0])) == pytest.approx(0.25)
    assert mass_at_point(1.0, inertia, np.zeros(3)) == pytest.approx(1.0)


@pytest.mark.nightly
def test_dragging_brings_the_grabbed_point_under_the_cursor_and_leaves_no_force() -> None:
    controls, sim = panel_state(free_box(gravity=9.81))
    sight = controls.sight
    controls.press("left", 330, 175, ctrl=True)
    assert controls.pull is not None
    controls.move(420, 120)
    run(controls, 3.0)
    pixel, _ = sight.camera().project(controls.pull.point(), *SIZE)
    sag = 9.81 / (math.tau * 2.0) ** 2 * 3.0
    reach = 360 / (2 * math.tan(0.5 * sight.camera().field_of_view) * 3.8)
    assert abs(pixel[0] - 420) < 3 and -3 < pixel[1] - 120 < sag * reach + 3
    assert np.abs(sim.read("body.box.applied_force")).max() > 5.0
    ends = controls.pull_ends()
    assert ends is not None and sight.camera().project(ends[1], *SIZE)[0] == pytest.approx([420, 120])
    controls.release("left", 420, 120)
    assert controls.pull is None and controls.pull_ends() is None
    assert not sim.read("body.box.applied_force").any() and not sim.read("body.box.applied_torque").any()
    before = float(sim.read("body.box.position")[0, 2])
    run(controls, 0.5, 9.0)
    assert float(sim.read("body.box.position")[0, 2]) < before - 0.5


def test_only_the_world_under_the_cursor_is_pulled() -> None:
    controls, sim = panel_state(free_box(), num_worlds=4)
    sight = controls.sight
    sight.navigator.look(FROM_ABOVE)
    pixel, _ = sight.camera().project(sight.poses.position[2, 0] + sight.stage.offsets[2], *SIZE)
    controls.press("left", *pixel, ctrl=True)
    controls.move(pixel[0] + 30, pixel[1])
    run(controls, 0.3)
    moved = np.linalg.norm(sim.read("body.box.position") - [0, 0, 1], axis=1)
    assert moved[2] > 0.05 and not moved[[0, 1, 3]].any()


def test_a_pull_at_a_corner_comes_to_rest_at_long_steps_too() -> None:
    controls, sim = panel_state(free_box(), dt=0.02)
    controls.press("left", 345, 160, ctrl=True)
    controls.move(500, 60)
    run(controls, 4.0)
    assert np.linalg.norm(sim.read("body.box.linear_velocity")) < 0.02
    assert np.linalg.norm(sim.read("body.box.angular_velocity")) < 0.1


def test_reset_and_restart_let_go() -> None:
    controls, sim = panel_state(free_box())
    controls.press("left", 320, 180, ctrl=True)
    controls.move(400, 180)
    run(controls, 0.3)
    controls.key("r")
    assert controls.pull is None
    assert sim.read("body.box.position")[0] == pytest.approx([0, 0, 1])
    assert not sim.read("body.box.applied_force").any()


def test_what_cannot_be_pulled_is_reported() -> None:
    controls, sim = panel_state(free_box(kinematic=True))
    controls.press("left", 320, 180, ctrl=True)
    assert controls.pull is None and "follows its prescribed motion" in controls.session.note
    assert why_not_pulled(sim, 0)
    controls.press("left", 5, 5, ctrl=True)
    assert controls.pull is None


def test_a_pull_starts_without_a_force() -> None:
    sim = Simulation(free_box(), backend=FASTEST)
    pull = Pull(sim, 0, 0, np.array([0.1, -0.2, 1.1]))
    pull.apply()
    assert sim.read("body.box.applied_force") == pytest.approx(np.zeros((1, 3)), abs=1e-9)


# Mouse and keys.


def test_the_mouse_orbits_pans_and_clicks() -> None:
    controls, _ = panel_state(free_box())
    sight = controls.sight
    start = sight.camera()
    controls.press("left", 320, 180)
    controls.move(321, 181)
    controls.release("left", 321, 181)
    assert sight.picked is not None and sight.camera() == start
    controls.press("left", 320, 180)
    controls.move(420, 180)
    controls.release("left", 420, 180)
    orbited = sight.camera()
    assert orbited.position != pytest.approx(start.position) and orbited.target == pytest.approx(start.target)
    assert sight.picked is not None
    for button, shift in (("middle", False), ("left", True)):
        before = sight.camera()
        controls.press(button, 320, 180, shift=shift)
        controls.move(350, 200)
        controls.release(button, 350, 200)
        assert sight.camera().target != pytest.approx(before.target)
        assert sight.camera().forward == pytest.approx(before.forward)
    controls.scroll(1.0)
    assert sight.camera().distance < start.distance
    controls.move(10, 10)
    controls.press("left", 5, 5)
    controls.release("left", 5, 5)
    assert sight.picked is None


def test_keys_command_the_session() -> None:
    controls, sim = panel_state(free_box(gravity=9.81))
    session = controls.session
    assert controls.key("space") and session.paused
    assert controls.key("right") and session.source.time == pytest.approx(0.005)
    assert controls.key("right", repeated=True) and session.source.time == pytest.approx(0.01)
    controls.key("space", repeated=True)
    assert session.paused
    controls.key("]")
    assert session.speed == 2.0
    controls.key("[")
    controls.key("[")
    assert session.speed == 0.5
    controls.key("r")
    assert float(sim.time) == 0.0
    controls.key("r", shift=True)
    assert "cannot be restarted" in session.note
    assert not controls.key("f9")
    controls.key("escape")
    assert session.finished


def test_keys_have_one_meaning_each() -> None:
    controls, _ = panel_state(free_box())
    for overlay in overlays():
        controls.bind(overlay.key, overlay.description, lambda: None)
    with pytest.raises(ViewerError, match=naming("'reset'")):
        controls.bind("r", "record", lambda: None)
