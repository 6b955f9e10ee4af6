"""Units of wires: products of powers of base units.

A radian is unitless. A degree is a separate base unit. An unknown unit (None) matches every other unit.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

Unit = tuple[tuple[str, int], ...] | None
"""Sorted base units and their powers, or None for an unknown unit."""
NONE: Unit = ()
SECOND: Unit = (("s", 1),)
_BASE = ("m", "kg", "s", "A", "K", "deg", "bar", "l")
_DERIVED = {
    "N": "kg m/s2", "J": "kg m2/s2", "W": "kg m2/s3", "Pa": "kg/m s2", "V": "kg m2/s3 A", "Ohm": "kg m2/s3 A2",
    "C": "A s", "Hz": "1/s",
}  # fmt: skip
_PART = re.compile(r"([A-Za-z]+)(-?\d*)")


_LONGEST = 100


@cache
def parse(text: str | None) -> Unit:
    """Parse the text of a unit. Words after the slash are in the denominator. Return None if the text is unknown."""
    if text is None or len(text) > _LONGEST:
        return None
    if text.strip() in ("-", "", "1", "rad", "logic"):
        return NONE
    above, slash, below = text.partition("/")
    powers: Counter[str] = Counter()
    for part, sign in ((above, 1), (below if slash else "", -1)):
        for word in part.replace("(", " ").replace(")", " ").replace("*", " ").split():
            if word in ("1", "-", "rad"):
                continue
            match = _PART.fullmatch(word)
            if match is None:
                return None
            name, power = match[1], sign * int(match[2] or 1)
            if name in _BASE:
                powers[name] += power
                continue
            inner = parse(_DERIVED[name]) if name in _DERIVED else None
            if inner is None:
                if name == "rad":
                    continue
                return None
            for base, exponent in inner:
                powers[base] += power * exponent
    return _sorted(powers)


def _sorted(powers: Counter[str]) -> Unit:
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def product(*units: Unit) -> Unit:
    """Return the unit of a product."""
    powers: Counter[str] = Counter()
    for unit in units:
        if unit is None:
            return None
        for name, power in unit:
            powers[name] += power
    return _sorted(powers)


def power(unit: Unit, exponent: int) -> Unit:
    """Return the integer power of a unit."""
    return None if unit is None else _sorted(Counter({name: p * exponent for name, p in unit}))


def fits(a: Unit, b: Unit) -> bool:
    """Return True if the two units are equal or at least one is unknown."""
    return a is None or b is None or a == b


def shown(unit: Unit) -> str:
    """Return the text of a unit."""
    if unit is None:
        return "?"
    above = " ".join(name + (str(p) if p != 1 else "") for name, p in unit if p > 0)
    below = " ".join(name + (str(-p) if p != -1 else "") for name, p in unit if p < 0)
    return (above or "1") + (f"/{below}" if below else "") if unit else "-"
