"""Drawing of a stage with overlays in the current OpenGL context, for offscreen pictures and windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from OpenGL import GL

from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.gl.objects import Framebuffer
from gpusim.viewer.gl.quality import Quality
from gpusim.viewer.gl.renderer import Renderer, View
from gpusim.viewer.overlays.base import Frame, chosen_overlays
from gpusim.viewer.overlays.canvas import Canvas
from gpusim.viewer.overlays.painter import Painter
from gpusim.viewer.overlays.panels import add_notes

Sketch = Callable[[Frame, Canvas], None]
"""Function that draws over the scene, such as the mouse spring."""


class Painting:
    """Multisampled picture of the scene and the overlays. All methods need a current OpenGL context.

    Args:
        stage: stage with all drawn objects.
        quality: the quality settings.
        width, height: size of the picture (pixels).
        glass: see :class:`Renderer`.

    Attributes:
        renderer: renderer of the scene.
        resolved: the finished picture.
    """

    def __init__(self, stage: Stage, quality: Quality, width: int, height: int, glass: bool = True) -> None:
        self.renderer = Renderer(stage, quality, glass)
        self._painter: Painter | None = None  # created with the first overlay
        self._samples = min(quality.samples_for(len(stage)), int(GL.glGetIntegerv(GL.GL_MAX_SAMPLES)))
        self._make_targets(width, height)

    def _make_targets(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._target = Framebuffer(width, height, [GL.GL_RGBA8], GL.GL_DEPTH_COMPONENT32F, self._samples)
        self.resolved = Framebuffer(width, height, [GL.GL_RGBA8])

    def resize(self, width: int, height: int) -> None:
        """Set the size of the following pictures (pixels)."""
        if (width, height) != (self.width, self.height):
            self._target.close()
            self.resolved.close()
            self._make_targets(width, height)

    def draw(self, view: View, frame: Frame, overlays: Iterable[str], sketches: Iterable[Sketch] = ()) -> None:
        """Draw one picture.

        Args:
            view: the camera's view.
            frame: data for the overlays.
            overlays: names of the active overlays.
            sketches: functions that draw over the scene before the overlays.

        Raises:
            UnknownNameError: an overlay is unknown.
        """
        self.renderer.draw(view, self._target)
        self._draw_overlays(view, frame, overlays, list(sketches))
        self._target.copy_to(self.resolved)

    def _draw_overlays(self, view: View, frame: Frame, overlays: Iterable[str], sketches: list[Sketch]) -> None:
        chosen = chosen_overlays(overlays)
        if not chosen and not sketches:
            return
        canvas = Canvas(view.camera, self.width, self.height)
        for sketch in sketches:
            sketch(frame, canvas)
        if frame.sim is None:
            silent = [overlay.name for overlay in chosen if overlay.needs_simulation]
            chosen = [overlay for overlay in chosen if not overlay.needs_simulation]
            add_notes(canvas, [f"{name}: needs a running simulation" for name in silent])
        for overlay in chosen:
            overlay.draw(frame, canvas)
        if self._painter is None:
            self._painter = Painter(self.renderer)
        self._painter.draw(canvas, view, self._target)

    def image(self) -> Array:
        """Return the last picture, uint8 (height, width, 3), sRGB, top row first."""
        return self.resolved.read(0, GL.GL_RGB, GL.GL_UNSIGNED_BYTE, np.uint8, 3)

    def close(self) -> None:
        """Release the GPU memory."""
        for resource in (self._target, self.resolved, self._painter, self.renderer):
            if resource is not None:
                resource.close()
