"""Mouse and keyboard events for imgui. The events use glfw's codes, but need no window."""

from __future__ import annotations

from typing import Any

_KEYS = {
    **{256: "escape", 257: "enter", 258: "tab", 259: "backspace", 260: "insert", 261: "delete"},
    **{262: "right_arrow", 263: "left_arrow", 264: "down_arrow", 265: "up_arrow"},
    **{266: "page_up", 267: "page_down", 268: "home", 269: "end", 335: "keypad_enter"},
    **{65: "a", 67: "c", 86: "v", 88: "x", 89: "y", 90: "z"},
}
"""Keys for text editing."""
_MODIFIERS = {1: "mod_shift", 2: "mod_ctrl", 4: "mod_alt", 8: "mod_super"}


class Events:
    """Event sender for one imgui context.

    Args:
        imgui: the imgui module.
        io: the io object of the imgui context.
    """

    def __init__(self, imgui: Any, io: Any) -> None:
        self._imgui, self._io = imgui, io

    def cursor(self, x: float, y: float) -> None:
        """Report the cursor position, measured from the window's upper left corner."""
        self._io.add_mouse_pos_event(x, y)

    def button(self, number: int, down: bool) -> None:
        """Report a mouse button: 0 left, 1 right, 2 middle."""
        if number < 5:
            self._io.add_mouse_button_event(number, down)

    def scroll(self, right: float, up: float) -> None:
        """Report a movement of the mouse wheel."""
        self._io.add_mouse_wheel_event(right, up)

    def key(self, code: int, down: bool, modifiers: int = 0) -> None:
        """Report a key. ``modifiers`` are the pressed modifier keys, as glfw's bits."""
        for bit, name in _MODIFIERS.items():
            self._io.add_key_event(getattr(self._imgui.Key, name), bool(modifiers & bit))
        if code in _KEYS:
            self._io.add_key_event(getattr(self._imgui.Key, _KEYS[code]), down)

    def character(self, code: int) -> None:
        """Report a typed character."""
        self._io.add_input_character(code)
