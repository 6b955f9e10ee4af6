"""Learned policies: neural networks that run without PyTorch. :class:`PolicySchedule` runs a policy in a scene."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim import validate
from gpusim.envs.task import Task, as_task
from gpusim.envs.wiring import Wiring
from gpusim.errors import ModelError, unknown_name
from gpusim.output_files import atomic_file, check_output_file
from gpusim.simulation import Simulation
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.envs.vector_env import VectorEnv
    from gpusim.viewer.operator import Operator

FORMAT = "gpusim policy 1"
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "elu": lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
}
"""Activation functions of hidden layers by name."""


class MlpPolicy:
    """A multilayer perceptron that returns the mean actions for observations.

    Args:
        layers: weights (outputs, inputs) and biases (outputs,) of each layer.
        activation: activation function between layers, "tanh", "relu", "elu" or "silu".
        task: the task that the policy controls, its class, or ``"module:Class"``. :meth:`save` stores the name of the
            class.
        mean, std: mean and standard deviation of the n observations (n,), by default 0 and 1.
        clip: bound for normalized observations, which are clipped to [-clip, clip]. Observations are clipped only if
            ``mean`` or ``std`` is given.

    Raises:
        ModelError: the sizes of the layers do not match.
        UnknownNameError: unknown activation.
    """

    def __init__(
        self,
        layers: Sequence[tuple[Any, Any]],
        activation: str,
        task: Task | type[Task] | str,
        mean: Any = None,
        std: Any = None,
        clip: float = 10.0,
    ) -> None:
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            raise unknown_name("activation", str(activation), ACTIVATIONS)
        pairs = isinstance(layers, list | tuple) and all(isinstance(x, list | tuple) and len(x) == 2 for x in layers)
        if not pairs:
            rule = f"layers = {validate.shown(layers)} is not a list of pairs"
            raise validate.fail("policy", rule, "give [(weights, biases), ...]")
        self.layers = [(validate.array("policy", w), validate.array("policy", b)) for w, b in layers]
        if not all(np.isfinite(numbers).all() for layer in self.layers for numbers in layer):
            raise validate.fail("policy", "a weight or bias is not finite", "train the policy again")
        sizes = [(w.shape, b.shape) for w, b in self.layers]
        fits = all(len(w) == 2 and b == w[:1] for w, b in sizes)
        if not sizes or not fits or any(a[0][0] != b[0][1] for a, b in zip(sizes, sizes[1:], strict=False)):
            raise ModelError(f"policy: layers of shapes {sizes} do not fit; give weights (outputs, inputs) and biases")
        self.activation, self.task = activation, task if isinstance(task, str) else _name_of(task)
        inputs = self.layers[0][0].shape[1]
        self.mean = np.zeros(inputs) if mean is None else self._checked("mean", mean).ravel()
        self.std = np.ones(inputs) if std is None else self._checked("std", std).ravel()
        if not (self.std > 0.0).all():
            raise validate.fail("policy", f"std = {self.std.tolist()} must be positive", "clip it to at least 1e-6")
        self.clip = np.inf if mean is None and std is None else validate.positive("policy", "clip", clip, infinite=True)

    def __call__(self, observation: Any) -> Array:
        """Return the actions (num_envs, actions) for observations (num_envs, n)."""
        x = np.clip((self._checked("observation", observation) - self.mean) / self.std, -self.clip, self.clip)
        for number, (weight, bias) in enumerate(self.layers):
            x = ACTIVATIONS[self.activation](x) if number else x
            x = x @ weight.T + bias
        return np.asarray(x)

    def _checked(self, name: str, value: Any) -> Array:
        """Convert ``value`` to an array (..., inputs), and check the number of inputs."""
        found, inputs = validate.array("policy", value), self.layers[0][0].shape[1]
        if found.shape[-1:] != (inputs,):
            rule = f"{name} has the shape {found.shape}, and the network has {inputs} inputs"
            raise validate.fail("policy", rule, "give the observations of its task")
        return found

    def success_rate(self, env: VectorEnv, seed: int = 10_000) -> float:
        """Return the success rate of the first episode in each world of ``env``.

        Args:
            env: environment of the policy's task, in mode "next_step" or "same_step".
            seed: seed of the episodes.

        Raises:
            ModelError: the task does not define success.
        """
        if type(env.task).success is Task.success:
            raise ModelError(f"policy: task '{env.task.name}' has no success; define success(self, s, goal)")
        observation, _ = env.reset(seed=seed)
        waiting, succeeded = np.ones(env.num_envs, bool), np.zeros(env.num_envs, bool)
        while waiting.any():
            observation, *_, info = env.step(self(observation))
            infos = info.get("final_info", info)
            if "is_success" in infos:
                succeeded |= waiting & infos["_is_success"] & infos["is_success"]
                waiting &= ~infos["_is_success"]
        return float(succeeded.mean())

    @classmethod
    def from_torch(cls, network: Any, task: Task | type[Task] | str, **options: Any) -> MlpPolicy:
        """Convert a ``torch.nn.Sequential`` of linear layers and activations to a policy.

        Args:
            network: iterable of the layers (modules), from input to output.
            task: see :class:`MlpPolicy`.
            options: optional arguments ``mean``, ``std`` and ``clip`` of :class:`MlpPolicy`.

        Raises:
            ModelError: the sizes of the layers do not match, the activation functions differ, or an activation is not
                between two linear layers.
        """
        layers, kinds, linear = [], set(), []
        for module in network:
            linear.append(hasattr(module, "weight") and hasattr(module, "bias"))
            if linear[-1]:
                weight = module.weight.detach().cpu().numpy()
                bias = np.zeros(len(weight)) if module.bias is None else module.bias.detach().cpu().numpy()
                layers.append((weight, bias))
            else:
                kinds.add(type(module).__name__.lower())
        if len(kinds) > 1:
            raise ModelError(f"policy: the network has the layers {', '.join(sorted(kinds))}; give one activation")
        if linear != [number % 2 == 0 for number in range(2 * len(layers) - 1)]:
            raise ModelError("policy: linear layers and activations must alternate; begin and end with a linear layer")
        return cls(layers, kinds.pop() if kinds else "tanh", task, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to an .npz file. A failed write does not damage an existing file."""
        target = check_output_file(path, (".npz",), "policy")
        header = {"format": FORMAT, "activation": self.activation, "task": self.task, "layers": len(self.layers)}
        arrays = {f"{kind}{k}": x for k, pair in enumerate(self.layers) for kind, x in zip("wb", pair, strict=True)}
        packed = io.BytesIO()
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        np.savez(packed, header=text, mean=self.mean, std=self.std, clip=np.array(self.clip), **arrays)  # type: ignore[arg-type]
        with atomic_file(target) as stream:
            stream.write(packed.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MlpPolicy:
        """Read a file that :meth:`save` wrote.

        Raises:
            ModelError: the file is missing, or does not contain a policy.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(file["header"].tobytes())
                if header["format"] != FORMAT:
                    raise KeyError(header["format"])
                layers = [(file[f"w{k}"], file[f"b{k}"]) for k in range(header["layers"])]
                normal = {name: file[name] for name in ("mean", "std", "clip")}
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            rule = getattr(error, "strerror", None) or "no policy"
            raise ModelError(f"policy {str(path)!r} cannot be read ({rule}); give a file of MlpPolicy.save") from None
        return cls(layers, header["activation"], header["task"], **normal)


def _name_of(task: Task | type[Task]) -> str:
    """Return the import name ``module:Class`` of a task's class."""
    kind = task if isinstance(task, type) else type(task)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    module = Path(file).stem if kind.__module__ == "__main__" and file else kind.__module__
    return f"{module}:{kind.__name__}"


class PolicySchedule:
    """Schedule in which a policy writes the commands of a scene.

    The schedule draws new goals every ``task.episode`` seconds. The schedule does not randomize parameters or the
    initial state. Observations have no noise.

    Args:
        policy: policy whose task uses the scene that the schedule drives.
        seed: seed of the goals.
    """

    def __init__(self, policy: MlpPolicy, seed: int = 0) -> None:
        self.policy, self.task, self._seed = policy, as_task(policy.task), seed
        self._wiring: Wiring | None = None
        self._operator: Operator | None = None
        self._next_step_time = self._episode_end = self._last_time = 0.0

    def connect(self, operator: Operator) -> None:
        """Let an operator set goals with inputs such as "goal.height"."""
        self._operator = operator
        for name, distribution in self.task.goals.items():
            ends = getattr(distribution, "low", None), getattr(distribution, "high", None)
            if f"goal.{name}" in operator.inputs or any(end is None or np.ndim(end) for end in ends):
                continue
            low, high = (float(end) for end in ends if end is not None)
            middle = 0.5 * (low + high)
            operator.add_input(f"goal.{name}", low, high, initial=middle, safe=middle, springs=False, doc="goal")

    def __call__(self, sim: Simulation, t: float) -> None:
        """Write the commands if a control step begins at the time ``t`` (s)."""
        if self._wiring is None or self._wiring.sim is not sim or t < self._last_time:
            self._wiring = Wiring(self.task, sim)
            if self._wiring.observations != self.policy.layers[0][0].shape[1]:
                sizes = f"{self.policy.layers[0][0].shape[1]} numbers, and the task gives {self._wiring.observations}"
                raise ModelError(f"policy of task '{self.task.name}' takes {sizes}; train it with this task")
            self._wiring.episodes.set_seeds(self._seed, np.arange(sim.num_worlds))
            self._next_step_time = self._episode_end = t
        self._last_time, half = t, 0.5 * sim.step_size
        if t < self._next_step_time - half:
            return
        if t >= self._episode_end - half:
            self._wiring.episodes.begin(np.arange(sim.num_worlds))
            self._episode_end = t + self.task.episode
        self._next_step_time += self.task.decimation * (self.task.dt or sim.config.dt)
        self._next_step_time = max(self._next_step_time, t)
        self._apply_operator_goals(self._wiring)
        self._wiring.act(self.policy(self._wiring.observation(self._wiring.read(), noise=False)))

    def _apply_operator_goals(self, wiring: Wiring) -> None:
        """Replace the goals by the values that the operator sets."""
        operator = self._operator
        if operator is None:
            return
        for name, goal in wiring.episodes.goals.items():
            if f"goal.{name}" in operator.inputs and operator.source(f"goal.{name}"):
                goal[:] = operator.value(f"goal.{name}")
