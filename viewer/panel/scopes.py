"""Gauges, numbers and scopes of the plotted signals."""

from __future__ import annotations

import numpy as np

from gpusim.typing import Array
from gpusim.viewer.panel import theme, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.history import SECONDS, History, Trace, number
from gpusim.viewer.panel.line_colors import LINES

_GRID = 2.0
"""Distance between vertical grid lines, s."""
_MIN_HEIGHT, _MAX_HEIGHT = 2.4, 7.0
"""Minimum and maximum height of a scope, in font sizes."""


def draw(history: History, world: str = "") -> None:
    """Draw all scopes in one column. The column fills the available height.

    Args:
        history: the samples.
        world: name of the displayed world, or empty.
    """
    if not history.scopes:
        imgui.text_disabled("the scene plots no signals")
        return
    f = imgui.get_font_size()
    if world:
        widgets.heading(world)
    rows = sum(len(scope.traces) for scope in history.scopes)
    line = imgui.get_text_line_height_with_spacing()
    taken = len(history.scopes) * (line + 0.9 * f) + rows * (line + 0.15 * f)
    free = (imgui.get_content_region_avail().y - taken) / len(history.scopes)
    height = min(max(free, _MIN_HEIGHT * f), _MAX_HEIGHT * f)
    for index, scope in enumerate(history.scopes):
        imgui.push_id(index)
        times, values = history.course(scope)
        widgets.heading(scope.title, scope.unit)
        for k, trace in enumerate(scope.traces):
            _row(trace, LINES[k % len(LINES)], values[:, k], history.gauge_ends(scope, k, values))
        _scope(times, values, height, history.ends(scope, values))
        imgui.dummy((0.0, 0.12 * f))
        imgui.pop_id()


def _row(trace: Trace, rgba: theme.Rgba, values: Array, ends: tuple[float, float]) -> None:
    """Draw the color, name and value of one line of a scope, and a gauge below."""
    f = imgui.get_font_size()
    value = float(values[-1]) if len(values) else float("nan")
    low, high = ends
    text = number(value, high - low)
    x, width = imgui.get_cursor_pos().x, widgets.wide()
    at = imgui.get_cursor_screen_pos()
    imgui.set_cursor_pos_x(x + 0.8 * f)
    imgui.text(widgets.clipped(trace.label, width - 1.6 * f - imgui.calc_text_size(text).x))
    widgets.right_text(text, theme.TEXT, x + width)
    line = imgui.get_text_line_height()
    draw_list = imgui.get_window_draw_list()
    draw_list.add_rect_filled((at.x, at.y + 0.3 * line), (at.x + 0.5 * f, at.y + 0.72 * line), theme.color(rgba), 2.0)
    if np.isfinite(value) and high > low:
        zero = min(max(0.0, low), high)
        ends = ((zero - low) / (high - low), (value - low) / (high - low))
        widgets.bar(at.x, at.y + line + 0.08 * f, width, max(2.0, 0.16 * f), ends, rgba)
    imgui.dummy((0.0, 0.0))


def _scope(times: Array, values: Array, height: float, ends: tuple[float, float]) -> None:
    """Draw the lines of the last seconds, with the current time at the right edge."""
    f = imgui.get_font_size()
    at, width = imgui.get_cursor_screen_pos(), widgets.wide()
    imgui.dummy((width, height))
    draw_list = imgui.get_window_draw_list()
    right, bottom = at.x + width, at.y + height
    draw_list.add_rect_filled((at.x, at.y), (right, bottom), theme.color(theme.BAR), 0.2 * f)
    margin = 0.08 * (ends[1] - ends[0])
    low, high = ends[0] - margin, ends[1] + margin
    now = float(times[-1]) if len(times) else 0.0
    start = now - SECONDS
    for second in np.arange(np.ceil(start / _GRID) * _GRID, now, _GRID):
        x = at.x + float(second - start) / SECONDS * width
        draw_list.add_line((x, at.y), (x, bottom), theme.color(theme.LINE, 0.5))
    if low < 0.0 < high:
        y = bottom - (0.0 - low) / (high - low) * height
        draw_list.add_line((at.x, y), (right, y), theme.color(theme.LINE))
    if len(times) > 1:
        draw_list.push_clip_rect((at.x, at.y), (right, bottom), True)
        xs = at.x + (times - start) / SECONDS * width
        ys = bottom - (values - low) / (high - low) * height
        for k in reversed(range(values.shape[1])):
            _polyline(xs, ys[:, k], theme.color(LINES[k % len(LINES)]), max(1.2, 0.11 * f))
        draw_list.pop_clip_rect()
    if len(times) and height > 2.8 * f:
        _draw_limits(at.x + 0.25 * f, at.y, bottom, *ends)


def _polyline(xs: Array, ys: Array, color: int, thickness: float) -> None:
    finite = np.isfinite(ys)
    points = np.stack([xs[finite], ys[finite]], axis=1).tolist()
    if len(points) > 1:
        imgui.get_window_draw_list().add_polyline(points, color, thickness, 0)


def _draw_limits(x: float, top: float, bottom: float, low: float, high: float) -> None:
    """Draw the upper and lower limit at the left edge."""
    f = imgui.get_font_size()
    imgui.push_font(None, 0.78 * f)
    draw_list = imgui.get_window_draw_list()
    draw_list.add_text((x, top + 0.08 * f), theme.color(theme.FAINT), number(high, high - low))
    draw_list.add_text((x, bottom - 0.95 * f), theme.color(theme.FAINT), number(low, high - low))
    imgui.pop_font()
