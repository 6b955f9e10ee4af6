"""Names of keys, and glfw's codes of them."""

from __future__ import annotations

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
"""glfw's codes by the names that mapping files use."""
NAMES = {code: name for name, code in KEYS.items()}
"""The other way round."""
_SIGNS = {
    **{"LEFT_BRACKET": "[", "RIGHT_BRACKET": "]", "COMMA": ",", "MINUS": "-", "PERIOD": ".", "SLASH": "/"},
    **{"SEMICOLON": ";", "EQUAL": "="},
}


def window_name(key: str) -> str:
    """The window's name (gpusim/viewer/window/screen.py) of a key of mapping files."""
    return _SIGNS.get(key, key.lower())


STOP_KEY = "E"
"""Emergency stop; with shift: release it."""
RESERVED = (STOP_KEY, "ESCAPE", "SPACE", "TAB")
"""Keys that no mapping may take: stop, leave, pause, panel."""
