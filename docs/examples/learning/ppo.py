"""Train a policy with PPO in PyTorch, on the CPU. The code follows CleanRL's ppo_continuous_action.

python ppo.py gpusim/HydraulicLift-v0 --seconds 60 --out lift.npz
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import gpusim.envs  # isort: skip (before torch)
import gymnasium
import numpy as np
import torch
from torch import nn


@dataclass
class Settings:
    """Settings of the training."""

    seconds: float = 60.0
    num_envs: int = 256
    steps: int = 32
    epochs: int = 4
    minibatches: int = 4
    gamma: float = 0.97
    gae: float = 0.95
    learning_rate: float = 1e-3
    entropy: float = 1e-3
    width: int = 64
    seed: int = 1
    target: float = 0.99
    """Success rate of the last 512 episodes at which the training ends."""


def network(inputs: int, outputs: int, width: int, gain: float) -> nn.Sequential:
    layers = [nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)]
    for layer, scale in zip(layers[::2], (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


class Agent(nn.Module):
    def __init__(self, observations: int, actions: int, width: int) -> None:
        super().__init__()
        self.actor, self.critic = network(observations, actions, width, 0.01), network(observations, 1, width, 1.0)
        self.log_std = nn.Parameter(-0.5 * torch.ones(actions))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return self.critic(x)[:, 0]

    def act(self, x: torch.Tensor, action: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        normal = torch.distributions.Normal(self.actor(x), self.log_std.exp())
        action = normal.sample() if action is None else action
        return action, normal.log_prob(action).sum(1), normal.entropy().sum(1)


def train(env: gpusim.envs.VectorEnv, s: Settings, report: bool = True) -> tuple[Agent, list[tuple[float, ...]]]:
    """Train an agent. Return it, and rows of time (s), control steps, mean reward and recent success rate."""
    torch.manual_seed(s.seed)
    torch.set_num_threads(1)
    size, actions = env.single_observation_space.shape[0], env.single_action_space.shape[0]
    agent = Agent(size, actions, s.width)
    optimizer = torch.optim.Adam(agent.parameters(), lr=s.learning_rate, eps=1e-5)
    shape = (s.steps, env.num_envs)
    X, A = torch.zeros(*shape, size), torch.zeros(*shape, actions)
    L, R, D, V, F = (torch.zeros(shape) for _ in range(5))  # log probability, reward, done, value, value of final_obs
    ends: list[bool] = []
    curve: list[tuple[float, ...]] = []
    x, start, total = env.reset(seed=s.seed, options={"stagger": 16})[0], time.monotonic(), 0
    while (spent := time.monotonic() - start) < s.seconds:
        for t in range(s.steps):
            with torch.no_grad():
                action, L[t], _ = agent.act(x)
                V[t] = agent.value(x)
            X[t], A[t] = x, action
            x, R[t], terminated, truncated, info = env.step(action)
            D[t], F[t] = (terminated | truncated).float(), 0.0
            if info:
                with torch.no_grad():  # a truncated episode would have gone on
                    F[t] = agent.value(info["final_obs"]) * truncated
                found = info["final_info"]
                ends = [*ends, *found.get("is_success", np.zeros(0, bool))[found.get("_is_success", [])].tolist()][
                    -512:
                ]
        total += s.steps * env.num_envs
        learn(agent, optimizer, s, (X, A, L, R, D, V, F), x)
        rate = float(np.mean(ends)) if ends else 0.0
        curve.append((spent, total, float(R.mean()), rate))
        if report and len(curve) % 10 == 0:
            times = f"{spent:5.0f} s ({time.process_time():5.0f} s of CPU)"
            print(f"{times}  {total:9d} steps  reward {R.mean():7.3f}  success {rate:.3f}", flush=True)
        if len(ends) == 512 and rate >= s.target:
            break
    return agent, curve


def learn(
    agent: Agent, optimizer: torch.optim.Adam, s: Settings, data: tuple[torch.Tensor, ...], x: torch.Tensor
) -> None:
    X, A, L, R, D, V, F = data
    with torch.no_grad():
        following, advantage, running = agent.value(x), torch.zeros_like(R), torch.zeros_like(R[0])
        for t in reversed(range(len(R))):
            following = torch.where(D[t] > 0, F[t], following)
            running = R[t] + s.gamma * following - V[t] + s.gamma * s.gae * (1.0 - D[t]) * running
            advantage[t], following = running, V[t]
    X, A, L, G, Q = X.flatten(0, 1), A.flatten(0, 1), L.flatten(), advantage.flatten(), (advantage + V).flatten()
    for _ in range(s.epochs):
        for part in torch.randperm(len(X)).chunk(s.minibatches):
            _, log_prob, entropy = agent.act(X[part], A[part])
            ratio, g = (log_prob - L[part]).exp(), G[part]
            g = (g - g.mean()) / (g.std() + 1e-8)
            policy = -torch.min(ratio * g, ratio.clamp(0.8, 1.2) * g).mean()
            loss = policy + 0.5 * (agent.value(X[part]) - Q[part]).pow(2).mean() - s.entropy * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("id")
    parser.add_argument("--out", default="")
    for name, value in vars(Settings()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    id, out = given.pop("id"), given.pop("out")
    s = Settings(**given)
    env = gymnasium.make_vec(id, num_envs=s.num_envs, autoreset_mode="same_step", arrays="torch").unwrapped
    agent, curve = train(env, s)
    policy = gpusim.envs.MlpPolicy.from_torch(agent.actor, env.task)
    print(f"{curve[-1][0]:.0f} s, {curve[-1][1]} steps: success without exploration {policy.success_rate(env):.3f}")
    if out:
        policy.save(out)
