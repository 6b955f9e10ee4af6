"""Tasks: actions, observations and rewards of an agent. See ``gpusim.envs.Task``."""

from __future__ import annotations

import difflib
import importlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.envs.distributions import Distribution, Scale
from gpusim.errors import unknown_name
from gpusim.machine_files import load_machine
from gpusim.scene import Scene, load_scene
from gpusim.typing import Array
from gpusim.validate import matching, name_list

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


class Signals:
    """Values of signals in all worlds, by signal name.

    ``signals[name]`` is a NumPy array (num_envs,), or (num_envs, k) for a signal with k components. For a wildcard, the
    array joins the components of all matching signals. The next control step can overwrite the array, so copy values
    that you need later.

    Attributes:
        array: values of all signals (num_envs, n).
        slices: signal name -> columns of the signal in ``array``.
    """

    def __init__(self, array: Array, slices: Mapping[str, slice]) -> None:
        self.array, self.slices = array, slices
        self._views: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._views:
            if name not in self.slices:
                names = matching("signal of the task", name, self.slices)
                return np.concatenate([self.array[:, self.slices[one]] for one in names], axis=1)
            columns = self.array[:, self.slices[name]]
            self._views[name] = columns[:, 0] if columns.shape[1] == 1 else columns
        return self._views[name]


class Goals(dict[str, Array]):
    """Goals of all worlds by name, (num_envs,) or (num_envs, k)."""

    def __missing__(self, name: str) -> Array:
        raise unknown_name("goal of the task", name, self)


class Task:
    """Base class of tasks: scene, actions, observations and reward.

    Subclasses set attributes and define methods such as ``reward``. The methods get the signals and goals of all
    worlds. ``observation`` and ``reward`` also get the last actions (num_envs, actions), which are between -1 and 1.
    Keyword arguments of the constructor replace all attributes of the class except ``scene``.

    Attributes:
        scene: name of a scene, or path of a machine file (.yaml). For other models, define ``make_scene``.
        parameters: parameters of the scene.
        dt: step size (s), or None for the step size of the scene.
        decimation: number of simulation steps in one control step.
        episode: maximum duration (s) of an episode. A longer episode is truncated.
        actions: label or wildcard of commands or diagram inputs -> (low, high). ``low`` is the command for action -1,
            and ``high`` is the command for action 1.
        signals: signals or wildcards that ``observation``, ``reward`` and the other methods use.
        goals: goal name -> distribution. Each episode gets new random goals.
        randomize: signal or wildcard of parameters -> distribution. Each episode gets new random values for every
            signal.
        start: signal or wildcard of the initial state -> distribution. Valid names are the same as in
            ``sim.write_state``.
        noise: observed signal or wildcard -> standard deviation of its noise. Rewards have no noise.
        delay: number of control steps between an action and its effect. For a pair (minimum, maximum), each episode
            gets a random delay in this range.
        render_options: options of ``gpusim.viewer.Offscreen`` for images, such as ``camera``.

    Raises:
        UnknownNameError: a keyword argument is not an attribute of the task.
        ModelError: an attribute has an invalid value.
    """

    scene: ClassVar[str] = ""
    parameters: Mapping[str, Any] = {}
    dt: float | None = None
    decimation: int = 1
    episode: float = 10.0
    actions: Mapping[str, tuple[float, float]] = {}
    signals: Sequence[str] = ()
    goals: Mapping[str, Distribution] = {}
    randomize: Mapping[str, Distribution] = {}
    start: Mapping[str, Distribution] = {}
    noise: Mapping[str, float] = {}
    delay: int | tuple[int, int] = 0
    render_options: Mapping[str, Any] = {}

    def __init__(self, **changes: Any) -> None:
        known = [name for name in Task.__annotations__ if name != "scene"]
        for name, value in changes.items():
            if name not in known:
                raise unknown_name(f"attribute of task '{self.name}'", name, known)
            setattr(self, name, value)
        self._check()

    @property
    def name(self) -> str:
        """Name of the class."""
        return type(self).__name__

    @property
    def delays(self) -> tuple[int, int]:
        """Minimum and maximum delay (control steps)."""
        shortest, longest = self.delay if isinstance(self.delay, Sequence) else (self.delay, self.delay)
        return shortest, longest

    def _check(self) -> None:
        element = f"task '{self.name}'"
        self._check_types(element)
        if not self.scene and type(self).make_scene is Task.make_scene:
            raise validate.fail(element, "has no scene", "set scene, or define make_scene")
        if type(self).reward is Task.reward:
            raise validate.fail(element, "has no reward", "define reward(self, s, goal, action)")
        for name in ("actions", "signals"):
            if not getattr(self, name):
                raise validate.fail(element, f"has no {name}", f"set {name}")
        for name, known in _misspelled(type(self)):
            raise validate.fail(element, f"has an attribute {name!r}", f"did you mean {known!r}?")
        for name in ("goals", "randomize", "start"):
            for key, drawn in getattr(self, name).items():
                if not callable(drawn):
                    raise validate.fail(element, f"{name} of {key!r} is {drawn!r}", "give a distribution like Uniform")
        for key, drawn in self.goals.items():
            if isinstance(drawn, Scale):
                rule = f"goal {key!r} is {drawn}, but goals have no nominal value"
                raise validate.fail(element, rule, "give Uniform")
        validate.count(element, "decimation", self.decimation)
        validate.positive(element, "episode", self.episode)
        if not 0 <= self.delays[0] <= self.delays[1]:
            raise validate.fail(element, f"delay = {self.delay!r} must be 0 or more", "give n or (minimum, maximum)")
        for name, ends in self.actions.items():
            lower, upper = validate.numbers(element, f"actions[{name!r}]", ends, 2)
            if lower == upper:
                rule = f"action {name!r} has the range {ends!r}"
                raise validate.fail(element, rule, "give two different finite numbers")

    def _check_types(self, element: str) -> None:
        """Raise ModelError if an attribute has a wrong type."""
        for name in ("parameters", "actions", "goals", "randomize", "start", "noise"):
            if not isinstance(getattr(self, name), Mapping):
                raise validate.fail(element, f"{name} = {getattr(self, name)!r} is not a dict", "give a dict by name")
        if not isinstance(self.scene, str):
            raise validate.fail(element, f"scene = {self.scene!r} is not a name", "give a name, or define make_scene")
        name_list(f"{element}: signals", self.signals)
        delays = self.delay if isinstance(self.delay, Sequence) else [self.delay] * 2
        if len(delays) != 2 or not all(isinstance(n, int | np.integer) for n in delays):
            raise validate.fail(
                element, f"delay = {self.delay!r} is not a number of steps", "give n or (minimum, maximum)"
            )

    def make_scene(self) -> Scene:
        """Return the scene. The default method loads the scene or machine file in the attribute ``scene``."""
        if self.scene.endswith((".yaml", ".yml")):
            return load_machine(self.scene, **self.parameters)
        return load_scene(self.scene, **self.parameters)

    def observation(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return the observations (num_envs, n), by default with all signals, goals and last actions."""
        return np.concatenate([s.array, *(g.reshape(len(g), -1) for g in goal.values()), action], axis=1)

    @abstractmethod
    def reward(self, s: Signals, goal: Goals, action: Array) -> Array:
        """Return the rewards (num_envs,) of a control step. Every task must define this method."""

    def terminated(self, s: Signals, goal: Goals) -> Array | None:
        """Return a mask (num_envs,) of the worlds whose episode terminates now, or None."""
        return None

    def success(self, s: Signals, goal: Goals) -> Array | None:
        """Return a mask of the worlds that reach the goal (num_envs,), or None if the task does not define success."""
        return None

    def begin(self, sim: Simulation, worlds: Array, drawn: Mapping[str, Array]) -> Mapping[str, Any] | None:
        """Prepare the start of an episode.

        After the call, the environment writes the random values and the returned values to the simulation.

        Args:
            sim: the simulation.
            worlds: indices of the worlds that start an episode (n,).
            drawn: signal or goal -> random values for the n worlds, (n,) or (n, k).

        Returns:
            Dict of additional values to write, as in ``sim.write_state``, or None.
        """
        return None


def _misspelled(task: type[Task]) -> Iterator[tuple[str, str]]:
    """Yield pairs (wrong name, correct name) of misspelled attributes and methods in ``task`` and its base classes."""
    members = {name: value for kind in task.__mro__ if kind not in Task.__mro__ for name, value in vars(kind).items()}
    functions = [name for name, value in vars(Task).items() if callable(value) and name not in members]
    for name, value in members.items():
        near = difflib.get_close_matches(name, functions if callable(value) else Task.__annotations__, 1, 0.88)
        if near and near[0] != name:
            yield name, near[0]


def as_task(task: Task | type[Task] | str) -> Task:
    """Return the task for a Task, a subclass of Task, or ``"module:Class"``.

    Raises:
        ModelError: ``task`` has another type, or cannot be imported.
    """
    if isinstance(task, str):
        module, _, name = task.partition(":")
        try:
            task = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            rule = f"{task!r} cannot be imported ({error})"
            raise validate.fail("task", rule, "run Python in the folder of the module") from None
    made = task() if isinstance(task, type) and issubclass(task, Task) else task
    if not isinstance(made, Task):
        raise validate.fail("task", f"{task!r} is not a Task", "give a Task, its class, or 'module:Class'")
    return made
