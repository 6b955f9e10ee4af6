from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, ModelError, Transform
from gpusim.importers import load_urdf
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.viewer import Offscreen, PinholeCamera
from tests.message_snapshot import naming
from tests.unit.urdf_text import DATA, SOLID, joint, link, robot
from tests.unit.viewer.drawing import compare, require_egl

LEVEL = PinholeCamera((0.0, 0.0, 1.0), (0.0, 1.0, 1.0))
SIZE = {"width": 160, "height": 120}
MIDDLE = (60, 80)

CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
SIDES = np.array([[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]])
SIDES = np.concatenate([SIDES, [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]])
"""A cube of edge 2, counterclockwise seen from outside."""


def keys(stage: Stage) -> list[str]:
    return [batch.mesh.key.split()[0] for batch in stage.batches]


def hinged(visuals: bool) -> Model:
    b = ModelBuilder()
    first = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((0.0, 0.0, 1.0)))
    b.add_shape_capsule(first, 0.1, 0.3)
    second = b.add_body(1.0, (0.1, 0.2, 0.25), xform=Transform((0.0, 1.0, 1.0)))
    b.add_joint_revolute(-1, first, Transform((0.0, 0.0, 1.0)))
    b.add_joint_revolute(first, second, Transform((0.0, 0.5, 0.0)), Transform((0.0, -0.5, 0.0)))
    if visuals:
        b.add_visual(first, "cone", 0.1, 0.2, color="#ff0000")
        b.add_visual(second, "ellipsoid", (0.1, 0.2, 0.3))
    return b.finalize()


def test_visuals_take_the_place_of_shapes_stand_ins_and_joints() -> None:
    stage = Stage(hinged(True))
    assert sorted(keys(stage)) == ["cone", "ellipsoid"]
    assert sorted(stage.body.tolist()) == [0, 1] and np.all(stage.shape == -1)
    assert sorted(keys(Stage(hinged(True), decoration=False))) == ["cone", "ellipsoid"]
    assert sorted(keys(Stage(hinged(True), visuals=False))) == sorted(keys(Stage(hinged(False))))
    assert keys(Stage(hinged(True), decoration=False, visuals=False)) == ["capsule"]


def test_bodies_without_visuals_are_drawn_as_before() -> None:
    b = ModelBuilder()
    first = b.add_body(1.0, (1, 1, 1))
    b.add_shape_box(first, (0.1, 0.1, 0.1))
    second = b.add_body(1.0, (1, 1, 1), xform=Transform((1.0, 0.0, 0.0)))
    b.add_shape_capsule(second, 0.1, 0.1)
    b.add_visual(second, "cone", 0.1, 0.2)
    b.add_shape_wheel(-1, 0.1, 0.02)
    b.add_visual(-1, "cylinder", 0.1, 0.2)
    stage = Stage(b.finalize())
    # the world has visuals in addition to its shapes
    assert sorted(keys(stage)) == ["box", "cone", "cylinder", "wheel"]


def test_a_visual_is_where_body_and_own_frame_put_it() -> None:
    pose, own = Transform.from_rpy((1.0, 2.0, 3.0), (0.3, -0.5, 0.9)), Transform.from_rpy((0.1, -0.2, 0.3), (0.7, 0, 1))
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1), com=(0.05, 0.06, 0.07), xform=pose)
    b.add_visual(body, "mesh", (CORNERS, SIDES), 0.1, xform=own)
    model = b.finalize()
    transform = Stage(model).transforms(Poses.from_model(model))[0]
    point = np.array([0.1, -0.1, 0.1])
    assert transform[:, :3] @ point + transform[:, 3] == pytest.approx(pose.apply(own.apply(point)))


def test_equal_meshes_are_drawn_together_in_their_colors() -> None:
    b = ModelBuilder()
    for k, color in enumerate(("#ff0000", "#0000ff")):
        body = b.add_body(1.0, (1, 1, 1), xform=Transform((3.0 * k, 0.0, 0.0)))
        b.add_visual(body, "mesh", (CORNERS, SIDES), color=color)
    stage = Stage(b.finalize(), num_worlds=2)
    (batch,) = stage.batches
    assert batch.count == 4 and not batch.mesh.open
    assert stage.color[stage.body == 0] == pytest.approx(np.array([[1.0, 0.0, 0.0]] * 2))
    assert stage.color[stage.body == 1] == pytest.approx(np.array([[0.0, 0.0, 1.0]] * 2))


def test_a_floor_lies_below_visuals() -> None:
    b = ModelBuilder()
    body = b.add_body(1.0, (0.01, 0.01, 0.01))
    b.add_visual(body, "box", (0.5, 0.5, 3.0))
    (ground,) = Stage(b.finalize()).grounds
    assert -3.5 < ground.point[2] < -3.0


def test_depth_and_segmentation_of_a_mesh() -> None:
    require_egl()
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), xform=Transform((0.0, 50.0, -50.0)))
    body = b.add_body(xform=Transform((0.0, 4.0, 0.0)))
    b.add_shape_box(body, (3.0, 0.1, 3.0))
    b.add_visual(body, "mesh", (CORNERS, SIDES), 0.5, xform=Transform((0.0, 0.0, 1.0)))
    with Offscreen(b.finalize(), camera=LEVEL, decoration=False, **SIZE) as eye:  # type: ignore[arg-type]
        depth, seen = eye.depth(), eye.segmentation()
    front = seen == 1
    assert np.abs(depth[front] - 3.5).max() < 1e-3
    # the front's edge of 1 m at 3.5 m, in points of the picture
    edge = 0.5 * SIZE["height"] / math.tan(0.5 * LEVEL.field_of_view) / 3.5
    assert abs(math.sqrt(front.sum()) - edge) < 1.0
    assert front[MIDDLE] and not front[MIDDLE[0], 0]


def shown(color: np.ndarray) -> str:
    return "rgb"[int(np.argmax(color))]


def test_colors_and_places_of_a_robot_in_a_picture() -> None:
    require_egl()
    looks = (
        '<visual><origin xyz="-1 0 0"/><geometry><box size="0.6 0.6 0.6"/></geometry><material name="red"/></visual>'
        '<collision><geometry><box size="0.6 0.6 0.6"/></geometry></collision>'
    )
    blue = '<material name="blue"><color rgba="0 0 1 1"/></material>'
    ball = f'<visual><geometry><sphere radius="0.3"/></geometry>{blue}</visual>'
    text = robot(
        '<material name="red"><color rgba="1 0 0 1"/></material>',
        link("base", SOLID + looks) + link("knob", ball) + link("arm", SOLID),
        joint("weld", "base", "knob", "fixed", '<origin xyz="1 0 0"/>'),
        joint("hinge", "base", "arm", "continuous", '<origin xyz="0 9 0"/>'),
    )
    model = load_urdf(text, xform=Transform((0.0, 4.0, 1.0)))[0].finalize()
    places, _ = LEVEL.project([[-1.0, 4.0, 1.0], [1.0, 4.0, 1.0]], SIZE["width"], SIZE["height"])
    left, right = ((int(y), int(x)) for x, y in places)
    with Offscreen(model, camera=LEVEL, decoration=False, **SIZE) as eye:  # type: ignore[arg-type]
        picture, seen = eye.image(), eye.segmentation()
    assert (shown(picture[left]), shown(picture[right])) == ("r", "b")
    assert seen[left] == seen[right] == 0 and seen[MIDDLE] == -1
    with Offscreen(model, camera=LEVEL, decoration=False, visuals=False, **SIZE) as eye:  # type: ignore[arg-type]
        seen = eye.segmentation()
    assert seen[MIDDLE] == 0 and seen[left] == seen[right] == -1


def test_open_meshes_are_seen_from_both_sides() -> None:
    require_egl()
    sheet = np.array([[-1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]])
    for triangles in ([[0, 1, 2], [0, 2, 3]], [[0, 2, 1], [0, 3, 2]]):
        b = ModelBuilder()
        body = b.add_body(1.0, (1, 1, 1), xform=Transform((0.0, 4.0, 1.0)))
        b.add_visual(body, "mesh", (sheet, triangles), color="#ff0000")
        with Offscreen(b.finalize(), camera=LEVEL, **SIZE) as eye:  # type: ignore[arg-type]
            assert shown(eye.image()[MIDDLE]) == "r" and eye.depth()[MIDDLE] == pytest.approx(4.0, abs=1e-3)


def test_a_visual_can_be_picked() -> None:
    from gpusim.viewer.window.picking import Picker

    b = ModelBuilder()
    body = b.add_body(xform=Transform((0.0, 4.0, 1.0)))
    b.add_shape_box(body, (0.1, 0.1, 0.1))
    b.add_visual(body, "mesh", (CORNERS, SIDES), 0.5)
    model = b.finalize()
    stage, poses = Stage(model), Poses.from_model(model)
    eye, ray = np.array([0.4, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    hit = Picker(stage).pick(stage.transforms(poses), poses, eye, ray)
    assert hit is not None and hit.body == body and hit.distance == pytest.approx(3.5)


def test_a_robot_with_looks() -> None:
    require_egl()
    model = load_urdf(DATA / "rover.urdf", fixed_base=False, xform=Transform((0.0, 0.0, 0.12)))[0].finalize()
    with Offscreen(model, width=320, height=180, quality="software") as eye:
        compare(eye.image(), "robot_rover")


def test_a_large_mesh_leaves_round_shapes_round() -> None:
    require_egl()
    from gpusim.viewer.gl.quality import TIERS
    from gpusim.viewer.gl.scene_buffers import _meshes

    quality = TIERS["software"]
    counts = []
    for pieces in (1, 1 + quality.triangles // 12):
        b = ModelBuilder()
        body = b.add_body(xform=Transform((0.0, 0.0, 1.0)))
        b.add_shape_sphere(body, 0.5)
        other = b.add_body(1.0, (1, 1, 1))
        places = 0.01 * np.arange(pieces)[:, None, None] + 1e-3 * CORNERS
        triangles = 8 * np.arange(pieces)[:, None, None] + SIDES
        b.add_visual(other, "mesh", (places.reshape(-1, 3), triangles.reshape(-1, 3)))
        stage = Stage(b.finalize())
        made = dict(zip(keys(stage), _meshes(stage, quality), strict=True))
        assert len(made["piece"].triangles) == 12 * pieces
        counts.append(len(made["sphere"].triangles))
    assert counts[0] == counts[1] > 1000


def test_every_kind_of_shape_passes_its_color_on() -> None:
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    sizes = {
        "sphere": (0.1,),
        "box": ((0.1, 0.1, 0.1),),
        "capsule": (0.1, 0.1),
        "cylinder": (0.1, 0.1),
        "cone": (0.1, 0.1),
        "ellipsoid": ((0.1, 0.1, 0.1),),
        "superellipsoid": ((0.1, 0.1, 0.1), (0.5, 0.5)),
        "wheel": (0.1, 0.01),
        "barrel": (0.1, 0.2, 0.1),
        "hull": (CORNERS,),
        "mesh": ((CORNERS, SIDES),),
    }
    for kind, given in sizes.items():
        getattr(b, f"add_shape_{kind}")(body, *given, color=(0.25, 0.5, 1.0))
    b.add_shape_height_field(-1, np.zeros((3, 3)), base=-1.0, color="#4080ff")
    model = b.finalize()
    stage = Stage(model, decoration=False)
    assert stage.color[stage.body == body] == pytest.approx(np.array([[0.25**2.2, 0.5**2.2, 1.0]] * len(sizes)))
    colors = [shape.color for shape in model.shapes]
    assert colors[:-1] == [(0.25, 0.5, 1.0)] * len(sizes)
    assert colors[-1] == pytest.approx((64 / 255, 128 / 255, 1.0))
    with pytest.raises(ModelError, match=naming("shape 'red' color")):
        b.add_shape_sphere(body, 0.1, color="red", label="red")
