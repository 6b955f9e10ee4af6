from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import (
    ContactLaw,
    Material,
    ModelBuilder,
    ModelError,
    Simulation,
    SolverConfig,
    Transform,
    UnknownNameError,
)
from gpusim.contact.constants import FLIGHT, SLIDING, STICKING
from tests.message_snapshot import naming

from ..collide.kernels import kernel_manifolds  # noqa: F401
from .resting import DT, G, add_ball, add_box, ground, handed_over, settled, simulate

BACKENDS = ("native", "numpy")
each_backend = pytest.mark.parametrize("backend", BACKENDS)


@each_backend
def test_contacts_of_a_box_at_rest_bear_its_weight(backend) -> None:
    b = ground()
    add_box(b)
    sim = settled(b, backend)
    c = sim.contacts()
    assert len(c) == 4 and c.touching.all()
    np.testing.assert_allclose(c.force.sum(axis=0), (0, 0, 2.0 * G), atol=1e-6 * 2.0 * G)
    np.testing.assert_allclose(c.normal, np.tile((0, 0, 1.0), (4, 1)), atol=1e-12)
    np.testing.assert_allclose(c.normal_force, c.force[:, 2], rtol=1e-12)
    np.testing.assert_allclose(c.friction_force, np.hypot(c.force[:, 0], c.force[:, 1]), atol=1e-12)
    np.testing.assert_allclose(np.sort(np.abs(c.point[:, :2]), axis=None), 0.1, atol=1e-5)
    np.testing.assert_allclose(c.point[:, 2], 0.5 * c.gap, atol=1e-9)
    assert set(c.body_a) == {-1} and set(c.body_b) == {0}
    assert c.labels() == [("ground", "box_shape")] * 4
    assert c.mode_names() == ["sticking"] * 4
    assert set(c.pair) == {0} and not c.torque.any()
    assert sim.read("sim.contacts")[0] == sim.read("shape.ground.contacts")[0] == 4
    assert sim.read("sim.penetration")[0] == pytest.approx(-c.gap.min(), abs=1e-15)
    assert 0.0 < sim.read("sim.penetration")[0] < 1e-5
    assert sim.read("sim.pairs")[0] == sim.read("sim.pair_peak")[0] == 1


@each_backend
def test_forces_on_both_bodies_of_a_contact_are_opposite(backend) -> None:
    b = ground()
    add_box(b, label="low")
    add_box(b, z=0.3, x=0.02, mass=3.0, label="high")
    sim = settled(b, backend)
    on = {name: sim.read(f"{name}.contact_force")[0] for name in ("body.low", "body.high", "shape.ground")}
    weight = np.array((0, 0, G))
    np.testing.assert_allclose(on["body.high"], 3.0 * weight, atol=5e-6 * G)
    np.testing.assert_allclose(on["body.low"], 2.0 * weight, atol=5e-6 * G)
    np.testing.assert_allclose(on["shape.ground"], -5.0 * weight, atol=5e-6 * G)
    between = sim.contacts().of("high_shape")
    assert set(between.labels()) == {("low_shape", "high_shape")}
    np.testing.assert_allclose(between.force.sum(axis=0), sim.read("shape.high_shape.contact_force")[0], rtol=1e-12)
    # At rest the torques about each center of mass vanish, though the load stands off the middle.
    for body in ("low", "high"):
        np.testing.assert_allclose(sim.read(f"body.{body}.contact_torque")[0], 0.0, atol=1e-4)


@each_backend
def test_friction_holds_a_block_on_a_slope(backend) -> None:
    slope = 0.3
    b = ground(slope, friction=2.0)
    add_box(b)
    sim = settled(b, backend)
    c = sim.contacts()
    weight = 2.0 * G
    expected = (-weight * np.sin(slope), 0.0, weight * np.cos(slope))
    np.testing.assert_allclose(sim.read("body.box.contact_force")[0], expected, atol=1e-6 * weight)
    assert (c.mode == STICKING).all()


@each_backend
def test_a_block_that_slides_rubs_with_the_share_of_its_load(backend) -> None:
    b = ground(friction=0.125)  # with the block's 0.5 a mean of 0.25
    add_box(b, linear_velocity=(4.0, 0, 0))
    sim = settled(b, backend, steps=60)
    c = sim.contacts()
    assert c.mode_names() == ["sliding"] * 4
    np.testing.assert_allclose(c.friction_force, 0.25 * c.normal_force, rtol=1e-3)
    assert (c.force[:, 0] < 0.0).all()


@each_backend
def test_modes_of_balls_that_roll_slide_and_fly(backend) -> None:
    b = ground()
    add_ball(b, x=0.0, label="rolling", linear_velocity=(1.0, 0, 0), angular_velocity=(0, 10.0, 0))
    add_ball(b, x=2.0, label="sliding", linear_velocity=(5.0, 0, 0))
    add_ball(b, x=4.0, z=0.102, label="flying", linear_velocity=(0.0, 0, 1.0))
    sim = settled(b, backend, steps=0)
    sim.step(1)
    modes = [int(sim.contacts().of(f"{name}_shape").mode[0]) for name in ("rolling", "sliding")]
    assert modes == [STICKING, SLIDING]
    flying = sim.contacts().of("flying_shape")
    assert (flying.mode == FLIGHT).all() and not flying.force.any()
    assert sim.read("shape.flying_shape.contacts")[0] == 0
    assert sim.read("sim.contacts")[0] == 2


def disk(**material: Any) -> ModelBuilder:
    """A disk of 1 kg and radius 0.1 m on the ground, with 20 rad/s about z and 0.1 m/s."""
    b = ground(**material)
    body = b.add_body(
        1.0, (0.003, 0.003, 0.005), xform=Transform((0, 0, 0.05)), label="disk",
        linear_velocity=(0.1, 0, 0), angular_velocity=(0, 0, 20.0),
    )  # fmt: skip
    b.add_shape_cylinder(body, 0.1, 0.05, material=Material(**material), label="disk_shape")
    return b


@each_backend
def test_torques_of_rolling_and_spinning_friction_belong_to_the_pair(backend) -> None:
    b = ModelBuilder()
    made = Material(friction=0.5, rolling_friction=2e-3, spinning_friction=3e-3)
    b.add_shape_plane(-1, material=made, label="ground")
    ball = b.add_body(
        1.0, (0.004,) * 3, xform=Transform((0, 0, 0.1)), label="ball",
        linear_velocity=(1.0, 0, 0), angular_velocity=(0, 10.0, 8.0),
    )  # fmt: skip
    b.add_shape_sphere(ball, 0.1, material=made, label="ball_shape")
    sim = settled(b, backend, steps=20, substeps=1)
    c = sim.contacts()
    assert len(c) == 1
    load = c.normal_force[0]
    assert load == pytest.approx(G, rel=2e-6)
    np.testing.assert_allclose(c.torque[0], (0.0, -2e-3 * load, -3e-3 * load), rtol=1e-6, atol=1e-9)
    arm = c.point[0] - sim.read("body.ball.center_of_mass")[0]
    expected = np.cross(arm, c.force[0]) + c.torque[0]
    np.testing.assert_allclose(sim.read("body.ball.contact_torque")[0], expected, rtol=1e-12)


@each_backend
def test_a_patch_shares_its_friction_among_its_points(backend) -> None:
    law = ContactLaw(friction="contensou", patch_radius=0.1)
    sim = settled(disk(friction=0.3, law=law), backend, steps=30)
    c = sim.contacts()
    assert c.mode_names() == ["sliding"] * len(c)
    force, load = c.force.sum(axis=0), c.normal_force.sum()
    assert -0.3 * load < force[0] < 0.0
    assert c.torque.sum(axis=0)[2] < 0.0
    np.testing.assert_allclose(c.force[:, :2], np.tile(force[:2] / len(c), (len(c), 1)), atol=1e-9)


@each_backend
def test_worlds_have_contacts_of_their_own(backend) -> None:
    b = ground()
    add_ball(b)
    fast = simulate(b, num_worlds=3)
    fast.write("body.ball.position", (0, 0, 20.0), worlds=1)
    fast.write("body.ball.mass", 5.0, worlds=2)
    fast.step(100)
    sim = handed_over(fast, b, backend)
    np.testing.assert_allclose(sim.read("body.ball.contact_force")[:, 2] / G, (1.0, 0.0, 5.0), atol=1e-5)
    np.testing.assert_array_equal(sim.read("sim.contacts"), (1, 0, 1))
    assert sim.contacts().world.tolist() == [0, 2]
    assert sim.contacts(worlds=2).normal_force == pytest.approx([5.0 * G], rel=1e-5)
    assert len(sim.contacts(worlds=1)) == 0
    assert sim.contacts(worlds=[True, False, False]).world.tolist() == [0]
    with pytest.raises(ModelError, match=naming("3")):
        sim.contacts(worlds=3)
    with pytest.raises(UnknownNameError, match=naming("ball_shape")):
        sim.contacts().of("bal_shape")


@each_backend
def test_reading_contacts_changes_no_state(backend) -> None:
    b = ground()
    add_ball(b, z=0.3)
    add_box(b, x=0.05)
    sim = settled(b, backend, steps=30)
    before = {name: array.copy() for name, array in sim.read_state().items()}
    sim.contacts()
    sim.read("sim.kinetic_energy")
    for name, array in sim.read_state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


@pytest.mark.usefixtures("kernel_manifolds")
def test_backends_report_the_same_contacts() -> None:
    b = ground()
    add_ball(b, z=0.29, linear_velocity=(0.3, 0, -1))
    add_box(b, x=0.05)
    found = [settled(b, backend, steps=30, iterations=8).contacts() for backend in BACKENDS]
    for name in ("world", "shape_a", "shape_b", "body_a", "mode", "pair"):
        np.testing.assert_array_equal(*(getattr(c, name) for c in found), err_msg=name)
    for name in ("point", "normal", "gap", "force", "torque"):
        np.testing.assert_allclose(*(getattr(c, name) for c in found), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("solver", ["direct", "colored"])
@each_backend
def test_reactions_of_joints_bear_what_stands_on_them(backend, solver) -> None:
    b = ground()
    foot = add_box(b, label="foot")
    mast = b.add_body(1.0, (0.01,) * 3, xform=Transform((0.02, 0, 0.4)), label="mast")
    b.add_joint_fixed(foot, mast, Transform((0, 0, 0.1)), Transform((-0.02, 0, -0.2)), label="low")
    arm = b.add_body(0.5, (0.01,) * 3, xform=Transform((0.05, 0, 0.8)), label="arm")
    b.add_joint_revolute(
        mast, arm, Transform((0, 0, 0.2)), Transform((-0.03, 0, -0.2)), axis=(0, 1, 0),
        limit_lower=0.0, limit_upper=0.0, label="high",
    )  # fmt: skip
    sim = settled(b, backend, steps=480, joint_solver=solver)
    scale = 3.5 * G
    low, high = sim.read("joint.low.reaction")[0], sim.read("joint.high.reaction")[0]
    # The child on the parent: weight, and its torque about the joint.
    tight = 1e-6 if solver == "direct" else 5e-5
    np.testing.assert_allclose(low[:3], (0, 0, -1.5 * G), atol=tight * scale)
    np.testing.assert_allclose(high[:3], (0, 0, -0.5 * G), atol=tight * scale)
    np.testing.assert_allclose(low[3:], (0, (0.02 * 1.0 + 0.05 * 0.5) * G, 0), atol=2e-5 * scale)
    np.testing.assert_allclose(high[3:], (0, 0.03 * 0.5 * G, 0), atol=2e-5 * scale)
    np.testing.assert_allclose(sim.read("body.foot.contact_force")[0], (0, 0, scale), atol=tight * scale)


@each_backend
def test_no_contacts_are_all_zeros(backend) -> None:
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), label="lonely")
    sim = simulate(b, backend)
    sim.step()
    assert len(sim.contacts()) == 0
    assert sim.read("body.lonely.contact_force").tolist() == [[0, 0, 0]]
    assert sim.read("sim.penetration").tolist() == [0]
    assert sim.read("sim.pairs").tolist() == [0]


@each_backend
def test_penetration_counts_rigid_contacts_alone(backend) -> None:
    b = ground()
    add_box(b)
    soft = Material(law=ContactLaw(normal="spring", stiffness=1e3))
    ball = b.add_body(1.0, (0.01,) * 3, xform=Transform((2.0, 0, 0.1)), label="ball")
    b.add_shape_sphere(ball, 0.1, material=soft)
    sim = settled(b, backend)
    c = sim.contacts()
    assert c.rigid.tolist() == [bool(abs(gap) < 1e-4) for gap in c.gap] and len(c) == 5
    assert 0.0 <= sim.read("sim.penetration")[0] == -min(0.0, c.gap[c.rigid].min()) < 1e-5 < 1e-4 < -c.gap.min()


# Parameters.


def test_friction_may_differ_per_world() -> None:
    b = ground(0.3, friction=1.0)
    add_box(b)
    sim = simulate(b, num_worlds=3)
    sim.write("shape.box_shape.friction", [1.0, 0.04, 0.0025])
    assert sim.read("shape.box_shape.friction").tolist() == [1.0, 0.04, 0.0025]
    sim.step(60)
    speed = sim.read("body.box.linear_velocity")[:, 0]
    friction = np.sqrt((1.0, 0.04, 0.0025))
    expected = np.maximum(np.sin(0.3) - friction * np.cos(0.3), 0.0) * G * 60 * DT
    np.testing.assert_allclose(speed, expected, atol=2e-3)


@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_restitution_may_be_written_where_nothing_bounced(launch) -> None:
    b = ground()
    add_ball(b, z=1.1)
    sim = Simulation(b.finalize(), 2, backend="native", launch=launch, config=SolverConfig(dt=DT))
    sim.write("shape.ball_shape.restitution", 1.0, worlds=1)
    height = []
    for _ in range(110):
        sim.step()
        height.append(sim.read("body.ball.position")[:, 2].copy())
    after = np.max(height[60:], axis=0)
    np.testing.assert_allclose(after, (0.1, 1.1), atol=2e-3)


@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_limits_bounce_by_the_restitution_of_their_world(launch) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(1.0, (1, 1, 1), label="cart")
    b.add_joint_prismatic(-1, body, axis=(1, 0, 0), limit_lower=-1.0, limit_upper=0.1, label="rail")
    sim = Simulation(b.finalize(), 3, backend="native", launch=launch, config=SolverConfig(dt=DT))
    sim.write("joint.rail.velocity", 1.0)
    sim.write("joint.rail.limit_restitution", [0.0, 0.5, 1.0])
    sim.step(40)
    np.testing.assert_allclose(sim.read("joint.rail.velocity"), (0.0, -0.5, -1.0), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("shape.ball_shape.friction", -0.1, "shape 'ball_shape' friction"),
        ("shape.ball_shape.restitution", 1.5, "shape 'ball_shape' restitution 0 1"),
        ("shape.ball_shape.rolling_friction", np.inf, "signal 'shape.ball_shape.rolling_friction'"),
        ("shape.ball_shape.contact_force", (0, 0, 0), "signal 'shape.ball_shape.contact_force'"),
    ],
)
def test_bad_writes_are_refused(name, value, message) -> None:
    b = ground()
    add_ball(b)
    with pytest.raises(ModelError, match=naming(message)):
        simulate(b).write(name, value)
