"""What folds away: parameters of the scene, overlays, keys."""

from __future__ import annotations

from gpusim.scene import ParameterInfo
from gpusim.viewer.operator import Operator
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
        imgui.push_style_color(imgui.Col_.text, look.color(look.WARN))
        imgui.text_wrapped(desk.message.replace("%", "%%"))
        imgui.pop_style_color()


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
        widgets.right_text(overlay.key.upper(), look.FAINT, edge)


def keys(operator: Operator) -> None:
    """What keyboard and gamepad move."""
    pad = "gamepad connected" if operator.devices.connected else "no gamepad"
    imgui.text_colored(look.FAINT, widgets.clipped(f"{operator.mapping.name}, {pad}", widgets.wide()))
    for binding in operator.mapping.bindings:
        edge = imgui.get_cursor_pos().x + widgets.wide()
        what = " ".join(key.replace("KP_", "num ") for key in binding.keys)
        stick = (binding.axis or binding.button).replace("_", " ")
        text = ", ".join(part for part in (what, stick) if part)
        imgui.text(widgets.clipped(binding.command, widgets.wide() - imgui.calc_text_size(text).x - 6.0))
        widgets.right_text(text, look.FAINT, edge)
