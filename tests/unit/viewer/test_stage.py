from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, Transform, UnknownNameError, Wrap
from gpusim.description.actuator_kinds import _KINDS, LINE_REFERENCES, ActuatorType, register
from gpusim.scene import list_scenes, load_scene
from gpusim.stage.machine_parts import MachineParts
from gpusim.stage.meshes import coarse_points
from gpusim.stage.parts import ARC_PIECES
from gpusim.stage.poses import Bounds, Poses
from gpusim.stage.stage import Stage, grid_offsets
from gpusim.viewer.gl import lighting
from gpusim.viewer.gl.see_through import SeeThrough
from tests.message_snapshot import naming
from tests.unit.viewer.models import pendulum, shape_model

UP = np.array([0.0, 0.0, 1.0])
TILTED = Transform.from_rpy((1.0, 2.0, 3.0), (0.3, -0.5, 0.9))
ON_BODY = Transform.from_rpy((0.1, -0.2, 0.3), (0.7, 0.2, -0.4))


def test_a_shape_is_where_body_and_shape_frames_put_it() -> None:
    b = ModelBuilder()
    body = b.add_body(mass=1.0, inertia=(1, 1, 1), com=(0.05, 0.06, 0.07), xform=TILTED)
    b.add_shape_box(body, (0.1, 0.2, 0.3), xform=ON_BODY)
    model = b.finalize()
    transform = Stage(model).transforms(Poses.from_model(model))[0]
    corner = np.array([1.0, -1.0, 1.0])
    expected = TILTED.apply(ON_BODY.apply(corner * (0.1, 0.2, 0.3)))
    assert transform[:, :3] @ corner + transform[:, 3] == pytest.approx(expected)


def test_poses_of_model_state_and_body_frames_agree() -> None:
    model = load_scene("boom_crane").builder.finalize()
    state = Simulation(model, backend="numpy").read_state()
    frames = [np.array([getattr(body.xform, name) for body in model.bodies]) for name in ("position", "rotation")]
    first = Poses.from_model(model)
    for other in (
        Poses.from_state(state["position"], state["orientation"], [0]),
        Poses.from_body_frames(model, *frames),
    ):
        assert other.position == pytest.approx(first.position)
        assert other.rotation == pytest.approx(first.rotation)


def spring_model(y: float) -> tuple[Stage, Poses]:
    b = ModelBuilder()
    body = b.add_body(mass=1.0, inertia=(1, 1, 1), xform=Transform((0.0, 1.0, 0.0)))
    b.add_spring(-1, body, (0.0, 0.0, 0.0), (0.0, -0.1, 0.0), stiffness=1.0, rest_length=1.0)
    model = b.finalize()
    poses = Poses.from_model(model)
    poses.position[0, 0] = (0.0, y, 0.0)
    return Stage(model), poses


@pytest.mark.parametrize("y", [0.4, 1.0, 3.0])
def test_a_spring_reaches_from_end_to_end(y: float) -> None:
    stage, poses = spring_model(y)
    coil = next(batch for batch in stage.batches if batch.mesh.key.startswith("coil"))
    transform = stage.transforms(poses)[coil.first]
    assert transform[:, 3] == pytest.approx([0.0, 0.0, 0.0])
    assert transform[:, :3] @ UP + transform[:, 3] == pytest.approx([0.0, y - 0.1, 0.0])
    assert np.linalg.det(transform[:, :3]) > 0.0


def test_the_rod_of_a_cylinder_slides_in_its_barrel() -> None:
    model = load_scene("hydraulic_lift").builder.finalize()
    stage, poses = Stage(model), Poses.from_model(model)
    rods = next(batch for batch in stage.batches if batch.mesh.key == "rod")
    chosen = slice(rods.first, rods.first + rods.count)
    before = stage.transforms(poses)[chosen]
    poses.position[0, 0, 2] += 0.4
    after = stage.transforms(poses)[chosen]
    lengths = [np.linalg.norm(t[:, :, 2], axis=1) for t in (before, after)]
    assert lengths[1][0] == pytest.approx(lengths[0][0])
    tips = after[:, :, 3] + after[:, :, 2]
    assert tips[:, 2].max() == pytest.approx(poses.position[0, 0, 2])


def strutted(picture: str | None, **more: float) -> Stage:
    class Strut(ActuatorType):
        name, prefix, references = "gas_strut", "strut", LINE_REFERENCES

    Strut.picture = picture
    register(Strut)
    try:
        b = ModelBuilder()
        body = b.add_body(mass=1.0, inertia=(1, 1, 1), xform=Transform((0.0, 0.0, 2.0)))
        ends = {"body_a": -1, "point_a": np.zeros(3), "body_b": body, "point_b": np.array([0.0, 0.0, -0.5])}
        b.add_actuator("gas_strut", "gas", {**ends, **more})
        return Stage(b.finalize())
    finally:
        _KINDS.forget("gas_strut")


def test_a_new_kind_of_actuator_is_drawn_by_the_picture_that_it_chooses() -> None:
    drawn = {picture: [batch.mesh.key.split()[0] for batch in strutted(picture).batches] for picture in (None, "coil")}
    assert set(drawn["coil"]) - set(drawn[None]) == {"coil", "cylinder"}
    areas = {"area_a": 2e-3, "area_b": 1e-3, "length_offset": 0.8, "stroke_min": 0.0, "stroke_max": 1.0}
    assert len(strutted("barrel_and_rod", **areas)) == len(strutted(None)) + 6


def test_a_picture_that_cannot_be_drawn_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match=naming("gas_strut 'gas' 'coill' 'coil'")):
        strutted("coill")
    with pytest.raises(ModelError, match=naming("gas_strut 'gas' 'barrel_and_rod'")):
        strutted("barrel_and_rod")


@pytest.mark.nightly
@pytest.mark.parametrize("scene", list_scenes())
def test_every_scene_shows_every_body_right_side_out(scene: str) -> None:
    model = load_scene(scene).builder.finalize()
    stage = Stage(model)
    transforms = stage.transforms(Poses.from_model(model))
    assert np.all(np.isfinite(transforms))
    assert np.all(np.linalg.det(transforms[:, :, :3]) > 0.0)
    assert set(range(len(model.bodies))) <= set(stage.body.tolist())


@pytest.mark.nightly
@pytest.mark.parametrize("scene", [name for name in list_scenes() if name not in ("slope",)])
def test_nothing_is_below_the_ground(scene: str) -> None:
    model = load_scene(scene).builder.finalize()
    stage = Stage(model)
    transforms = stage.transforms(Poses.from_model(model))
    (ground,) = stage.grounds
    height = np.inf
    for batch in stage.batches:
        points = coarse_points(batch.mesh)
        for t in transforms[batch.first : batch.first + batch.count]:
            height = min(height, float(((points @ t[:, :3].T + t[:, 3] - ground.point) @ stage.up).min()))
    # shapes may overlap with their ground by a little
    assert height > -0.01 * stage.home.radius


def test_a_floor_lies_below_what_may_swing() -> None:
    (ground,) = Stage(pendulum(2.0)).grounds
    assert not ground.solid and -2.2 < ground.point[2] < -2.0


def test_planes_are_grounds_and_a_leaning_one_gets_a_floor() -> None:
    assert [g.solid for g in Stage(shape_model("box")).grounds] == [True]
    grounds = Stage(load_scene("slope").builder.finalize()).grounds
    assert [(g.level, g.solid) for g in grounds] == [(False, True), (True, False)]
    assert [(g.level, g.solid) for g in Stage(shape_model("height_field")).grounds] == [(True, False)]


def test_up_is_against_gravity() -> None:
    assert Stage(load_scene("bricard").builder.finalize()).up == pytest.approx([0.0, 1.0, 0.0])
    light = lighting.light_direction(np.array([0.0, 1.0, 0.0]))
    assert np.linalg.norm(light) == pytest.approx(1.0) and light[1] > 0.7


def test_worlds_stand_in_a_square_without_touching() -> None:
    offsets = grid_offsets(7, 1.5, UP)
    assert np.all(offsets[:, 2] == 0.0)
    gaps = np.linalg.norm(offsets[:, None] - offsets[None], axis=2)[~np.eye(7, dtype=bool)]
    assert gaps.min() > 3.0
    assert grid_offsets(1, 1.5, UP) == pytest.approx(np.zeros((1, 3)))


def test_instances_of_worlds_move_with_their_own_world() -> None:
    model = shape_model("sphere")
    stage = Stage(model, 3)
    poses = Poses.from_model(model)
    poses = Poses(np.repeat(poses.position, 3, axis=0), np.repeat(poses.rotation, 3, axis=0))
    poses.position[1, 0, 2] = 5.0
    transforms = stage.transforms(poses)
    assert transforms[np.argsort(stage.world), 2, 3] == pytest.approx([0.3, 5.0, 0.3])


def test_bounds_hold_all_instances() -> None:
    model = shape_model("box")
    stage = Stage(model)
    bounds = stage.home
    corners = stage.corners(stage.transforms(Poses.from_model(model)))
    distance = np.linalg.norm(corners - bounds.center, axis=1)
    assert distance.max() <= bounds.radius * (1.0 + 1e-9)


def test_a_wall_between_eye_and_bodies_is_seen_through() -> None:
    b = ModelBuilder()
    b.add_shape_sphere(b.add_body(), 0.1)
    b.add_shape_box(-1, (1.0, 0.05, 1.0), xform=Transform((0.0, -1.0, 0.0)))
    model = b.finalize()
    stage = Stage(model)
    transforms = stage.transforms(Poses.from_model(model))
    see_through = SeeThrough(stage)
    wall = int(np.flatnonzero(stage.body == -1)[0])
    assert see_through.hiding(transforms, np.array([0.0, -5.0, 0.0])).tolist() == [wall]
    assert see_through.hiding(transforms, np.array([0.0, 5.0, 0.0])).size == 0
    assert see_through.hiding(transforms, np.array([0.0, -5.0, 9.0])).size == 0


def test_shadow_view_holds_its_sphere_and_keeps_its_texels() -> None:
    light = lighting.light_direction(UP)
    bounds, eye = Bounds(np.array([3.0, -2.0, 1.0]), 2.0), np.array([10.0, 4.0, 2.0])
    view = lighting.shadow_view(bounds, light, eye, 512)
    directions = np.random.default_rng(0).normal(size=(200, 3))
    surface = bounds.center + 2.0 * directions / np.linalg.norm(directions, axis=1)[:, None]
    clip = (surface - eye) @ view.to_clip[:3, :3].T + view.to_clip[:3, 3]
    assert np.abs(clip).max() <= 1.0
    moved = lighting.shadow_view(bounds, light, eye + 0.1, 512)
    again = (surface - eye - 0.1) @ moved.to_clip[:3, :3].T + moved.to_clip[:3, 3]
    assert again == pytest.approx(clip)


@pytest.mark.parametrize("distance, spacing", [(8.0, 1.0), (0.3, 0.1), (40.0, 10.0)])
def test_grid_lines_suit_the_distance(distance: float, spacing: float) -> None:
    assert lighting.grid_spacing(distance) == pytest.approx(spacing)


def test_a_wrapped_rope_is_drawn_along_its_arc() -> None:
    b, across = ModelBuilder(), Transform.from_axis_angle((0, 0, 3), (1, 0, 0), 0.5 * np.pi)
    ends = [(b.add_body(1.0, (1, 1, 1), xform=Transform((x, 0, 1))), (0, 0, 0)) for x in (-0.5, 0.5)]
    b.add_spatial_tendon([ends[0], Wrap(-1, 0.5, across, side=(0, 0, 9)), ends[1]], label="rope")
    model = b.finalize()
    sheave = MachineParts(model).parts[-1]
    assert (sheave.body, sheave.offset[2], np.linalg.norm(sheave.linear[:, 0])) == pytest.approx((-1, 3.0, 0.5))
    stage = Stage(model)
    pieces = stage.transforms(Poses.from_model(model))[stage._spanning]
    start, along = pieces[:, :, 3], pieces[:, :, 2]
    assert len(pieces) == ARC_PIECES + 2
    assert start[0] == pytest.approx((-0.5, 0, 1)) and start[-1] + along[-1] == pytest.approx((0.5, 0, 1))
    assert start[:-1] + along[:-1] == pytest.approx(start[1:], abs=1e-12)
    assert np.linalg.norm(along, axis=1).sum() == pytest.approx(4.0 + 0.5 * np.pi, rel=1e-3)
