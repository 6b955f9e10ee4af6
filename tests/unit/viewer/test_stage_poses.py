from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, Transform, Wrap
from gpusim.errors import ModelError
from gpusim.scene import load_scene
from gpusim.stage import Frames, Poses, Stage
from tests.message_snapshot import naming

TILTED = Transform.from_rpy((1.0, 2.0, 3.0), (0.3, -0.5, 0.9))


def test_frames_give_the_points_of_the_transforms() -> None:
    model = load_scene("boom_crane").builder.finalize()
    stage = Stage(model)
    poses = Poses.from_model(model)
    frames, transforms = stage.frames(poses), stage.transforms(poses)
    point = np.array([0.3, -0.8, 0.5])
    for k in range(len(stage)):
        placed = Transform(frames.position[k], frames.quaternion[k]).apply(point * frames.scale[k])
        assert placed == pytest.approx(transforms[k, :, :3] @ point + transforms[k, :, 3])
    assert Frames.from_transforms(np.zeros((0, 3, 4))).quaternion.shape == (0, 4)


def test_a_box_has_its_closed_form_pose_size_and_color() -> None:
    b = ModelBuilder()
    body = b.add_body(mass=1.0, inertia=(1, 1, 1), com=(0.05, 0.06, 0.07), xform=TILTED)
    b.add_shape_box(body, (0.1, 0.2, 0.3), xform=Transform((0.4, 0.5, 0.6)), color=(1.0, 0.5, 0.0))
    sim = Simulation(b.finalize(), backend="numpy")
    stage = Stage(sim.model)
    (box,) = np.flatnonzero(stage.shape == 0)
    frames = stage.frames(Poses.of(sim))
    assert frames.position[box] == pytest.approx(TILTED.apply(np.array([0.4, 0.5, 0.6])))
    assert frames.scale[box] == pytest.approx([0.1, 0.2, 0.3])
    assert abs(float(frames.quaternion[box] @ TILTED.rotation)) == pytest.approx(1.0)
    assert stage.rgba()[box].tolist() == [255, 128, 0, 255] and stage.fixed[box]
    local = stage.local_transforms()[np.flatnonzero(stage.fixed) == box][0]
    assert local == pytest.approx(np.column_stack([np.diag([0.1, 0.2, 0.3]), [0.4, 0.5, 0.6]]))


def test_a_cube_of_pictures_gives_its_mean_color_and_a_visual_its_opacity() -> None:
    b = ModelBuilder()
    body = b.add_body(mass=1.0, inertia=(1, 1, 1))
    faces = np.zeros((6, 2, 2, 3), np.uint8)
    faces[:3, ..., 0] = 200
    b.add_visual(body, "sphere", 0.2, texture=faces)
    b.add_visual(body, "box", (0.1, 0.1, 0.1), color=(0.0, 0.0, 1.0), alpha=0.2)
    stage = Stage(b.finalize())
    rgba = {bool(batch.mesh.texture): stage.rgba()[batch.first].tolist() for batch in stage.batches}
    assert rgba == {True: [100, 0, 0, 255], False: [0, 0, 255, 51]}
    assert all(batch.picture is None for batch in stage.batches)


def rope_and_spring() -> Simulation:
    """Two weights on a rope over a sheave, and one of them on a spring."""
    b, across = ModelBuilder(), Transform.from_axis_angle((0, 0, 3), (1, 0, 0), 0.5 * np.pi)
    bodies = [b.add_body(1.0 + k, (1, 1, 1), com=(0, 0, 0.1), xform=Transform((k - 0.5, 0, 1))) for k in range(2)]
    b.add_spatial_tendon(
        [(bodies[0], (0, 0, 0)), Wrap(-1, 0.5, across, side=(0, 0, 9)), (bodies[1], (0, 0, 0))], label="rope"
    )
    b.add_spring(-1, bodies[0], (-0.5, 0, 0), (0, 0, 0), stiffness=50.0, rest_length=0.8)
    return Simulation(b.finalize(), backend="numpy")


def test_spans_over_time_are_those_of_each_sample() -> None:
    sim = rope_and_spring()
    stage = Stage(sim.model)
    positions, turns, expected = [], [], []
    for _ in range(5):
        sim.step(20)
        expected.append(stage.transforms(Poses.of(sim))[~stage.fixed])
        labels = sim.model.labels("body")
        positions.append([sim.read(f"body.{label}.position")[0] for label in labels])
        turns.append([sim.read(f"body.{label}.orientation")[0] for label in labels])
    poses = Poses.from_body_frames(sim.model, np.array(positions), np.array(turns))
    courses = stage.span_courses(poses)
    assert courses.shape == (5, (~stage.fixed).sum(), 3, 4) and courses == pytest.approx(np.array(expected))
    assert np.abs(courses[0] - courses[-1]).max() > 0.01


@pytest.mark.parametrize("height", [0.0, 0.7])
def test_the_square_of_a_level_ground_lies_in_it_below_the_scene(height: float) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1, xform=Transform((0.0, 0.0, height)))
    body = b.add_body(mass=1.0, inertia=(1, 1, 1), xform=Transform((5.0, 0.0, height + 1.0)))
    b.add_shape_sphere(body, 0.5)
    stage = Stage(b.finalize())
    (ground,) = stage.grounds
    square = stage.ground_square(ground)
    assert square[:, 2] == pytest.approx(height)
    assert square.mean(axis=0)[:2] == pytest.approx([5.0, 0.0], abs=1e-6)
    normal = np.cross(square[1] - square[0], square[2] - square[1])
    assert normal[2] > 0.0 and np.linalg.norm(square[1] - square[0]) == pytest.approx(3.0 * stage.home.radius)


def test_a_stage_of_several_worlds() -> None:
    b = ModelBuilder()
    b.add_shape_box(b.add_body(mass=1.0, inertia=(1, 1, 1)), (0.1, 0.2, 0.3))
    sim = Simulation(b.finalize(), 3, backend="numpy")
    stage = Stage(sim.model, 2)
    assert np.all(stage.transforms(Poses.of(sim, [True, False, True])) == stage.transforms(Poses.of(sim, [0, 2])))
    assert len(Poses.of(sim, None).position) == 3
    wrong = {
        "poses 1 2": lambda: stage.frames(Poses.of(sim)), "None Poses.of": lambda: stage.transforms(None),
        "world 3": lambda: Poses.of(sim, [3]), "num_worlds 0": lambda: Stage(sim.model, 0),
        "Simulation sim.model": lambda: Stage(sim),
    }  # fmt: skip
    for words, call in wrong.items():
        with pytest.raises(ModelError, match=naming(words)):
            call()
