"""What folds away: parameters of the scene, overlays, keys."""

from __future__ import annotations

from gpusim.scene import ParameterInfo
from gpusim.viewer.operator.key_list import window_key
from gpusim.viewer.panel import look, widgets
from gpusim.viewer.panel.bundle import imgui
from gpusim.viewer.panel.desk import Desk


def parameters(desk: Desk) -> None:
    """A field for each parameter, and the button that starts anew with them."""
    for parameter in desk.parameters:
        imgui.push_id(parameter.name)
        _parameter(desk, parameter)
        imgui.pop_id()
    changed = bool(desk.changed())
    if widgets.button("Restart with these" if changed else "Restart", widgets.wide(), look.ACCENT if changed else None):
        desk.restart()
    widgets.mark(desk.places, "restart")
    if desk.message:
        widgets.wrapped(desk.message, look.WARN)


def _parameter(desk: Desk, parameter: ParameterInfo) -> None:
    name, text = parameter.name, desk.values[parameter.name]
    imgui.align_text_to_frame_padding()
    full = widgets.wide()
    edited = name in desk.changed()
    imgui.text_colored(look.ACCENT if edited else look.TEXT, widgets.clipped(name, 0.55 * full))
    imgui.set_item_tooltip(f"{name}: {parameter.doc}\n{parameter.type}".replace("%", "%%"))
    imgui.same_line(imgui.get_style().window_padding.x + 0.58 * full)
    imgui.set_next_item_width(-1.0)
    choices = parameter.type.split(" | ") if " | " in parameter.type else []
    if choices:
        picked, number = imgui.combo("##value", choices.index(text) if text in choices else 0, choices)
        desk.values[name] = choices[number] if picked else text
    elif parameter.type == "true or false":
        flipped, on = imgui.checkbox("##value", text.lower() in ("true", "1", "yes", "on"))
        desk.values[name] = str(on) if flipped else text
    else:
        desk.values[name] = imgui.input_text("##value", text)[1]
    widgets.mark(desk.places, f"parameter {name}")


def overlays(desk: Desk) -> None:
    """A check box for each overlay."""
    for overlay in desk.overlays:
        edge = imgui.get_cursor_pos().x + widgets.wide()
        flipped, on = imgui.checkbox(overlay.name, overlay.name in desk.shown)
        widgets.mark(desk.places, f"overlay {overlay.name}")
        imgui.set_item_tooltip(overlay.description)
        if flipped:
            desk.shown.symmetric_difference_update({overlay.name})
        taken = desk.operator.taken_keys() if desk.operator is not None else ()
        widgets.right_text(window_key(overlay.key, taken=taken), look.FAINT, edge)


def keys(desk: Desk) -> None:
    """What keyboard, mouse and gamepad do; whole sentences are in the tooltips."""
    for group in desk.all_keys():
        widgets.heading(group.title)
        for line in group.lines:
            edge = imgui.get_cursor_pos().x + widgets.wide()
            text = widgets.clipped(line.keys, 0.6 * widgets.wide())
            room = widgets.wide() - imgui.calc_text_size(text).x - 0.5 * imgui.get_font_size()
            imgui.text(widgets.clipped(line.what, room))
            imgui.set_item_tooltip(f"{line.keys}: {line.what}".replace("%", "%%"))
            widgets.right_text(text, look.FAINT, edge)
