"""Collapsible lists: scene parameters, overlays, keys."""

from __future__ import annotations

from gpusim.scene import ParameterInfo
from gpusim.viewer.operator.key_list import window_key
from gpusim.viewer.panel import theme, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.panel_state import PanelState


def parameters(panel_state: PanelState) -> None:
    """Draw a field for each parameter, and a restart button."""
    for parameter in panel_state.parameters:
        imgui.push_id(parameter.name)
        _parameter(panel_state, parameter)
        imgui.pop_id()
    changed = bool(panel_state.changed())
    if widgets.button(
        "Restart with these" if changed else "Restart", widgets.wide(), theme.ACCENT if changed else None
    ):
        panel_state.restart()
    widgets.mark(panel_state.areas, "restart")
    if panel_state.message:
        widgets.wrapped(panel_state.message, theme.WARN)


def _parameter(panel_state: PanelState, parameter: ParameterInfo) -> None:
    name, text = parameter.name, panel_state.values[parameter.name]
    imgui.align_text_to_frame_padding()
    full = widgets.wide()
    edited = name in panel_state.changed()
    imgui.text_colored(theme.ACCENT if edited else theme.TEXT, widgets.clipped(name, 0.55 * full))
    imgui.set_item_tooltip(f"{name}: {parameter.doc}\n{parameter.type}".replace("%", "%%"))
    imgui.same_line(imgui.get_style().window_padding.x + 0.58 * full)
    imgui.set_next_item_width(-1.0)
    choices = parameter.type.split(" | ") if " | " in parameter.type else []
    if choices:
        picked, number = imgui.combo("##value", choices.index(text) if text in choices else 0, choices)
        panel_state.values[name] = choices[number] if picked else text
    elif parameter.type == "true or false":
        flipped, on = imgui.checkbox("##value", text.lower() in ("true", "1", "yes", "on"))
        panel_state.values[name] = str(on) if flipped else text
    else:
        panel_state.values[name] = imgui.input_text("##value", text)[1]
    widgets.mark(panel_state.areas, f"parameter {name}")


def overlays(panel_state: PanelState) -> None:
    """Draw a check box for each overlay."""
    for overlay in panel_state.overlays:
        edge = imgui.get_cursor_pos().x + widgets.wide()
        flipped, on = imgui.checkbox(overlay.name, overlay.name in panel_state.shown)
        widgets.mark(panel_state.areas, f"overlay {overlay.name}")
        imgui.set_item_tooltip(overlay.description)
        if flipped:
            panel_state.shown.symmetric_difference_update({overlay.name})
        taken = panel_state.operator.used_keys() if panel_state.operator is not None else ()
        widgets.right_text(window_key(overlay.key, taken=taken), theme.FAINT, edge)


def keys(panel_state: PanelState) -> None:
    """List the actions of keyboard, mouse and gamepad."""
    for group in panel_state.all_keys():
        widgets.heading(group.title)
        for line in group.lines:
            edge = imgui.get_cursor_pos().x + widgets.wide()
            text = widgets.clipped(line.keys, 0.6 * widgets.wide())
            room = widgets.wide() - imgui.calc_text_size(text).x - 0.5 * imgui.get_font_size()
            imgui.text(widgets.clipped(line.what, room))
            imgui.set_item_tooltip(f"{line.keys}: {line.what}".replace("%", "%%"))
            widgets.right_text(text, theme.FAINT, edge)
