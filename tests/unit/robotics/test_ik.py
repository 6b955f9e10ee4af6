from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from gpusim import ModelBuilder, ModelError, Transform, UnknownNameError, rotations
from gpusim.robotics import IK, ComTask, PointTask, PoseTask, PostureTask, Tree
from tests.message_snapshot import naming
from tests.unit.helpers import slider

from .models import HANDS_AND_FEET, crouching, four_bar, humanoid

Y = (0.0, 1.0, 0.0)


def planar(lengths=(0.5, 0.4), **limits) -> Tree:
    b, parent, x = ModelBuilder(), -1, 0.0
    for k, length in enumerate(lengths):
        body = b.add_body(1.0, (0.01,) * 3, com=(0.5 * length, 0, 0), xform=Transform((x, 0, 0)), label=f"link{k}")
        b.add_joint_revolute(parent, body, at=(x, 0, 0), axis=Y, label=f"j{k}", **limits)
        parent, x = body, x + length
    b.add_site(parent, at=(x, 0, 0), label="tip")
    return Tree(b.finalize())


@pytest.fixture(scope="module")
def robot() -> Tree:
    return Tree(humanoid().finalize(), "pelvis")


def whole_body(tree: Tree, **options) -> IK:
    tasks = [*(PoseTask(f) for f in HANDS_AND_FEET), ComTask(), PostureTask(crouching(tree)[0])]
    return IK(tree, tasks, **options)


def reachable(tree: Tree, worlds: int, spread: float = 0.3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    step = spread * rng.normal(size=(worlds, tree.freedoms))
    step[:, :6] *= 0.3
    q = tree.integrate(np.repeat(crouching(tree), worlds, axis=0), step)
    q[:, 7:] = np.clip(q[:, 7:], tree.lower[6:] + 0.02, tree.upper[6:] - 0.02)
    return {f: tree.pose(q, f) for f in HANDS_AND_FEET} | {"com": tree.com(q)}


def test_two_links_reach_a_point():
    tree = planar()
    ik = IK(tree, [PointTask("tip")], damping=1e-4)
    targets = np.array([[0.6, 0, 0.3], [0.2, 0, -0.5], [-0.3, 0, 0.6]])
    q, report = ik.solve([0.3, 0.8], {"tip": targets}, iterations=20)
    assert q.shape == (3, 2) and report.residual["tip"].max() < 1e-10 and report.converged.all()
    np.testing.assert_allclose(tree.pose(q, "tip")[:, :3], targets, atol=1e-10)
    cosine = ((targets**2).sum(axis=1) - 0.5**2 - 0.4**2) / (2 * 0.5 * 0.4)
    np.testing.assert_allclose(np.cos(q[:, 1]), cosine, atol=1e-10)


def test_out_of_reach_the_arm_points_there():
    tree = planar()
    ik = IK(tree, [PointTask("tip")])
    targets = np.array([[1.2, 0, 0.5], [0.0, 0, -3.0], [-5.0, 0, 5.0]])
    q, report = ik.solve([0.3, 0.8], {"tip": targets}, iterations=300)
    far = np.linalg.norm(targets, axis=1)
    np.testing.assert_allclose(report.residual["tip"], far - 0.9, rtol=1e-6)
    assert report.step.max() < 1e-4
    np.testing.assert_allclose(tree.pose(q, "tip")[:, :3], targets * (0.9 / far)[:, None], atol=1e-3)


def test_a_whole_body_reaches_hands_feet_and_center_of_mass(robot):
    targets = reachable(robot, 100)
    q, report = whole_body(robot).solve(crouching(robot), targets, iterations=10)
    assert max(r.max() for name, r in report.residual.items() if name != "posture") < 1e-6
    assert (q[:, 7:] >= robot.lower[6:]).all() and (q[:, 7:] <= robot.upper[6:]).all()
    for frame in HANDS_AND_FEET:
        np.testing.assert_allclose(robot.pose(q, frame)[:, :3], targets[frame][:, :3], atol=1e-6)
    np.testing.assert_allclose(robot.com(q), targets["com"], atol=1e-6)


def test_a_step_of_a_controller_takes_two_steps(robot):
    ik, start = whole_body(robot), crouching(robot)
    targets = {f: robot.pose(start, f)[0] for f in HANDS_AND_FEET} | {"com": robot.com(start)[0]}
    targets["l_grip"][:3] += [0.003, 0.002, 0.004]
    q, report = ik.solve(start, targets, iterations=2)
    assert report.residual["l_grip"][0] < 5e-5


def test_a_hand_out_of_reach_ends_at_the_nearest_pose(robot):
    tasks = [*(PoseTask(f) for f in HANDS_AND_FEET), ComTask()]
    targets = {name: value[:8] for name, value in reachable(robot, 8, 0.1).items()}
    targets["l_grip"][:, 0] += 1.0
    q, report = IK(robot, tasks).solve(crouching(robot), targets, iterations=200)
    assert report.step.max() < 2e-4
    total = np.zeros((8, robot.freedoms))
    for frame in HANDS_AND_FEET:
        total += rotations.matvec(robot.jacobian(q, frame).swapaxes(1, 2), report.error[frame])
    total += rotations.matvec(robot.com_jacobian(q).swapaxes(1, 2), report.error["com"])
    free = ~report.at_limit
    assert np.abs(total[free]).max() < 1e-3 and 0.05 < report.residual["l_grip"].min()
    # At a limit the gradient pushes outward.
    low = report.at_limit & (np.abs(np.pad(q[:, 7:], ((0, 0), (6, 0))) - robot.lower) < 1e-12)
    assert total[low].max(initial=-1.0) < 1e-3


def test_the_pull_of_a_posture_does_not_swing(robot):
    targets = reachable(robot, 12, 0.1)
    targets["l_grip"][:, 0] += 0.4
    _, report = whole_body(robot).solve(crouching(robot), targets, iterations=80)
    assert report.step.max() < 1e-6
    assert max(r.max() for name, r in report.residual.items() if name != "posture") < 1e-6


def test_a_later_priority_has_what_is_left():
    b = ModelBuilder()
    for axis, label in (((1, 0, 0), "x"), ((0, 0, 1), "z")):
        body = b.add_body(1.0, (0.1,) * 3, label=label)
        b.add_joint_prismatic(body - 1, body, axis=axis, label=label)
    b.add_site(1, label="tip")
    b.add_site(1, Transform((0.0, 0.0, 0.0)), label="also")
    tree = Tree(b.finalize())
    targets = {"tip": [1.0, 0, 0.5], "also": [2.0, 0, 4.0]}
    for second, wanted in ((2, (1.0, 4.0)), (1, (1.25, 4.0))):
        tasks = [PointTask("tip", weight=(3.0, 0.0, 0.0)), PointTask("also", weight=(1.0, 0.0, 2.0), priority=second)]
        q, report = IK(tree, tasks).solve(tree.start, targets, iterations=15)
        np.testing.assert_allclose(q[0], wanted, atol=1e-6)
    assert report.residual["tip"][0] == pytest.approx(0.25, abs=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("away", [0.3, 8.0])
def test_what_is_out_of_reach_costs_no_earlier_priority(robot, away):
    start = crouching(robot)
    tasks = [PoseTask("l_sole"), PoseTask("r_sole"), ComTask((1, 1, 0)), PointTask("l_grip", priority=2)]
    targets = {name: robot.pose(start, name)[0] for name in HANDS_AND_FEET[2:]} | {"com": robot.com(start)[0]}
    targets |= {name: robot.pose(start, name)[0, :3] + [0.05, 0, 0.05] for name in HANDS_AND_FEET[:2]}
    targets["r_grip"] += [away, 0, 0]
    ik = IK(robot, [*tasks, PointTask("r_grip", priority=3)])
    for iterations in (1, 2, 4, 8, 20, 60):
        q, report = ik.solve(start, targets, iterations=iterations)
        least = {1: 5e-3, 2: 1e-4, 4: 1e-6}.get(iterations, 1e-7)
        assert max(report.residual[name][0] for name in ("l_sole", "r_sole", "com")) < least, iterations
        assert report.residual["l_grip"][0] < 1e-6 or iterations < 8
    assert robot.pose(q, "r_grip")[0, 0] > robot.pose(start, "r_grip")[0, 0] + 0.25


def test_a_later_priority_reaches_what_it_can(robot):
    tasks = [PoseTask("l_sole"), PoseTask("r_sole"), ComTask(), PointTask("l_grip", priority=2)]
    targets = reachable(robot, 40, 0.2)
    targets |= {name: targets[name][:, :3] for name in ("l_grip", "r_grip")}
    ik = IK(robot, [*tasks, PointTask("r_grip", priority=3)])
    _, report = ik.solve(crouching(robot), targets, iterations=20)
    assert max(report.residual[name].max() for name in ("l_sole", "r_sole", "com")) < 1e-6
    for name, share in (("l_grip", 0.9), ("r_grip", 0.75)):
        assert (report.residual[name] < 1e-6).mean() > share, name


def test_the_posture_is_the_nearest_one_that_meets_the_tasks():
    tree = planar((0.3,) * 5)
    wanted = np.array([0.2, -0.4, 0.5, 0.3, -0.2])
    ik = IK(tree, [PointTask("tip", weight=(1, 0, 1)), PostureTask(wanted, 0.01)])
    q, report = ik.solve(0.5 * wanted + 0.1, {"tip": [0.7, 0, 0.6]}, iterations=60)
    assert report.residual["tip"][0] < 1e-9
    rows = tree.jacobian(q, "tip")[0, [0, 2]]
    away = wanted - q[0]
    left = away - rows.T @ np.linalg.lstsq(rows.T, away, rcond=None)[0]
    assert np.abs(left).max() < 1e-4 < np.abs(away).max()


def test_limits_are_kept_and_the_answer_is_the_bounded_least_squares():
    tree = planar((0.5, 0.4, 0.3), limit_lower=-0.6, limit_upper=0.7)
    ik = IK(tree, [PointTask("tip", weight=(1, 0, 1))], damping=1e-4)
    rng = np.random.default_rng(1)
    targets = np.stack([rng.uniform(-1, 1.2, 12), np.zeros(12), rng.uniform(-1.2, 1.2, 12)], axis=1)
    for iterations in (1, 2, 5):
        q, _ = ik.solve([0.1, 0.1, 0.1], {"tip": targets}, iterations=iterations)
        assert q.min() >= -0.6 and q.max() <= 0.7
    q, report = ik.solve([0.1, 0.1, 0.1], {"tip": targets}, iterations=300)
    assert report.at_limit.any() and report.residual["tip"].max() > 0.1
    for world, target in enumerate(targets):

        def away(posture, target=target):
            return (tree.pose(posture, "tip")[0, :3] - target)[[0, 2]]

        start = np.clip(q[world], -0.6 + 1e-9, 0.7 - 1e-9)
        best = scipy.optimize.least_squares(away, start, bounds=(-0.6, 0.7), xtol=1e-14, ftol=1e-14)
        assert report.residual["tip"][world] <= np.linalg.norm(best.fun) + 1e-5
    free, _ = IK(tree, ik.tasks, limits=False).solve([0.1, 0.1, 0.1], {"tip": targets}, iterations=5)
    assert np.abs(free).max() > 0.7


def test_loops_stay_closed():
    tree = Tree(four_bar().finalize())
    ik = IK(tree, [PointTask("coupler", point=(0.2, 0, 0))])
    turn = 0.35
    circle = np.array([np.sin(turn), 0, np.cos(turn)])
    targets = np.array([0.2, 0, 0]) + np.outer([0.2, 0.3], circle)
    q, report = ik.solve(tree.start + [0.4, -0.3, 0.5], {"coupler": targets}, iterations=60)
    assert report.loops.max() < 1e-9
    np.testing.assert_allclose(report.residual["coupler"], [0.0, 0.1], atol=1e-8)
    np.testing.assert_allclose(q, np.repeat([[turn, -turn, turn]], 2, axis=0), atol=1e-6)


def test_couplings_hold():
    b = ModelBuilder()
    joints = [slider(b, label=label, y=float(k)) for k, label in enumerate("ab")]
    b.add_mimic(joints[1], joints[0], multiplier=-2.0, offset=0.1)
    ik = IK(Tree(b.finalize()), [PointTask("b", weight=(1, 0, 0))])
    q, report = ik.solve([0.0, 0.0], {"b": [0.7, 0, 0]}, iterations=20)
    np.testing.assert_allclose(q[0], [-0.3, 0.7], atol=1e-8)
    assert report.loops[0] < 1e-8


def test_locked_joints_stay(robot):
    ik = whole_body(robot, locked=["pelvis", "torso"])
    start = crouching(robot)
    q, _ = ik.solve(start, reachable(robot, 3), iterations=5)
    np.testing.assert_array_equal(q[:, :7], np.repeat(start[:, :7], 3, axis=0))
    np.testing.assert_array_equal(q[:, robot.slice("torso")], 0.0)
    assert np.abs(q - start).max() > 0.1


def test_worlds_do_not_feel_each_other(robot):
    ik, targets = whole_body(robot), reachable(robot, 4)
    q, _ = ik.solve(crouching(robot), targets, iterations=5)
    for world in range(4):
        alone, _ = ik.solve(crouching(robot), {n: v[world] for n, v in targets.items()}, iterations=5)
        np.testing.assert_allclose(alone[0], q[world], rtol=0.0, atol=1e-9)


def test_targets_are_transforms_too(robot):
    ik = IK(robot, [PoseTask("l_grip", name="left")])
    place = Transform.from_rpy((0.3, 0.3, 1.0), (0.2, -0.4, 0.1))
    q, report = ik.solve(crouching(robot), {"left": place}, iterations=12)
    pose = robot.pose(q, "l_grip")[0]
    np.testing.assert_allclose(pose[:3], place.position, atol=1e-7)
    assert abs(pose[3:] @ place.rotation) == pytest.approx(1.0, abs=1e-12)
    assert report.residual["left"][0] < 1e-6


def test_tasks_serve_several_trees():
    tasks = [PointTask("tip", weight=(1, 0, 1)), PostureTask()]
    first, second = (IK(planar(lengths), tasks) for lengths in ((0.5, 0.4), (0.3, 0.3, 0.2)))
    for ik, start in ((first, [0.1, 0.4]), (second, [0.1, 0.4, 0.1])):
        assert ik.solve(start, {"tip": (0.5, 0, 0.3)}, iterations=20)[1].residual["tip"][0] < 1e-9


def test_errors_name_the_task(robot):
    start = crouching(robot)
    with pytest.raises(ModelError, match=naming("robotics.IK")):
        IK(robot, [])
    with pytest.raises(ModelError, match=naming("3 PoseTask")):
        IK(robot, [3])  # type: ignore[list-item]
    with pytest.raises(ModelError, match=naming("'l_grip' name")):
        IK(robot, [PoseTask("l_grip"), PointTask("l_grip")])
    with pytest.raises(UnknownNameError, match=naming("'l_grap' 'l_grip'")):
        IK(robot, [PoseTask("l_grap")])
    with pytest.raises(ModelError, match=naming("PoseTask 'l_grip' weight")):
        PoseTask("l_grip", weight=(1, 2, 3))
    with pytest.raises(ModelError, match=naming("ComTask weight 0.0")):
        ComTask(0.0)
    with pytest.raises(ModelError, match=naming("ComTask priority 0 1")):
        ComTask(priority=0)
    with pytest.raises(ModelError, match=naming("robotics.IK damping 0")):
        IK(robot, [ComTask()], damping=0.0)
    with pytest.raises(UnknownNameError, match=naming("'toe'")):
        IK(robot, [ComTask()], locked=["toe"])
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), kinematic=True)
    with pytest.raises(ModelError, match=naming("ComTask")):
        IK(Tree(b.finalize()), [ComTask()])
    ik = IK(robot, [ComTask(), PoseTask("l_grip")])
    with pytest.raises(ModelError, match=naming("task 'l_grip' targets")):
        ik.solve(start, {"com": (0, 0, 1)})
    with pytest.raises(UnknownNameError, match=naming("'cow' 'com'")):
        ik.solve(start, {"cow": (0, 0, 1)})
    with pytest.raises(ModelError, match=naming("target 'com' 2")):
        ik.solve(start, {"com": (0, 1), "l_grip": Transform()})
    with pytest.raises(ModelError, match=naming("target 'l_grip'")):
        ik.solve(start, {"com": (0, 0, 1), "l_grip": np.zeros(7)})
    for wrong in (np.nan, np.inf):
        with pytest.raises(ModelError, match=naming("robotics.IK")):
            ik.solve(np.where(np.arange(robot.size) == 9, wrong, start), {"com": (0, 0, 1), "l_grip": Transform()})
    with pytest.raises(ModelError, match=naming("2 3")):
        ik.solve(np.repeat(start, 2, axis=0), {"com": np.zeros((3, 3)), "l_grip": Transform()})
