"""The overlays of one stage that are turned on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpusim.viewer.gl.objects import Framebuffer
from gpusim.viewer.gl.renderer import Renderer, View
from gpusim.viewer.overlays import Frame, chosen_overlays
from gpusim.viewer.overlays.canvas import Canvas
from gpusim.viewer.overlays.painter import Painter
from gpusim.viewer.overlays.panels import add_notes

Sketch = Callable[[Frame, Canvas], None]
"""Draws something of its own, as an overlay does: a mouse's spring, the facts about a picked body."""


class OverlayLayer:
    """Draws overlays over the frames of a renderer. Needs a current context; its memory is taken with the first one.

    Args:
        renderer: draws the frames.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._painter: Painter | None = None

    def draw(
        self, names: Iterable[str], frame: Frame, view: View, target: Framebuffer, sketches: Iterable[Sketch] = ()
    ) -> None:
        """Draw overlays over what ``target`` holds.

        Args:
            names: which ones.
            frame: what they show.
            view: with which the frame was drawn.
            target: still with its depths.
            sketches: more to be drawn, first.

        Raises:
            UnknownNameError: no such overlay.
        """
        chosen, sketches = chosen_overlays(names), list(sketches)
        if not chosen and not sketches:
            return
        canvas = Canvas(view.camera, target.width, target.height)
        for sketch in sketches:
            sketch(frame, canvas)
        if frame.sim is None:
            silent = [overlay.name for overlay in chosen if overlay.needs_simulation]
            chosen = [overlay for overlay in chosen if not overlay.needs_simulation]
            add_notes(canvas, [f"{name}: needs a running simulation" for name in silent])
        for overlay in chosen:
            overlay.draw(frame, canvas)
        if self._painter is None:
            self._painter = Painter(self._renderer)
        self._painter.draw(canvas, view, target)

    def close(self) -> None:
        """Give the GPU's memory back."""
        if self._painter is not None:
            self._painter.close()
            self._painter = None
