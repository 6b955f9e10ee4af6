"""Images of the worlds of an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim import validate
from gpusim.scene import Scene
from gpusim.signals.writing import chosen_worlds
from gpusim.simulation import Simulation
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.viewer import Offscreen


class Frames:
    """Off-screen renderer for images of selected worlds.

    Args:
        sim: the simulation.
        scene: scene of the simulation, which defines the camera.
        options: options of :class:`gpusim.viewer.Offscreen`.
        size: width and height (pixels).
        worlds: indices of the worlds to draw, or None for all worlds.
    """

    def __init__(
        self, sim: Simulation, scene: Scene, options: Mapping[str, Any], size: tuple[int, int],
        worlds: Sequence[int] | None,
    ) -> None:  # fmt: skip
        self._sim, self._size = sim, size
        self._options = {"camera": scene.camera, **options}
        self._worlds = chosen_worlds("VectorEnv: render_worlds", worlds, sim.num_worlds).tolist()
        if not self._worlds:
            raise validate.fail("VectorEnv", f"render_worlds = {worlds!r} is empty", "give indices, or None for all")
        if np.shape(size) != (2,):
            raise validate.fail("VectorEnv", f"render_size = {size!r} is not a pair", "give (width, height) in pixels")
        self._renderer: Offscreen | None = None

    def images(self) -> tuple[Array, ...]:
        """Return an image of each world (uint8, (height, width, 3)). If a world is not drawn, the image is black."""
        if self._renderer is None:
            from gpusim.viewer import Offscreen

            width, height = self._size
            self._renderer = Offscreen(self._sim, width=width, height=height, worlds=self._worlds[:1], **self._options)
        black = np.zeros((self._renderer.height, self._renderer.width, 3), np.uint8)
        found = [black] * self._sim.num_worlds
        for world in self._worlds:
            self._renderer.worlds = [world]
            found[world] = self._renderer.image()
        return tuple(found)

    def close(self) -> None:
        """Release the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
