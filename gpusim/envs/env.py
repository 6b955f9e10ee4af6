"""Environment with one world, as a ``gymnasium.Env``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from gpusim.envs.task import Task
from gpusim.envs.vector_env import SINGLE_SIZE, VectorEnv
from gpusim.typing import Array


class Env(gymnasium.Env[Any, Any]):
    """Environment with one world of a task. Use :class:`VectorEnv` for training.

    Args:
        task, render_mode, render_size, simulation: see :class:`VectorEnv`.

    Attributes:
        vector: the wrapped :class:`VectorEnv`, which has one world.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}

    def __init__(
        self,
        task: Task | type[Task] | str,
        render_mode: str | None = None,
        render_size: tuple[int, int] = SINGLE_SIZE,
        **simulation: Any,
    ) -> None:
        shown: dict[str, Any] = {"render_mode": render_mode, "render_size": render_size}
        self.vector = VectorEnv(task, 1, autoreset_mode=AutoresetMode.DISABLED, **shown, **simulation)
        self.render_mode = render_mode
        self.metadata = {**type(self).metadata, "render_fps": self.vector.metadata["render_fps"]}
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin an episode. Return the observation (float32, (n,)) and an empty dict."""
        super().reset(seed=seed)
        observation, info = self.vector.reset(seed=seed, options=options)
        return observation[0], info

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Advance by one control step, see :meth:`VectorEnv.step`.

        When the episode ends and the task defines success, ``info["is_success"]`` is a bool.
        """
        observation, reward, terminated, truncated, info = self.vector.step(np.asarray(action)[None])
        known = {name: bool(value[0]) for name, value in info.items() if not name.startswith("_")}
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), known

    def render(self) -> Any:
        """Return an image (uint8, (height, width, 3)), or None without ``render_mode``."""
        images = self.vector.render()
        return None if images is None else images[0]

    def close(self) -> None:
        """Release the renderer."""
        self.vector.close()
