"""Vector environment: a task in many worlds of one simulation, with Gymnasium's interface."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from gpusim import validate
from gpusim.arrays import as_array, on_host
from gpusim.description.config import SolverConfig
from gpusim.envs.checkpoint import read_env, write_env
from gpusim.envs.episodes import control_steps
from gpusim.envs.frames import Frames
from gpusim.envs.task import Signals, Task, as_task
from gpusim.envs.tensors import Tensors
from gpusim.envs.wiring import Wiring
from gpusim.errors import unknown_name
from gpusim.scene import Scene
from gpusim.simulation import Simulation
from gpusim.typing import Array

SINGLE_SIZE = (640, 360)
"""Width and height of a picture, pixels."""
ARRAYS = ("numpy", "torch")


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A task in ``num_envs`` worlds of one simulation. Actions are from -1 to 1.

    If a world fails (``sim.health``), the episode of this world terminates. The transitions of a world depend only on
    the seed, the index of the world, and the actions in this world.

    ``info["_is_success"]`` is the mask of worlds whose episode ends. For these worlds, ``info["is_success"]`` is the
    mask of successful worlds. In mode "same_step", both masks are in ``info["final_info"]``.

    Args:
        task: a :class:`Task`, the class of a task, or ``"module:Class"``.
        num_envs: number of worlds.
        autoreset_mode: "next_step", "same_step" or "disabled", or a value of Gymnasium's ``AutoresetMode``. With
            "disabled", call ``reset(options={"reset_mask": mask})`` after episodes end.
        render_mode: "rgb_array" for images, or None.
        render_size: width and height (pixels) of an image.
        render_worlds: indices of the worlds to draw, or None for all worlds. All other worlds have black images.
        arrays: "numpy" to return arrays, or "torch" to return tensors. Reward tensors are float32.
        simulation: further arguments of :class:`gpusim.Simulation`, such as ``backend`` or ``threads``.

    Attributes:
        sim: the simulation. You may read and write signals between control steps.
        task: the task.
        scene: the scene of the task.
        episode_steps: number of control steps after which an episode is truncated.

    Raises:
        ModelError: an argument or an attribute of the task is invalid.
        UnknownNameError: a scene, signal, command or mode does not exist.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        task: Task | type[Task] | str,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        render_size: tuple[int, int] = SINGLE_SIZE,
        render_worlds: Sequence[int] | None = None,
        arrays: str = "numpy",
        **simulation: Any,
    ) -> None:
        self.task, self._mode = as_task(task), _mode(autoreset_mode)
        if not isinstance(render_mode, str | None) or render_mode not in (None, "rgb_array"):
            raise unknown_name("render mode", str(render_mode), ["rgb_array"])
        if not isinstance(arrays, str) or arrays not in ARRAYS:
            raise unknown_name("kind of arrays", str(arrays), ARRAYS)
        self.render_mode = render_mode
        self._tensors = Tensors() if arrays == "torch" else None
        self.scene = self.task.make_scene()
        if not isinstance(self.scene, Scene):
            rule = f"make_scene returned {self.scene!r:.80}"
            raise validate.fail(f"task '{self.task.name}'", rule, "return a gpusim.scene.Scene")
        config = simulation.pop("config", self.scene.config)
        if self.task.dt is not None and isinstance(config, SolverConfig):
            config = dataclasses.replace(config, dt=self.task.dt)
        self.sim = Simulation(self.scene.builder.finalize(), num_envs, config=config, **simulation)
        self.num_envs = self.sim.num_worlds
        period = self.sim.config.dt * self.task.decimation
        self.episode_steps = control_steps(self.task.episode, period)
        self.metadata = {
            **type(self).metadata,
            "autoreset_mode": self._mode,
            "render_fps": round(1.0 / period, 3),
        }
        self._frames = Frames(self.sim, self.scene, self.task.render_options, render_size, render_worlds)
        self._prepare()

    def _prepare(self) -> None:
        """Connect the task to the simulation, and create the spaces."""
        self._wiring = Wiring(self.task, self.sim)
        self._pending = np.zeros(self.num_envs, bool)
        self._seeded = False
        self.single_action_space = spaces.Box(-1.0, 1.0, (self._wiring.actions,), np.float32)
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (self._wiring.observations,), np.float32)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    # The interface of Gymnasium.

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: one seed for all worlds, a list with one seed for each world, or None to continue the random sequence.
                With one seed, all worlds get different random numbers. With a list, worlds with equal seeds get equal
                random numbers. If you never gave a seed, the environment chooses a random seed.
            options: dict. The option "reset_mask" is a mask, bool (num_envs,), of the worlds to reset (default: all).
                The option "stagger" is a number of groups of worlds. Each group ends its first episode at another time.

        Returns:
            Observations (float32, (num_envs, n)) and an empty dict.

        Raises:
            ModelError: a seed or an option is invalid.
            UnknownNameError: an option does not exist.
        """
        if options is not None and not isinstance(options, Mapping):
            raise validate.fail("reset", f"options = {options!r} is not a dict", "give {'stagger': 16}")
        options = dict(options or {})
        mask, groups = options.pop("reset_mask", None), options.pop("stagger", 1)
        if options:
            raise unknown_name("option of reset", next(iter(options)), ["reset_mask", "stagger"])
        groups = validate.count("reset", "stagger", groups)
        worlds = np.arange(self.num_envs) if mask is None else np.flatnonzero(self._mask(mask))
        if seed is None and not self._seeded:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is not None:
            self._wiring.episodes.set_seeds(seed, worlds)
            super().reset(seed=seed if isinstance(seed, int) else None)
            self._seeded = True
        self._begin(worlds)
        self._wiring.episodes.elapsed[worlds] = (worlds * groups // self.num_envs) * self.episode_steps // groups
        return self._observed(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance all worlds by one control step.

        Args:
            actions: array or tensor (num_envs, actions). The environment clips the values to -1 to 1.

        Returns:
            Observations (float32, (num_envs, n)), rewards, terminated and truncated ((num_envs,) each), and the info
            dict.

        Raises:
            ModelError: no episode has begun, or the actions or the results of the task's methods have a wrong shape or
                are not finite.
        """
        wiring, episodes = self._wiring, self._wiring.episodes
        if not self._seeded:
            raise validate.fail("step", "no episode has begun", "call env.reset() first")
        wiring.act(actions)
        self.sim.step(self.task.decimation)
        episodes.elapsed += 1
        again = self._pending.copy() if self._mode is AutoresetMode.NEXT_STEP and self._pending.any() else None
        if again is not None:
            self._begin(np.flatnonzero(again))
        s = wiring.read()
        reward, terminated = wiring.rewards_and_ends(s)
        truncated = (episodes.elapsed >= self.episode_steps) & ~terminated
        if again is not None:
            reward[again], terminated[again], truncated[again] = 0.0, False, False
        observation = wiring.observation(s)
        done = terminated | truncated
        ended = bool(done.any())
        info = self._ended(s, done) if ended else {}
        if ended and self._mode is AutoresetMode.SAME_STEP:
            info = {
                "final_obs": self._converted(observation), "_final_obs": done.copy(), "final_info": info,
                "_final_info": done.copy(),
            }  # fmt: skip
            self._begin(np.flatnonzero(done))
            observation = wiring.observation(wiring.read())
        elif self._mode is AutoresetMode.NEXT_STEP:
            self._pending = done.copy()
        return (*map(self._converted, (observation, reward, terminated, truncated)), info)

    def render(self) -> tuple[Array, ...] | None:
        """Return an image of each world (uint8, (height, width, 3)), or None without ``render_mode``."""
        return self._frames.images() if self.render_mode == "rgb_array" else None

    def close_extras(self, **kwargs: Any) -> None:
        """Release the renderer."""
        self._frames.close()

    # Checkpoints.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint of the simulation and all episodes.

        A run that continues from the checkpoint gives bit-identical results.

        Args:
            path: path of the file, which must end in .npz. ``Simulation.load`` can also read the file.

        Raises:
            ModelError: the path does not end in .npz or cannot be written.
        """
        write_env(path, self.sim, self.task, self._mode.value, self._arrays())

    def load(self, path: str | os.PathLike[str]) -> Any:
        """Continue from a checkpoint that :meth:`save` wrote for the same task, settings, number of worlds and mode.

        Returns:
            The observations (float32, (num_envs, n)).

        Raises:
            ModelError: the file cannot be read, or is from a different environment. After an error, the environment is
                unchanged.
        """
        snapshot, arrays = read_env(path, self.sim, self.task, self._mode.value, self._arrays())
        self.sim.restore(snapshot)
        for name, array in self._arrays().items():
            array[...] = arrays[name]
        self._seeded = True
        return self._observed()

    def _arrays(self) -> dict[str, Array]:
        return {**self._wiring.episodes.arrays(), "sent": self._wiring.delayed.history, "pending": self._pending}

    # Parts of a step.

    def _begin(self, worlds: Array) -> None:
        """Begin an episode in each world of ``worlds`` (n,)."""
        self._wiring.begin(worlds)
        self._pending[worlds] = False

    def _observed(self) -> Any:
        return self._converted(self._wiring.observation(self._wiring.read()))

    def _ended(self, s: Signals, done: Array) -> dict[str, Any]:
        """Return the info dict for all episodes that end in this control step."""
        reached = self._wiring.success(s)
        return {} if reached is None else {"is_success": reached, "_is_success": done.copy()}

    def _converted(self, array: Array) -> Any:
        return array if self._tensors is None else self._tensors(array)

    def _mask(self, mask: Any) -> Array:
        given = as_array(on_host(mask))
        if given.dtype != bool or given.shape != (self.num_envs,):
            rule = f"reset_mask has shape {given.shape} and type {given.dtype}"
            raise validate.fail("reset", rule, f"give bool ({self.num_envs},)")
        return given


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    modes = {mode.name.lower(): mode for mode in AutoresetMode} | {mode.value: mode for mode in AutoresetMode}
    if isinstance(mode, AutoresetMode):
        return mode
    if not isinstance(mode, str) or mode not in modes:
        raise unknown_name("autoreset mode", str(mode), modes)
    return modes[mode]
