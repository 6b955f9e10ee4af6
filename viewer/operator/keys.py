"""Conversion of key names: from glfw's codes, and to the window's names."""

from __future__ import annotations

from gpusim.description.operator_names import KEYS

NAMES = {code: name for name, code in KEYS.items()}
"""Names used in mapping files, by glfw's codes."""
_SIGNS = {
    **{"LEFT_BRACKET": "[", "RIGHT_BRACKET": "]", "COMMA": ",", "MINUS": "-", "PERIOD": ".", "SLASH": "/"},
    **{"SEMICOLON": ";", "EQUAL": "="},
}


def window_name(key: str) -> str:
    """Return the window's name (gpusim/viewer/window/screen.py) of a key from a mapping file."""
    return _SIGNS.get(key, key.lower())
