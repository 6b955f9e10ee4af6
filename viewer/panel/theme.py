"""Appearance of the panel: sizes that scale with the picture, colors, font."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.line_colors import Rgba

PAPER: Rgba = (0.105, 0.115, 0.135, 1.0)
BAR: Rgba = (0.075, 0.083, 0.098, 1.0)
FIELD: Rgba = (0.175, 0.19, 0.22, 1.0)
FIELD_OVER: Rgba = (0.23, 0.25, 0.29, 1.0)
FIELD_ACTIVE: Rgba = (0.28, 0.31, 0.36, 1.0)
TEXT: Rgba = (0.91, 0.92, 0.94, 1.0)
FAINT: Rgba = (0.56, 0.59, 0.64, 1.0)
LINE: Rgba = (0.27, 0.29, 0.33, 1.0)
ACCENT: Rgba = (0.34, 0.64, 0.95, 1.0)
GOOD: Rgba = (0.33, 0.78, 0.49, 1.0)
WARN: Rgba = (0.95, 0.72, 0.25, 1.0)
BAD: Rgba = (0.86, 0.17, 0.16, 1.0)
SOURCES: dict[str, Rgba] = {
    "": FAINT,
    "panel": ACCENT,
    "keyboard": ACCENT,
    "gamepad": ACCENT,
    "replay": GOOD,
    "stop": BAD,
}
"""Color of a command for each source that can set the command, such as "keyboard"."""


@dataclass(frozen=True)
class Sizes:
    """Lengths for one window size, in cursor units. A cursor unit has one or more pixels.

    Attributes:
        font: height of letters, including the gap between lines.
        column: width of the side columns.
        bar, timeline: height of the status line and of the timeline.
    """

    font: float
    column: float
    bar: float
    timeline: float

    @classmethod
    def of(cls, width: float, height: float, zoom: float = 1.0) -> Sizes:
        """Return the sizes for readable text in a window.

        ``zoom`` is the number of cursor units per logical pixel of the desktop.
        """
        font = float(round(zoom * min(max(8.4 + 0.0078 * height / zoom, 11.0), 18.0)))
        column = float(round(min(max(0.21 * width, 13.5 * font), 20.0 * font)))
        return cls(font, min(column, 0.42 * width), float(round(1.7 * font)), float(round(1.5 * font)))


@cache
def font_file() -> Path:
    """Return the path of matplotlib's DejaVu Sans."""
    import matplotlib

    return Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")


def color(rgba: Rgba, opacity: float = 1.0) -> int:
    """Convert a color to the format of imgui's draw lists."""
    return int(imgui.get_color_u32((*rgba[:3], rgba[3] * opacity)))


def apply(style: Any, sizes: Sizes) -> None:
    """Set imgui's style: flat, dark, with lengths relative to the font size."""
    f = sizes.font
    style.window_padding = (0.7 * f, 0.55 * f)
    style.frame_padding = (0.45 * f, 0.22 * f)
    style.item_spacing = (0.4 * f, 0.32 * f)
    style.item_inner_spacing = (0.35 * f, 0.25 * f)
    style.indent_spacing = 0.8 * f
    style.scrollbar_size = 0.6 * f
    style.window_min_size = (1.0, 1.0)  # imgui's minimum is higher than the status line
    style.grab_min_size = 0.6 * f
    style.window_border_size = style.child_border_size = style.frame_border_size = 0.0
    style.window_rounding = 0.0
    style.frame_rounding = style.grab_rounding = style.popup_rounding = style.scrollbar_rounding = 0.22 * f
    for name, rgba in _colors().items():
        style.set_color_(getattr(imgui.Col_, name), imgui.ImVec4(*rgba))


def _colors() -> dict[str, Rgba]:
    return {
        "text": TEXT,
        "text_disabled": FAINT,
        "window_bg": PAPER,
        "popup_bg": BAR,
        "border": LINE,
        "separator": LINE,
        "frame_bg": FIELD,
        "frame_bg_hovered": FIELD_OVER,
        "frame_bg_active": FIELD_ACTIVE,
        "button": FIELD,
        "button_hovered": FIELD_OVER,
        "button_active": FIELD_ACTIVE,
        "header": BAR,
        "header_hovered": FIELD_OVER,
        "header_active": FIELD_ACTIVE,
        "slider_grab": ACCENT,
        "slider_grab_active": TEXT,
        "check_mark": ACCENT,
        "scrollbar_bg": PAPER,
        "scrollbar_grab": FIELD_ACTIVE,
        "scrollbar_grab_hovered": FAINT,
        "scrollbar_grab_active": FAINT,
    }
