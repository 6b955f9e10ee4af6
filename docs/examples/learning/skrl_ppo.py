"""Train a policy with skrl's PPO on a vector environment of gpusim, without an adapter.

python skrl_ppo.py gpusim/HydraulicLift-v0 --steps 600000 --out lift.npz
"""

from __future__ import annotations

import argparse
from typing import Any

import gpusim.envs  # isort: skip (before torch)
import gymnasium
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from torch import nn

ROLLOUT = 32


def network(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    layers = [nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)]
    for layer, scale in zip(layers[::2], (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


class Actor(GaussianMixin, Model):
    def __init__(self, env: Any) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device=env.device)
        GaussianMixin.__init__(self)
        self.network = network(self.num_observations, self.num_actions, 0.01)
        self.log_std = nn.Parameter(-0.5 * torch.ones(self.num_actions))

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[torch.Tensor, dict[str, Any]]:
        return self.network(inputs["observations"]), {"log_std": self.log_std}


class Critic(DeterministicMixin, Model):
    def __init__(self, env: Any) -> None:
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device=env.device)
        DeterministicMixin.__init__(self)
        self.network = network(self.num_observations, 1, 1.0)

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[torch.Tensor, dict[str, Any]]:
        return self.network(inputs["observations"]), {}


def train(env: gpusim.envs.VectorEnv, steps: int, seed: int = 1) -> gpusim.envs.MlpPolicy:
    torch.set_num_threads(1)
    set_seed(seed)
    wrapped = wrap_env(env, wrapper="gymnasium")
    actor, critic = Actor(wrapped), Critic(wrapped)
    cfg = PPO_CFG(
        rollouts=ROLLOUT, learning_epochs=4, mini_batches=4, discount_factor=0.97, learning_rate=1e-3,
        entropy_loss_scale=1e-3, value_loss_scale=0.5, time_limit_bootstrap=True,
    )  # fmt: skip
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    agent = PPO(
        models={"policy": actor, "value": critic}, memory=RandomMemory(memory_size=ROLLOUT, num_envs=env.num_envs),
        observation_space=wrapped.observation_space, action_space=wrapped.action_space, device=wrapped.device, cfg=cfg,
    )  # fmt: skip
    timesteps = steps // env.num_envs
    SequentialTrainer(
        env=wrapped, agents=agent, cfg={"timesteps": timesteps, "headless": True, "close_environment_at_exit": False}
    ).train()
    return gpusim.envs.MlpPolicy.from_torch(actor.network, env.task)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("id")
    parser.add_argument("--steps", type=int, default=600_000)
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--out", default="policy.npz")
    given = parser.parse_args()
    env = gymnasium.make_vec(given.id, num_envs=given.num_envs, autoreset_mode="same_step").unwrapped
    policy = train(env, given.steps)
    print(f"success without exploration {policy.success_rate(env):.3f}")
    policy.save(given.out)
