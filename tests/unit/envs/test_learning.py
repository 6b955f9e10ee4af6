"""The examples of docs/examples/learning learn the lift. They need PyTorch and the libraries of the extra ``learn``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from gpusim.envs import MlpPolicy, VectorEnv
from gpusim.envs.registry import IDS

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "learning"
LIFT = IDS["gpusim/HydraulicLift-v0"]
NEEDED = {"sb3": "stable_baselines3", "skrl_ppo": "skrl", "rsl_rl_ppo": "rsl_rl"}
STEPS = 600_000


def example(name: str) -> ModuleType:
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


@pytest.mark.native
@pytest.mark.nightly
def test_ppo_learns_the_lift() -> None:
    ppo = example("ppo")
    env = VectorEnv(LIFT, 256, autoreset_mode="same_step", arrays="torch")
    agent, curve = ppo.train(env, ppo.Settings(seconds=900.0), report=False)
    assert curve[-1][1] <= STEPS and curve[-1][3] > curve[0][3] + 0.5
    assert MlpPolicy.from_torch(agent.actor, env.task).success_rate(env) == 1.0


@pytest.mark.native
@pytest.mark.nightly
@pytest.mark.parametrize("name", NEEDED)
def test_other_libraries_learn_the_lift(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(NEEDED[name])
    monkeypatch.chdir(tmp_path)
    module = example(name)
    kind = {"arrays": "torch"} if name == "rsl_rl_ppo" else {}
    env = VectorEnv(LIFT, 256, autoreset_mode="same_step", **kind)
    found = module.train(env, STEPS)
    policy = module.policy_of(found, env) if name == "sb3" else found
    policy.save(tmp_path / "policy.npz")
    assert MlpPolicy.load(tmp_path / "policy.npz").success_rate(env) > 0.95


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 150
