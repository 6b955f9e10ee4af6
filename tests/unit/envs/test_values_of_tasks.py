"""Values that a task returns, and arguments of environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.envs import LogUniform, MlpPolicy, Scale, Task, Uniform
from gpusim.errors import GpusimError
from tests.message_snapshot import naming
from tests.unit.envs.tasks import Cart
from tests.unit.envs.test_vector_env import broken, cart

WRONG = [
    ({"success": lambda task, s, goal: np.abs(s["joint.rail.position"]), "episode": 0.1}, "success world 0 mask"),
    ({"terminated": lambda *_: np.array([0.0, 1.0, np.nan])}, "terminated nan world 2 mask"),
    ({"observation": lambda *_: {"a": 1}}, "observation {'a': 1} array"),
    ({"observation": lambda *_: [[1], [1, 2], [3]]}, "observation [[1], [1, 2], [3]] array"),
    ({"observation": lambda task, s, goal, action: np.where(action, np.nan, 0.0)}, "observation world 0 finite"),
    ({"reward": lambda *_: np.ones(3) * 1j}, "reward 1.j numbers"),
    ({"observations": lambda *_: np.zeros((3, 1))}, "'observations' 'observation'"),
    ({"goals": {"place": Scale(0.5, 1.5)}}, "goal 'place' Scale Uniform"),
]


@pytest.mark.parametrize(("functions", "words"), WRONG)
def test_wrong_values_are_refused(functions: dict[str, Any], words: str) -> None:
    with pytest.raises(GpusimError, match=naming(words)):
        env = cart(task=broken(**functions))
        env.reset(seed=1)
        env.step(np.ones((3, 1)))


def test_masks_may_be_numbers() -> None:
    env = cart(task=broken(terminated=lambda *_: [0, 1.0, False]))
    env.reset(seed=1)
    assert env.step(np.zeros((3, 1)))[2].tolist() == [False, True, False]


def test_a_failed_world_has_finite_observations() -> None:
    def observation(task: Any, s: Any, goal: Any, action: Any) -> Any:
        return np.where(task.sim.health() if hasattr(task, "sim") else np.ones(3, bool), 1.0, np.nan)[:, None]

    env = cart(task=broken(observation=observation))
    env.task.sim = env.sim  # type: ignore[attr-defined]
    env.reset(seed=1)
    env.sim.write("body.cart.linear_velocity", (1e10, 0.0, 0.0), worlds=1)
    assert env.step(np.zeros((3, 1)))[0].ravel().tolist() == [1.0, 0.0, 1.0]


def test_the_settings_of_the_solver_can_be_changed() -> None:
    env = cart(config=gpusim.SolverConfig(dt=1e-3, substeps=3))
    assert (env.sim.config.dt, env.sim.config.substeps) == (Cart.dt, 3)
    with pytest.raises(GpusimError, match=naming("config 3")):
        cart(config=3)


def test_the_drawn_worlds_may_be_a_mask() -> None:
    assert cart(render_worlds=[False, True, False])._frames._worlds == [1]
    for options, words in (({"render_worlds": []}, "render_worlds []"), ({"render_size": 64}, "render_size 64 pair")):
        with pytest.raises(GpusimError, match=naming(words)):
            cart(**options)


def test_a_policy_of_a_task_without_success() -> None:
    policy = MlpPolicy([(np.zeros((1, 4)), [0.0])], "tanh", "tests.unit.envs.tasks:Cart")
    with pytest.raises(GpusimError, match=naming("task 'Broken' success")):
        policy.success_rate(cart(task=broken(success=Task.success)))


def test_ranges_of_matrices() -> None:
    low = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert LogUniform(low, 4.0 * low)(np.full((1, 4), 0.5), np.zeros(4)).tolist() == [[2.0, 4.0, 6.0, 8.0]]
    with pytest.raises(GpusimError, match=naming("Uniform (2,) (3,) shapes")):
        Uniform([1, 2], [3, 4, 5])
