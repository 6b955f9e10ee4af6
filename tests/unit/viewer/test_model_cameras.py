from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, Simulation, SolverConfig, Transform, UnknownNameError
from gpusim.scene import Scene
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.viewer import Offscreen, PinholeCamera
from gpusim.viewer.camera.mounted import mounted_camera
from gpusim.viewer.window.view_state import ViewState
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.viewer.drawing import require_egl

SIZE: dict[str, Any] = {"width": 160, "height": 120, "quality": "software"}
MIDDLE = (60, 80)


def flyer(**camera: Any) -> ModelBuilder:
    """A body with a camera flies along x over a red ball at x = 0 and a blue one at x = 2."""
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    xform = Transform((0.0, -3.0, 1.0))
    body = b.add_body(1.0, (1, 1, 1), com=(0.1, 0.2, 0.3), xform=xform, linear_velocity=(2.0, 0.0, 0.0))
    b.add_visual(body, "sphere", 0.01)
    for x, color in ((0.0, "#ff0000"), (2.0, "#0000ff")):
        ball = b.add_body(1.0, (1, 1, 1), xform=Transform((x, 0.0, 1.0)))
        b.add_visual(ball, "sphere", 0.3, color=color)
    b.add_camera(body, Transform((0.0, 0.5, 0.0)), target=(0.0, 3.0, 0.0), label="front", **camera)
    return b


def test_a_camera_lies_in_its_body() -> None:
    pose, own = Transform.from_rpy((1, 2, 3), (0.3, -0.5, 0.9)), Transform.from_rpy((0.1, -0.2, 0.3), (0.7, 0, 1))
    b = ModelBuilder()
    b.add_camera(b.add_body(1.0, (1, 1, 1), com=(0.5, 0.6, 0.7), xform=pose), own, fov_y=0.6)
    model = b.finalize()
    stage = Stage(model)
    camera = mounted_camera(stage, Poses.from_model(model), model.cameras[0])
    whole = pose * own
    assert camera.position == pytest.approx(whole.position)
    assert camera.axes() == pytest.approx(whole.matrix().T) and camera.field_of_view == 0.6


def test_a_camera_goes_along_with_its_body_and_wins_over_a_view() -> None:
    require_egl()
    sim = Simulation(flyer().finalize(), backend=FASTEST)
    with Offscreen(sim, decoration=False, camera="front", **SIZE) as eye:
        first = eye.image()[MIDDLE]
        depth = eye.depth()[MIDDLE]
        sim.step(round(1.0 / sim.config.dt))
        second = eye.image()[MIDDLE]
        eye.look("back")
        with pytest.raises(UnknownNameError, match=naming("camera or view 'frnt' 'front'")):
            eye.look("frnt")
    assert int(np.argmax(first)) == 0 and int(np.argmax(second)) == 2
    assert depth == pytest.approx(3.0 - 0.5 - 0.3, abs=1e-3)


def test_its_angle_is_that_of_the_picture_height() -> None:
    require_egl()
    with Offscreen(flyer(fov_y=2.0 * math.atan(0.5)).finalize(), decoration=False, camera="front", **SIZE) as eye:
        seen = eye.segmentation() == 1
    # at 2.5 m, the picture is 2.5 m high, and the ball's outline has the slope of a tangent
    radius = 0.3 / math.sqrt(2.5**2 - 0.3**2) * SIZE["height"]
    assert seen.sum() == pytest.approx(math.pi * radius**2, rel=0.03)


def test_following_a_body_leaves_the_camera() -> None:
    require_egl()
    b = flyer()
    with Offscreen(b.finalize(), camera="front", **SIZE) as eye:
        before = eye.camera
        eye.follow("body1")
        assert eye.camera == before
        moved = np.array([body.xform.position for body in b.bodies]) + [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
        eye.pose(moved, np.array([body.xform.rotation for body in b.bodies]))
        assert int(np.argmax(eye.image()[MIDDLE])) == 0


def view_of(model: Model, camera: str | None = None) -> ViewState:
    return ViewState(model, [0], Poses.from_model(model), 160, 120, camera)


def test_the_window_changes_between_cameras() -> None:
    b = flyer()
    b.add_camera(label="room", xform=Transform((0.0, 0.0, 5.0)))
    model = b.finalize()
    view = view_of(model)
    home = view.camera()
    assert view.next_camera() == "camera front (1 of 2)"
    assert view.camera().position == pytest.approx((0.0, -2.5, 1.0))
    assert view.next_camera() == "camera room (2 of 2)" and view.camera().position == pytest.approx((0.0, 0.0, 5.0))
    assert view.next_camera() == "your camera" and view.camera() == home
    view.next_camera()
    view.release()
    assert view.mounted is None and view.camera().position == pytest.approx((0.0, -2.5, 1.0))
    started = view_of(model, "front")
    assert started.mounted == 0
    other = view_of(model)
    other.copy_camera_from(started)
    assert other.mounted == 0 and other.camera() == started.camera()
    other.follow(None)
    assert other.mounted is None
    empty = ModelBuilder()
    empty.add_body(1.0, (1, 1, 1))
    assert view_of(empty.finalize()).next_camera() == "the model has no cameras"


def test_keys_and_mouse_use_the_cameras() -> None:
    from gpusim.viewer.window.controls import Controls
    from gpusim.viewer.window.session import Session
    from gpusim.viewer.window.sources import Live

    sim = Simulation(flyer().finalize(), backend=FASTEST)
    session = Session(Live(sim, Scene("flyer", "", flyer(), SolverConfig(), 1.0)))
    view = view_of(sim.model)
    controls = Controls(session, view)
    assert controls.key("v") and view.mounted == 0 and "front" in session.note
    controls.scroll(1.0)
    assert view.mounted is None
    controls.key("v")
    controls.press("left", 80.0, 60.0)
    controls.move(120.0, 60.0)
    assert view.mounted is None


def test_the_command_line_takes_the_name_of_a_camera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_egl()
    from gpusim.cli.commands import render as command
    from gpusim.cli.options import RunOptions
    from gpusim.cli.pictures import PictureOptions
    from tests.pictures import load_picture

    scene = Scene("flyer", "", flyer(), SolverConfig(), 1.0)
    monkeypatch.setattr(command, "load_target", lambda run, still: scene)
    for time, color in ((0.0, 0), (1.0, 2)):
        run = RunOptions(target="pile", backend=FASTEST)
        picture = PictureOptions(camera="front", size="160x120", quality="software", decoration=False)
        command.render(command.RenderOptions(run=run, out=tmp_path / "eye.png", time=time, picture=picture))
        assert int(np.argmax(load_picture(tmp_path / "eye.png")[MIDDLE])) == color
    with pytest.raises(UnknownNameError, match=naming("camera or view in --camera: 'Frunt' 'front'")):
        PictureOptions(camera="Frunt").check_names(scene.builder.finalize())


# Lights.

ABOVE = PinholeCamera((0.0, 0.0, 8.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def lit(*lights: dict[str, Any], ball: bool = False, num_worlds: int = 1) -> np.ndarray:
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1), xform=Transform((0.0, 0.0, 1.0)))
    b.add_visual(body, "sphere", 0.3 if ball else 0.01, color=(0.2, 0.2, 0.2))
    b.add_visual(-1, "plane", color=(0.4, 0.4, 0.4))
    for light in lights:
        b.add_light(**light)
    with Offscreen(b.finalize(), camera=ABOVE, decoration=False, **SIZE) as eye:
        return eye.image().astype(int)


def test_the_key_light_as_a_light_of_the_model_is_the_same() -> None:
    require_egl()
    own = lit({"direction": (0.55, 0.45, -1.0)}, ball=True)
    assert np.abs(lit(ball=True) - own).max() <= 2


def test_a_dark_light_leaves_the_sky() -> None:
    require_egl()
    usual, dark = lit(), lit({"intensity": 0.0})
    assert 20 < dark[20, 20].max() < usual[20, 20].min() - 30


def test_a_spot_has_a_cone() -> None:
    require_egl()
    spot = {"kind": "spot", "position": (1.0, 0.0, 4.0), "cutoff": math.atan(0.25), "shadow": False}
    seen, dark = lit(spot), lit({"intensity": 0.0})
    bright = (seen - dark).max(axis=2) > 20
    # a circle of radius 1 m about (1, 0)
    scale = 0.5 * SIZE["height"] / math.tan(0.5 * ABOVE.field_of_view) / 8.0
    assert bright.sum() == pytest.approx(math.pi * scale**2, rel=0.05)
    rows, columns = np.nonzero(bright)
    assert rows.mean() == pytest.approx(59.5, abs=1.0) and columns.mean() == pytest.approx(79.5 + scale, abs=1.0)
    soft = lit({**spot, "exponent": 200.0}) - dark
    row, column = 60, round(79.5 + scale)
    assert soft[row, column].max() > 3 * soft[row, column + round(0.8 * scale)].max() > 0


def test_a_point_light_fades_with_the_distance() -> None:
    require_egl()
    lamp = {"kind": "point", "position": (0.0, 0.0, 2.0), "shadow": False}
    dark = lit({"intensity": 0.0})[60, 90]
    near = lit({**lamp, "intensity": 0.25})[60, 90]
    faded = lit({**lamp, "attenuation": (0.0, 0.0, 1.0)})[60, 90]  # 1 / d2 = 0.25 below the lamp
    assert np.abs(near - faded).max() <= 6 and near.min() > dark.max() + 10


def test_a_light_has_its_color_and_its_shadow() -> None:
    require_egl()
    red = lit({"direction": (1.0, 0.0, -1.0), "color": "#ff0000"}, ball=True)
    require_egl()
    dark = lit({"intensity": 0.0}, ball=True)
    assert red[20, 40, 0] > dark[20, 40, 0] + 30 and abs(red[20, 40, 2] - dark[20, 40, 2]) < 30
    scale = 0.5 * SIZE["height"] / math.tan(0.5 * ABOVE.field_of_view) / 8.0
    shadow = (60, round(79.5 + scale))  # of the ball at 1 m, 1 m further along x
    assert red[shadow][0] < red[20, 40, 0] - 30
    none = lit({"direction": (1.0, 0.0, -1.0), "color": "#ff0000", "shadow": False}, ball=True)
    assert none[shadow][0] > red[shadow][0] + 30


def test_a_light_moves_with_its_body() -> None:
    require_egl()
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1), xform=Transform((0.0, 0.0, 1.0)))
    b.add_visual(-1, "plane", color=(0.4, 0.4, 0.4))
    b.add_visual(body, "sphere", 0.01)
    b.add_light("spot", body, position=(0.0, 0.0, 1.0), cutoff=0.3, shadow=False)
    with Offscreen(b.finalize(), camera=ABOVE, decoration=False, **SIZE) as eye:
        middle = eye.image()[MIDDLE].astype(int)
        eye.pose(np.array([[2.0, 0.0, 1.0]]), np.array([[0.0, 0.0, 0.0, 1.0]]))
        assert middle.min() > eye.image()[MIDDLE].max() + 30


def test_a_headlight_shines_from_the_eye() -> None:
    require_egl()
    dark = lit({"intensity": 0.0}, ball=True)
    head = lit({"kind": "headlight", "direction": (0, 0, 1), "color": "#ff0000"}, ball=True)
    gain = head.astype(int) - dark
    assert gain[MIDDLE][0] > 60 > 10 > gain[MIDDLE][2]
    left, right = gain[50, 50, 0], gain[50, 110, 0]
    assert left == pytest.approx(right, abs=4)


def test_many_lights_do_not_overexpose() -> None:
    require_egl()
    one = lit({"direction": (0, 0, -1)})
    assert lit(*3 * [{"direction": (0, 0, -1), "shadow": False}])[MIDDLE] == pytest.approx(one[MIDDLE], abs=1)
    apart = [{"direction": (0, 0, -1)}, {"direction": (0, 0, 1), "shadow": False}]
    assert lit(*apart)[MIDDLE] == pytest.approx(one[MIDDLE], abs=1)
