"""Soft shade below bodies on a level ground.

The shade map is a texture with the fraction of the sky that bodies hide at each ground point.
"""

from __future__ import annotations

import numpy as np
from OpenGL import GL

from gpusim.stage.poses import Bounds
from gpusim.typing import Array
from gpusim.viewer.gl.objects import Framebuffer, Program
from gpusim.viewer.gl.scene_buffers import SceneBuffers

_HEIGHTS, _SHADE = 256, 96
"""Edge lengths of the height map and of the shade map, texels."""
_WIDER = 1.5
"""Width of the map, divided by the diameter of the objects' bounding sphere."""


class GroundShade:
    """Shade map of one ground plane. ``spokes`` is the number of sample directions per ground point.

    All methods need a current OpenGL context.
    """

    def __init__(self, spokes: int) -> None:
        self._heights = Framebuffer(_HEIGHTS, _HEIGHTS, [], GL.GL_DEPTH_COMPONENT32F)
        self._shade = Framebuffer(_SHADE, _SHADE, [GL.GL_R16F])
        self._from_below = Program("shadow.vert", "shadow.frag")
        self._gather = Program("fill.vert", "shade.frag", SPOKES=spokes)
        self._empty = GL.glGenVertexArrays(1)

    def draw(self, buffers: SceneBuffers, bounds: Bounds, point: Array, axes: Array, eye: Array) -> Array:
        """Draw the shade map.

        Args:
            buffers: buffers of the objects that hide the sky.
            bounds: bounding sphere of the objects in ``buffers``, in the world frame.
            point: point on the ground, in the world frame (m).
            axes: x axis, y axis and normal of the ground in the world frame, as columns (3, 3).
            eye: position of the eye (m). The positions in the buffers are relative to the eye.

        Returns:
            Matrix (4, 4) from positions relative to the eye to texture coordinates of the shade map.
        """
        half = _WIDER * bounds.radius
        local = axes.T @ (bounds.center - point)
        top = max(float(local[2]) + bounds.radius, 1e-6)
        to_clip = np.eye(4)
        scale = np.array([1.0 / half, 1.0 / half, 2.0 / top])
        to_clip[:3, :3] = axes.T * scale[:, None]
        to_clip[:3, 3] = (axes.T @ (eye - point) - [local[0], local[1], 0.5 * top]) * scale
        self._heights.bind()
        GL.glClear(GL.GL_DEPTH_BUFFER_BIT)
        self._from_below.use(to_light_clip=to_clip)
        buffers.draw()
        self._shade.bind()
        GL.glDisable(GL.GL_DEPTH_TEST)
        assert self._heights.depth is not None
        self._heights.depth.bind(0)
        self._gather.use(heights=0, top=top, width=2.0 * half)
        GL.glBindVertexArray(self._empty)
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)
        GL.glEnable(GL.GL_DEPTH_TEST)
        to_texture = 0.5 * to_clip
        to_texture[:3, 3] += 0.5
        return to_texture

    def bind(self, unit: int) -> None:
        """Bind the shade map to the texture unit ``unit``."""
        self._shade.colors[0].bind(unit)

    def close(self) -> None:
        """Release the GPU memory."""
        for resource in (self._heights, self._shade, self._from_below, self._gather):
            resource.close()
        GL.glDeleteVertexArrays(1, [self._empty])
