from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, ModelError, Simulation, Transform, UnknownNameError
from gpusim.scene import Camera, load_scene
from gpusim.stage.stage import Stage
from gpusim.viewer import Offscreen, PinholeCamera, ViewerError
from tests.message_snapshot import naming
from tests.unit.viewer.drawing import require_egl
from tests.unit.viewer.models import ball_and_wall, pendulum, shape_model

LEVEL = PinholeCamera((0.0, 0.0, 1.0), (0.0, 1.0, 1.0))
SIZE = {"width": 160, "height": 120}


@pytest.fixture(autouse=True)
def egl() -> None:
    require_egl()


def falling(num_worlds: int = 1) -> Simulation:
    b = ModelBuilder()
    b.add_shape_sphere(b.add_body(xform=Transform((0, 0, 1)), label="ball"), 0.2)
    return Simulation(b.finalize(), num_worlds, backend="numpy", config=gpusim.SolverConfig(dt=0.01))


def rays() -> np.ndarray:
    v, u = np.mgrid[0 : SIZE["height"], 0 : SIZE["width"]] + 0.5
    directions = LEVEL.pixel_ray(u, v, SIZE["width"], SIZE["height"])
    return directions / (directions @ LEVEL.forward)[..., None]


def test_depth_of_a_plane_and_a_ball() -> None:
    with Offscreen(ball_and_wall(), camera=LEVEL, quality="high", **SIZE) as eye:
        depth, body = eye.depth(), eye.segmentation()
    assert depth.dtype == np.float32 and body.dtype == np.int32
    direction = rays()
    # |s d - c|^2 = r^2 with d scaled to 1 along the view axis gives the depth s
    center = np.array([0.0, 5.0, 0.0])
    a, b = np.einsum("ijk,ijk->ij", direction, direction), direction @ center
    root = b * b - a * (center @ center - 0.25)
    # a picture of triangles and a true ball disagree at its rim, where the surface runs along the rays
    sure = root > 0.12
    expected = (b - np.sqrt(np.where(sure, root, 0.0))) / a
    assert sure.sum() > 100
    assert np.all(body[sure] == 0)
    assert np.abs(depth[sure] - expected[sure]).max() < 1e-3
    wall = root < -0.05
    assert np.all(body[wall] == -1)
    assert np.abs(depth[wall] - 8.0).max() < 1e-3


def test_depth_of_a_box_and_of_the_ground() -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    b.add_shape_box(b.add_body(xform=Transform((0, 4, 1))), (0.5, 1.0, 0.5))
    with Offscreen(b.finalize(), camera=LEVEL, **SIZE) as eye:
        depth, body = eye.depth(), eye.segmentation()
    assert np.abs(depth[body == 0] - 3.0).max() < 1e-3
    down = -rays()[..., 2]
    near = (body == -1) & (down > 0.05)
    assert np.abs(depth[near] * down[near] - 1.0).max() < 1e-3
    assert np.all(np.isinf(depth[down < 0.0][body[down < 0.0] == -1]))


def test_depth_far_from_the_origin_is_as_good() -> None:
    far = np.array([1e6, -2e6, 5e5])
    b = ModelBuilder()
    b.add_shape_box(b.add_body(xform=Transform(tuple(far + (0, 4, 0)))), (0.5, 1.0, 0.5))
    camera = PinholeCamera(tuple(far), tuple(far + (0, 1, 0)))
    with Offscreen(b.finalize(), camera=camera, **SIZE) as eye:
        depth = eye.depth()
    assert depth[60, 80] == pytest.approx(3.0, abs=1e-4)


def test_a_floor_for_the_picture_alone_is_no_thing() -> None:
    with Offscreen(pendulum(), **SIZE) as eye:
        depth, body = eye.depth(), eye.segmentation()
    assert set(np.unique(body)) == {-1, 0}
    assert np.all(np.isfinite(depth[body == 0]))
    assert np.isinf(depth).any()


def test_a_model_of_which_nothing_but_ground_is_seen() -> None:
    b = ModelBuilder()
    b.add_shape_plane(b.add_body(1.0, (1, 1, 1), kinematic=True))
    with Offscreen(b.finalize(), **SIZE) as eye:
        assert eye.image().any() and np.isfinite(eye.depth()).any()
        assert np.all(eye.segmentation() == -1)


def test_joints_and_forces_of_every_kind_can_be_drawn() -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    first = b.add_body(1.0, (1.0, 2.0, 2.5))
    cross = b.add_joint_universal(-1, first)
    b.add_torsion_spring(cross, 10.0)
    for k, kind in enumerate(("cylindrical", "prismatic", "planar", "ball", "fixed", "free", "distance")):
        body = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((0.5 * k, 1.0, 0.0)))
        more = {"max_distance": 2.0} if kind == "distance" else {}
        place = {} if kind in ("distance", "free") else {"parent_xform": Transform((0.5 * k, 1.0, 0.0))}
        getattr(b, f"add_joint_{kind}")(first, body, **place, **more)
    with Offscreen(b.finalize(), camera="left", **SIZE) as eye:
        assert len(np.unique(eye.segmentation())) > 4


def test_two_pictures_have_the_same_bits() -> None:
    model = load_scene("hydraulic_lift").builder.finalize()
    pictures = []
    for _ in range(2):
        with Offscreen(model, **SIZE) as eye:
            pictures += [eye.image(), eye.image()]
    assert pictures[0].shape == (120, 160, 3) and pictures[0].dtype == np.uint8
    assert all(np.array_equal(pictures[0], other) for other in pictures[1:])


def test_several_at_once_do_not_mix() -> None:
    ball, box = shape_model("sphere"), shape_model("box")
    with Offscreen(ball, **SIZE) as first, Offscreen(box, **SIZE) as second:
        a, b = first.image(), second.image()
        assert np.array_equal(first.image(), a) and np.array_equal(second.image(), b)
        second.close()
        assert np.array_equal(first.image(), a)
    assert not np.array_equal(a, b)


def test_pictures_show_the_simulation_as_it_is() -> None:
    sim = falling()
    with Offscreen(sim, camera=PinholeCamera((0, -4, 0.5), (0, 0, 0.5)), **SIZE) as eye:
        rows = []
        for _ in range(3):
            rows.append(np.argwhere(eye.segmentation() == 0)[:, 0].mean())
            sim.step(15)
    assert rows[0] < rows[1] - 2 < rows[2] - 4


def test_following_a_body_keeps_it_in_its_place() -> None:
    sim = falling()
    with Offscreen(sim, camera=PinholeCamera((0, -4, 0.5), (0, 0, 0.5)), **SIZE) as eye:
        eye.follow("ball")
        before = eye.segmentation()
        sim.step(40)
        assert np.array_equal(eye.segmentation(), before)
        with pytest.raises(UnknownNameError, match=naming("ball")):
            eye.follow("bell")


def test_the_eye_stays_above_the_ground_while_the_body_does() -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    b.add_shape_sphere(b.add_body(xform=Transform((0, 0, 3)), label="ball"), 0.2)
    sim = Simulation(b.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=0.01))
    upwards = PinholeCamera((0, -4, 2), (0, 0, 3))
    with Offscreen(sim, camera=upwards, **SIZE) as eye:
        eye.follow("ball")
        sim.write("body.ball.position", (0.0, 0.0, 0.2))
        seen = eye.segmentation()
        assert seen[60, 80] == 0 and (seen == 0).sum() > 50
        assert np.isfinite(eye.depth()[-1]).all()
        sim.write("body.ball.position", (0.0, 0.0, -5.0))
        assert eye.segmentation()[60, 80] == 0


def wall_before_a_ball(num_worlds: int = 1) -> Simulation:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    b.add_shape_box(-1, (0.6, 0.05, 0.4), xform=Transform((0.0, -0.5, 0.4)))
    b.add_shape_sphere(b.add_body(xform=Transform((0, 0, 0.2)), label="ball"), 0.2)
    return Simulation(b.finalize(), num_worlds, backend="numpy")


FRONT = PinholeCamera((0.0, -4.0, 0.4), (0.0, 0.0, 0.3))


def test_glass_is_glass_in_all_pictures_and_can_be_turned_off() -> None:
    found = {}
    for glass in (True, False):
        with Offscreen(wall_before_a_ball(), camera=FRONT, glass=glass, **SIZE) as eye:
            found[glass] = eye.image().astype(int), eye.depth(), eye.segmentation()
    seen = found[True][2] == 0
    assert seen.sum() > 50 and np.all(found[False][2] == -1)
    assert np.abs(found[True][1][seen] - 3.9).max() < 0.15
    assert np.abs(found[False][1][seen] - 3.45).max() < 0.02  # the wall's face, 0.45 m nearer than the ball's middle
    # the ball's colors come through the glass
    assert np.ptp(found[True][0][seen], axis=0).max() > 3 * np.ptp(found[False][0][seen], axis=0).max()


def test_walls_of_every_world_become_glass() -> None:
    with Offscreen(wall_before_a_ball(25), max_worlds=25, camera="front", **SIZE) as eye:
        eye.image()
        view = eye.stage
        transforms = view.transforms(eye._current_poses())
        hiding = eye._painting.renderer._see_through.hiding(transforms, np.array(eye.camera.position))
        assert set(view.world[hiding]) == set(range(25))


def test_decoration_can_be_left_out() -> None:
    b = ModelBuilder()
    base = b.add_body(1.0, (1, 1, 1), xform=Transform((0, 4, 1)))
    b.add_shape_box(base, (0.3, 0.3, 0.3))
    b.add_joint_prismatic(-1, base, axis=(1, 0, 0), parent_xform=Transform((0, 3, 1)))
    b.add_body(1.0, (0.02, 0.02, 0.02), xform=Transform((1.0, 4, 1)))
    seen = {}
    for decoration in (True, False):
        with Offscreen(b.finalize(), camera=LEVEL, decoration=decoration, **SIZE) as eye:
            seen[decoration] = eye.segmentation()
    assert set(np.unique(seen[True])) == {-1, 0, 1} and set(np.unique(seen[False])) == {-1, 0}
    box = np.argwhere(seen[False] == 0)
    (top, left), (bottom, right) = box.min(axis=0), box.max(axis=0)
    assert np.all(seen[False][top : bottom + 1, left : right + 1] == 0)
    assert not np.all(seen[True][top : bottom + 1, left : right + 1] == 0)


def test_ropes_are_no_decoration() -> None:
    b = ModelBuilder()
    load = b.add_body(1.0, (1, 1, 1))
    b.add_shape_box(load, (0.3, 0.3, 0.3))
    before = len(Stage(b.finalize(), decoration=False))
    b.add_joint_distance(-1, load, Transform((0, 0, 2)), max_distance=3.0)
    assert len(Stage(b.finalize(), decoration=False)) == before + 1


def test_a_model_is_drawn_in_given_poses() -> None:
    model = pendulum()
    with Offscreen(model, camera=PinholeCamera((0, -5, 0), (0, 0, 0)), **SIZE) as eye:
        before = eye.segmentation() == 0
        turned = Transform.from_axis_angle((0, 0, -0.5), (0, 1, 0), 0.5 * math.pi)
        eye.pose(turned.position[None], turned.rotation[None])
        after = eye.segmentation() == 0
        assert before[:, 100].any() and not after[:, 100].any()
        with pytest.raises(ViewerError, match=naming("1")):
            eye.pose(np.zeros((2, 3)), np.zeros((2, 4)))


def test_worlds_are_drawn_up_to_a_limit_or_by_choice() -> None:
    sim = falling(5)
    sim.write("body.ball.position", (0.0, 0.0, 9.0), worlds=4)
    with Offscreen(sim, max_worlds=3, **SIZE) as eye:
        assert eye.worlds == [0, 1, 2]
    for world in (3, 4):
        with Offscreen(sim, worlds=[world], camera=PinholeCamera((0, -3, 1), (0, 0, 1)), **SIZE) as eye:
            assert (eye.segmentation() == 0).any() == (world == 3)
    with Offscreen(sim, worlds=[False, True, False, True, False], **SIZE) as eye:
        assert eye.worlds == [1, 3]
    for worlds in ([5], 5, "a"):
        with pytest.raises(ModelError, match=naming(f"Offscreen world {worlds!r}")):
            Offscreen(sim, worlds=worlds)
    with pytest.raises(ViewerError, match=naming("worlds")):
        Offscreen(sim, worlds=[])
    with pytest.raises(ViewerError, match=naming("worlds 1")):
        Offscreen(sim, worlds=[1, 1])


def test_a_camera_of_a_scene_goes_back_until_everything_fits() -> None:
    with Offscreen(shape_model("box"), camera=Camera((0.0, -0.4, 0.3), (0.0, 0.0, 0.3)), **SIZE) as eye:
        seen = eye.segmentation() == 0
        assert seen.any() and not (seen[0].any() or seen[-1].any() or seen[:, 0].any() or seen[:, -1].any())


def test_tiers_differ_in_finish_and_not_in_content() -> None:
    pictures = {}
    for quality in ("software", "medium", "high"):
        with Offscreen(shape_model("capsule"), quality=quality, **SIZE) as eye:
            pictures[quality] = eye.image().astype(int)
    for quality in ("medium", "high"):
        assert np.abs(pictures[quality] - pictures["software"]).mean() < 4.0


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"width": 0}, "width"),
        ({"height": 10_000}, "height"),
        ({"width": 12.5}, "width"),
        ({"max_worlds": 0}, "max_worlds"),
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ViewerError, match=naming(message)):
        Offscreen(pendulum(), **wrong)  # type: ignore[arg-type]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=naming("software")):
        Offscreen(pendulum(), quality="softwear", **SIZE)
    with pytest.raises(UnknownNameError, match=naming("front")):
        Offscreen(pendulum(), camera="frnt", **SIZE)
    with Offscreen(pendulum(), overlays="labels", **SIZE) as eye:
        assert eye.overlays == {"labels"}
        with pytest.raises(UnknownNameError, match=naming("'contacts'")):
            eye.overlays = "contact"
        with pytest.raises(ViewerError, match=naming("camera 1.0 2.0 3.0")):
            eye.look((1.0, 2.0, 3.0))  # type: ignore[arg-type]


def test_closed_ones_say_so() -> None:
    eye = Offscreen(pendulum(), **SIZE)
    eye.close()
    eye.close()
    with pytest.raises(ViewerError):
        eye.image()


def test_importing_the_viewer_loads_no_opengl() -> None:
    code = (
        "import sys, gpusim.viewer as v; v.PinholeCamera; assert not any(m.startswith('OpenGL') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
