from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpusim
from gpusim.envs import MlpPolicy, PolicySchedule, VectorEnv
from gpusim.envs.registry import IDS
from gpusim.errors import ModelError, UnknownNameError
from gpusim.viewer.operator import Operator
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.envs.tasks import Cart

GAINS = np.array([[-0.3, -0.25, 0.3, 0.0]])
"""Gains of position, speed, goal and last action, which bring the cart to its goal."""
LIFT = np.array([[12.0, -1.0, 0.0, 0.0, 0.0, 0.0]])
"""A proportional control of the lift."""


class Quiet(Cart):
    randomize, start, episode = {}, {}, 4.0


def cart_policy() -> MlpPolicy:
    return MlpPolicy([(GAINS, [0.0])], "tanh", Quiet)


def lift_policy() -> MlpPolicy:
    return MlpPolicy([(LIFT, [0.0])], "tanh", IDS["gpusim/HydraulicLift-v0"])


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "silu"])
def test_a_network_of_torch_gives_the_same_actions(activation: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    kind = {"tanh": "Tanh", "relu": "ReLU", "elu": "ELU", "silu": "SiLU"}[activation]
    made = getattr(torch.nn, kind)
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), made(), torch.nn.Linear(8, 5), made(), torch.nn.Linear(5, 2))
    mean, std = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 2.0, 0.5, 3.0])
    MlpPolicy.from_torch(network, Cart, mean=mean, std=std, clip=2.0).save(tmp_path / "p.npz")
    policy = MlpPolicy.load(tmp_path / "p.npz")
    x = np.random.default_rng(0).normal(size=(50, 4)) * 3.0
    with torch.no_grad():
        expected = network(torch.from_numpy(np.clip((x - mean) / std, -2.0, 2.0)).float()).numpy()
    assert policy(x) == pytest.approx(expected, abs=1e-5) and policy.activation == activation
    assert policy.task == "tests.unit.envs.tasks:Cart"


def test_layers_of_torch_that_do_not_alternate() -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn
    assert MlpPolicy.from_torch(nn.Sequential(nn.Linear(4, 1, bias=False)), Cart).layers[0][1].tolist() == [0.0]
    for layers in ([nn.Linear(4, 1), nn.Tanh()], [nn.Linear(4, 4), nn.Linear(4, 1)], [nn.Tanh(), nn.Linear(4, 1)]):
        with pytest.raises(ModelError, match=naming("policy alternate")):
            MlpPolicy.from_torch(nn.Sequential(*layers), Cart)


@pytest.mark.nightly
def test_a_policy_reaches_the_goals_in_the_environment() -> None:
    for mode in ("next_step", "same_step"):
        env = VectorEnv(Quiet(), 20, backend="numpy", autoreset_mode=mode)
        assert cart_policy().success_rate(env) == 1.0
        assert MlpPolicy([(0.0 * GAINS, [0.0])], "tanh", Quiet).success_rate(env) < 0.3


def test_a_policy_as_schedule_gives_the_motion_of_the_environment() -> None:
    env = VectorEnv(Quiet(), 3, backend=FASTEST)
    policy = cart_policy()
    observation, _ = env.reset(seed=6)
    scene = env.task.make_scene()
    config = gpusim.SolverConfig(dt=env.sim.config.dt)
    sim = gpusim.Simulation(scene.builder.finalize(), 3, backend=FASTEST, config=config)
    schedule = PolicySchedule(policy, seed=6)
    for k in range(30):
        observation, *_ = env.step(policy(observation))
        for _ in range(env.task.decimation):
            schedule(sim, sim.time)
            sim.step()
        assert np.array_equal(sim.read("joint.rail.position"), env.sim.read("joint.rail.position")), k


def test_an_operator_sets_the_goal() -> None:
    scene = Quiet().make_scene()
    sim = gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=0.01))
    scene.schedule = schedule = PolicySchedule(cart_policy())
    operator = Operator(sim, scene)
    schedule.connect(operator)
    schedule.connect(operator)
    assert operator.inputs["goal.place"].lower == -1.0 and operator.inputs["goal.place"].upper == 1.0
    for goal in (0.6, -0.4):
        operator.set("goal.place", goal)
        for _ in range(400):
            operator.before_steps(sim.time)
            sim.step()
        assert sim.read("joint.rail.position")[0] == pytest.approx(goal, abs=0.02)
    operator.set("push", 20.0)
    operator.before_steps(sim.time)
    assert sim.control["push"][0] == 20.0


def test_a_reset_begins_again() -> None:
    scene = Quiet().make_scene()
    sim = gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=0.01))
    schedule, ends = PolicySchedule(cart_policy(), seed=3), []
    for _ in range(2):
        sim.reset()
        for _ in range(100):
            schedule(sim, sim.time)
            sim.step()
        ends.append(float(sim.read("joint.rail.position")[0]))
    assert ends[0] == ends[1] != 0.0


def test_bad_policies(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=naming("activation 'sine'")):
        MlpPolicy([(GAINS, [0.0])], "sine", Cart)
    with pytest.raises(ModelError, match=naming("layers")):
        MlpPolicy([(GAINS, [0.0]), (GAINS, [0.0])], "tanh", Cart)
    for options, words in (({"mean": np.zeros(3)}, "mean (3,) 4"), ({"std": np.zeros(4)}, "std positive")):
        with pytest.raises(ModelError, match=naming(words)):
            MlpPolicy([(GAINS, [0.0])], "tanh", Cart, **options)
    with pytest.raises(ModelError, match=naming("observation (2, 3) 4")):
        MlpPolicy([(GAINS, [0.0])], "tanh", Cart)(np.zeros((2, 3)))
    (tmp_path / "text.npz").write_text("no policy")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    for name in ("none.npz", "text.npz", "other.npz"):
        with pytest.raises(ModelError, match=naming(f"{name}' MlpPolicy.save")):
            MlpPolicy.load(str(name) if name == "none.npz" else tmp_path / name)
    with pytest.raises(ModelError, match=naming("policy")):
        cart_policy().save(tmp_path / "policy.txt")
    narrow = MlpPolicy([(GAINS[:, :3], [0.0])], "tanh", Quiet)
    scene = Quiet().make_scene()
    sim = gpusim.Simulation(scene.builder.finalize(), backend="numpy")
    with pytest.raises(ModelError, match=naming("'Quiet' 3 4")):
        PolicySchedule(narrow)(sim, 0.0)


@pytest.mark.messages_vary
def test_commands_take_a_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from gpusim.cli.main import app

    monkeypatch.chdir(tmp_path)
    lift_policy().save("lift.npz")
    run = CliRunner().invoke
    options = ["--backend", FASTEST, "--duration", "2", "--signals", "joint.rail.position", "--out", "run.npz"]
    done = run(app, ["run", "hydraulic_lift", "--policy", "lift.npz", "--seed", "1", *options])
    assert done.exit_code == 0, done.output
    found = np.load("run.npz")
    env = VectorEnv(IDS["gpusim/HydraulicLift-v0"], 1, backend="numpy")
    env.reset(seed=1)
    assert len(found["time"]) == 401
    assert found["joint.rail.position"][-1] == pytest.approx(env._wiring.episodes.goals["height"][0], abs=0.02)
    for arguments, words in (
        (["run", "chain", "--policy", "lift.npz"], "chain hydraulic_lift"),
        (["run", "hydraulic_lift", "--policy", "missing.npz"], "missing.npz"),
        (["run", "hydraulic_lift", "--policy", "lift.npz", "--resume", "run.npz"], "--resume"),
    ):
        refused = run(app, arguments)
        assert refused.exit_code != 0
        text = refused.output + str(refused.exception)
        assert all(word in text for word in words.split()), text


@pytest.mark.messages_vary
def test_commands_take_a_policy_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training program defines the task and the model, and saves the policy."""
    from typer.testing import CliRunner

    from gpusim.cli.main import app

    monkeypatch.chdir(tmp_path)
    Path("own_training.py").write_text(
        "import numpy as np\n"
        "from gpusim.envs import MlpPolicy\n"
        "from tests.unit.envs.test_policies import GAINS, Quiet\n\n\n"
        "class Own(Quiet):\n"
        "    pass\n\n\n"
        "def build():\n"
        "    return Own().make_scene()\n\n\n"
        "if __name__ == '__main__':\n"
        "    MlpPolicy([(GAINS, [0.0])], 'tanh', Own).save('own.npz')\n"
    )
    path = [str(Path(gpusim.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    subprocess.run([sys.executable, "own_training.py"], check=True, env=environment)
    assert MlpPolicy.load("own.npz").task == "own_training:Own"
    options = ["--backend", FASTEST, "--duration", "4", "--signals", "joint.rail.position", "--out", "run.npz"]
    done = CliRunner().invoke(app, ["run", "own_training.py", "--policy", "own.npz", *options])
    assert done.exit_code == 0, done.output
    env = VectorEnv(Quiet, 1, backend="numpy")
    env.reset(seed=0)
    place = env._wiring.episodes.goals["place"][0]
    assert np.load("run.npz")["joint.rail.position"][-1] == pytest.approx(place, abs=0.02)
