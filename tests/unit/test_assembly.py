from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, Transform

from .helpers import NO_GRAVITY, SOLVERS, ball_body, simulate

Y = (0.0, 1.0, 0.0)
UNIT = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], dtype=float)
BRICARD_AXES = ((0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))


def misplaced(pose: Transform, rng: np.random.Generator) -> Transform:
    shift = rng.normal(size=3)
    shift *= 0.2 * rng.uniform() / np.linalg.norm(shift)
    turn = Transform.from_axis_angle((0, 0, 0), rng.normal(size=3), np.deg2rad(20.0) * rng.uniform())
    return Transform(pose.position + shift, (turn * Transform((0, 0, 0), pose.rotation)).rotation)


def four_bar(seed: int | None, coupler: float = 1.0) -> ModelBuilder:
    """A general four-bar linkage in the x-z plane, exact for coupler = 1 or misplaced at random."""
    rng = np.random.default_rng(seed)
    b = ModelBuilder(gravity=NO_GRAVITY)
    points = [np.array(p, dtype=float) for p in ((0, 0, 0), (0.2, 0, 0.8), (1.3, 0, 1.1), (1.5, 0, 0))]
    for k, label in enumerate(("crank", "coupler", "rocker")):
        pose = Transform(points[k] if k < 2 else points[3])
        ball_body(b, 1.0 + k, 0.1, xform=pose if seed is None else misplaced(pose, rng), label=label)
    tip = Transform(points[1])
    end = Transform(coupler * (points[2] - points[1]))
    b.add_joint_revolute(-1, 0, axis=Y, label="a")
    b.add_joint_revolute(0, 1, tip, axis=Y, label="b")
    b.add_joint_revolute(1, 2, end, Transform(points[2] - points[3]), axis=Y, label="c")
    b.add_joint_revolute(-1, 2, Transform(points[3]), axis=Y, label="d")
    return b


def bricard(seed: int) -> ModelBuilder:
    """Bricard's six-hinge loop along the edges of a cube: spatial, with a redundant constraint."""
    rng = np.random.default_rng(seed)
    b = ModelBuilder(gravity=NO_GRAVITY)
    for k in range(5):
        ball_body(b, 1.0, 0.1, xform=misplaced(Transform(UNIT[k]), rng), label=f"bar{k}")
    for k in range(6):
        axis = BRICARD_AXES[k]
        if k == 0:
            b.add_joint_revolute(-1, 0, axis=axis, label="h0")
        elif k < 5:
            b.add_joint_revolute(k - 1, k, Transform(UNIT[k] - UNIT[k - 1]), axis=axis, label=f"h{k}")
        else:
            b.add_joint_revolute(4, -1, Transform(UNIT[5] - UNIT[4]), Transform(UNIT[5]), axis=axis, label="h5")
    return b


def gaps(sim: Simulation) -> float:
    worst = 0.0
    for joint in sim.model.joints:
        ends = []
        for body, frame in ((joint.parent, joint.parent_xform), (joint.child, joint.child_xform)):
            pose = Transform()
            if body >= 0:
                label = sim.model.bodies[body].label
                pose = Transform(sim.read(f"body.{label}.position")[0], sim.read(f"body.{label}.orientation")[0])
            ends.append((pose * frame).position)
        worst = max(worst, float(np.linalg.norm(ends[0] - ends[1])))
    return worst


@pytest.mark.parametrize("make", [four_bar, bricard])
@pytest.mark.parametrize("seed", range(5))
def test_misplaced_loops_come_together(make: object, seed: int) -> None:
    sim = simulate(make(seed))  # type: ignore[operator]
    assert gaps(sim) > 0.01
    report = sim.assemble()
    assert report.converged.all(), str(report)
    assert gaps(sim) < 1e-9
    assert sim.read("sim.joint_drift")[0] < 1e-9
    assert max(float(v.max()) for v in report.after.values()) < 1e-9
    sim.step(5)
    assert sim.read("sim.kinetic_energy")[0] < 1e-18
    assert gaps(sim) < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_report_names_the_joints(solver: str) -> None:
    sim = simulate(four_bar(1), num_worlds=2, joint_solver=solver)
    sim.write("body.crank.position", (0.1, 0.0, 0.05), worlds=1)
    report = sim.assemble()
    assert set(report.before) == set(report.after) == {"a", "b", "c", "d"}
    assert report.before["a"].shape == (2,)
    assert report.before["a"][1] > 0.01
    assert report.converged.shape == (2,)
    assert "2 of 2 worlds" in str(report)
    assert any(f"'{label}'" in str(report) for label in "abcd")


def test_worlds_assemble_on_their_own() -> None:
    sim = simulate(four_bar(None), num_worlds=3)
    start = sim.read("body.coupler.position")
    sim.write("body.coupler.position", start[0] + (0.1, 0.05, -0.1), worlds=1)
    report = sim.assemble()
    assert report.converged.all()
    after = sim.read("body.coupler.position")
    assert after[0].tobytes() == start[0].tobytes()
    assert after[2].tobytes() == start[2].tobytes()
    assert np.linalg.norm(after[1] - start[1]) < 0.2


def test_an_impossible_loop_is_reported() -> None:
    sim = simulate(four_bar(2, coupler=6.0), num_worlds=2)
    report = sim.assemble(iterations=60)
    assert not report.converged.any()
    assert "0 of 2 worlds" in str(report)
    assert max(float(v.max()) for v in report.after.values()) > 1e-3
    assert np.all(np.isfinite(sim.read("body.coupler.position")))


def test_assembly_keeps_couplings_and_other_bodies() -> None:
    b = four_bar(None)
    ball_body(b, xform=Transform((5, 5, 5)), label="other")
    wheel = ball_body(b, label="wheel")
    joint = b.add_joint_revolute(-1, wheel, axis=Y, label="wheel")
    b.add_mimic(joint, 0, multiplier=2.0, offset=0.5, label="mimic")
    sim = simulate(b)
    report = sim.assemble()
    assert report.converged.all(), str(report)
    assert set(report.after) == {"a", "b", "c", "d", "wheel", "mimic"}
    q = 2.0 * sim.read("joint.a.position")[0] + 0.5
    assert sim.read("joint.wheel.position")[0] == pytest.approx(q, abs=1e-9)
    np.testing.assert_array_equal(sim.read("body.other.position")[0], (5, 5, 5))


def test_assembly_of_nothing() -> None:
    b = ModelBuilder()
    ball_body(b)
    report = simulate(b).assemble()
    assert np.all(report.converged)
    str(report)
