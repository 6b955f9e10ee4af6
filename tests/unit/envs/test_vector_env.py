from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

import gpusim
from gpusim import Simulation
from gpusim.envs import Env, LogUniform, Offset, Scale, Task, Uniform, VectorEnv, register
from gpusim.envs.registry import IDS
from gpusim.errors import ModelError, UnknownNameError
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.envs.tasks import Cart

LIFT = IDS["gpusim/HydraulicLift-v0"]
STEPS = 25
"""Control steps of a run: two episodes and a half."""


def cart(num_envs: int = 3, task: Task | None = None, **options: Any) -> VectorEnv:
    return VectorEnv(task or Cart(), num_envs, backend=FASTEST, **options)


def pushes(num_envs: int, episode: int, step: int) -> np.ndarray:
    worlds = np.arange(num_envs)
    return np.sin(1.0 + worlds + 0.7 * episode + 0.4 * step)[:, None]


def transitions(env: VectorEnv, worlds: int, count: int = STEPS, seed: int = 5) -> list[list[tuple[Any, ...]]]:
    """Return (observation before, reward, terminated, truncated, observation after) by world, without resets."""
    mode = env.metadata["autoreset_mode"]
    observation, _ = env.reset(seed=seed)
    episode, step = np.zeros(env.num_envs, int), np.zeros(env.num_envs, int)
    found: list[list[tuple[Any, ...]]] = [[] for _ in range(worlds)]
    pending = np.zeros(env.num_envs, bool)
    while min(map(len, found)) < count:
        action = np.array([pushes(env.num_envs, e, k)[w] for w, (e, k) in enumerate(zip(episode, step, strict=True))])
        after, reward, terminated, truncated, info = env.step(action)
        done = terminated | truncated
        for w in range(worlds):
            if pending[w]:
                assert reward[w] == 0.0 and not done[w]
                continue
            last = info["final_obs"][w] if mode is AutoresetMode.SAME_STEP and done[w] else after[w]
            found[w].append((observation[w].tobytes(), reward[w], terminated[w], truncated[w], last.tobytes()))
        step = np.where(pending, 0, step + 1)
        episode, step = episode + done, np.where(done, 0, step)
        observation, pending = after, done & (mode is AutoresetMode.NEXT_STEP)
        if mode is AutoresetMode.DISABLED and done.any():
            observation, _ = env.reset(options={"reset_mask": done})
    return [one[:count] for one in found]


class Hard(Cart):
    noise = {"joint.rail.position": 0.05}
    delay = (0, 3)


@pytest.mark.parametrize("task", [Cart, Hard])
def test_the_modes_of_autoreset_give_the_same_transitions(task: type[Task]) -> None:
    runs = [transitions(cart(task=task(), autoreset_mode=mode), 3) for mode in AutoresetMode]
    assert runs[0] == runs[1] == runs[2]
    ends = [(t[2], t[3]) for t in runs[0][0]]
    assert sum(a or b for a, b in ends) >= 2


@pytest.mark.parametrize("task", [Cart, Hard])
def test_a_world_does_not_depend_on_the_number_of_worlds(task: type[Task]) -> None:
    assert transitions(cart(3, task()), 3) == transitions(cart(30, task()), 3)


@pytest.mark.nightly
@pytest.mark.native
def test_world_0_of_3_and_of_300() -> None:
    few, many = (transitions(VectorEnv(LIFT, n, backend="native"), 3, count=160) for n in (3, 300))
    assert few == many


@pytest.mark.native
@pytest.mark.usefixtures("stand_in")
def test_the_cuda_backend_gives_the_same_transitions() -> None:
    cpu, gpu = (transitions(VectorEnv(Hard(), 3, backend=backend), 3) for backend in ("native", "cuda"))
    assert cpu == gpu


def test_world_0_repeats_in_one_world_and_from_a_list_of_seeds() -> None:
    alone, listed = cart(1), cart(3)
    first, _ = alone.reset(seed=7)
    second, _ = listed.reset(seed=[3, 7, 7])
    assert np.array_equal(second[1], first[0]) and np.array_equal(second[1], second[2])
    assert not np.array_equal(second[0], second[1])
    same, _ = listed.reset(seed=7)
    assert np.array_equal(same[0], first[0]) and not np.array_equal(same[0], same[1])


def test_seeds_repeat_and_episodes_differ() -> None:
    env = cart()
    one, _ = env.reset(seed=1)
    following, _ = env.reset()
    again, _ = env.reset(seed=1)
    other, _ = env.reset(seed=2)
    assert np.array_equal(one, again) and not np.array_equal(one, following) and not np.array_equal(one, other)
    assert len(np.unique(one[:, 2])) == 3
    assert not np.array_equal(cart().reset()[0], cart().reset()[0])


def test_what_is_drawn_is_written() -> None:
    env = cart(2000)
    observation, _ = env.reset(seed=1)
    mass, inertia = env.sim.read("body.cart.mass"), env.sim.read("body.cart.inertia")
    for values, low, high in (
        (mass, 0.5, 2.0), (inertia[:, 2, 2], 0.1, 0.15), (observation[:, 0], -0.5, 0.5), (observation[:, 2], -1.0, 1.0),
    ):  # fmt: skip
        assert low <= values.min() < low + 0.01 * (high - low) and high - 0.01 * (high - low) < values.max() <= high
        assert values.mean() == pytest.approx(0.5 * (low + high), abs=0.02 * (high - low))
    assert np.all(inertia[:, :2] == 0.1 * np.eye(3)[:2])
    assert abs(np.corrcoef(mass, observation[:, 2])[0, 1]) < 0.08


def test_a_partial_reset_leaves_the_other_worlds() -> None:
    env, other = cart(), cart()
    for one in (env, other):
        one.reset(seed=1)
        for k in range(4):
            last, *_ = one.step(pushes(3, 0, k))
    found, _ = env.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(found[[0, 2]], last[[0, 2]]) and not np.array_equal(found[1], last[1])
    assert np.array_equal(env.step(pushes(3, 0, 4))[0][[0, 2]], other.step(pushes(3, 0, 4))[0][[0, 2]])


def test_the_motion_is_that_of_the_simulation() -> None:
    """Closed form: x = x0 + v0 t + F t^2/(2 m)."""
    env = cart()
    before, _ = env.reset(seed=3)
    mass = env.sim.read("body.cart.mass")
    for _ in range(5):
        after, *_ = env.step(np.full((3, 1), 0.25))
    expected = before[:, 0] + 0.5 * before[:, 1] + 0.5 * 5.0 / mass * 0.5**2
    assert after[:, 0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("delay", [0, 2])
def test_a_delay_is_counted_in_control_steps(delay: int) -> None:
    env = cart(task=Cart(delay=delay, randomize={}, start={}))
    before, _ = env.reset(seed=3)
    speeds = [env.step(np.full((3, 1), 0.5))[0][0, 1] for _ in range(4)]
    assert np.all(np.array(speeds[:delay]) == 0.0)
    assert speeds[delay] == pytest.approx(10.0 * 0.1, rel=1e-5)


def test_noise_is_seen_and_not_rewarded() -> None:
    class Noisy(Cart):
        noise = {"joint.rail.position": 0.05}

    clean, noisy = cart(500), cart(500, Noisy())
    difference = noisy.reset(seed=1)[0] - clean.reset(seed=1)[0]
    assert difference[:, 0].std() == pytest.approx(0.05, rel=0.15) and abs(difference[:, 0].mean()) < 0.01
    assert np.all(difference[:, 1:] == 0.0)
    (a, ra, *_), (b, rb, *_) = (env.step(np.zeros((500, 1))) for env in (clean, noisy))
    assert np.array_equal(ra, rb) and abs(np.corrcoef(difference[:, 0], (b - a)[:, 0])[0, 1]) < 0.15


def test_actions_are_clipped_and_mapped() -> None:
    env = cart()
    env.reset(seed=1)
    env.step([[3.0], [-0.5], [0.0]])
    assert env.sim.control["push"].tolist() == [20.0, -10.0, 0.0]


def test_success_is_reported_at_the_end() -> None:
    for mode in ("next_step", "same_step"):
        env = cart(50, task=Cart(start={}), autoreset_mode=mode)
        goal = env.reset(seed=1)[0][:, 2]
        for _ in range(env.episode_steps - 1):
            assert env.step(np.zeros((50, 1)))[4] == {}
        *_, truncated, info = env.step(np.zeros((50, 1)))
        found = info["final_info"] if mode == "same_step" else info
        assert truncated.all() and found["_is_success"].all()
        assert np.array_equal(found["is_success"], np.abs(goal) < 0.1)


def test_final_observations_need_no_success() -> None:
    class Plain(Cart):
        def success(self, s: Any, goal: Any) -> Any:
            return None

    env = cart(task=Plain(), autoreset_mode="same_step")
    env.reset(seed=1)
    for _ in range(env.episode_steps):
        observation, *_, info = env.step(np.zeros((3, 1)))
    assert info["_final_obs"].all() and info["final_info"] == {} and not np.array_equal(info["final_obs"], observation)


def test_a_world_that_fails_ends_its_episode_and_recovers() -> None:
    env = cart()
    env.reset(seed=1)
    env.sim.write("body.cart.linear_velocity", (1e10, 0.0, 0.0), worlds=1)
    observation, reward, terminated, truncated, _ = env.step(np.zeros((3, 1)))
    assert terminated.tolist() == [False, True, False] and not truncated.any()
    assert np.isfinite(observation).all() and np.isfinite(reward).all()
    env.step(np.zeros((3, 1)))
    assert env.sim.health().all() and not env.step(np.zeros((3, 1)))[2].any()


def test_staggered_episodes_end_at_different_times() -> None:
    env = cart(10)
    env.reset(seed=1, options={"stagger": 5})
    ends = [np.flatnonzero(env.step(np.zeros((10, 1)))[3]).tolist() for _ in range(10)]
    assert ends[1] == [8, 9] and ends[9] == [0, 1] and sorted(sum(ends, [])) == list(range(10))


def test_gymnasiums_checker_passes() -> None:
    with pytest.warns(UserWarning, match="infinity"):
        check_env(Env(Cart(), backend="numpy"), skip_render_check=True)


def test_ids_are_made_by_gymnasium() -> None:
    register("test/Cart-v0", Cart)
    env = gymnasium.make_vec("test/Cart-v0", num_envs=4, autoreset_mode="same_step", backend="numpy")
    assert env.num_envs == 4 and env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert env.observation_space.shape == (4, 4) and env.action_space.shape == (4, 1)
    one = gymnasium.make("test/Cart-v0", backend="numpy")
    observation, _ = one.reset(seed=1)
    assert one.observation_space.contains(observation)


def test_gymnasiums_wrappers_work() -> None:
    env = wrappers.RecordEpisodeStatistics(cart())
    wrapped = wrappers.NormalizeReward(wrappers.NormalizeObservation(env))
    wrapped.reset(seed=1)
    ends = 0
    for k in range(22):
        observation, _, _, _, info = wrapped.step(pushes(3, 0, k))
        ends += int(info.get("_episode", np.zeros(1)).sum())
    assert ends >= 6 and np.isfinite(observation).all()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_a_checkpoint_continues_bit_for_bit(mode: str, tmp_path: Path) -> None:
    env, other = cart(task=Hard(), autoreset_mode=mode), cart(task=Hard(), autoreset_mode=mode)
    env.reset(seed=1)
    for k in range(9):
        last, *_ = env.step(pushes(3, 0, k))
    env.save(tmp_path / "env.npz")
    assert np.array_equal(other.load(tmp_path / "env.npz"), last)
    for k in range(15):
        for a, b in zip(env.step(pushes(3, 1, k))[:4], other.step(pushes(3, 1, k))[:4], strict=True):
            assert np.array_equal(a, b)
    assert Simulation.load(tmp_path / "env.npz").num_worlds == 3


def test_a_checkpoint_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "env.npz"
    env = cart()
    before, _ = env.reset(seed=1)
    cart(task=Hard()).save(path)
    with pytest.raises(ModelError, match=naming("checkpoint 'Hard' 'Cart'")):
        env.load(path)
    cart(autoreset_mode="disabled").save(path)
    with pytest.raises(ModelError, match=naming("Disabled NextStep")):
        env.load(path)
    for changes, reported in (
        ({"episode": 3.0}, "episode 3.0 1.0"),
        ({"noise": {"joint.rail.position": 0.1}}, "noise 'joint.rail.position'"),
        ({"goals": {"place": Uniform(-1.0, 2.0)}}, "goals 'place' Uniform"),
        ({"dt": 1e-3}, "dt 0.001 0.01"),
        ({"delay": 2}, "delay 2.0 0.0"),
    ):
        cart(task=Cart(**changes)).save(path)
        with pytest.raises(ModelError, match=naming(reported)):
            env.load(path)
    cart(4).save(path)
    with pytest.raises(ModelError, match=naming("seed (4,) (3,)")):
        env.load(path)
    cart(task=Cart(goals={**Cart.goals, "other": Uniform(0.0, 1.0)})).save(path)
    with pytest.raises(ModelError, match=naming("goals other")):
        env.load(path)
    env.sim.save(path)
    with pytest.raises(ModelError, match=naming("VectorEnv.save")):
        env.load(path)
    assert np.array_equal(env.sim.read("joint.rail.position"), before[:, 0].astype(float)) or np.allclose(
        env.sim.read("joint.rail.position"), before[:, 0]
    )


def test_tensors_share_memory() -> None:
    torch = pytest.importorskip("torch")
    env, plain = cart(arrays="torch", autoreset_mode="same_step"), cart(autoreset_mode="same_step")
    observation, _ = env.reset(seed=1)
    plain.reset(seed=1)
    assert observation.dtype == torch.float32
    for k in range(10):
        action = pushes(3, 0, k)
        found, expected = env.step(torch.from_numpy(action)), plain.step(action)
    for tensor, array in zip(found[:4], expected[:4], strict=True):
        assert isinstance(tensor, torch.Tensor) and np.array_equal(tensor.numpy(), array.astype(tensor.numpy().dtype))
    assert np.array_equal(found[4]["final_obs"].numpy(), expected[4]["final_obs"])
    ones = torch.ones(3, 1, requires_grad=True)
    env.reset(seed=1), plain.reset(seed=1)
    assert np.array_equal(env.step(ones.to(torch.bfloat16))[0].numpy(), plain.step(ones)[0])
    env.sim.write_state({"joint.rail.position": 0.1 * ones[:, 0]})
    np.testing.assert_allclose(env.sim.read("joint.rail.position"), 0.1, rtol=1e-6)
    array = np.zeros((3, 4), np.float32)
    assert env._given(array).data_ptr() == array.ctypes.data


def test_returned_arrays_are_not_reused() -> None:
    env = cart()
    first, _ = env.reset(seed=1)
    kept = first.copy()
    second = env.step(np.ones((3, 1)))[0]
    assert np.array_equal(first, kept) and not np.shares_memory(first, second)


BAD = [
    ({"scene": "lift"}, "scene"), ({"actions": {}}, "actions"), ({"signals": []}, "signals"),
    ({"decimation": 0}, "decimation 0"), ({"episode": -1.0}, "episode"), ({"delay": (2, 1)}, "delay (2, 1)"),
    ({"actions": {"push": (1.0, 1.0)}}, "'push' (1.0, 1.0)"), ({"noise": {"body.cart.*": 1.0}}, "noise body.cart.*"),
    ({"start": {"body.cart.ma*": Uniform(1.0, 2.0)}}, "'body.cart.mass' randomize start"),
    ({"noise": {"joint.rail.position": -1.0}}, "noise negative"),
    ({"goals": {"place": (0, 1)}}, "goals 'place' (0, 1)"), ({"goals": None}, "goals None"),
    ({"actions": [1, 2]}, "actions [1, 2]"), ({"actions": {"push": 3}}, "actions 'push'"),
    ({"signals": 5}, "signals 5"), ({"delay": 2.5}, "delay 2.5"), ({"noise": 5}, "noise 5"),
    ({"delay": ()}, "delay ()"),
    ({"signals": ["joint.rail.*"]}, "joint.rail.limit_upper"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_bad_tasks(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((ModelError, UnknownNameError), match=naming(words)):
        cart(task=Cart(**changes))


def test_bad_arguments() -> None:
    with pytest.raises(UnknownNameError, match=naming("autoreset mode 'never'")):
        cart(autoreset_mode="never")
    with pytest.raises(UnknownNameError, match=naming("autoreset mode []")):
        cart(autoreset_mode=[])
    with pytest.raises(UnknownNameError, match=naming("'human'")):
        cart(render_mode="human")
    with pytest.raises(UnknownNameError, match=naming("arrays 'jax'")):
        cart(arrays="jax")
    for worlds in ([4], 4):
        with pytest.raises(ModelError, match=naming("render_worlds 3")):
            cart(render_worlds=worlds)
    with pytest.raises(ModelError, match=naming("task 'nowhere:Cart'")):
        cart(task="nowhere:Cart")  # type: ignore[arg-type]
    env = cart()
    for seed in (-1, 1.5, [1, 2], [[1], [1, 2]], 2**60):
        with pytest.raises(ModelError, match=naming("seed")):
            env.reset(seed=seed)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=naming("reset_mask (0,)")):
        env.reset(options={"reset_mask": [[True], [True, False]]})
    with pytest.raises(ModelError, match=naming("reset_mask (2,)")):
        env.reset(options={"reset_mask": np.ones(2, bool)})
    with pytest.raises(UnknownNameError, match=naming("option 'mask'")):
        env.reset(options={"mask": 1})
    with pytest.raises(ModelError, match=naming("stagger 0")):
        env.reset(options={"stagger": 0})
    env.reset(seed=1)
    with pytest.raises(ModelError, match=naming("actions (3,) (3, 1)")):
        env.step(np.zeros(3))
    with pytest.raises(ModelError, match=naming("options 5")):
        env.reset(options=5)  # type: ignore[arg-type]


def test_refused_actions_leave_no_trace() -> None:
    env, other = cart(task=Hard()), cart(task=Hard())
    for one in (env, other):
        with pytest.raises(ModelError, match=naming("step reset()")):
            one.step(np.zeros((3, 1)))
        one.reset(seed=1)
    for value in (np.nan, np.inf):
        with pytest.raises(ModelError, match=naming("actions world 1")):
            env.step([[0.0], [value], [0.0]])
    with pytest.raises(ModelError, match=naming("stagger 0")):
        env.reset(options={"stagger": 0})
    for _ in range(4):
        found = [one.step(np.ones((3, 1)))[0] for one in (env, other)]
        assert np.array_equal(*found)


def test_attributes_take_wildcards_and_numbers_of_numpy() -> None:
    plain = cart(task=Cart(signals=["joint.rail.position"], delay=2))
    short = {"signals": "joint.rail.position", "delay": np.int64(2), "decimation": np.int64(10)}
    env = cart(task=Cart(**short, actions={"push": (-20.0, 20.0), "pu*": (0.0, 1.0)}))
    for one in (plain, env):
        one.reset(seed=1, options={"stagger": np.int64(1)})
    for _ in range(4):
        found = [one.step(np.ones((3, 1)))[0] for one in (plain, env)]
        assert np.array_equal(*found)


def test_a_goal_can_come_from_a_function() -> None:
    env = cart(task=Cart(goals={"place": lambda u, nominal: 3.0 + u}))
    observation, _ = env.reset(seed=1)
    assert np.all((observation[:, 2] >= 3.0) & (observation[:, 2] < 4.0)) and np.ptp(observation[:, 2]) > 0.0


@pytest.mark.parametrize("value", [lambda u, nominal: u[:, 0], lambda u, nominal: "a", Uniform([0.0, 1.0], 2.0)])
def test_a_distribution_of_another_shape_is_named(value: Any) -> None:
    env = cart(task=Cart(randomize={"body.cart.mass": value}))
    with pytest.raises(ModelError, match=naming("distribution 'body.cart.mass'")):
        env.reset(seed=1)


def test_a_wrong_observation_is_reported() -> None:
    class Flat(Cart):
        def observation(self, s: Any, goal: Any, action: Any) -> Any:
            return s["joint.rail.position"]

    with pytest.raises(ModelError, match=naming("observation shape (3,)")):
        cart(task=Flat())


def test_an_observation_that_changes_its_width_is_reported() -> None:
    class Growing(Cart):
        def observation(self, s: Any, goal: Any, action: Any) -> Any:
            late = s["joint.rail.position"] if s["joint.rail.velocity"].max() < 0.2 else s.array
            return late.reshape(len(s.array), -1)

    env = cart(task=Growing())
    env.reset(seed=1)
    with pytest.raises(ModelError, match=naming("observation shape (3, 2)")):
        for _ in range(5):
            env.step(np.ones((3, 1)))


def broken(**functions: Any) -> Cart:
    made: Cart = type("Broken", (Cart,), functions)()
    return made


WRONG = [
    ({"reward": lambda *_: np.full(3, np.nan)}, "reward nan world 0"),
    ({"reward": lambda *_: np.zeros((3, 1))}, "reward shape (3, 1) 3"),
    ({"terminated": lambda *_: np.zeros(2, bool)}, "terminated shape (2,) 3"),
    ({"success": lambda *_: np.zeros((3, 2), bool), "episode": 0.1}, "success shape (3, 2) 3"),
    ({"reward": lambda task, s, goal, action: goal["palce"]}, "goal 'palce' 'place'"),
    ({"reward": Task.reward}, "reward"),
    ({"reward": lambda *_: "a"}, "reward 'a'"),
    ({"make_scene": lambda task: gpusim.ModelBuilder()}, "make_scene ModelBuilder gpusim.scene.Scene"),
    ({"begin": lambda *_: 3}, "begin 3 dict"),
    ({"episodes": 3.0}, "'episodes' 'episode'"),
]


@pytest.mark.parametrize(("functions", "words"), WRONG)
def test_what_a_task_returns_is_checked(functions: dict[str, Any], words: str) -> None:
    with pytest.raises((ModelError, UnknownNameError), match=naming(words)):
        env = cart(task=broken(**functions))
        env.reset(seed=1)
        env.step(np.zeros((3, 1)))


def test_the_reward_of_a_failed_world_may_be_nan() -> None:
    env = cart(task=broken(reward=lambda task, s, goal, action: np.where(task.sim.health(), 1.0, np.nan)))
    env.task.sim = env.sim  # type: ignore[attr-defined]
    env.reset(seed=1)
    env.sim.write("body.cart.linear_velocity", (1e10, 0.0, 0.0), worlds=1)
    _, reward, terminated, *_ = env.step(np.zeros((3, 1)))
    assert reward.tolist() == [1.0, 0.0, 1.0] and terminated.tolist() == [False, True, False]


def test_distributions() -> None:
    u = np.linspace(0.0, 0.999, 50)[:, None]
    assert LogUniform(1e-3, 10.0)(u, np.ones(1))[25, 0] == pytest.approx(1e-3 * 1e4 ** u[25, 0])
    assert Scale(0.5, 1.5)(u, np.array([2.0, 4.0]))[0].tolist() == [1.0, 2.0]
    assert Offset(-1.0, 1.0)(u, np.array([2.0]))[0].tolist() == [1.0]
    with pytest.raises(ModelError, match=naming("Uniform 2 1")):
        Uniform(2, 1)
    with pytest.raises(ModelError, match=naming("LogUniform 0")):
        LogUniform(0.0, 1.0)
    with pytest.raises(ModelError, match=naming("Scale finite")):
        Scale(0.0, np.inf)
