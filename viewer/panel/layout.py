"""Layout of the panel and the scene in a window, without imgui."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.viewer.overlays.canvas import Box

DIAGRAM = 0.55
"""Height of the open diagram, divided by the window's height above the timeline."""


@dataclass(frozen=True)
class Layout:
    """Areas of a window.

    Attributes:
        left: column with buttons, commands and lists.
        right: column with scopes. Without scopes, the width is 0.
        bar: status line at the bottom.
        timeline: timeline of a recording, above the status line. For a simulation, the height is 0.
        scene: remaining area in the center.
        diagram: area of the block diagram below the scene. For a closed diagram, the height is 0.
    """

    left: Box
    right: Box
    bar: Box
    timeline: Box
    scene: Box
    diagram: Box


def lay_out(
    width: float, height: float, column: float, bar: float, scopes: bool, timeline: float = 0.0, diagram: bool = False
) -> Layout:
    """Return the layout of a window. ``timeline`` and ``bar`` are the heights of the timeline and of the status line.

    If ``scopes`` or ``diagram`` is true, the layout has space for scopes or a diagram.
    """
    tall = max(height - bar - timeline, 1.0)
    second = column if scopes else 0.0
    middle, low = max(width - column - second, 1.0), float(round(DIAGRAM * tall)) if diagram else 0.0
    return Layout(
        Box(0.0, 0.0, column, tall),
        Box(width - second, 0.0, second, tall),
        Box(0.0, tall + timeline, width, height - tall - timeline),
        Box(0.0, tall, width, timeline),
        Box(column, 0.0, middle, max(tall - low, 1.0)),
        Box(column, tall - low, middle, low),
    )
