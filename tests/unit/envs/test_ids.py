from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import gpusim.scene
from gpusim.envs import VectorEnv
from gpusim.envs.registry import IDS
from gpusim.envs.task import as_task

FAST = ["gpusim/BoomCraneLift-v0", "gpusim/HydraulicLift-v0"]
NIGHTLY = [id if id in FAST else pytest.param(id, marks=pytest.mark.nightly) for id in sorted(IDS)]


@pytest.mark.native
@pytest.mark.parametrize("id", NIGHTLY)
def test_gymnasiums_checker_passes(id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(gymnasium.make(id, backend="native").unwrapped, skip_render_check=True)


@pytest.mark.native
@pytest.mark.parametrize("id", NIGHTLY)
def test_worlds_do_not_depend_on_their_number(id: str) -> None:
    runs = []
    for count in (3, 11):
        env = gymnasium.make_vec(id, num_envs=count, backend="native", autoreset_mode="same_step")
        random = np.random.default_rng(1)
        found = [env.reset(seed=4)[0][:3]]
        for _ in range(12):
            action = random.uniform(-1.0, 1.0, (11, *env.single_action_space.shape))[:count]
            observation, reward, *_ = env.step(action)
            found += [observation[:3], reward[:3]]
        runs.append(b"".join(np.ascontiguousarray(array).tobytes() for array in found))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("id", sorted(IDS))
def test_tasks_are_of_scenes(id: str) -> None:
    task = as_task(IDS[id])
    assert task.scene in gpusim.scene.scene_modules() and id == f"gpusim/{task.name}-v0"


@pytest.mark.native
def test_the_oil_carries_the_drawn_load() -> None:
    for id, signal, most in ((FAST[1], "joint.rail.position", 1e-3), (FAST[0], "joint.hinge.position", 1e-4)):
        env = VectorEnv(IDS[id], 20, backend="native")
        env.reset(seed=1)
        start = env.sim.read(signal).copy()
        for _ in range(5):
            env.step(np.zeros((20, 1)))
        assert np.abs(env.sim.read(signal) - start).max() < most


@pytest.mark.native
@pytest.mark.nightly
def test_stones_in_the_bucket_and_at_the_side_are_counted() -> None:
    env = VectorEnv(IDS["gpusim/ExcavatorDig-v0"], 2, backend="native")
    env.reset(seed=1)
    task, s = env.task, env._wiring.read()
    before, first = task.reward(s, {}, np.zeros((2, 4))), task.load(s)
    assert not first.carried.any() and not first.dumped.any() and not task.success(s, {}).any()
    env.sim.write_state({f"body.stone{k}.position": first.bucket[0] for k in range(2)}, worlds=0)
    env.sim.write_state({f"body.stone{k}.position": (2.0, 1.0, 0.1) for k in range(3)}, worlds=1)
    s = env._wiring.read()
    load, after = task.load(s), task.reward(s, {}, np.zeros((2, 4)))
    assert load.carried.tolist() == [2.0, 0.0] and load.dumped.tolist() == [0, 3]
    assert task.success(s, {}).tolist() == [False, True] and np.all(after > before + 0.3)


@pytest.mark.native
@pytest.mark.nightly
def test_the_biped_stands_with_its_first_targets_and_falls_without_hips() -> None:
    env = VectorEnv(IDS["gpusim/BipedWalk-v0"], 2, backend="native")
    env.reset(seed=1)
    action = np.zeros((2, 12))
    action[1, [2, 8]] = 1.0
    ended = np.zeros(2, bool)
    for _ in range(80):
        ended |= env.step(action)[2]
    assert ended.tolist() == [False, True]


@pytest.mark.native
@pytest.mark.nightly
def test_krt100m_drives_to_a_goal_ahead() -> None:
    env = VectorEnv(IDS["gpusim/Krt100mDrive-v0"], 1, backend="native")
    env.reset(seed=1)
    env._wiring.episodes.goals["x"][:], env._wiring.episodes.goals["y"][:] = 5.0, 0.0
    observation, reached = env._observed(), False
    for _ in range(100):
        observation, reward, *_ = env.step([[np.clip(2.5 * observation[0, 0] - observation[0, 3], -1.0, 1.0), 0.0]])
        reached |= bool(env.task.success(env._wiring.read(), env._wiring.episodes.goals).all())
    assert reached
