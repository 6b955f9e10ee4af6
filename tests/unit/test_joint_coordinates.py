from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, Transform

from .helpers import FRAME_A, FRAME_B, NO_GRAVITY, PLACE, SOLVERS, G, ball_body, both_backends, history, simulate


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["prismatic", "cylindrical"])
def test_a_body_on_a_tilted_rail_falls_with_the_gravity_along_it(kind: str, solver: str) -> None:
    """Closed form: q = g.a t^2/2 with the axis a in the world frame."""
    b = ModelBuilder()
    body = b.add_body(2.0, (0.1, 0.2, 0.15), com=(0.3, 0.2, 0.1), xform=PLACE * FRAME_B.inverse())
    axis = np.array([0.3, 0.4, 0.866])
    add = getattr(b, f"add_joint_{kind}")
    add(-1, body, parent_xform=PLACE, child_xform=FRAME_B, axis=axis, label="rail")
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    if kind == "cylindrical":
        b.add_servo(0, stiffness=1e9, damping=1e6, axis=1)
        sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(60)
    along = float(np.array([0.0, 0.0, -G]) @ PLACE.rotate(axis / np.linalg.norm(axis)))
    position = np.atleast_1d(sim.read("joint.rail.position")[0])[0]
    rate = np.atleast_1d(sim.read("joint.rail.velocity")[0])[0]
    tolerance = 1e-9 if kind == "prismatic" else 1e-5
    assert position == pytest.approx(0.5 * along * sim.time**2, abs=tolerance)
    assert rate == pytest.approx(along * sim.time, abs=10 * tolerance)


@pytest.mark.parametrize("speed", [20.0, -20.0])
def test_angles_are_counted_over_full_turns(speed: float) -> None:
    """Closed form: q = w t."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    axis = PLACE.rotate((0.0, 0.0, 1.0))
    body = b.add_body(1.0, (0.02, 0.02, 0.03), xform=PLACE, angular_velocity=tuple(speed * axis))
    b.add_joint_revolute(-1, body, parent_xform=PLACE, label="hub")
    sim = simulate(b, dt=1e-2)
    sim.step(100)
    assert sim.read("joint.hub.position")[0] == pytest.approx(speed, rel=1e-9)
    assert sim.read("joint.hub.velocity")[0] == pytest.approx(speed, rel=1e-9)
    assert sim.read("sim.joint_drift")[0] < 1e-12


def test_angles_counted_by_the_parent_when_it_turns_too() -> None:
    """Closed form: q = (w_child - w_parent) t."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    parent = b.add_body(1.0, (0.02, 0.02, 0.03), angular_velocity=(0.0, 0.0, 9.0))
    child = b.add_body(1.0, (0.02, 0.02, 0.03), angular_velocity=(0.0, 0.0, -6.0))
    b.add_joint_revolute(parent, child, label="hub")
    sim = simulate(b, dt=1e-2)
    sim.step(100)
    assert sim.read("joint.hub.position")[0] == pytest.approx(-15.0, rel=1e-9)


def test_universal_coordinates_turn_first_in_the_parent_then_in_the_child() -> None:
    """R = R(a1, q1) R(a2, q2) in the joint frames; the relative rate is q1' a1 + q2' R(a1, q1) a2."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = ball_body(b, xform=PLACE * FRAME_A * FRAME_B.inverse(), label="x")
    b.add_joint_universal(-1, body, PLACE * FRAME_A, FRAME_B, axis=(1, 0, 0), axis2=(0, 0, 1), label="cross")
    sim = simulate(b)
    sim.write("joint.cross.position", (0.7, -1.2))
    sim.write("joint.cross.velocity", (0.5, 2.0))
    np.testing.assert_allclose(sim.read("joint.cross.position")[0], (0.7, -1.2), atol=1e-12)
    np.testing.assert_allclose(sim.read("joint.cross.velocity")[0], (0.5, 2.0), atol=1e-12)
    first, second = (Transform.from_axis_angle((0, 0, 0), a, q) for a, q in (((1, 0, 0), 0.7), ((0, 0, 1), -1.2)))
    pose = PLACE * FRAME_A * first * second * FRAME_B.inverse()
    np.testing.assert_allclose(
        Transform((0, 0, 0), sim.read("body.x.orientation")[0]).matrix(), pose.matrix(), atol=1e-12
    )
    np.testing.assert_allclose(sim.read("body.x.position")[0], pose.position, atol=1e-12)
    omega = (PLACE * FRAME_A).rotate(np.array([0.5, 0.0, 0.0]) + first.rotate((0.0, 0.0, 2.0)))
    np.testing.assert_allclose(sim.read("body.x.angular_velocity")[0], omega, atol=1e-12)
    # And the coordinates follow the rates once it runs.
    sim.step(1, dt=1e-4)
    np.testing.assert_allclose(sim.read("joint.cross.position")[0], (0.70005, -1.1998), atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rod_holds_its_length_and_pulls_with_the_centripetal_force(solver: str) -> None:
    """Without gravity, the bob moves on a circle with the tension m v^2/l.

    The angle after n steps is n asin(w h), with w = v/l.
    """
    mass, length, speed, dt, steps = 2.0, 0.5, 3.0, 2e-3, 200
    b = ModelBuilder(gravity=NO_GRAVITY)
    bob = ball_body(b, mass, xform=Transform((length, 0, 0)), linear_velocity=(0, speed, 0), label="bob")
    b.add_joint_distance(-1, bob, min_distance=length, max_distance=length, label="rod")
    sim = simulate(b, dt=dt, joint_solver=solver)
    sim.step(steps)
    x = sim.read("body.bob.position")[0]
    exact = solver == "direct"
    assert np.linalg.norm(x) == pytest.approx(length, abs=1e-9 if exact else 1e-6)
    angle = np.arctan2(x[1], x[0])
    assert angle == pytest.approx(steps * np.arcsin(speed / length * dt), abs=1e-7 if exact else 1e-5)
    pull = sim.read("joint.rod.reaction")[0, :3]
    np.testing.assert_allclose(pull, mass * speed**2 / length * x / length, rtol=0, atol=2e-3 * 36.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rope_is_slack_until_its_length_and_taut_after(solver: str) -> None:
    """Free fall z = -g t^2/2 while slack, then rest with the tension m g."""
    b = ModelBuilder()
    bob = ball_body(b, 2.0, label="bob")
    b.add_joint_distance(-1, bob, max_distance=0.3, label="rope")
    sim = simulate(b, dt=2e-3, joint_solver=solver)
    z = history(sim, "body.bob.position", 80)[:, 0, 2]
    t = 2e-3 * np.arange(81)
    slack = 0.5 * G * t**2 < 0.299
    np.testing.assert_allclose(z[slack], -0.5 * G * t[slack] ** 2, atol=1e-12)
    assert z.min() >= -0.3 - 1e-6
    sim.step(100)
    assert sim.read("body.bob.position")[0, 2] == pytest.approx(-0.3, abs=1e-6)
    assert sim.read("joint.rope.position")[0] == pytest.approx(0.3, abs=1e-6)
    np.testing.assert_allclose(sim.read("joint.rope.reaction")[0, :3], (0.0, 0.0, -2.0 * G), rtol=1e-6, atol=1e-6)


def test_a_slack_rope_has_no_reaction() -> None:
    b = ModelBuilder()
    bob = ball_body(b, 2.0, label="bob")
    b.add_joint_distance(-1, bob, max_distance=0.3, label="rope")
    sim = simulate(b, dt=2e-3)
    sim.step(50)
    np.testing.assert_allclose(sim.read("joint.rope.reaction")[0], 0.0, atol=1e-20)


def test_strut_keeps_a_least_distance() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    bob = ball_body(b, xform=Transform((1.0, 0.0, 0.0)), linear_velocity=(-2.0, 0.0, 0.0), label="bob")
    b.add_joint_distance(-1, bob, min_distance=0.6, label="strut")
    sim = simulate(b, dt=5e-3)
    x = history(sim, "joint.strut.position", 60)[:, 0]
    assert x.min() >= 0.6 - 1e-9
    assert x[-1] == pytest.approx(0.6, abs=1e-9)


def test_ball_position_is_the_quaternion_of_the_joint_frames() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = ball_body(b, xform=PLACE * FRAME_A * FRAME_B.inverse(), label="x")
    b.add_joint_ball(-1, body, PLACE * FRAME_A, FRAME_B, label="ball")
    sim = simulate(b)
    turn = Transform.from_axis_angle((0, 0, 0), (1.0, 2.0, -0.5), 1.3)
    sim.write("joint.ball.position", turn.rotation)
    sim.write("joint.ball.velocity", (0.3, -0.2, 0.9))
    np.testing.assert_allclose(sim.read("joint.ball.position")[0], turn.rotation, atol=1e-12)
    np.testing.assert_allclose(sim.read("joint.ball.velocity")[0], (0.3, -0.2, 0.9), atol=1e-12)
    pose = PLACE * FRAME_A * turn * FRAME_B.inverse()
    np.testing.assert_allclose(sim.read("body.x.position")[0], pose.position, atol=1e-12)
    assert sim.read("sim.joint_drift")[0] < 1e-12


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_joint_between_world_as_child_and_a_body(solver: str) -> None:
    """Closed form with the world as child: q = g t^2/2 upward."""
    b = ModelBuilder()
    body = ball_body(b, xform=PLACE, label="x")
    b.add_joint_prismatic(body, -1, parent_xform=PLACE.inverse(), child_xform=Transform(), axis=(0, 0, 1), label="rail")
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.step(20)
    assert sim.read("joint.rail.position")[0] == pytest.approx(0.5 * G * 0.01, abs=1e-10)
    assert not sim.signals()["joint.rail.position"].writable


@both_backends
def test_a_weight_that_a_link_is_welded_to_comes_along(backend):
    b = ModelBuilder(gravity=(0, 0, 0))
    link = b.add_body(1.0, (0.1,) * 3, xform=Transform((0.5, 0, 0)), label="link")
    b.add_joint_revolute(-1, link, child_xform=Transform((-0.5, 0, 0)), axis=(0, 0, 1), label="hinge")
    weight = b.add_body(1.0, (0.1,) * 3, xform=Transform((1.0, 0, 0)), label="weight")
    b.add_joint_fixed(weight, link, child_xform=Transform((0.5, 0, 0)))
    sim = Simulation(b.finalize(), backend=backend)
    sim.write_state({"joint.hinge.position": 0.5 * np.pi, "joint.hinge.velocity": 2.0})
    np.testing.assert_allclose(sim.read("body.weight.position", numpy=True)[0], (0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(sim.read("body.weight.linear_velocity", numpy=True)[0], (-2, 0, 0), atol=1e-12)
    sim.step(10)
    assert sim.read("sim.joint_drift", numpy=True)[0] < 1e-6
