"""Names of keys and of gamepad sticks and buttons, for operator inputs in models and mapping files."""

from __future__ import annotations

from gpusim import validate
from gpusim.errors import unknown_name

KEYS: dict[str, int] = {
    **{chr(code): code for code in (*range(ord("A"), ord("Z") + 1), *range(ord("0"), ord("9") + 1))},
    **{"SPACE": 32, "COMMA": 44, "MINUS": 45, "PERIOD": 46, "SLASH": 47, "SEMICOLON": 59, "EQUAL": 61},
    **{"LEFT_BRACKET": 91, "RIGHT_BRACKET": 93, "ESCAPE": 256, "ENTER": 257, "TAB": 258, "BACKSPACE": 259},
    **{"INSERT": 260, "DELETE": 261, "RIGHT": 262, "LEFT": 263, "DOWN": 264, "UP": 265},
    **{"PAGE_UP": 266, "PAGE_DOWN": 267, "HOME": 268, "END": 269},
    **{f"F{k}": 289 + k for k in range(1, 13)},
    **{f"KP_{k}": 320 + k for k in range(10)},
    **{"KP_DECIMAL": 330, "KP_DIVIDE": 331, "KP_MULTIPLY": 332, "KP_SUBTRACT": 333, "KP_ADD": 334, "KP_ENTER": 335},
}
"""Key name in mapping files -> GLFW key code."""
STOP_KEY = "E"
"""Key for the emergency stop. Shift together with this key ends the emergency stop."""
RESERVED = (STOP_KEY, "ESCAPE", "SPACE", "TAB")
"""Keys that mappings must not use: they trigger the emergency stop, quit, pause, or open the panel."""
AXES = ("left_x", "left_y", "right_x", "right_y", "left_trigger", "right_trigger")
"""Gamepad axes in GLFW's order. Stick values are from -1 to 1, positive to the right and forward. Trigger values are
from 0 to 1."""
BUTTONS = (
    *("a", "b", "x", "y", "left_bumper", "right_bumper", "back", "start", "guide", "left_thumb", "right_thumb"),
    *("dpad_up", "dpad_right", "dpad_down", "dpad_left"),
)
"""Gamepad buttons in GLFW's order."""
STOP_BUTTON = "back"
"""Default gamepad button for the emergency stop."""


def check_key(element: str, key: str) -> None:
    """Check that a key exists and is not reserved.

    Raises:
        ModelError: the key is unknown or reserved.
    """
    if key not in KEYS:
        raise validate.fail(element, str(unknown_name("key", key, KEYS)), 'give a name such as "A" or "KP_4"')
    if key in RESERVED:
        raise validate.fail(element, f"key {key!r} is reserved", "use another key")


def check_part(element: str, what: str, name: str) -> None:
    """Check the name of a gamepad axis or button. ``what`` is "axis" or "button".

    Raises:
        ModelError: the name is unknown.
    """
    known = AXES if what == "axis" else BUTTONS
    raw = name.startswith(f"{what}_") and name.removeprefix(f"{what}_").isdigit()
    if name and name not in known and not raw:
        raise validate.fail(
            element, str(unknown_name(what, name, known)), f"give one of these names, or {what}_0, {what}_1, ..."
        )
