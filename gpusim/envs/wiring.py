"""Connection between a task and a simulation: signals, noisy observations, goals, and delayed actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.envs.episodes import Delayed, Episodes, noise_columns
from gpusim.envs.task import Signals, Task
from gpusim.simulation import Simulation
from gpusim.typing import Array


class Wiring:
    """Connection of a task to all worlds of a simulation.

    Args:
        task: the task.
        sim: a simulation of the task's scene.

    Attributes:
        episodes: seeds, counters and goals.
        delayed: queue of the latest actions and their delays.
        actions: number of actions.
        observations: number of values in an observation.

    Raises:
        ModelError: an attribute of the task is invalid.
        UnknownNameError: a signal or command does not exist.
    """

    def __init__(self, task: Task, sim: Simulation) -> None:
        self.task, self.sim = task, sim
        self._observed = sim.observe(task.signals)
        self._noisy, self._deviations = noise_columns(task, self._observed.slices)
        ranges = {name: task.actions[key] for key in reversed(list(task.actions)) for name in sim.command(key).names}
        self._command = sim.command(list(task.actions))
        ends = np.array([ranges[name] for name in self._command.names], np.float64)
        self._center, self._half, self.actions = ends.mean(axis=1), 0.5 * (ends[:, 1] - ends[:, 0]), len(ends)
        self.episodes = Episodes(task, sim)
        neutral = np.clip((self._command.array[0] - self._center) / self._half, -1.0, 1.0)
        self.delayed = Delayed(neutral, self.episodes.delay, task.delays[1])
        self._signals = Signals(on_host(self._observed.read()), self._observed.slices)
        self.observations = 0
        self.observations = self.observation(self.read()).shape[1]

    def _check_finite(self, finite: Array) -> None:
        """Raise ModelError if an observation of a running world is not finite. ``finite`` (num_envs, n) is a mask."""
        bad = self.sim.health() & ~finite.all(axis=1)
        if bad.any():
            names = [name for name in self._observed.slices if not np.isfinite(self._signals[name]).all()]
            of = f"; these signals are not finite: {', '.join(names)}" if names else ""
            which = f"observation of world {int(np.argmax(bad))}" if self.observations else "first observation"
            fix = "name other signals, or return finite numbers from observation()"
            raise validate.fail(f"task '{self.task.name}'", f"its {which} is not finite{of}", fix)

    def read(self) -> Signals:
        """Read the signals at the current time."""
        array = on_host(self._observed.read())
        if array is not self._signals.array:
            self._signals = Signals(array, self._observed.slices)
        return self._signals

    def observation(self, s: Signals, noise: bool = True) -> Array:
        """Return the observations as a new float32 array (num_envs, n). Infinities and NaN of failed worlds become 0.

        Raises:
            ModelError: the task's observation is not finite, or its shape differs from the first observation.
        """
        if noise and self._noisy.size:
            array = s.array.copy()
            array[:, self._noisy] += self._deviations * self.episodes.noise(self._noisy)
            s = Signals(array, s.slices)
        given = self.task.observation(s, self.episodes.goals, self.delayed.last)
        try:
            found = np.array(given, np.float32)
        except (TypeError, ValueError):  # includes ragged lists
            rule = f"observation is {given!r:.80}"
            raise validate.fail(f"task '{self.task.name}'", rule, "return an array (num_envs, n)") from None
        if found.ndim != 2 or found.shape != (self.sim.num_worlds, self.observations or found.shape[1]):
            rule = f"observation has the shape {found.shape} for {self.sim.num_worlds} worlds"
            fix = f"return (num_envs, {self.observations or 'n'}) each time"
            raise validate.fail(f"task '{self.task.name}'", rule, fix)
        finite = np.isfinite(found)
        if not finite.all():
            self._check_finite(finite)
            found[~finite] = 0.0
        return found

    def act(self, actions: Any) -> None:
        """Clip the actions (num_envs, actions) to the range -1 to 1, and write the commands.

        Raises:
            ModelError: the actions have the wrong shape, or are not finite.
        """
        array = actions.detach().cpu().double().numpy() if hasattr(actions, "detach") else on_host(actions)
        given, shape = validate.array("actions", array), (self.sim.num_worlds, self.actions)
        if given.shape != shape:
            raise validate.fail("actions", f"have the shape {given.shape}", f"give {shape}")
        if not np.isfinite(given).all():  # check the actions before the queue of delayed actions stores them
            world = int(np.argmin(np.isfinite(given).all(axis=1)))
            raise validate.fail("actions", f"of world {world} are {given[world].tolist()}", "give finite numbers")
        np.minimum(np.maximum(given, -1.0, out=given), 1.0, out=given)
        acting = self.delayed.push(given)
        self._command.write(self._center + self._half * acting)

    def rewards_and_ends(self, s: Signals) -> tuple[Array, Array]:
        """Return the rewards and a mask of the terminated worlds, (num_envs,) each.

        Infinite or NaN rewards of failed worlds become 0.

        Raises:
            ModelError: the task returned a wrong shape, or an infinite or NaN reward for a world that has not failed.
        """
        reward = self._checked_result("reward", self.task.reward(s, self.episodes.goals, self.delayed.last))
        failed = ~self.sim.health()
        finite = np.isfinite(reward)
        if not finite.all():
            if not np.all(finite | failed):
                world = int(np.argmin(finite | failed))
                rule = f"reward is {reward[world]} in world {world}"
                raise validate.fail(f"task '{self.task.name}'", rule, "return finite rewards")
            reward[~finite] = 0.0
        ended = self.task.terminated(s, self.episodes.goals)
        return reward, failed if ended is None else failed | self._checked_result("terminated", ended, bool)

    def success(self, s: Signals) -> Array | None:
        """Return a mask (num_envs,) of the worlds that reach their goals, or None if success is undefined."""
        reached = self.task.success(s, self.episodes.goals)
        return None if reached is None else self._checked_result("success", reached, bool)

    def _checked_result(self, name: str, value: Any, kind: type = float) -> Array:
        """Convert the return value of a task's function to an array (num_envs,)."""
        found: Array = validate.array(f"task '{self.task.name}': {name}", value)
        shape = (self.sim.num_worlds,)
        if found.shape not in ((), shape):
            rule = f"{name} has the shape {found.shape} for {shape[0]} worlds"
            raise validate.fail(f"task '{self.task.name}'", rule, "return (num_envs,)")
        if kind is bool and (other := np.flatnonzero((found != 0.0) & (found != 1.0))).size:
            rule = f"{name} is {found.flat[other[0]]} in world {other[0]}"
            raise validate.fail(f"task '{self.task.name}'", rule, "return a mask, such as error < 0.01")
        found = found.astype(kind, copy=False)
        return found if found.shape else np.full(shape, found)

    def begin(self, worlds: Array) -> None:
        """Begin an episode in each world of ``worlds`` (n,)."""
        values, goals = self.episodes.begin(worlds)
        self.sim.reset(worlds)
        extra_values = self.task.begin(self.sim, worlds, {**values, **goals}) or {}
        if not isinstance(extra_values, Mapping):
            raise validate.fail(
                f"task '{self.task.name}'", f"begin returned {extra_values!r:.80}", "return a dict or None"
            )
        values |= extra_values
        if values:
            self.sim.write_state(values, worlds)
        self.delayed.reset(worlds)
