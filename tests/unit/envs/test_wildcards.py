"""Wildcards in the attributes of a task."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.envs import Scale, Uniform
from tests.unit.envs.tasks import Cart
from tests.unit.envs.test_vector_env import cart, transitions


def test_wildcards_name_the_signals_of_a_task() -> None:
    """A later name replaces the noise of a wildcard. The rewards read the signals without noise."""

    class Wild(Cart):
        randomize = {"body.*.mass": Scale(0.5, 2.0)}
        start = {"joint.*.position": Uniform(0.2, 0.5), "joint.*.velocity": Uniform(0.5, 1.0)}
        noise = {"joint.*": 0.3, "joint.rail.velocity": 0.0}

        def reward(self, s: Any, goal: Any, action: Any) -> Any:
            np.testing.assert_array_equal(s["joint.*"], s.array)
            return s["joint.rail.pos*"][:, 0]

    class Named(Wild):
        randomize = {"body.cart.mass": Scale(0.5, 2.0)}
        start = {"joint.rail.position": Uniform(0.2, 0.5), "joint.rail.velocity": Uniform(0.5, 1.0)}
        noise = {"joint.rail.position": 0.3}

    assert transitions(cart(task=Wild()), 3) == transitions(cart(task=Named()), 3)
    env = cart(task=Wild())
    observation, _ = env.reset(seed=2)
    position, velocity = (env.sim.read(f"joint.rail.{name}") for name in ("position", "velocity"))
    assert np.all(np.abs(observation[:, 0] - position) > 1e-3) and np.all(observation[:, 1] == velocity.astype("f4"))
