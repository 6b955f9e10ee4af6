from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, Transform
from tests.message_snapshot import naming

POSE = Transform.from_rpy((1.0, 2.0, 3.0), (0.3, -0.2, 0.9))


def built(cameras: bool = True) -> ModelBuilder:
    b = ModelBuilder()
    body = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((0.0, 0.0, 1.0)), label="box", angular_velocity=(1, 2, 3))
    b.add_shape_box(body, (0.1, 0.2, 0.3))
    if cameras:
        b.add_camera(body, POSE, fov_y=0.7, label="eye")
        b.add_camera(label="room", xform=Transform((0.0, -3.0, 1.0)), target=(0.0, 0.0, 1.0))
        b.add_light("spot", body, (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), color="#ff8000", cutoff=0.3, label="lamp")
        b.add_light(direction=(0.0, 0.0, -2.0), shadow=False)
    return b


def test_cameras_and_lights_keep_their_values() -> None:
    b = built()
    eye, room = b.cameras
    assert (eye.body, eye.xform, eye.fov_y) == (0, POSE, 0.7)
    # looks along y: x of the picture is x, its y is z, and the camera's z points back
    assert room.xform.matrix() == pytest.approx(np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), abs=1e-15)
    assert room.body == -1 and room.fov_y == pytest.approx(math.pi / 4)
    lamp, sun = b.lights
    assert lamp.color == pytest.approx((1.0, 128 / 255, 0.0)) and lamp.cutoff == 0.3
    assert -lamp.xform.matrix()[:, 2] == pytest.approx([0.0, 1.0, 0.0]) and lamp.xform.position[2] == 1.0
    assert -sun.xform.matrix()[:, 2] == pytest.approx([0.0, 0.0, -1.0])
    assert (sun.label, sun.kind, sun.shadow, lamp.shadow) == ("light1", "directional", False, True)
    model = b.finalize()
    assert model.labels("camera") == ["eye", "room"] and model.index("light", "lamp") == 0


def test_pictures_do_not_change_the_motion_or_the_digest() -> None:
    with_, without = built().finalize(), built(cameras=False).finalize()
    assert with_.digest == without.digest
    runs = [Simulation(model, backend="numpy") for model in (with_, without)]
    for sim in runs:
        sim.step(20)
    assert np.array_equal(runs[0].read("body.box.orientation"), runs[1].read("body.box.orientation"))


def test_copies_move_with_their_builder() -> None:
    part, whole = built(), ModelBuilder()
    host = whole.add_body(1.0, (1, 1, 1), xform=Transform((5.0, 0.0, 0.0)))
    xform = Transform.from_axis_angle((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), 0.5 * math.pi)
    whole.add_builder(part, xform, "left_", parent=host)
    eye, room = whole.cameras
    assert (eye.label, eye.body, eye.xform) == ("left_eye", 1, POSE)
    assert (room.label, room.body) == ("left_room", host)
    assert room.xform.position == pytest.approx([3.0, 1.0, 1.0])
    lamp, sun = whole.lights
    assert (lamp.body, sun.body, sun.label) == (1, host, "left_light1")
    assert part.cameras[0].label == "eye" and part.cameras[0].body == 0
    worlds = ModelBuilder()
    worlds.replicate(part, 3)
    assert [camera.label for camera in worlds.finalize().cameras] == ["eye", "room"]
    with pytest.raises(ModelError, match=naming("replicate")):
        other = ModelBuilder()
        other.add_light()
        other.replicate(part, 2)
    twin = copy.deepcopy(part)
    twin.add_camera()
    assert len(part.cameras) == 2 and twin.cameras[2].label == "camera2"


@pytest.mark.parametrize(("arguments", "words"), [
    ({"body": 7}, "camera 'c' body 7"),
    ({"xform": (0, 0, 1)}, "camera 'c' xform"),
    ({"fov_y": 45.0}, "camera 'c' fov_y 45"),
    ({"fov_y": 0.0}, "camera 'c' fov_y 0"),
    ({"target": (0.0, 0.0, 0.0)}, "camera 'c' target"),
    ({"target": (0.0, 0.0)}, "camera 'c' target 2"),
])  # fmt: skip
def test_a_camera_that_breaks_a_rule_is_an_error(arguments: dict[str, Any], words: str) -> None:
    b = ModelBuilder()
    with pytest.raises(ModelError, match=naming(words)):
        b.add_camera(label="c", **arguments)
    assert not b.cameras
    b.add_camera(label="c")
    with pytest.raises(ModelError, match=naming("camera 'c' taken")):
        b.add_camera(label="c")


@pytest.mark.parametrize(("arguments", "words"), [
    ({"kind": "lamp"}, "light 'l' kind 'lamp'"),
    ({"body": 7}, "light 'l' body 7"),
    ({"direction": (0, 0, 0)}, "light 'l' direction"),
    ({"position": (0, float("inf"), 0)}, "light 'l' position"),
    ({"color": "white"}, "light 'l' color 'white'"),
    ({"intensity": -1.0}, "light 'l' intensity -1"),
    ({"attenuation": (0, 0, 0)}, "light 'l' attenuation 0"),
    ({"attenuation": (1, -1, 0)}, "light 'l' attenuation -1"),
    ({"cutoff": 45.0}, "light 'l' cutoff 45"),
    ({"exponent": -1}, "light 'l' exponent -1"),
    ({"shadow": "yes"}, "light 'l' shadow 'yes'"),
])  # fmt: skip
def test_a_light_that_breaks_a_rule_is_an_error(arguments: dict[str, Any], words: str) -> None:
    b = ModelBuilder()
    with pytest.raises(ModelError, match=naming(words)):
        b.add_light(**{"kind": "spot", "label": "l", **arguments})
    assert not b.lights
