"""Edges of all meshes."""

from __future__ import annotations

from typing import ClassVar

from gpusim.viewer.overlays.base import Frame, Overlay, register
from gpusim.viewer.overlays.canvas import Canvas


@register
class WireframeOverlay(Overlay):
    """Triangle edges of all drawn objects."""

    name: ClassVar[str] = "wireframe"
    key: ClassVar[str] = "w"
    description: ClassVar[str] = "triangle edges of all drawn objects"

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Mark the canvas, so that the painter draws the wireframe."""
        canvas.wireframe = True
