"""Conversion of glfw key codes to key names in mapping files, and to key names of the window."""

from __future__ import annotations

from gpusim.description.operator_names import KEYS

NAMES = {code: name for name, code in KEYS.items()}
"""Key code of glfw -> key name in mapping files."""
_SIGNS = {
    **{"LEFT_BRACKET": "[", "RIGHT_BRACKET": "]", "COMMA": ",", "MINUS": "-", "PERIOD": ".", "SLASH": "/"},
    **{"SEMICOLON": ";", "EQUAL": "="},
}


def window_name(key: str) -> str:
    """Convert a key name in mapping files to the name that the window uses for the key."""
    return _SIGNS.get(key, key.lower())
