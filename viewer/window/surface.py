"""Draws what a window looks at into the current OpenGL context. The one file of the window with OpenGL calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from OpenGL import GL

from gpusim.typing import Array
from gpusim.viewer.gl import Framebuffer
from gpusim.viewer.overlays.base import Frame, Timings
from gpusim.viewer.overlays.layer import OverlayLayer, Sketch
from gpusim.viewer.quality import choose_quality
from gpusim.viewer.renderer import Renderer, View
from gpusim.viewer.window.sight import Sight

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


def renderer_name() -> str:
    """What draws, as OpenGL tells it."""
    return str(GL.glGetString(GL.GL_RENDERER).decode(errors="replace"))


class Surface:
    """A picture of the window's size, and the way to the screen. Needs a current context for every call.

    Args:
        sight: what is drawn.
        quality: name of the tier, or "auto".
        width, height: of the picture, pixels.
    """

    def __init__(self, sight: Sight, quality: str, width: int, height: int) -> None:
        self.sight = sight
        self.quality = choose_quality(quality, renderer_name())
        self._renderer = Renderer(sight.stage, self.quality)
        self._layer = OverlayLayer(self._renderer)
        most = int(GL.glGetIntegerv(GL.GL_MAX_SAMPLES))
        self._samples = min(self.quality.samples_for(len(sight.stage)), most)
        self._make_targets(width, height)

    def _make_targets(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._target = Framebuffer(width, height, [GL.GL_RGBA8], GL.GL_DEPTH_COMPONENT32F, self._samples)
        self._resolved = Framebuffer(width, height, [GL.GL_RGBA8])

    def resize(self, width: int, height: int) -> None:
        """Draw pictures of another size from here on, pixels."""
        if (width, height) != (self.width, self.height):
            self._target.close()
            self._resolved.close()
            self._make_targets(width, height)

    def draw(
        self, overlays: Iterable[str], sim: Simulation | None, timings: Timings, sketches: Iterable[Sketch] = ()
    ) -> View:
        """Draw one picture.

        Args:
            overlays: names of those that are on.
            sim: whose contacts and forces they show; None for a recording.
            timings: what the overlay "profile" shows.
            sketches: more to be drawn over the scene.
        """
        sight = self.sight
        view = self._renderer.view(sight.camera(), sight.poses, self.width / self.height)
        self._renderer.draw(view, self._target)
        frame = Frame(sight.stage, sight.poses, view.camera, sim, sight.worlds, timings)
        self._layer.draw(overlays, frame, view, self._target, sketches)
        self._target.copy_to(self._resolved)
        return view

    def show(self, x: int = 0, y: int = 0) -> None:
        """Copy the picture into the window; the window's own framebuffer is bound then, for what is drawn on top.

        Args:
            x, y: of the picture's lower left corner in the window, pixels.
        """
        GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, self._resolved.handle)
        GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, 0)
        size = (0, 0, self.width, self.height)
        place = (x, y, x + self.width, y + self.height)
        GL.glBlitFramebuffer(*size, *place, GL.GL_COLOR_BUFFER_BIT, GL.GL_NEAREST)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, 0)
        GL.glViewport(0, 0, self.width, self.height)

    def picture(self) -> Array:
        """The last picture, uint8 (height, width, 3), without what guests drew on top."""
        return self._resolved.read(0, GL.GL_RGB, GL.GL_UNSIGNED_BYTE, np.uint8, 3)

    def close(self) -> None:
        """Give the GPU's memory back."""
        for thing in (self._target, self._resolved, self._layer, self._renderer):
            thing.close()
