from __future__ import annotations

import sys

import numpy as np
import pytest

from ci.ptx.device import installed
from ci.ptx.executor import NOTES, executor, why_not
from gpusim import ModelError
from gpusim.backends.cuda import builds as cuda_builds
from gpusim.backends.native.compile import build_native
from gpusim.robotics import IK, ComTask, PointTask, PoseTask, PostureTask, Tree
from tests.unit import fake_cupy

from .models import crouching, four_bar, humanoid
from .test_ik import planar, reachable, whole_body

pytestmark = pytest.mark.native


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    monkeypatch.setattr(
        cuda_builds, "compile_cuda", lambda main, generated, defines, *_, **__: build_native(main, generated, defines)
    )


def assert_same(ik, start, targets, iterations):
    (a, reported), (b, other) = (ik.solve(start, targets, iterations, backend) for backend in ("native", "cuda"))
    np.testing.assert_array_equal(b, a)
    for name in reported.error:
        np.testing.assert_array_equal(other.error[name], reported.error[name], err_msg=name)
    np.testing.assert_array_equal(other.step, reported.step)
    np.testing.assert_array_equal(other.loops, reported.loops)
    return a


def loop():
    tree = Tree(four_bar().finalize())
    return IK(tree, [PostureTask(tree.start + 0.1)]), tree.start


@pytest.mark.nightly
@pytest.mark.parametrize("worlds", [1, 40])
def test_it_is_called_as_native_is(stand_in, worlds):
    tree = Tree(humanoid().finalize(), "pelvis")
    ik = whole_body(tree)
    for iterations in (0, 6):
        assert_same(ik, crouching(tree), reachable(tree, worlds), iterations)


def test_more_worlds_than_threads(stand_in, monkeypatch):
    monkeypatch.setattr("gpusim.robotics.cuda.MAX_THREADS", 32)
    tree = Tree(humanoid().finalize(), "pelvis")
    assert_same(whole_body(tree), crouching(tree), reachable(tree, 70), 3)


def test_without_cupy_it_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    ik = IK(planar(), [PointTask("tip")])
    with pytest.raises(ModelError):
        ik.solve([0.3, 0.8], {"tip": (0.6, 0, 0.3)}, backend="cuda")


@pytest.mark.nightly
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_the_code_of_the_gpu_has_the_bits_of_native():
    tree = Tree(humanoid().finalize(), "pelvis")
    tasks = [
        PoseTask("l_sole"), PoseTask("r_sole"), ComTask((2.0, 1.0, 0.0), priority=2),
        PoseTask("l_grip", (1, 1, 1, 0, 0.5, 0), priority=3), PointTask("r_grip", (0.1, 0, 0), (0, 1, 1), priority=3),
        PostureTask(crouching(tree)[0], 0.02),
    ]  # fmt: skip
    targets = reachable(tree, 3)
    targets["r_grip"] = targets["r_grip"][:, :3]
    with installed():
        executor().configure(1)
        moved = assert_same(IK(tree, tasks), crouching(tree), targets, 4)
        ik, start = loop()
        assert_same(ik, start, {}, 4)
        faults = [f for f in executor().findings() if f.kind not in NOTES]
    assert not faults and np.abs(moved - crouching(tree)).max() > 1e-3
