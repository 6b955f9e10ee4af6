from __future__ import annotations

from typing import Any

from gpusim.scene import Camera
from gpusim.typing import Array
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.errors import ViewerError
from gpusim.viewer.gl.context import OffscreenContext
from gpusim.viewer.offscreen import Offscreen
from gpusim.viewer.panel.panel_state import PanelState
from gpusim.viewer.window.sources import Live, Played


class PanelOffscreen:
    """Renderer that draws a session with its panel into arrays, for tests and for pictures of the panel.

    Args:
        panel_state: state that the panel shows.
        width, height: picture size (pixels).
        camera, quality: see :class:`Offscreen`.

    Attributes:
        panel: the panel. ``panel.events`` accepts synthetic input.

    Raises:
        ViewerError: the viewer cannot draw on this computer, imgui-bundle is missing, or the source is neither Live nor
            Played.
    """

    def __init__(
        self,
        panel_state: PanelState,
        *,
        width: int = 1280,
        height: int = 720,
        camera: PinholeCamera | Camera | str | None = None,
        quality: str = "auto",
    ) -> None:
        source = panel_state.session.source
        if not isinstance(source, Live | Played):
            raise ViewerError("PanelOffscreen: the session's source is neither Live nor Played; give one of them")
        self.width, self.height = width, height
        self._context: OffscreenContext | None = OffscreenContext()
        from OpenGL import GL

        from gpusim.viewer.gl.objects import Framebuffer
        from gpusim.viewer.panel.panel import Panel

        self.panel = Panel(panel_state)
        self._target = Framebuffer(width, height, [GL.GL_RGBA8])
        area = self.panel.scene_area(width, height)
        self._corner = int(area.x), int(area.y)
        size: dict[str, Any] = {"width": int(area.width), "height": int(area.height)}
        drawn = source.sim if isinstance(source, Live) else source.player
        self.scene = Offscreen(drawn, camera=camera, quality=quality, **size)
        panel_state.worlds = self.scene.worlds

    def image(self, seconds: float = 1.0 / 60.0) -> Array:
        """Return the picture, uint8 (height, width, 3), sRGB, top row first, and process synthetic input.

        Args:
            seconds: time since the last picture (s).
        """
        from OpenGL import GL

        self._open()
        self.scene.overlays = frozenset(self.panel.panel_state.shown)
        picture = self.scene.image()
        self._open().make_current()
        self._put(picture)
        self.act(seconds)
        array: Array = self._target.read(0, GL.GL_RGB, GL.GL_UNSIGNED_BYTE, "uint8", 3)
        return array

    def act(self, seconds: float = 1.0 / 60.0) -> None:
        """Draw only the panel and process synthetic input."""
        self._open().make_current()
        self._target.bind()
        self.panel.frame(self.width, self.height, seconds)

    def _open(self) -> OffscreenContext:
        if self._context is None:
            raise ViewerError("this Offscreen is closed; create a new one")
        return self._context

    def _put(self, picture: Array) -> None:
        """Copy the scene's picture to its area, under the panel."""
        import numpy as np
        from OpenGL import GL

        x, y = self._corner
        height, width = picture.shape[:2]
        GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 1)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._target.colors[0].handle)
        rows = np.ascontiguousarray(picture[::-1])
        GL.glTexSubImage2D(
            GL.GL_TEXTURE_2D, 0, x, self.height - y - height, width, height, GL.GL_RGB, GL.GL_UNSIGNED_BYTE, rows
        )
        GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 4)

    def close(self) -> None:
        """Release all OpenGL resources. Further calls do nothing."""
        if self._context is None:
            return
        self.scene.close()
        self._context.make_current()
        self.panel.close()
        self._target.close()
        self._context.close()
        self._context = None

    def __enter__(self) -> PanelOffscreen:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
