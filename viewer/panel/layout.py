"""Layout of the panel's parts and of the scene. No imgui."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.viewer.overlays.canvas import Box

DIAGRAM = 0.55
"""Share of the height that a diagram takes."""


@dataclass(frozen=True)
class Layout:
    """Areas of a window.

    Attributes:
        left: buttons, commands and lists.
        right: scopes; zero width if there are none.
        bar: status line, below everything.
        timeline: timeline of a recording, above the status line; zero height while simulating.
        scene: the remaining area in the center.
        diagram: below the scene; zero height while closed.
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
    """Return the layout: columns at both sides, and lines of heights ``timeline`` and ``bar`` at the bottom.

    The right column exists only with ``scopes``. ``diagram``: reserve the share DIAGRAM of the scene's height.
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
