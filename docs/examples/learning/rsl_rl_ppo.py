"""Train a policy with RSL-RL's PPO on a vector environment of gpusim.

python rsl_rl_ppo.py gpusim/HydraulicLift-v0 --steps 600000 --out lift.npz
"""

from __future__ import annotations

import argparse
from typing import Any

import gpusim.envs  # isort: skip (before torch)
import gymnasium
import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

ROLLOUT = 32


class Adapter(VecEnv):
    """Adapter to RSL-RL's ``VecEnv``, for environments in mode "same_step" with ``arrays="torch"``."""

    def __init__(self, env: gpusim.envs.VectorEnv, seed: int) -> None:
        self.env, self.cfg, self.device = env, {}, "cpu"
        self.num_envs, self.num_actions = env.num_envs, env.single_action_space.shape[0]
        self.max_episode_length = env.episode_steps
        self.episode_length_buf = torch.zeros(env.num_envs, dtype=torch.long)
        self._observation, _ = env.reset(seed=seed, options={"stagger": 16})

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": self._observation}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        self._observation, reward, terminated, truncated, _ = self.env.step(actions)
        done = terminated | truncated
        self.episode_length_buf = torch.where(done, 0, self.episode_length_buf + 1)
        return self.get_observations(), reward, done.long(), {"time_outs": truncated}


def settings() -> dict[str, Any]:
    model = {"class_name": "MLPModel", "hidden_dims": [64, 64], "activation": "tanh", "obs_normalization": False}
    noise = {"class_name": "GaussianDistribution", "init_std": 0.6}
    return {
        "num_steps_per_env": ROLLOUT, "save_interval": 10_000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**model, "distribution_cfg": noise}, "critic": model,
        "algorithm": {
            "class_name": "PPO", "learning_rate": 1e-3, "num_learning_epochs": 4, "num_mini_batches": 4,
            "schedule": "fixed", "gamma": 0.97, "lam": 0.95, "entropy_coef": 1e-3, "value_loss_coef": 0.5,
            "max_grad_norm": 0.5, "rnd_cfg": None, "symmetry_cfg": None,
        },
    }  # fmt: skip


def train(env: gpusim.envs.VectorEnv, steps: int, seed: int = 1) -> gpusim.envs.MlpPolicy:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    runner = OnPolicyRunner(Adapter(env, seed), settings(), log_dir=None, device="cpu")
    runner.learn(steps // (ROLLOUT * env.num_envs))
    return gpusim.envs.MlpPolicy.from_torch(runner.get_inference_policy().mlp, env.task)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("id")
    parser.add_argument("--steps", type=int, default=600_000)
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--out", default="policy.npz")
    given = parser.parse_args()
    env = gymnasium.make_vec(given.id, num_envs=given.num_envs, autoreset_mode="same_step", arrays="torch").unwrapped
    policy = train(env, given.steps)
    print(f"success without exploration {policy.success_rate(env):.3f}")
    policy.save(given.out)
