"""Joints and ends of actuators placed in the world: ``at``, ``at_a``, ``at_b``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Transform
from tests.message_snapshot import naming

from .helpers import FRAME_A, PLACE, simulate
from .test_builder import CYLINDER

HERE = np.array([0.4, -0.3, 0.8])
AXIS = np.array([0.6, 0.0, 0.8])
KINDS = ("revolute", "prismatic", "cylindrical", "universal", "planar", "planar_pin", "ball", "free", "fixed")
OPTIONS: dict[str, dict[str, Any]] = {"universal": {"axis": AXIS, "axis2": (0.0, 1.0, 0.0)}}
OPTIONS |= dict.fromkeys(("ball", "free", "fixed"), {})


def two_bodies() -> ModelBuilder:
    """Bodies 'a' and 'b' at poses off every axis."""
    b = ModelBuilder()
    for label, pose in (("a", PLACE), ("b", PLACE * FRAME_A)):
        b.add_body(1.0, (0.1, 0.1, 0.15), com=(0.1, 0.2, 0.0), xform=pose, label=label)
    return b


def joint(b: ModelBuilder, kind: str, parent: int, **place: Any) -> None:
    getattr(b, f"add_joint_{kind}")(parent, 1, label="j", **OPTIONS.get(kind, {"axis": AXIS}), **place)


@pytest.mark.parametrize("parent", [-1, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_frames_coincide_and_the_joint_reads_zero_as_built(kind: str, parent: int) -> None:
    b = two_bodies()
    joint(b, kind, parent, at=HERE)
    spec = b.joints[0]
    for body, frame in ((spec.parent, spec.parent_xform), (spec.child, spec.child_xform)):
        place = (Transform() if body < 0 else b.bodies[body].xform) * frame
        np.testing.assert_allclose(place.position, HERE, atol=1e-14)
        np.testing.assert_allclose(place.matrix(), np.eye(3), atol=1e-14)
    sim = simulate(b)
    assert sim.read("sim.joint_drift")[0] < 1e-14
    if kind != "fixed":
        q = np.atleast_1d(sim.read("joint.j.position")[0])
        zero = {"ball": (0, 0, 0, 1), "free": (0, 0, 0, 0, 0, 0, 1)}.get(kind, np.zeros(q.size))
        np.testing.assert_allclose(q, zero, atol=1e-14)


def test_the_axis_is_given_in_the_world() -> None:
    b = two_bodies()
    b.add_joint_prismatic(-1, 1, axis=(0.6, 0.0, -0.8), at=HERE, limit_upper=0.05, label="slide")
    start = b.bodies[1].xform.position
    sim = simulate(b, dt=2e-3)
    sim.step(400)
    np.testing.assert_allclose(sim.read("body.b.position")[0] - start, (0.03, 0.0, -0.04), atol=1e-9)


def test_at_may_be_a_frame() -> None:
    b = two_bodies()
    frame = Transform(HERE, Transform.from_rpy((0, 0, 0), (0.3, 0.1, -0.4)).rotation)
    b.add_joint_planar(0, 1, at=frame, label="j")
    for body, own in ((0, b.joints[0].parent_xform), (1, b.joints[0].child_xform)):
        place = b.bodies[body].xform * own
        np.testing.assert_allclose(place.position, HERE, atol=1e-14)
        np.testing.assert_allclose(place.matrix(), frame.matrix(), atol=1e-14)
    np.testing.assert_allclose(simulate(b).read("joint.j.position")[0], 0.0, atol=1e-14)


def test_a_hinge_in_the_world_and_one_by_frames_are_the_same() -> None:
    for turn, tolerance in ((PLACE.rotation, 1e-12), ((0, 0, 0, 1), 0.0)):
        sims = []
        for by_frames in (False, True):
            b = ModelBuilder()
            pose = Transform((0.5, 0.25, 1.0), turn)
            b.add_body(1.0, (0.1, 0.1, 0.15), com=(0.1, 0.2, 0.0), xform=pose, label="a")
            place: dict[str, Any] = {"at": (0.25, 0.5, 1.0)}
            if by_frames:
                frame = Transform((0.25, 0.5, 1.0))
                place = {"parent_xform": frame, "child_xform": pose.inverse() * frame}
            b.add_joint_revolute(-1, 0, axis=AXIS, label="j", **place)
            sims.append(simulate(b))
            sims[-1].step(100)
        q = [sim.read("joint.j.position")[0] for sim in sims]
        np.testing.assert_allclose(q[0], q[1], rtol=0.0, atol=tolerance)


def test_the_poses_are_those_of_the_moment() -> None:
    b = two_bodies()
    b.add_joint_ball(-1, 0, at=HERE)
    b.bodies[0].xform = Transform((1.0, 0.0, 0.0)) * b.bodies[0].xform
    assert simulate(b).read("sim.joint_drift")[0] == pytest.approx(1.0)


def ends_of(b: ModelBuilder) -> dict[str, np.ndarray]:
    p = b.actuators[0].params
    bodies = {name: -1 if p[f"body_{name}"] < 0 else int(p[f"body_{name}"]) for name in "ab"}
    return {
        name: p[f"point_{name}"] if k < 0 else b.bodies[k].xform.apply(p[f"point_{name}"]) for name, k in bodies.items()
    }


@pytest.mark.parametrize("parent", [-1, 0])
def test_springs_and_cylinders_between_points_of_the_world(parent: int) -> None:
    adders: list[Callable[..., Any]] = [
        lambda b, **ends: b.add_spring(parent, 1, stiffness=1.0, **ends),
        lambda b, **ends: b.add_hydraulic_cylinder(parent, 1, **CYLINDER, **ends),
    ]
    for add in adders:
        b = two_bodies()
        add(b, at_a=HERE, at_b=AXIS)
        ends = ends_of(b)
        np.testing.assert_allclose([ends["a"], ends["b"]], [HERE, AXIS], atol=1e-14)
        mixed = two_bodies()
        add(mixed, at_a=HERE, point_b=(0.1, 0.2, 0.3))
        np.testing.assert_allclose(ends_of(mixed)["a"], HERE, atol=1e-14)
        np.testing.assert_array_equal(mixed.actuators[0].params["point_b"], (0.1, 0.2, 0.3))


def test_rods_and_forces_at_points_of_the_world() -> None:
    b = two_bodies()
    length = float(np.linalg.norm(HERE - AXIS))
    b.add_joint_distance(0, 1, min_distance=length, max_distance=length, at_a=HERE, at_b=AXIS, label="rod")
    b.add_force(0, (1.0, 0.0, 0.0), at=HERE, label="push")
    sim = simulate(b)
    assert sim.read("joint.rod.position")[0] == pytest.approx(length, abs=1e-14)
    params = b.actuators[0].params
    np.testing.assert_allclose(PLACE.apply([params[f"point_{c}"] for c in "xyz"]), HERE, atol=1e-14)


BAD: dict[str, tuple[Callable[[ModelBuilder], Any], str]] = {
    "frame of the parent": (
        lambda b: b.add_joint_revolute(0, 1, Transform(), at=HERE, label="j"),
        "'j' parent_xform",
    ),
    "frame of the child": (
        lambda b: b.add_joint_ball(0, 1, child_xform=Transform(), at=HERE), "child_xform"
    ),
    "no point": (lambda b: b.add_joint_fixed(0, 1, at=(1.0, 2.0)), "at 2 3"),
    "text": (lambda b: b.add_joint_free(0, 1, at="here"), "at 'here'"),
    "unknown child": (lambda b: b.add_joint_planar(0, 7, at=HERE), "child 7"),
    "rod": (
        lambda b: b.add_joint_distance(0, 1, Transform(), max_distance=1, at_a=HERE), "parent_xform at_a"
    ),
    "rod of an unknown body": (lambda b: b.add_joint_distance(0, 7, max_distance=1, at_b=HERE), "child 7"),
    "spring": (
        lambda b: b.add_spring(0, 1, point_b=(0, 0, 0), at_b=HERE, stiffness=1, label="s"),
        "spring 's' point_b at_b",
    ),
    "cylinder": (lambda b: b.add_hydraulic_cylinder(0, 1, at_a=(0, 0), **CYLINDER), "at_a 2"),
    "force": (lambda b: b.add_force(0, (0, 0, 1), point=(0, 0, 1), at=HERE), "force 'force0'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_places_that_make_no_sense(name: str) -> None:
    b = two_bodies()
    call, words = BAD[name]
    with pytest.raises(ModelError, match=naming(words)):
        call(b)
    assert not b.joints and not b.actuators
