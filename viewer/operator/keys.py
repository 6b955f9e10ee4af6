"""The other names of keys: those of glfw's codes, and the window's."""

from __future__ import annotations

from gpusim.model.operator_names import KEYS

NAMES = {code: name for name, code in KEYS.items()}
"""Names that mapping files use, by glfw's codes."""
_SIGNS = {
    **{"LEFT_BRACKET": "[", "RIGHT_BRACKET": "]", "COMMA": ",", "MINUS": "-", "PERIOD": ".", "SLASH": "/"},
    **{"SEMICOLON": ";", "EQUAL": "="},
}


def window_name(key: str) -> str:
    """The window's name (gpusim/viewer/window/screen.py) of a key of mapping files."""
    return _SIGNS.get(key, key.lower())
