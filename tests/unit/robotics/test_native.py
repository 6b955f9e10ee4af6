from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelError, rotations
from gpusim.backends.codegen.robot_header import robot_dtype
from gpusim.backends.codegen.variants import robotics_variant
from gpusim.robotics import IK, ComTask, PointTask, PoseTask, PostureTask, Tree
from tests.message_snapshot import naming

from .models import crouching, floating_chain, four_bar, humanoid
from .test_ik import planar, reachable, whole_body

pytestmark = pytest.mark.native


def alike(ik: IK, start, targets, iterations: int, within: float = 1e-9) -> np.ndarray:
    (a, reported), (b, other) = (ik.solve(start, targets, iterations, backend) for backend in ("numpy", "native"))
    np.testing.assert_allclose(b, a, rtol=0.0, atol=within)
    for name in reported.error:
        np.testing.assert_allclose(other.error[name], reported.error[name], rtol=0.0, atol=within, err_msg=name)
        np.testing.assert_allclose(other.residual[name], reported.residual[name], rtol=0.0, atol=10 * within)
    np.testing.assert_allclose(other.step, reported.step, rtol=0.0, atol=within)
    np.testing.assert_allclose(other.loops, reported.loops, rtol=0.0, atol=within)
    np.testing.assert_array_equal(other.at_limit, reported.at_limit)
    return a


@pytest.mark.parametrize("iterations", [0, 1, 3, 10])
def test_a_whole_body(iterations):
    tree = Tree(humanoid().finalize(), "pelvis")
    alike(whole_body(tree), crouching(tree), reachable(tree, 12), iterations)


def test_out_of_reach_with_priorities_limits_and_locked_joints():
    tree = Tree(humanoid().finalize(), "pelvis")
    targets = reachable(tree, 6)
    targets["l_grip"][:, 0] += 0.4
    tasks = [
        PoseTask("l_sole"), PoseTask("r_sole"), ComTask((2.0, 1.0, 0.0), priority=2),
        PoseTask("l_grip", (1, 1, 1, 0, 0.5, 0), priority=3), PointTask("r_grip", (0.1, 0, 0), (0, 1, 1), priority=3),
        PostureTask(crouching(tree)[0], 0.02), PostureTask(tree.start, 0.01, priority=3, name="straight"),
    ]  # fmt: skip
    targets["r_grip"] = targets["r_grip"][:, :3]
    q = alike(IK(tree, tasks, locked=["head", "waist_x"]), crouching(tree), targets, 8)
    assert not q[:, tree.slice("head")].any()


@pytest.mark.parametrize(("iterations", "away"), [(1, 8.0), (3, 8.0), (30, 8.0), (30, 0.3)])
def test_three_priorities_of_which_the_last_is_out_of_reach(iterations, away):
    tree = Tree(humanoid().finalize(), "pelvis")
    targets = reachable(tree, 4, 0.1)
    targets["r_grip"] = targets["r_grip"][:, :3] + [away, 0, 0]
    tasks = [PoseTask("l_sole"), PoseTask("r_sole"), ComTask(), PoseTask("l_grip", priority=2)]
    last = [PointTask("r_grip", priority=3), PostureTask(crouching(tree)[0])]
    alike(IK(tree, [*tasks, *last]), crouching(tree), targets, iterations, 1e-7)


@pytest.mark.parametrize("base", ["root", "link6", "link3"])
def test_every_joint_from_either_end(base):
    tree = Tree(floating_chain(3).finalize(), base)
    rng = np.random.default_rng(1)
    goal = tree.integrate(np.repeat(tree.start, 5, axis=0), 0.3 * rng.normal(size=(5, tree.freedoms)))
    targets = {name: tree.pose(goal, name) for name in ("tip", "tail")} | {"com": tree.com(goal)}
    tasks = [
        PoseTask("tip"),
        PoseTask("tail"),
        ComTask(weight=(1, 0, 1)),
        PostureTask(goal[0], np.full(tree.freedoms, 0.02)),
    ]
    q = alike(IK(tree, tasks), tree.start, targets, 6)
    assert np.abs(tree.pose(q, "tip") - targets["tip"])[:, :3].max() < 0.05


def test_loops_and_couplings():
    b = four_bar()
    b.add_mimic(1, 0, multiplier=-1.0, curve=(0.2, -0.3, 0.1))
    b.add_joint_distance(0, 2, at_a=(0, 0, 0.1), at_b=(0.5, 0, 0.1), max_distance=0.5, min_distance=0.5)
    tree = Tree(b.finalize())
    assert tree.loop_rows == 7
    ik = IK(tree, [PointTask("coupler", point=(0.2, 0, 0))])
    targets = np.array([0.2, 0, 0]) + np.outer([0.2, 0.3], [np.sin(0.3), 0, np.cos(0.3)])
    alike(ik, tree.start + [0.4, -0.3, 0.5], {"coupler": targets}, 25)


def test_masses_of_worlds():
    tree = Tree(humanoid().finalize(), "pelvis")
    masses = tree.inertias.mass * np.random.default_rng(0).uniform(0.5, 1.5, (4, len(tree.bodies)))
    object.__setattr__(tree.inertias, "mass", masses)
    q = alike(
        IK(tree, [ComTask(), PoseTask("l_sole")]),
        crouching(tree),
        {"com": (0.05, 0.02, 0.7), "l_sole": tree.pose(crouching(tree), "l_sole")[0]},
        12,
    )
    np.testing.assert_allclose(tree.com(q), np.repeat([[0.05, 0.02, 0.7]], 4, axis=0), atol=1e-6)


def test_bits_do_not_depend_on_threads_and_other_worlds(monkeypatch):
    tree = Tree(humanoid().finalize(), "pelvis")
    ik, targets = whole_body(tree), reachable(tree, 40)
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPUSIM_THREADS", threads)
        found.append(ik.solve(crouching(tree), targets, 6, backend="native")[0])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    some = {name: value[10:13] for name, value in targets.items()}
    np.testing.assert_array_equal(ik.solve(crouching(tree), some, 6, backend="native")[0], found[0][10:13])


def test_a_solver_serves_again_and_again():
    ik = IK(planar(), [PointTask("tip")])
    first, _ = ik.solve([0.3, 0.8], {"tip": (0.6, 0, 0.3)}, backend="native")
    ik.solve([0.1, 0.2], {"tip": (3, 0, 0)}, backend="native")
    again, _ = ik.solve([0.3, 0.8], {"tip": (0.6, 0, 0.3)}, backend="native")
    np.testing.assert_array_equal(first, again)
    assert rotations.norm(ik.tree.pose(first, "tip")[0, :3] - [0.6, 0, 0.3]) < 1e-9


def test_wrong_backends_and_iterations_are_reported():
    ik = IK(planar(), [PointTask("tip")])
    with pytest.raises(ModelError, match=naming("backend 'metal'")):
        ik.solve([0, 0], {"tip": (1, 0, 0)}, backend="metal")
    with pytest.raises(ModelError, match=naming("iterations -1")):
        ik.solve([0, 0], {"tip": (1, 0, 0)}, iterations=-1)


def test_the_struct_is_the_one_that_compilers_make():
    layout = robot_dtype()
    sizes = [layout[name].itemsize for name in layout.names]
    assert sizes == sorted(sizes, reverse=True) and layout.itemsize % 8 == 0
    assert "struct Robot {" in robotics_variant().generated["robot.cuh"]
