"""Suggestions of known units for unknown units such as "mm", "kN", "Nm" and "m/s^2"."""

from __future__ import annotations

import math
import re

from gpusim.control import units

_SIGNS = str.maketrans({
    "²": "2", "³": "3", "⁴": "4", "^": "", "·": " ", "⋅": " ", "×": " ", "*": " ", "µ": "u", "μ": "u", "Ω": " Ohm ",
    "°": " deg ", "%": " percent ", "(": " ", ")": " ",
})  # fmt: skip
_OTHERS = {
    "percent": ("1", 0.01), "rpm": ("rad/s", math.pi / 30.0), "rev": ("rad", 2.0 * math.pi),
    "g": ("kg", 1e-3), "t": ("kg", 1e3), "min": ("s", 60.0), "h": ("s", 3600.0), "hr": ("s", 3600.0),
    "sec": ("s", 1.0), "second": ("s", 1.0), "meter": ("m", 1.0), "metre": ("m", 1.0), "newton": ("N", 1.0),
    "degree": ("deg", 1.0), "radian": ("rad", 1.0), "ohm": ("Ohm", 1.0), "volt": ("V", 1.0), "amp": ("A", 1.0),
    "L": ("l", 1.0), "liter": ("l", 1.0), "litre": ("l", 1.0), "kgf": ("N", 9.80665), "hp": ("W", 745.7),
}  # fmt: skip
_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "k": 1e3, "M": 1e6, "G": 1e9}
_WORD = re.compile(r"([A-Za-z]+)(-?\d*)")


def hint(text: str) -> str | None:
    """Suggest a replacement for an unknown unit, or return None if the meaning is unclear."""
    plain = text.translate(_SIGNS).replace("per ", "/")
    above, _, below = plain.partition("/")
    parts, factor = [], 1.0
    for side, sign in ((above, 1), (below.replace("/", " "), -1)):
        found = [_corrected(word) for word in side.split()]
        if None in found:
            return None
        words = [one for one in found if one is not None]
        parts.append([word for word, _ in words])
        factor *= math.prod(scale for _, scale in words) ** sign
    return _sentence(_joined(*parts), factor)


def _joined(above: list[str], below: list[str]) -> str:
    """Return the text of the unit ``above / below``."""
    up: list[str] = []
    down: list[str] = []
    for words, same, other in ((above, up, down), (below, down, up)):
        for word in words:
            over, _, under = word.partition("/")
            same.append(over)
            other += [under] if under else []
    top, bottom = ([word for word in words if word != "1"] for words in (up, down))
    if not bottom:
        return " ".join(top) or "-"
    return f"{' '.join(top) or '1'}/{' '.join(bottom)}"


def _sentence(unit: str, factor: float) -> str | None:
    if units.parse(unit) is None:
        return None
    if math.isclose(factor, 1.0):
        return f'write "{unit}"'
    return f'write "{unit}" and a gain of {factor:g}'.replace("e+0", "e").replace("e-0", "e-")


_LONGEST = 40
"""Maximum number of letters in a word that the module analyzes."""


def _corrected(word: str) -> tuple[str, float] | None:
    """Find the known units for a unit name. Return these units and the conversion factor, or None."""
    if units.parse(word) is not None:
        return word, 1.0
    if len(word) > _LONGEST:
        return None
    match = _WORD.fullmatch(word)
    if match is None:
        return None
    name, power = match[1], match[2]
    # Short words are case-sensitive: "T" is not a tonne.
    spelled = name.lower().removesuffix("s") if len(name) > 2 else name
    for plain in (name, spelled):
        if plain in _OTHERS and (not power or "/" not in _OTHERS[plain][0]):
            unit, factor = _OTHERS[plain]
            return unit + power, factor ** int(power or 1)
    if name[0] in _PREFIXES and (base := _known(name[1:])) is not None:
        return base[0] + power, (_PREFIXES[name[0]] * base[1]) ** int(power or 1)
    for cut in range(1, len(name)):
        if units.parse(name[:cut]) is not None and (rest := _corrected(name[cut:] + power)) is not None:
            return f"{name[:cut]} {rest[0]}", rest[1]
    return None


def _known(name: str) -> tuple[str, float] | None:
    """Return unit and conversion factor of a word that can follow a prefix such as "k", or None for other words."""
    if name in ("g", "t"):
        return _OTHERS[name]
    return (name, 1.0) if name not in ("", "kg", "logic") and units.parse(name) is not None else None
