from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Transform

from .helpers import FRAME_A, FRAME_B, NO_GRAVITY, PLACE, SOLVERS, ball_body, rows_of, simulate

AXIS = np.array([2.0, -1.0, 0.5]) / np.linalg.norm([2.0, -1.0, 0.5])
AXIS2 = np.cross(AXIS, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(AXIS, [0.0, 0.0, 1.0]))
AXIS3 = np.cross(AXIS, AXIS2)
# Degrees of freedom, and the direction (joint frame) and kind of every coordinate.
JOINTS: dict[str, tuple[int, dict[str, Any], list[tuple[str, np.ndarray]]]] = {
    "fixed": (0, {}, []),
    "revolute": (1, {"axis": AXIS}, [("turn", AXIS)]),
    "prismatic": (1, {"axis": AXIS}, [("travel", AXIS)]),
    "cylindrical": (2, {"axis": AXIS}, [("travel", AXIS), ("turn", AXIS)]),
    "ball": (3, {}, [("turn", np.eye(3)[k]) for k in range(3)]),
    "universal": (2, {"axis": AXIS, "axis2": AXIS2}, [("turn", AXIS), ("turn", AXIS2)]),
    "planar": (3, {}, [("travel", np.eye(3)[0]), ("travel", np.eye(3)[1]), ("turn", np.eye(3)[2])]),
    "d6": (
        4,
        {"linear_axes": [AXIS], "angular_axes": [AXIS2, AXIS, AXIS3]},
        [("travel", AXIS), ("turn", AXIS2), ("turn", AXIS), ("turn", AXIS3)],
    ),
    "planar_pin": (4, {"axis": AXIS}, [("turn", AXIS)]),
}
CASES = [(kind, k) for kind, (_, _, motions) in JOINTS.items() for k in range(len(motions))]
MASS_A, MASS_B, INERTIA_A, INERTIA_B = 3.0, 2.0, 0.07, 0.05
EFFORT = {"travel": 4.0, "turn": 0.3}
TIME, STEPS = 0.5, 50
TORQUE, TUMBLE_STEPS = np.array([0.6, -0.4, 0.8]), 250


def add_pair(b: ModelBuilder, kind: str, name: str, moving: bool) -> tuple[int, int]:
    """Add two bodies with coincident joint frames, and return their indices."""
    joint_frame = PLACE * FRAME_A
    parent = -1
    if moving:
        parent = ball_body(b, MASS_A, INERTIA_A, com=FRAME_A.position, xform=PLACE, label=f"{name}_a")
    child = ball_body(
        b, MASS_B, INERTIA_B, com=FRAME_B.position, xform=joint_frame * FRAME_B.inverse(), label=f"{name}_b"
    )
    frame_a = FRAME_A if moving else joint_frame
    add = getattr(b, f"add_joint_{kind}")
    add(parent, child, parent_xform=frame_a, child_xform=FRAME_B, label=name, **JOINTS[kind][1])
    return parent, child


def drive(b: ModelBuilder, body: int, what: str, vector: np.ndarray) -> None:
    """A constant force through the center of mass, or a torque."""
    if what == "travel":
        b.add_force(body, tuple(vector), point=tuple(b.bodies[body].com))
    else:
        b.add_torque(body, tuple(vector))


@pytest.fixture(scope="module", params=SOLVERS)
def driven(request: pytest.FixtureRequest) -> gpusim.Simulation:
    b = ModelBuilder(gravity=NO_GRAVITY)
    for kind, k in CASES:
        what, direction = JOINTS[kind][2][k]
        vector = EFFORT[what] * (PLACE * FRAME_A).rotate(direction)
        for moving in (False, True):
            name = f"{kind}{k}_{'body' if moving else 'world'}"
            parent, child = add_pair(b, kind, name, moving)
            drive(b, child, what, vector)
            if moving:
                drive(b, parent, what, -vector)
    sim = simulate(b, dt=TIME / STEPS, joint_solver=request.param)
    sim.step(STEPS)
    return sim


@pytest.mark.parametrize("parent", ["world", "body"])
@pytest.mark.parametrize(("kind", "k"), CASES)
def test_constant_effort_along_a_free_coordinate(driven: gpusim.Simulation, kind: str, k: int, parent: str) -> None:
    """Closed form: q_k = f (1/a + 1/b) t^2/2, with the rate f (1/a + 1/b) t."""
    name = f"joint.{kind}{k}_{parent}"
    what = JOINTS[kind][2][k][0]
    a, b = (MASS_A, MASS_B) if what == "travel" else (INERTIA_A, INERTIA_B)
    acceleration = EFFORT[what] * (1.0 / b + (1.0 / a if parent == "body" else 0.0))
    position, rate = driven.read(f"{name}.position")[0], driven.read(f"{name}.velocity")[0]
    if kind == "ball":
        half = np.zeros(4)
        angle = 0.5 * acceleration * TIME**2
        half[k], half[3] = np.sin(angle / 2.0), np.cos(angle / 2.0)
        np.testing.assert_allclose(position * np.sign(position @ half), half, atol=1e-9)
    else:
        wanted = np.zeros(np.shape(position) or 1)
        wanted[k] = 0.5 * acceleration * TIME**2
        np.testing.assert_allclose(np.atleast_1d(position), wanted, atol=1e-9)
    if kind != "ball":
        wanted_rate = np.zeros(np.shape(rate) or 1)
        wanted_rate[k] = acceleration * TIME
        np.testing.assert_allclose(np.atleast_1d(rate), wanted_rate, atol=1e-9)


def test_no_joint_opens(driven: gpusim.Simulation) -> None:
    assert driven.read("sim.joint_drift")[0] < 1e-12


@pytest.mark.parametrize("kind", JOINTS)
def test_rows_are_six_less_the_degrees_of_freedom(kind: str) -> None:
    b = ModelBuilder()
    add_pair(b, kind, "j", moving=True)
    assert rows_of(b.finalize(), "j") == 6 - JOINTS[kind][0]


def test_rows_of_rod_rope_and_free() -> None:
    b = ModelBuilder()
    body = ball_body(b)
    b.add_joint_distance(-1, body, min_distance=1.0, max_distance=1.0, label="rod")
    b.add_joint_distance(-1, body, max_distance=1.0, label="rope")
    b.add_joint_free(-1, body, label="free")
    model = b.finalize()
    assert [rows_of(model, name) for name in ("rod", "rope", "free")] == [1, 1, 0]


def locked_errors(kind: str, relative: Transform) -> np.ndarray:
    x, r = relative.position, relative.matrix()
    along = np.outer(AXIS, AXIS)
    if kind == "fixed":
        return np.concatenate([x, (r - np.eye(3)).ravel()])
    if kind == "revolute":
        return np.concatenate([x, r @ AXIS - AXIS])
    if kind == "prismatic":
        return np.concatenate([x - along @ x, (r - np.eye(3)).ravel()])
    if kind == "cylindrical":
        return np.concatenate([x - along @ x, r @ AXIS - AXIS])
    if kind == "ball":
        return x
    if kind in ("planar_pin", "d6"):
        return x - along @ x
    if kind == "universal":
        return np.append(x, AXIS @ r @ AXIS2)
    return np.append(x[2], r[:, 2] - np.eye(3)[:, 2])


@pytest.fixture(scope="module", params=SOLVERS)
def tumbling(request: pytest.FixtureRequest) -> gpusim.Simulation:
    b = ModelBuilder(gravity=NO_GRAVITY)
    for kind in JOINTS:
        parent = b.add_body(MASS_A, (0.05, 0.07, 0.09), com=(0.1, 0.2, -0.1), xform=PLACE, label=f"{kind}_a")
        joint_frame = PLACE * FRAME_A
        child = b.add_body(
            MASS_B, (0.03, 0.04, 0.02, 0.004, -0.003, 0.001), com=(-0.2, 0.1, 0.15),
            xform=joint_frame * FRAME_B.inverse(), label=f"{kind}_b",
        )  # fmt: skip
        add = getattr(b, f"add_joint_{kind}")
        add(parent, child, parent_xform=FRAME_A, child_xform=FRAME_B, label=kind, **JOINTS[kind][1])
        b.add_torque(child, tuple(TORQUE))
    sim = simulate(b, dt=2e-3, joint_solver=request.param)
    sim.step(TUMBLE_STEPS)
    return sim


def frame(sim: gpusim.Simulation, label: str, offset: Transform) -> Transform:
    return Transform(sim.read(f"body.{label}.position")[0], sim.read(f"body.{label}.orientation")[0]) * offset


@pytest.mark.parametrize("kind", JOINTS)
def test_locked_motions_stay_locked_while_everything_moves(tumbling: gpusim.Simulation, kind: str) -> None:
    relative = frame(tumbling, f"{kind}_a", FRAME_A).inverse() * frame(tumbling, f"{kind}_b", FRAME_B)
    np.testing.assert_allclose(locked_errors(kind, relative), 0.0, atol=2e-6)
    moved = np.linalg.norm(relative.position) + np.linalg.norm(relative.matrix() - np.eye(3))
    assert kind == "fixed" or moved > 0.05


@pytest.mark.parametrize("kind", JOINTS)
def test_joints_only_exchange_momentum(tumbling: gpusim.Simulation, kind: str) -> None:
    """The momentum is 0, and the angular momentum about the origin is torque t."""
    linear, angular = np.zeros(3), np.zeros(3)
    for label in (f"{kind}_a", f"{kind}_b"):
        mass = float(tumbling.read(f"body.{label}.mass")[0])
        p = mass * tumbling.read(f"body.{label}.linear_velocity")[0]
        linear += p
        angular += np.cross(tumbling.read(f"body.{label}.center_of_mass")[0], p)
        angular += tumbling.read(f"body.{label}.angular_momentum")[0]
    np.testing.assert_allclose(linear, 0.0, atol=1e-9)
    np.testing.assert_allclose(angular, TORQUE * tumbling.time, atol=1e-4)


def test_a_free_joint_changes_no_bit() -> None:
    sims = []
    for with_joint in (False, True):
        b = ModelBuilder()
        body = b.add_body(2.0, (0.1, 0.2, 0.15), xform=PLACE, angular_velocity=(1.0, 2.0, 3.0), label="x")
        if with_joint:
            b.add_joint_free(-1, body, parent_xform=FRAME_A, label="base")
        sims.append(simulate(b))
        sims[-1].step(50)
    names = ("position", "orientation", "linear_velocity", "angular_momentum")
    for name in names:
        assert np.array_equal(sims[0].state.arrays[name], sims[1].state.arrays[name])
    pose = sims[1].read("joint.base.position")[0]
    seen = FRAME_A * Transform(pose[:3], pose[3:])
    np.testing.assert_allclose(seen.position, sims[1].read("body.x.position")[0], atol=1e-14)
    np.testing.assert_allclose(seen.matrix(), frame(sims[1], "x", Transform()).matrix(), atol=1e-14)
