from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Transform
from tests.message_snapshot import naming

from .helpers import FRAME_A, NO_GRAVITY, PLACE, ball_body, simulate
from .test_builder import I3, machine

WHERE = Transform.from_rpy((0.4, 0.1, -0.2), (0.2, -0.5, 0.9))


def on_a_base(at: bool, **base: Any) -> ModelBuilder:
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = b.add_body(1.0, I3, com=(0.1, -0.2, 0.3), xform=PLACE, kinematic=True, label="base", **base)
    if at:
        b.add_builder(machine(), WHERE, "m_", parent=body)
    else:
        b.add_builder(machine(), PLACE * WHERE, "m_")
    return b


def test_on_a_base_at_rest_it_moves_as_in_the_world() -> None:
    fixed, on_body = (simulate(on_a_base(at), dt=2e-3) for at in (False, True))
    for sim in (fixed, on_body):
        sim.step(80)
    for name in ("body.m_arm.position", "body.m_hand.orientation", "joint.m_wrist.position", "spring.m_spring.force"):
        np.testing.assert_allclose(on_body.read(name), fixed.read(name), rtol=0.0, atol=1e-9)
    assert np.abs(on_body.read("joint.m_wrist.position")).max() > 0.01
    assert on_body.model.joints[0].parent == on_body.model.actuators[1].params["body_a"] == 0


def test_it_moves_along_with_its_parent() -> None:
    velocity = np.array([3.0, -2.0, 1.0])
    still, along = (simulate(on_a_base(True, linear_velocity=v), dt=2e-3) for v in (np.zeros(3), velocity))
    for sim in (still, along):
        sim.step(80)
    way = velocity * along.time
    for body in ("base", "m_arm", "m_hand"):
        name = f"body.{body}.position"
        np.testing.assert_allclose(along.read(name)[0] - way, still.read(name)[0], atol=1e-9)
    np.testing.assert_allclose(along.read("joint.m_wrist.position"), still.read("joint.m_wrist.position"), atol=1e-9)


def test_it_turns_along_with_its_parent() -> None:
    spin = (1.0, 2.0, -3.0)
    alone, turning = simulate(machine()), simulate(on_a_base(True, linear_velocity=(1, 0, 2), angular_velocity=spin))
    for name in ("joint.{}hinge", "joint.{}wrist"):
        for signal in (".position", ".velocity"):
            mine, wanted = turning.read(name.format("m_") + signal), alone.read(name.format("") + signal)
            np.testing.assert_allclose(mine, wanted, rtol=0.0, atol=1e-12)
    arm, base = (turning.read(f"body.{label}.angular_velocity")[0] for label in ("m_arm", "base"))
    own = (PLACE * WHERE).rotate(machine().bodies[0].angular_velocity)
    np.testing.assert_allclose(arm, base + own, atol=1e-12)


def leg() -> ModelBuilder:
    b = ModelBuilder()
    thigh = b.add_body(label="thigh", xform=Transform((0, 0, -0.3)), linear_velocity=(0, 0, 0.5))
    b.add_joint_revolute(-1, thigh, child_xform=Transform((0, 0, 0.3)), axis=(0, 1, 0), label="hip")
    hub = b.add_shape_sphere(-1, 0.05, xform=Transform((0, 0, 0.1)), label="hub")
    foot = b.add_shape_capsule(thigh, 0.04, 0.2, label="foot")
    b.add_collision_pair(hub, foot, Material(friction=0.3))
    b.add_visual(-1, "box", (0.1, 0.1, 0.1), label="cover")
    return b


def test_shapes_pictures_and_pairs_stand_on_the_body() -> None:
    b = ModelBuilder()
    trunk = b.add_body(xform=PLACE, linear_velocity=(1.0, 0.0, 0.0), label="trunk")
    b.add_shape_box(trunk, half_extents=(0.3, 0.2, 0.1), label="body")
    for side, y in (("left_", 0.2), ("right_", -0.2)):
        b.add_builder(leg(), Transform((0, y, 0)), side, trunk)
    hand = ModelBuilder()
    trunk = hand.add_body(xform=PLACE, linear_velocity=(1.0, 0.0, 0.0), label="trunk")
    hand.add_shape_box(trunk, half_extents=(0.3, 0.2, 0.1), label="body")
    for side, y in (("left_", 0.2), ("right_", -0.2)):
        pose = PLACE * Transform((0, y, 0)) * Transform((0, 0, -0.3))
        speed = PLACE.rotate((0, 0, 0.5)) + (1.0, 0.0, 0.0)
        thigh = hand.add_body(xform=pose, label=f"{side}thigh", linear_velocity=speed)
        hip = Transform((0, y, 0)), Transform((0, 0, 0.3))
        hand.add_joint_revolute(trunk, thigh, *hip, axis=(0, 1, 0), label=f"{side}hip")
        hub = hand.add_shape_sphere(trunk, 0.05, xform=Transform((0, y, 0.1)), label=f"{side}hub")
        hand.add_collision_pair(hub, hand.add_shape_capsule(thigh, 0.04, 0.2, label=f"{side}foot"), Material(0.3))
    sims = simulate(b, dt=2e-3), simulate(hand, dt=2e-3)
    cover = b.visuals[1]
    assert (cover.label, cover.body) == ("right_cover", trunk)
    np.testing.assert_allclose(cover.xform.position, (0, -0.2, 0), atol=1e-15)
    for sim in sims:
        sim.step(100)
    contact = [sim.model.contact for sim in sims]
    assert contact[0].candidates == contact[1].candidates and contact[0].include_material == contact[1].include_material
    for name in ("body.trunk.mass", "body.trunk.position", "body.right_thigh.position", "joint.left_hip.position"):
        np.testing.assert_allclose(sims[0].read(name), sims[1].read(name), rtol=0.0, atol=1e-10)


def turning(com: Any) -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_sphere(b.add_body(com=com, angular_velocity=(0, 0, 1.0), label="drum"), 0.2)
    return b


BAD: dict[str, tuple[Callable[[], ModelBuilder], Callable[[ModelBuilder], Any], str]] = {
    "unknown parent": (lambda: turning(None), lambda b: b.add_builder(leg(), parent=3), "parent 3 1"),
    "label": (lambda: turning(None), lambda b: b.add_builder(leg(), parent="drum"), "parent 'drum' add_body"),
    "ground": (
        lambda: turning(None),
        lambda b: b.add_builder(ground(), parent=0),
        "shape 'floor' 'drum' kinematic",
    ),
    "turning parent": (
        lambda: turning(None), lambda b: b.add_builder(machine(), parent=0), "'arm' 'drum'"
    ),
    "turning child": (lambda: turning((0, 0, 0)), lambda b: b.add_builder(leg(), parent=0), "'thigh'"),
}  # fmt: skip


def ground() -> ModelBuilder:
    b = ModelBuilder()
    ball_body(b, label="ball")
    b.add_shape_plane(-1, label="floor")
    return b


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_on_a_body(name: str) -> None:
    build, call, words = BAD[name]
    b = build()
    with pytest.raises(ModelError, match=naming(words)):
        call(b)
    assert (len(b.bodies), len(b.joints), len(b.shapes)) == (1, 0, 1)


def test_a_plane_goes_on_a_kinematic_body() -> None:
    b = ModelBuilder()
    lift = b.add_body(kinematic=True, xform=FRAME_A)
    b.add_builder(ground(), parent=lift)
    assert b.shapes[0].body == lift
    np.testing.assert_allclose(b.bodies[1].xform.position, FRAME_A.position)
