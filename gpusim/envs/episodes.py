"""Episodes of all worlds: seeds, counters, and random values of each episode."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import as_array
from gpusim.control.noise import normal_number, uniform_number
from gpusim.envs.distributions import Distribution, Scale
from gpusim.envs.task import Goals, Task
from gpusim.simulation import Simulation
from gpusim.typing import Array
from gpusim.validate import matching

SEEDS = 2**53
"""Number of possible seeds. Seeds are from 0 to ``SEEDS - 1``."""
_MAX_STEPS = 2**24
"""Maximum number of control steps per episode."""
_NOISE = 1 << 20
"""Index of the first random stream that noise uses. Streams with lower indices are for the other random values."""


class Draw:
    """Random values from one distribution, with new values for each episode.

    Args:
        name: name of the signal or goal.
        distribution: distribution of the values.
        nominal: value in the model, a scalar () or a vector (k,).
    """

    def __init__(self, name: str, distribution: Distribution, nominal: Array) -> None:
        self.name, self.distribution, self.nominal = name, distribution, np.ravel(nominal).astype(np.float64)
        self.shape = np.shape(nominal)
        self.count = 1 if isinstance(distribution, Scale) else self.nominal.size

    def values(self, u: Array) -> Array:
        """Return the values (n, *shape) of n worlds for uniform numbers ``u`` (n, count)."""
        found, shape = self.distribution(u, self.nominal), (len(u), self.nominal.size)
        if type(found) is not np.ndarray or found.shape != shape or found.dtype != np.float64:
            element = f"distribution of {self.name!r}"
            found = validate.array(element, found)
            try:
                found = np.broadcast_to(found, shape)
            except ValueError:
                rule = f"values of shape {found.shape} do not fit {shape}"
                raise validate.fail(element, rule, "give (episodes, components)") from None
        return found.reshape(len(u), *self.shape)


class Episodes:
    """Seeds, counters and random values of all worlds.

    Attributes:
        seed: seed of each world (num_envs,).
        stream: index of each world's random stream (num_envs,). With one seed for all worlds, the stream is the world's
            index. With a separate seed for each world, the stream is 0.
        count: number of episodes that have begun in each world (num_envs,).
        elapsed: control steps since the start of the current episode (num_envs,).
        goals: goal name -> random goals of the current episodes (num_envs, ...).
        delay: control steps between an action and its effect (num_envs,).
    """

    ARRAYS = ("seed", "stream", "count", "elapsed", "delay")

    def __init__(self, task: Task, sim: Simulation) -> None:
        worlds = sim.num_worlds
        self.seed, self.stream = np.zeros(worlds, np.int64), np.arange(worlds)
        self.count, self.elapsed, self.delay = (np.zeros(worlds, np.int64) for _ in range(3))
        self._goals = [Draw(name, d, _goal_shape(d)) for name, d in task.goals.items()]
        randomize, start = _expanded(task.randomize, sim), _expanded(task.start, sim)
        written = {**randomize, **start}
        if len(written) < len(randomize) + len(start):
            twice = sorted(set(randomize) & set(start))
            raise validate.fail(f"task '{task.name}'", f"{twice[0]!r} is in randomize and start", "remove one")
        self._writes = [Draw(name, d, sim.read(name, numpy=True)[0]) for name, d in written.items()]
        self._delays = task.delays
        self._streams = np.arange(1 + sum(draw.count for draw in (*self._goals, *self._writes)))
        self.goals = Goals({draw.name: np.zeros((worlds, *draw.shape)) for draw in self._goals})

    def set_seeds(self, seed: int | Sequence[int], worlds: Array) -> None:
        """Restart the random numbers of the given worlds.

        Args:
            seed: one seed for all worlds, or a list with one seed for each world. With one seed, all worlds get
                different random numbers. With a list, worlds with equal seeds get equal random numbers.
            worlds: indices, (n,).

        Raises:
            ModelError: a seed is not an integer from 0 to 2^53 - 1, or the number of seeds is wrong.
        """
        given = as_array(seed)
        if given.dtype.kind not in "iu" or given.shape not in ((), self.seed.shape):
            worlds_text = f"nor one integer for each of {self.seed.size} worlds"
            rule = f"seed = {validate.shown(seed)} is neither an integer {worlds_text}"
            raise validate.fail("reset", rule, "give a number from 0, or a list")
        if np.any(given < 0) or np.any(given >= SEEDS):
            raise validate.fail("reset", f"seed = {seed!r} is not from 0 to 2^53", "give a number from 0")
        self.seed[worlds] = given if given.ndim == 0 else given[worlds]
        self.stream[worlds] = worlds if given.ndim == 0 else 0
        self.count[worlds] = 0

    def begin(self, worlds: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        """Begin an episode in the given ``worlds`` (n,), and return the random values.

        The first dict contains the signal values to write to the simulation. The second dict contains the goals.
        """
        key = (self.seed[worlds, None], self.stream[worlds, None], self.count[worlds, None])
        u = uniform_number(*key, self._streams)
        self.count[worlds] += 1
        self.elapsed[worlds] = 0
        shortest, longest = self._delays
        self.delay[worlds] = shortest + (u[:, 0] * (longest - shortest + 1)).astype(np.int64)
        column, found = 1, []
        for draw in (*self._goals, *self._writes):
            found.append(draw.values(u[:, column : column + draw.count]))
            column += draw.count
        goals = {draw.name: values for draw, values in zip(self._goals, found, strict=False)}
        for name, values in goals.items():
            self.goals[name][worlds] = values
        names = [draw.name for draw in self._writes]
        return dict(zip(names, found[len(self._goals) :], strict=True)), goals

    def noise(self, columns: Array) -> Array:
        """Return normal random numbers (num_envs, n) for this control step, one for each signal in ``columns`` (n,)."""
        sample = self.count * _MAX_STEPS + self.elapsed
        return normal_number(self.seed[:, None], self.stream[:, None], sample[:, None], _NOISE + columns)

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name, for a checkpoint."""
        return {name: getattr(self, name) for name in self.ARRAYS} | {f"goal/{k}": v for k, v in self.goals.items()}


def _expanded(drawn: Mapping[str, Distribution], sim: Simulation) -> dict[str, Distribution]:
    """Replace wildcards by the matching signals, and return a dict: signal -> distribution."""
    signals = sim.runtime.signal_table().by_name
    return {name: one for key, one in drawn.items() for name in matching("signal", key, signals)}


def _goal_shape(distribution: Any) -> Array:
    """Return zeros with the shape of a goal."""
    return np.zeros(np.broadcast_shapes(*(np.shape(getattr(distribution, end, 0.0)) for end in ("low", "high"))))


class Delayed:
    """Queue of actions that take effect after a delay of some control steps.

    Args:
        neutral: actions (actions,) that apply before the first delayed action takes effect.
        delay: delay of each world (num_envs,), control steps. The queue keeps a reference to the array ``delay``.
        max_delay: maximum delay (control steps).
    """

    def __init__(self, neutral: Array, delay: Array, max_delay: int) -> None:
        self._neutral, self._delay, self._worlds = neutral, delay, np.arange(delay.size)
        self.history = np.repeat(np.repeat(neutral[None, None], max_delay + 1, axis=0), delay.size, axis=1)
        """The last actions, newest first, (max_delay + 1, num_envs, actions)."""

    def reset(self, worlds: Array) -> None:
        """Discard the stored actions of the given worlds."""
        self.history[:, worlds] = self._neutral

    def push(self, action: Any) -> Any:
        """Add the actions of this control step, and return the actions (num_envs, actions) that take effect now."""
        if len(self.history) == 1:
            self.history[0] = action
            return action
        self.history[1:] = self.history[:-1].copy()
        self.history[0] = action
        return self.history[self._delay, self._worlds]

    @property
    def last(self) -> Array:
        """The latest actions (num_envs, actions)."""
        return self.history[0]


def noise_columns(task: Task, slices: Mapping[str, slice]) -> tuple[Array, Array]:
    """Return the indices of the signal columns with noise, and the standard deviations of the noise, (n,) each.

    Raises:
        UnknownNameError: a signal with noise is not in ``task.signals``.
        ModelError: a standard deviation is negative.
    """
    deviations: dict[int, float] = {}
    for name, deviation in task.noise.items():
        size = validate.not_negative(f"task '{task.name}'", f"noise of {name!r}", deviation)
        for one in matching("signal of the task with noise", name, slices):
            deviations |= dict.fromkeys(range(slices[one].start, slices[one].stop), size)
    return np.array(list(deviations), np.int64), np.array(list(deviations.values()))


def control_steps(seconds: float, period: float) -> int:
    """Return the number of control steps in an episode (rounded up, at least 1)."""
    return max(1, math.ceil(seconds / period - 1e-9))
