"""Conversion of signal units to FMI units. An FMI unit has exponents of base units and a factor."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from gpusim.control import units

_OTHERS: dict[str, tuple[float, dict[str, int]]] = {
    "deg": (math.pi / 180.0, {"rad": 1}),
    "bar": (1e5, {"kg": 1, "m": -1, "s": -2}),
    "l": (1e-3, {"m": 3}),
}
"""Conversion factor and SI base units of each non-SI unit."""


def fmi_unit(text: str) -> dict[str, Any] | None:
    """Return the attributes of an FMI BaseUnit, e.g. ``{"kg": 1, "m": 1, "s": -2}`` for "N".

    Returns:
        Exponents by base unit, and ``factor`` if the factor is not 1. The result is None without a unit, and for units
        that FMI cannot express, such as roots.
    """
    parsed = units.parse(text)
    if parsed is None or text.strip() in ("-", "", "1", "logic"):
        return None
    factor, powers = 1.0, Counter({"rad": _radians(text)})
    for name, power in parsed:
        scale, base = _OTHERS.get(name, (1.0, {name: 1}))
        factor *= scale**power
        for unit, exponent in base.items():
            powers[unit] += exponent * power
    attributes: dict[str, Any] = {unit: power for unit, power in powers.items() if power}
    return attributes | ({"factor": factor} if factor != 1.0 else {})


def _radians(text: str) -> int:
    """Return the exponent of the radian in a unit. ``units.parse`` omits radians."""
    numerator, _, denominator = text.partition("/")
    return numerator.split().count("rad") - denominator.split().count("rad")
