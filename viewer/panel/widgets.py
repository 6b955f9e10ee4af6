"""Small widgets shared by the panel's sections."""

from __future__ import annotations

from typing import Any

from gpusim.viewer.overlays.canvas import Box
from gpusim.viewer.panel import theme
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.theme import Rgba

Areas = dict[str, Box]
"""Widget name -> area in the last frame, in cursor units."""


def wide() -> float:
    """Return the remaining width of the current line."""
    return float(imgui.get_content_region_avail().x)


def right_text(text: str, rgba: Rgba, edge: float) -> None:
    """Draw text in the same line as the previous item, right-aligned at ``edge``."""
    imgui.same_line(edge - imgui.calc_text_size(text).x)
    imgui.text_colored(rgba, text)


def heading(text: str, note: str = "") -> None:
    """Draw a section's title, with a note at the right."""
    edge = imgui.get_cursor_pos().x + wide()
    imgui.text_colored(theme.FAINT, clipped(text, wide() - imgui.calc_text_size(note).x))
    if note:
        right_text(note, theme.FAINT, edge)


def wrapped(text: str, rgba: Rgba) -> None:
    """Draw text with line wrapping."""
    imgui.push_style_color(imgui.Col_.text, theme.color(rgba))
    imgui.text_wrapped(text.replace("%", "%%"))
    imgui.pop_style_color()


def clipped(text: str, width: float) -> str:
    """Return the text. In a too wide text, an ellipsis replaces the middle."""
    if imgui.calc_text_size(text).x <= width:
        return text
    head, tail = text[: (len(text) + 1) // 2], text[(len(text) + 1) // 2 :]
    while (head or tail) and imgui.calc_text_size(f"{head}…{tail}").x > width:
        head, tail = (head[:-1], tail) if len(head) > len(tail) else (head, tail[1:])
    return f"{head}…{tail}"


def mark(areas: Areas, name: str) -> None:
    """Store the area of the last drawn item under ``name``."""
    low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
    areas[name] = Box(low.x, low.y, high.x - low.x, high.y - low.y)


def button(label: str, width: float, rgba: Rgba | None = None, height: float = 0.0) -> bool:
    """Draw a button with the color ``rgba`` or the default color. Return True if the user pressed the button."""
    if rgba is None:
        return bool(imgui.button(label, (width, height)))
    for part, factor in (("button", 1.0), ("button_hovered", 1.14), ("button_active", 0.85)):
        red, green, blue = (min(1.0, factor * c) for c in rgba[:3])
        imgui.push_style_color(getattr(imgui.Col_, part), (red, green, blue, rgba[3]))
    pressed = bool(imgui.button(label, (width, height)))
    imgui.pop_style_color(3)
    return pressed


def row_width(count: int) -> float:
    """Return the width of each button in a row of ``count`` equal buttons."""
    gap = imgui.get_style().item_spacing.x
    return (wide() - (count - 1) * gap) / count


def bar(x: float, y: float, width: float, height: float, ends: tuple[float, float], rgba: Rgba) -> None:
    """Draw a horizontal gauge. ``ends`` are the ends of the filled part, from 0 (left) to 1 (right)."""
    draw: Any = imgui.get_window_draw_list()
    low, high = (min(max(fraction, 0.0), 1.0) for fraction in sorted(ends))
    draw.add_rect_filled((x, y), (x + width, y + height), theme.color(theme.FIELD), 0.5 * height)
    left, right = x + low * width, x + high * width
    if right - left < height:  # make a value of 0 visible
        middle = 0.5 * (left + right)
        left, right = max(x, middle - 0.5 * height), min(x + width, middle + 0.5 * height)
    draw.add_rect_filled((left, y), (right, y + height), theme.color(rgba), 0.5 * height)


def section(areas: Areas, title: str, *, opened: bool = False) -> bool:
    """Draw a collapsible section header. Return True for an open section."""
    imgui.set_next_item_open(opened, imgui.Cond_.once)
    is_open = bool(imgui.collapsing_header(title))
    mark(areas, title)
    return is_open
