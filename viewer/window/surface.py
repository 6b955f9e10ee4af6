"""Drawing of a window's view into the current OpenGL context."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from OpenGL import GL

from gpusim.viewer.gl.quality import choose_quality
from gpusim.viewer.gl.renderer import View
from gpusim.viewer.overlays.base import Frame, Timings
from gpusim.viewer.overlays.painting import Painting, Sketch
from gpusim.viewer.window.view_state import ViewState

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


class Surface(Painting):
    """Picture of the scene that is copied to a window. All methods need a current OpenGL context.

    Args:
        sight: the view to draw.
        quality: name of the quality, or "auto".
        width, height: size of the picture (pixels).
    """

    def __init__(self, sight: ViewState, quality: str, width: int, height: int) -> None:
        self.sight = sight
        self.quality = choose_quality(quality, GL.glGetString(GL.GL_RENDERER).decode(errors="replace"))
        super().__init__(sight.stage, self.quality, width, height)

    def paint(
        self, overlays: Iterable[str], sim: Simulation | None, timings: Timings, sketches: Iterable[Sketch] = ()
    ) -> View:
        """Draw one picture.

        Args:
            overlays: names of the active overlays.
            sim: simulation for the overlays, or None for a recording.
            timings: times for the overlay "profile".
            sketches: functions that draw over the scene.
        """
        sight = self.sight
        view = self.renderer.view(sight.camera(), sight.poses, self.width / self.height)
        frame = Frame(sight.stage, sight.poses, view.camera, sim, sight.worlds, timings)
        self.draw(view, frame, overlays, sketches)
        return view

    def show(self, x: int = 0, y: int = 0) -> None:
        """Copy the picture into the window and bind the window's framebuffer.

        Args:
            x, y: lower left corner of the picture in the window (pixels).
        """
        GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, self.resolved.handle)
        GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, 0)
        size = (0, 0, self.width, self.height)
        area = (x, y, x + self.width, y + self.height)
        GL.glBlitFramebuffer(*size, *area, GL.GL_COLOR_BUFFER_BIT, GL.GL_NEAREST)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, 0)
        GL.glViewport(0, 0, self.width, self.height)
