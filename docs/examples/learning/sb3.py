"""Train a policy with Stable-Baselines3's PPO on a vector environment of gpusim.

python sb3.py gpusim/HydraulicLift-v0 --steps 600000 --out lift.npz
"""

from __future__ import annotations

import argparse
from typing import Any

import gpusim.envs  # isort: skip (before torch)
import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecMonitor


class Adapter(VecEnv):
    """Adapter to Stable-Baselines3's ``VecEnv``, for environments in mode "same_step"."""

    def __init__(self, env: gpusim.envs.VectorEnv) -> None:
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.env, self._seed, self._actions = env, None, np.zeros(0)

    def seed(self, seed: int | None = None) -> list[int | None]:
        self._seed = seed
        return [seed] * self.num_envs

    def reset(self) -> np.ndarray:
        observation, _ = self.env.reset(seed=self._seed, options={"stagger": 16})
        self._seed = None
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observation, reward, terminated, truncated, info = self.env.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for world in np.flatnonzero(terminated | truncated):
            infos[world] = {
                "terminal_observation": info["final_obs"][world],
                "TimeLimit.truncated": bool(truncated[world]),
            }
        return observation, reward.astype(np.float32), terminated | truncated, infos

    def close(self) -> None:
        self.env.close()

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.env, name)] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        setattr(self.env, name, value)

    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [getattr(self.env, name)(*args, **kwargs)]

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def train(env: gpusim.envs.VectorEnv, steps: int, seed: int = 1) -> PPO:
    torch.set_num_threads(1)
    model = PPO(
        "MlpPolicy", VecMonitor(Adapter(env)), n_steps=32, batch_size=2048, n_epochs=4, gamma=0.97, ent_coef=1e-3,
        learning_rate=1e-3, policy_kwargs={"log_std_init": -0.5}, device="cpu", seed=seed,
    )  # fmt: skip
    return model.learn(steps)


def policy_of(model: PPO, env: gpusim.envs.VectorEnv) -> gpusim.envs.MlpPolicy:
    network = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
    return gpusim.envs.MlpPolicy.from_torch(network, env.task)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("id")
    parser.add_argument("--steps", type=int, default=600_000)
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--out", default="policy.npz")
    given = parser.parse_args()
    env = gymnasium.make_vec(given.id, num_envs=given.num_envs, autoreset_mode="same_step").unwrapped
    policy = policy_of(train(env, given.steps), env)
    print(f"success without exploration {policy.success_rate(env):.3f}")
    policy.save(given.out)
