"""Main buttons of the panel: emergency stop, time, recording and replay."""

from __future__ import annotations

from gpusim.viewer.operator import Operator
from gpusim.viewer.panel import theme, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.panel_state import PanelState


def emergency_stop(panel_state: PanelState, operator: Operator) -> None:
    """Draw a large red stop button, or a release button while the emergency stop is latched."""
    f = imgui.get_font_size()
    width, height = widgets.wide(), 2.3 * f
    imgui.push_font(None, 1.12 * f)
    if operator.stopped:
        imgui.push_style_color(imgui.Col_.text, theme.color(theme.BAR))
        if widgets.button("RELEASE STOP", width, theme.WARN, height):
            operator.release_stop()
        imgui.pop_style_color()
        low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
        imgui.get_window_draw_list().add_rect(low, high, theme.color(theme.BAD), 0.22 * f, 3.0)
    elif widgets.button("EMERGENCY STOP", width, theme.BAD, height):
        operator.emergency_stop()
    imgui.pop_font()
    widgets.mark(panel_state.areas, "stop")
    imgui.set_item_tooltip("set every command to its safe value, until you release the stop (E; Shift+E releases)")


def time(panel_state: PanelState) -> None:
    """Draw the buttons for pause, single step, reset and speed."""
    session = panel_state.session
    width = widgets.row_width(3)
    if widgets.button("Run" if session.paused else "Pause", width, theme.ACCENT if session.paused else None):
        session.toggle_pause()
    widgets.mark(panel_state.areas, "run")
    imgui.set_item_tooltip("space")
    imgui.same_line()
    if widgets.button("Step", width):
        session.single_step()
    widgets.mark(panel_state.areas, "step")
    imgui.set_item_tooltip("right arrow")
    imgui.same_line()
    if widgets.button("Reset", width):
        panel_state.reset()
    widgets.mark(panel_state.areas, "reset")
    imgui.set_item_tooltip("R")
    _speed(panel_state)


def _speed(panel_state: PanelState) -> None:
    f = imgui.get_font_size()
    session = panel_state.session
    step = 1.7 * f
    text = f"{session.speed:g}x speed"
    if widgets.button("-", step):
        session.slower()
    widgets.mark(panel_state.areas, "slower")
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
    widgets.mark(panel_state.areas, "faster")
    imgui.set_item_tooltip("]")


def timeline(panel_state: PanelState) -> None:
    """Draw a slider over the length of the played motion."""
    session, f = panel_state.session, imgui.get_font_size()
    imgui.push_style_var(imgui.StyleVar_.frame_padding, (0.2 * f, 0.0))
    imgui.set_next_item_width(-1.0)
    flags = imgui.SliderFlags_.no_input | imgui.SliderFlags_.always_clamp
    moved, chosen_time = imgui.slider_float("##timeline", session.time, 0.0, session.source.length or 0.0, "", flags)
    imgui.pop_style_var()
    widgets.mark(panel_state.areas, "timeline")
    imgui.set_item_tooltip(f"{session.clock}; arrows: one frame, with Shift 1 s")
    if moved:
        session.seek(chosen_time)


def recording(panel_state: PanelState) -> None:
    """Draw the buttons that record and replay the operator's commands."""
    operator = panel_state.operator
    if operator is None:
        return
    width = widgets.row_width(2)
    if widgets.button(
        "End record" if operator.recording else "Record", width, theme.BAD if operator.recording else None
    ):
        panel_state.toggle_recording()
    widgets.mark(panel_state.areas, "record")
    imgui.set_item_tooltip(
        f"reset, and record all commands to {panel_state.record_path.name}; later files get a number"
    )
    imgui.same_line()
    if widgets.button(
        "End replay" if operator.replaying else "Replay", width, theme.GOOD if operator.replaying else None
    ):
        panel_state.toggle_replay()
    widgets.mark(panel_state.areas, "replay")
    imgui.set_item_tooltip(f"reset, and replay {operator.recorded or 'the newest recording in the folder'}")
    if panel_state.problem:
        widgets.wrapped(panel_state.problem, theme.WARN)
    elif operator.log:
        imgui.text_colored(theme.FAINT, widgets.clipped(operator.log, widgets.wide()))
