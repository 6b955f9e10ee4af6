"""The status line: health, time, what is recorded or played, real-time factor, jitter, and what happened last."""

from __future__ import annotations

from gpusim.viewer.panel import look, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.desk import Desk


def draw(desk: Desk) -> None:
    """One line across the picture."""
    session = desk.session
    health, well = desk.health()
    gap = 1.1 * imgui.get_font_size()
    running = look.ACCENT if desk.live is None else look.GOOD
    _dot(look.BAD if not well else look.WARN if session.behind else running)
    _cell(health, look.TEXT if well else look.BAD, gap)
    _cell(session.clock, look.TEXT, gap)
    if session.source.recording:
        _dot(look.BAD)
        _cell(session.source.recording, look.TEXT, gap)
    _cell(*_pace(desk), gap)
    if desk.jitter is not None:
        if desk.frame_rate:
            _cell(f"{desk.frame_rate:.0f} frames/s", look.FAINT, gap)
        _cell(f"jitter {1e3 * desk.jitter:.1f} ms", look.FAINT, gap)
    text, rgba = _event(desk)
    if text:
        edge = imgui.get_cursor_pos().x + widgets.wide()
        imgui.dummy((0.0, 0.0))
        imgui.same_line()
        widgets.right_text(widgets.clipped(text, widgets.wide()), rgba, edge)


def _pace(desk: Desk) -> tuple[str, look.Rgba]:
    session = desk.session
    if session.paused:
        return "paused", look.WARN
    text = f"{session.real_time_factor():.2f}x real time"
    return (text + ", behind", look.WARN) if session.behind else (text, look.TEXT)


def _event(desk: Desk) -> tuple[str, look.Rgba]:
    operator = desk.operator
    if operator is not None and operator.stopped:
        return "EMERGENCY STOP", look.BAD
    if operator is not None and operator.recording:
        return f"recording commands: {operator.tape}", look.BAD
    if operator is not None and operator.replaying:
        return f"replaying commands {operator.tape}".rstrip(), look.GOOD
    return desk.session.note or (operator.note if operator is not None else ""), look.FAINT


def _dot(rgba: look.Rgba) -> None:
    f = imgui.get_font_size()
    at = imgui.get_cursor_screen_pos()
    middle = at.y + 0.52 * imgui.get_text_line_height()
    imgui.get_window_draw_list().add_circle_filled((at.x + 0.4 * f, middle), 0.34 * f, look.color(rgba))
    imgui.dummy((0.8 * f, imgui.get_text_line_height()))
    imgui.same_line(0.0, 0.4 * f)


def _cell(text: str, rgba: look.Rgba, gap: float) -> None:
    imgui.text_colored(rgba, text)
    imgui.same_line(0.0, gap)
