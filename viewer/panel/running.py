"""Emergency stop, time, recording and replay: the buttons that a person must find at once."""

from __future__ import annotations

from gpusim.viewer.operator import Operator
from gpusim.viewer.panel import look, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.desk import Desk


def emergency_stop(desk: Desk, operator: Operator) -> None:
    """Big and red; once it is latched, the button that releases it."""
    f = imgui.get_font_size()
    width, height = widgets.wide(), 2.3 * f
    imgui.push_font(None, 1.12 * f)
    if operator.stopped:
        imgui.push_style_color(imgui.Col_.text, look.color(look.BAR))
        if widgets.button("RELEASE STOP", width, look.WARN, height):
            operator.release_stop()
        imgui.pop_style_color()
        low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        imgui.get_window_draw_list().add_rect(low, high, look.color(look.BAD), 0.22 * f, 3.0)
    elif widgets.button("EMERGENCY STOP", width, look.BAD, height):
        operator.emergency_stop()
    imgui.pop_font()
    widgets.mark(desk.places, "stop")
    imgui.set_item_tooltip("every command to its safe value, until it is released (E; Shift+E releases)")


def time(desk: Desk) -> None:
    """Pause, single step, reset, speed."""
    session = desk.session
    width = widgets.row_width(3)
    if widgets.button("Run" if session.paused else "Pause", width, look.ACCENT if session.paused else None):
        session.toggle_pause()
    widgets.mark(desk.places, "run")
    imgui.set_item_tooltip("space")
    imgui.same_line()
    if widgets.button("Step", width):
        session.single_step()
    widgets.mark(desk.places, "step")
    imgui.set_item_tooltip("right arrow")
    imgui.same_line()
    if widgets.button("Reset", width):
        desk.reset()
    widgets.mark(desk.places, "reset")
    imgui.set_item_tooltip("R")
    _speed(desk)


def _speed(desk: Desk) -> None:
    f = imgui.get_font_size()
    session = desk.session
    step = 1.7 * f
    text = f"{session.speed:g}x speed"
    if widgets.button("-", step):
        session.slower()
    widgets.mark(desk.places, "slower")
    imgui.set_item_tooltip("[")
    room = widgets.wide()
    imgui.same_line()
    imgui.align_text_to_frame_padding()
    left = imgui.get_cursor_pos().x
    imgui.set_cursor_pos_x(0.5 * (left + left + room - 2.0 * step - imgui.calc_text_size(text).x))
    imgui.text(text)
    imgui.same_line(imgui.get_style().window_padding.x + room - step)
    if widgets.button("+", step):
        session.faster()
    widgets.mark(desk.places, "faster")
    imgui.set_item_tooltip("]")


def timeline(desk: Desk) -> None:
    """A slider over the whole length of the motion that is played: it follows, and goes where it is dragged."""
    session, f = desk.session, imgui.get_font_size()
    imgui.push_style_var(imgui.StyleVar_.frame_padding, (0.2 * f, 0.0))
    imgui.set_next_item_width(-1.0)
    flags = imgui.SliderFlags_.no_input | imgui.SliderFlags_.always_clamp
    moved, place = imgui.slider_float("##timeline", session.time, 0.0, session.source.length or 0.0, "", flags)
    imgui.pop_style_var()
    widgets.mark(desk.places, "timeline")
    imgui.set_item_tooltip(f"{session.clock}; arrows: one frame, with Shift 1 s")
    if moved:
        session.seek(place)


def recording(desk: Desk) -> None:
    """Record and replay what the operator does."""
    operator = desk.operator
    if operator is None:
        return
    width = widgets.row_width(2)
    if widgets.button(
        "End record" if operator.recording else "Record", width, look.BAD if operator.recording else None
    ):
        desk.toggle_recording()
    widgets.mark(desk.places, "record")
    imgui.set_item_tooltip(f"reset, and record all commands: {desk.record_path.name}, then with 2, 3, ... in its name")
    imgui.same_line()
    if widgets.button(
        "End replay" if operator.replaying else "Replay", width, look.GOOD if operator.replaying else None
    ):
        desk.toggle_replay()
    widgets.mark(desk.places, "replay")
    imgui.set_item_tooltip(f"reset, and repeat {operator.recorded or 'the newest recording in the folder'}")
    if desk.problem:
        widgets.wrapped(desk.problem, look.WARN)
    elif operator.tape:
        imgui.text_colored(look.FAINT, widgets.clipped(operator.tape, widgets.wide()))
