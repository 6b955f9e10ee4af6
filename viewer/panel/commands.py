"""Sliders and switches for the operator's inputs."""

from __future__ import annotations

from gpusim.viewer.operator import Input, Operator
from gpusim.viewer.operator.mapping import bound_inputs
from gpusim.viewer.panel import theme, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.history import number
from gpusim.viewer.panel.panel_state import PanelState

_RIGHT_BUTTON = 1


def draw(panel_state: PanelState, operator: Operator) -> None:
    """Draw all inputs in order and send changes to the operator."""
    shown = [item for item in operator.inputs.values() if not item.idle]
    if not shown:
        imgui.text_disabled("no commands")
        return
    if operator.sim.num_worlds > 1:
        widgets.heading("Commands", f"to all {operator.sim.num_worlds} worlds")
        imgui.set_item_tooltip(f"values and gauges show {panel_state.world_name()}: click a body of another world")
    imgui.begin_disabled(operator.stopped)
    for item in shown:
        imgui.push_id(item.name)
        value = operator.value(item.name, panel_state.world)
        _head(operator, item, value)
        if item.switch:
            _switch(operator, item, value)
        else:
            _slider(operator, item, value)
        widgets.mark(panel_state.areas, f"command {item.name}")
        imgui.pop_id()
    imgui.end_disabled()


def _head(operator: Operator, item: Input, value: float) -> None:
    """Draw the name, value and unit of an input."""
    source = operator.source(item.name)
    span = item.upper - item.lower
    text = number(value, span, "+" if item.lower < 0.0 else "")
    text = ("on" if value > 0.5 * (item.lower + item.upper) else "off") if item.switch else text
    text += f" {item.unit}" if item.unit != "-" else ""
    edge = imgui.get_cursor_pos().x + widgets.wide()
    room = widgets.wide() - imgui.calc_text_size(text).x - imgui.get_font_size()
    imgui.align_text_to_frame_padding()
    imgui.text(widgets.clipped(item.name, room))
    imgui.set_item_tooltip(_hint(operator, item, source))
    _draw_source(operator, item, source, room)
    if item.switch:
        edge -= 2.3 * imgui.get_font_size()
    widgets.right_text(text, theme.SOURCES.get(source, theme.FAINT) if source else theme.TEXT, edge)


def _draw_source(operator: Operator, item: Input, source: str, room: float) -> None:
    """Draw the name of the device that has set the value, if the line has enough space."""
    f = imgui.get_font_size()
    who = source or ("schedule" if operator.scheduled() and item.name in operator.sim.control else "")
    left = room - imgui.calc_text_size(item.name).x - (3.3 * f if item.switch else f)
    if who and imgui.calc_text_size(who).x < left:
        imgui.same_line()
        imgui.text_colored(theme.SOURCES.get(source, theme.FAINT), who)


def _hint(operator: Operator, item: Input, source: str) -> str:
    default = "schedule of the scene" if operator.scheduled() else "nothing"
    lines = [f"{item.name}: {item.doc}" if item.doc else item.name, f"set by: {source or default}"]
    for binding in operator.mapping.bindings:
        if bound_inputs(binding, [item.name]):
            lines.append(f"moved by: {binding.moved_by}")
    if source and not item.switch:
        lines.append("right button: let go")
    return "\n".join(lines).replace("%", "%%")


def _slider(operator: Operator, item: Input, value: float) -> None:
    """Draw a thin slider without text, with a mark at zero."""
    source = operator.source(item.name)
    f = imgui.get_font_size()
    imgui.push_style_var(imgui.StyleVar_.frame_padding, (0.2 * f, 0.0))
    grab = theme.SOURCES.get(source, theme.FAINT)
    imgui.push_style_color(imgui.Col_.slider_grab, theme.color(grab))
    imgui.push_font(None, 0.8 * f)
    imgui.set_next_item_width(-1.0)
    flags = imgui.SliderFlags_.no_input | imgui.SliderFlags_.always_clamp
    moved, value = imgui.slider_float("##value", value, item.lower, item.upper, "", flags)
    imgui.pop_font()
    imgui.pop_style_color()
    imgui.pop_style_var()
    _zero_mark(item)
    if moved:
        operator.set(item.name, value)
    if imgui.is_item_clicked(_RIGHT_BUTTON):
        operator.release(item.name)


def _zero_mark(item: Input) -> None:
    if not item.lower < 0.0 < item.upper:
        return
    low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
    # margins in imgui: 2, plus half of the grab's width
    inset = 2.0 + 0.5 * imgui.get_style().grab_min_size
    fraction = -item.lower / (item.upper - item.lower)
    x = round(low.x + inset + fraction * (high.x - low.x - 2.0 * inset)) + 0.5
    draw = imgui.get_window_draw_list()
    draw.add_line((x, high.y - 1.0), (x, high.y + 2.0), theme.color(theme.FAINT))


def _switch(operator: Operator, item: Input, value: float) -> None:
    """Draw a switch on the line of the input's name."""
    f = imgui.get_font_size()
    on = value > 0.5 * (item.lower + item.upper)
    imgui.same_line(imgui.get_cursor_pos().x + widgets.wide() - 1.8 * f)
    width, height = 1.8 * f, 0.95 * f
    pressed = imgui.invisible_button("##switch", (width, imgui.get_frame_height()))
    low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
    y = 0.5 * (low.y + high.y)
    rgba = (theme.SOURCES.get(operator.source(item.name), theme.ACCENT) if on else theme.FIELD_ACTIVE) or theme.ACCENT
    draw = imgui.get_window_draw_list()
    draw.add_rect_filled((low.x, y - 0.5 * height), (high.x, y + 0.5 * height), theme.color(rgba), 0.5 * height)
    x = high.x - 0.5 * height if on else low.x + 0.5 * height
    draw.add_circle_filled((x, y), 0.36 * height, theme.color(theme.TEXT))
    if pressed:
        operator.set(item.name, item.lower if on else item.upper)
