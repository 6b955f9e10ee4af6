"""Conversion of glfw key codes to key names, and of key names to window names."""

from __future__ import annotations

from gpusim.description.operator_names import KEYS

NAMES = {code: name for name, code in KEYS.items()}
"""Code in glfw -> key name in mapping files."""
_SIGNS = {
    **{"LEFT_BRACKET": "[", "RIGHT_BRACKET": "]", "COMMA": ",", "MINUS": "-", "PERIOD": ".", "SLASH": "/"},
    **{"SEMICOLON": ";", "EQUAL": "="},
}


def window_name(key: str) -> str:
    """Convert the name of a key in mapping files to the name of the key in the window."""
    return _SIGNS.get(key, key.lower())
