"""Status line: health, time, recording or playback, real-time factor, jitter, and the last event."""

from __future__ import annotations

from gpusim.viewer.panel import theme, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.panel_state import PanelState


def draw(panel_state: PanelState) -> None:
    """Draw the status line."""
    session = panel_state.session
    health, well = panel_state.health()
    gap = 1.1 * imgui.get_font_size()
    running = theme.ACCENT if panel_state.live is None else theme.GOOD
    _dot(theme.BAD if not well else theme.WARN if session.behind else running)
    _cell(health, theme.TEXT if well else theme.BAD, gap)
    _cell(session.clock, theme.TEXT, gap)
    if session.source.recording:
        _dot(theme.BAD)
        _cell(session.source.recording, theme.TEXT, gap)
    _cell(*_pace(panel_state), gap)
    if panel_state.jitter is not None:
        if panel_state.frame_rate:
            _cell(f"{panel_state.frame_rate:.0f} frames/s", theme.FAINT, gap)
        _cell(f"jitter {1e3 * panel_state.jitter:.1f} ms", theme.FAINT, gap)
    text, rgba = _event(panel_state)
    if text:
        edge = imgui.get_cursor_pos().x + widgets.wide()
        imgui.dummy((0.0, 0.0))
        imgui.same_line()
        widgets.right_text(widgets.clipped(text, widgets.wide()), rgba, edge)


def _pace(panel_state: PanelState) -> tuple[str, theme.Rgba]:
    session = panel_state.session
    if session.paused:
        return "paused", theme.WARN
    text = f"{session.real_time_factor():.2f}x real time"
    return (text + ", behind", theme.WARN) if session.behind else (text, theme.TEXT)


def _event(panel_state: PanelState) -> tuple[str, theme.Rgba]:
    operator = panel_state.operator
    if operator is not None and operator.stopped:
        return "EMERGENCY STOP", theme.BAD
    if operator is not None and operator.recording:
        return f"recording commands: {operator.log}", theme.BAD
    if operator is not None and operator.replaying:
        return f"replaying commands {operator.log}".rstrip(), theme.GOOD
    return panel_state.session.note or (operator.note if operator is not None else ""), theme.FAINT


def _dot(rgba: theme.Rgba) -> None:
    f = imgui.get_font_size()
    at = imgui.get_cursor_screen_pos()
    middle = at.y + 0.52 * imgui.get_text_line_height()
    imgui.get_window_draw_list().add_circle_filled((at.x + 0.4 * f, middle), 0.34 * f, theme.color(rgba))
    imgui.dummy((0.8 * f, imgui.get_text_line_height()))
    imgui.same_line(0.0, 0.4 * f)


def _cell(text: str, rgba: theme.Rgba, gap: float) -> None:
    imgui.text_colored(rgba, text)
    imgui.same_line(0.0, gap)
