"""Draws what a window looks at into the current OpenGL context. The one file of the window with OpenGL calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from OpenGL import GL

from gpusim.typing import Array
from gpusim.viewer.gl.quality import choose_quality
from gpusim.viewer.gl.renderer import View
from gpusim.viewer.overlays.base import Frame, Timings
from gpusim.viewer.overlays.layer import Sketch
from gpusim.viewer.overlays.painting import Painting
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
        self._painting = Painting(sight.stage, self.quality, width, height)

    @property
    def width(self) -> int:
        """Of the picture, pixels."""
        return self._painting.width

    @property
    def height(self) -> int:
        """Of the picture, pixels."""
        return self._painting.height

    def resize(self, width: int, height: int) -> None:
        """Draw pictures of another size from here on, pixels."""
        self._painting.resize(width, height)

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
        view = self._painting.renderer.view(sight.camera(), sight.poses, self.width / self.height)
        frame = Frame(sight.stage, sight.poses, view.camera, sim, sight.worlds, timings)
        self._painting.draw(view, frame, overlays, sketches)
        return view

    def show(self, x: int = 0, y: int = 0) -> None:
        """Copy the picture into the window; the window's own framebuffer is bound then, for what is drawn on top.

        Args:
            x, y: of the picture's lower left corner in the window, pixels.
        """
        GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, self._painting.resolved.handle)
        GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, 0)
        size = (0, 0, self.width, self.height)
        place = (x, y, x + self.width, y + self.height)
        GL.glBlitFramebuffer(*size, *place, GL.GL_COLOR_BUFFER_BIT, GL.GL_NEAREST)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, 0)
        GL.glViewport(0, 0, self.width, self.height)

    def picture(self) -> Array:
        """The last picture, uint8 (height, width, 3), without what guests drew on top."""
        return self._painting.image()

    def close(self) -> None:
        """Give the GPU's memory back."""
        self._painting.close()
