from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, Transform

from .helpers import FRAME_A, FRAME_B, NO_GRAVITY, PLACE, SOLVERS, G, ball_body, simulate

MASS = 2.0
both_solvers = pytest.mark.parametrize("solver", SOLVERS)


def reaction(sim: Simulation, label: str) -> np.ndarray:
    return np.asarray(sim.read(f"joint.{label}.reaction")[0])


@pytest.mark.parametrize("kind", ["fixed", "revolute", "ball", "universal", "planar", "prismatic", "cylindrical"])
@both_solvers
def test_a_body_that_hangs_at_rest_pulls_with_its_weight(kind: str, solver: str) -> None:
    b = ModelBuilder()
    frame_b = Transform((0.1, 0.2, 0.3), FRAME_B.rotation)
    pose = PLACE * frame_b.inverse()
    com = pose.inverse().apply(PLACE.position + np.array([0.0, 0.0, -0.4]))
    body = b.add_body(MASS, (0.1, 0.2, 0.15), com=com, xform=pose)
    options: dict[str, Any] = {}
    down = PLACE.inverse().rotate((0.0, 0.0, 1.0))
    if kind == "planar":
        options = {"axis": tuple(down)}
    if kind in ("prismatic", "cylindrical"):
        options = {"axis": tuple(PLACE.inverse().rotate((0.0, 1.0, 0.0)))}
    getattr(b, f"add_joint_{kind}")(-1, body, parent_xform=PLACE, child_xform=frame_b, label="j", **options)
    sim = simulate(b, joint_solver=solver)
    np.testing.assert_allclose(reaction(sim, "j"), (0, 0, -MASS * G, 0, 0, 0), atol=1e-9)
    sim.step(20)
    np.testing.assert_allclose(reaction(sim, "j"), (0, 0, -MASS * G, 0, 0, 0), atol=1e-9)


@both_solvers
def test_cantilever(solver: str) -> None:
    b = ModelBuilder()
    arm = b.add_body(MASS, (0.1, 0.2, 0.15), com=(0.7, 0, 0), xform=Transform(PLACE.position))
    b.add_joint_fixed(-1, arm, parent_xform=PLACE, child_xform=Transform((0, 0, 0), PLACE.rotation), label="wall")
    sim = simulate(b, joint_solver=solver)
    sim.step(10)
    np.testing.assert_allclose(reaction(sim, "wall"), (0, 0, -MASS * G, 0, 0.7 * MASS * G, 0), atol=1e-8)
    assert sim.read("sim.joint_drift")[0] < 1e-12


@pytest.mark.parametrize(("solver", "tolerance"), [("direct", 1e-7), ("colored", 0.02)])
def test_a_chain_of_fixed_links_sums_up_weights_and_moments(solver: str, tolerance: float) -> None:
    b = ModelBuilder()
    n, length, parent = 4, 0.5, -1
    for i in range(n):
        link = b.add_body(MASS, (0.05, 0.05, 0.05), com=(0.25, 0, 0), xform=Transform((length * i, 0, 0)))
        place = Transform((length if i else 0.0, 0, 0))
        b.add_joint_fixed(parent, link, parent_xform=place, label=f"j{i}")
        parent = link
    sim = simulate(b, joint_solver=solver, iterations=30)
    sim.step(60)
    for k in range(n):
        levers = length * (np.arange(n - k) + 0.5)
        wanted = (0, 0, -MASS * G * (n - k), 0, MASS * G * levers.sum(), 0)
        np.testing.assert_allclose(reaction(sim, f"j{k}"), wanted, atol=tolerance * MASS * G * n)


@both_solvers
def test_a_whirled_body_pulls_outward(solver: str) -> None:
    """The radial force is m w^2 r."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    w, r = 5.0, 0.6
    body = b.add_body(
        MASS, (0.02, 0.03, 0.04), com=(r, 0, 0), angular_velocity=(0, 0, w), linear_velocity=(0, w * r, 0)
    )
    b.add_joint_revolute(-1, body, label="hub")
    sim = simulate(b, joint_solver=solver)
    sim.step(100)
    q = sim.read("joint.hub.position")[0]
    pull = MASS * w * w * r
    np.testing.assert_allclose(reaction(sim, "hub")[:3], (pull * np.cos(q), pull * np.sin(q), 0.0), atol=1e-3 * pull)
    np.testing.assert_allclose(reaction(sim, "hub")[3:], 0.0, atol=1e-3 * pull)


def add_arch(b: ModelBuilder) -> None:
    """Three-hinged arch: two bars at 45 degrees from hinges at x = -1 and x = 1 to the crown at z = 1."""
    moment = MASS * 2.0 / 12.0
    for side, x in (("left", -1.0), ("right", 1.0)):
        bar = b.add_body(MASS, (moment, moment, 0.01), com=(-0.5 * x, 0, 0.5), xform=Transform((x, 0, 0)), label=side)
        b.add_joint_revolute(-1, bar, Transform((x, 0, 0)), axis=(0, 1, 0), label=side)
    b.add_joint_revolute(0, 1, Transform((1, 0, 1)), Transform((-1, 0, 1)), axis=(0, 1, 0), label="crown")


@pytest.mark.parametrize(("solver", "tolerance"), [("direct", 1e-7), ("colored", 2e-3)])
def test_a_closed_loop_shares_the_load_as_statics_says(solver: str, tolerance: float) -> None:
    """Three-hinged arch: each foot bears m g and pushes outward by H = m g/2."""
    b = ModelBuilder()
    add_arch(b)
    sim = simulate(b, joint_solver=solver, iterations=20)
    sim.step(80)
    weight = MASS * G
    atol = tolerance * weight
    np.testing.assert_allclose(reaction(sim, "left"), (-weight / 2, 0, -weight, 0, 0, 0), atol=atol)
    np.testing.assert_allclose(reaction(sim, "right"), (weight / 2, 0, -weight, 0, 0, 0), atol=atol)
    # The right bar pushes the left one back to the left.
    np.testing.assert_allclose(reaction(sim, "crown"), (-weight / 2, 0, 0, 0, 0, 0), atol=atol)


@both_solvers
def test_every_joint_of_a_tree_obeys_newton(solver: str) -> None:
    """For a link between the joints a and c: m (x'' - g) = -R_a + R_c."""
    b = ModelBuilder()
    upper = ball_body(b, 3.0, com=(0, 0, -0.2), label="upper")
    b.add_joint_ball(-1, upper, label="a")
    lower = ball_body(b, 1.5, com=(0, 0, -0.3), xform=Transform((0, 0, -0.5)), label="lower")
    b.add_joint_ball(upper, lower, Transform((0, 0, -0.5)), label="c")
    sim = simulate(b, joint_solver=solver, iterations=40)
    sim.step(60)
    atol = 1e-9 if solver == "direct" else 1e-3
    np.testing.assert_allclose(reaction(sim, "c")[:3], (0, 0, -1.5 * G), atol=atol)
    np.testing.assert_allclose(reaction(sim, "a")[:3], (0, 0, -4.5 * G), atol=atol)


def test_reaction_sees_a_torque_about_the_parents_point_not_the_childs() -> None:
    b = ModelBuilder()
    place = Transform((0.3, 0.1, 0.2))
    body = b.add_body(MASS, (0.1, 0.1, 0.1), com=(0.4, 0, 0), xform=Transform((1.3, 0.1, 0.2)))
    b.add_joint_prismatic(-1, body, parent_xform=place, axis=(1, 0, 0), label="rail")
    sim = simulate(b)
    sim.step(5)
    assert sim.read("joint.rail.position")[0] == pytest.approx(1.0)
    np.testing.assert_allclose(reaction(sim, "rail"), (0, 0, -MASS * G, 0, 1.4 * MASS * G, 0), atol=1e-9)


def test_reaction_of_a_parent_body_turned_and_moved() -> None:
    b = ModelBuilder()
    base = ball_body(b, 5.0, com=(0.05, 0, 0), xform=PLACE, label="base")
    b.add_joint_fixed(-1, base, parent_xform=PLACE, label="hold")
    joint = PLACE * FRAME_A
    arm = b.add_body(MASS, (0.1, 0.2, 0.15), com=(0.7, 0, 0), xform=Transform(joint.position))
    b.add_joint_fixed(base, arm, FRAME_A, Transform((0, 0, 0), joint.rotation), label="wall")
    sim = simulate(b)
    sim.step(10)
    np.testing.assert_allclose(reaction(sim, "wall"), (0, 0, -MASS * G, 0, 0.7 * MASS * G, 0), atol=1e-7)
    total = np.array([0, 0, -(MASS + 5.0) * G])
    np.testing.assert_allclose(reaction(sim, "hold")[:3], total, atol=1e-7)
    moment = np.cross(PLACE.apply((0.05, 0, 0)) - PLACE.position, (0, 0, -5.0 * G))
    moment += np.cross(joint.position + (0.7, 0, 0) - PLACE.position, (0, 0, -MASS * G))
    np.testing.assert_allclose(reaction(sim, "hold")[3:], moment, atol=1e-7)
