"""Painter that draws a canvas into a framebuffer of the current OpenGL context."""

from __future__ import annotations

import numpy as np
from OpenGL import GL

from gpusim.typing import Array
from gpusim.viewer.gl.objects import Buffer, Framebuffer, Program, attribute
from gpusim.viewer.gl.renderer import Renderer, View
from gpusim.viewer.gl.text import GlyphAtlas
from gpusim.viewer.overlays.canvas import AREA, LETTER, STROKE, Canvas

HIDDEN = 0.22
"""Opacity of the parts of strokes that are behind bodies."""
MAX_HIDDEN = 4000
"""With more strokes than this number, the painter omits the parts of strokes behind bodies."""
WIRE = 0.4
"""Opacity of mesh edges."""
_FLOAT = 4


class Painter:
    """Painter that draws a canvas over a renderer's picture.

    Args:
        renderer: renderer whose meshes the wireframe shows.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._line = Program("overlay/line.vert", "overlay/line.frag")
        self._fill = Program("overlay/fill.vert", "overlay/flat.frag")
        self._wire = Program("overlay/wire.vert", "overlay/flat.frag")
        self._text = Program("overlay/text.vert", "overlay/text.frag")
        self._strokes = _Instances(STROKE, each_instance=True)
        self._letters = _Instances(LETTER, each_instance=True)
        self._areas = _Instances(AREA, each_instance=False)
        self._texture = _AtlasTexture()

    def draw(self, canvas: Canvas, view: View, target: Framebuffer) -> None:
        """Draw a canvas over the picture in ``target``, whose depth buffer must contain the scene's depths."""
        target.bind()
        GL.glDepthMask(False)
        GL.glDisable(GL.GL_CULL_FACE)
        GL.glEnable(GL.GL_DEPTH_TEST)
        # strokes may be closer than the near plane, which is close to the bodies
        GL.glEnable(GL.GL_DEPTH_CLAMP)
        GL.glEnable(GL.GL_BLEND)
        GL.glBlendFunc(GL.GL_SRC_ALPHA, GL.GL_ONE_MINUS_SRC_ALPHA)
        if canvas.wireframe:
            self._draw_wireframe(view)
        self._draw_areas(canvas.areas(), view)
        self._draw_strokes(canvas, view)
        GL.glDisable(GL.GL_DEPTH_TEST)
        self._draw_letters(canvas)
        GL.glDisable(GL.GL_BLEND)
        GL.glDisable(GL.GL_DEPTH_CLAMP)
        GL.glEnable(GL.GL_DEPTH_TEST)
        GL.glDepthMask(True)

    def _draw_wireframe(self, view: View) -> None:
        GL.glEnable(GL.GL_CULL_FACE)  # back edges are hidden, and lines are slow on a CPU
        GL.glPolygonMode(GL.GL_FRONT_AND_BACK, GL.GL_LINE)
        GL.glDepthFunc(GL.GL_LEQUAL)
        self._wire.use(to_clip=view.to_clip, color=(0.03, 0.05, 0.08, WIRE))
        self._renderer.draw_instances()
        GL.glDepthFunc(GL.GL_LESS)
        GL.glPolygonMode(GL.GL_FRONT_AND_BACK, GL.GL_FILL)
        GL.glDisable(GL.GL_CULL_FACE)

    def _draw_areas(self, areas: Array, view: View) -> None:
        if not len(areas):
            return
        self._areas.write(areas)
        self._fill.use(to_clip=view.to_clip)
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, len(areas))

    def _draw_strokes(self, canvas: Canvas, view: View) -> None:
        parts = [canvas.scene_strokes(), canvas.top_strokes(), canvas.picture_strokes()]
        first = np.cumsum([0, *map(len, parts)])
        if not first[-1]:
            return
        self._strokes.write(np.concatenate(parts))
        screen = (float(canvas.width), float(canvas.height))
        self._line.use(to_clip=view.to_clip, screen=screen, unit=float(canvas.unit))
        if len(parts[0]):
            if len(parts[0]) <= MAX_HIDDEN:
                GL.glDepthFunc(GL.GL_GREATER)
                self._draw_range(0, len(parts[0]), HIDDEN)
            GL.glDepthFunc(GL.GL_LEQUAL)
            self._draw_range(0, len(parts[0]), 1.0)
            GL.glDepthFunc(GL.GL_LESS)
        GL.glDisable(GL.GL_DEPTH_TEST)
        self._draw_range(int(first[1]), int(first[3] - first[1]), 1.0)
        GL.glEnable(GL.GL_DEPTH_TEST)

    def _draw_range(self, first: int, count: int, opacity: float) -> None:
        self._line.set("opacity", opacity)
        GL.glDrawArraysInstancedBaseInstance(GL.GL_TRIANGLE_STRIP, 0, 4, count, first)

    def _draw_letters(self, canvas: Canvas) -> None:
        letters = canvas.letters()
        if not len(letters):
            return
        self._texture.bind(canvas.atlas)
        self._letters.write(letters)
        self._text.use(screen=(float(canvas.width), float(canvas.height)), letters=0)
        GL.glDrawArraysInstanced(GL.GL_TRIANGLE_STRIP, 0, 4, len(letters))

    def close(self) -> None:
        """Release the GPU memory."""
        for resource in (self._line, self._fill, self._wire, self._text, self._strokes, self._letters, self._areas):
            resource.close()
        self._texture.close()


class _Instances:
    """Buffer on the GPU for strokes, letters or areas."""

    def __init__(self, record: np.dtype, each_instance: bool) -> None:  # type: ignore[type-arg]
        self._array = GL.glGenVertexArrays(1)
        self._buffer = Buffer(usage=GL.GL_STREAM_DRAW)
        GL.glBindVertexArray(self._array)
        self._buffer.bind()
        assert record.names is not None and record.fields is not None
        for location, name in enumerate(record.names):
            kind, offset = record.fields[name][:2]
            attribute(location, kind.itemsize // _FLOAT, record.itemsize, offset, each_instance)
        GL.glBindVertexArray(0)

    def write(self, records: Array) -> None:
        """Replace the contents of the buffer, and bind the buffer for drawing."""
        self._buffer.write(records)
        GL.glBindVertexArray(self._array)

    def close(self) -> None:
        """Delete the buffer."""
        self._buffer.close()
        GL.glDeleteVertexArrays(1, [self._array])


class _AtlasTexture:
    """Glyph atlas on the GPU."""

    def __init__(self) -> None:
        self._handle = int(GL.glGenTextures(1))
        self._holds: tuple[int, int] = (0, -1)

    def bind(self, atlas: GlyphAtlas) -> None:
        """Bind the atlas as texture 0. If the atlas has changed, upload it first."""
        GL.glActiveTexture(GL.GL_TEXTURE0)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._handle)
        if self._holds == (atlas.size, atlas.version):
            return
        self._holds = (atlas.size, atlas.version)
        height, width = atlas.image.shape[:2]
        GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 1)
        data = np.ascontiguousarray(atlas.image)
        GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RG8, width, height, 0, GL.GL_RG, GL.GL_UNSIGNED_BYTE, data)
        for name in (GL.GL_TEXTURE_MIN_FILTER, GL.GL_TEXTURE_MAG_FILTER):
            GL.glTexParameteri(GL.GL_TEXTURE_2D, name, GL.GL_NEAREST)

    def close(self) -> None:
        """Delete the texture."""
        GL.glDeleteTextures(1, [self._handle])
