"""Checks of user input. Error messages name the element, the broken rule, the fix, and usually the value."""

from __future__ import annotations

import fnmatch
import math
import os
import re
from collections.abc import Collection, Iterable, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.errors import ModelError, unknown_name
from gpusim.transform import Transform
from gpusim.typing import Array, Index

GREATEST_RATIO = 1e9
"""Maximum gear ratio. Gear ratios above this value cause large round-off errors."""
MIN_SHARE = 1e-14
"""Minimum ratio of the smallest to the largest principal moment of inertia."""
GREATEST_COUNT = 10**15
"""Maximum number of steps, worlds and so on. Kernels and NumPy do not accept integers of any size."""
GREATEST = 1e100
"""Maximum mass and moment of inertia, kg and kg m2."""
DENSEST = 22590.0
"""Density of osmium, kg/m3."""
ROUND_OFF = 1e-6
"""Minimum plausible moment of inertia of a body, relative to an osmium ball of equal mass."""
UNUSABLE = 1e-9
"""Minimum moment of inertia relative to an osmium ball of equal mass. Below this value, joints open by round-off."""
_SI_UNITS = ("m", "kg", "s", "rad", "N", "Nm", "Pa", "W", "J")


def fail(element: str, rule: str, hint: str) -> ModelError:
    """Return a ModelError with the message ``element: rule; hint``."""
    return ModelError(f"{element}: {rule}; {hint}")


def shortened(text: str) -> str:
    """Return a user's text in quotes for an error message."""
    return repr(text) if len(text) <= 80 else f"{text[:60]!r}... ({len(text)} letters)"


def shown(value: Any) -> str:
    """Return a value for an error message: at most 80 letters, and huge integers in scientific notation."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return f"{'-' * (value < 0)}1e{math.floor(math.log10(abs(value)))}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # a list with an integer of more than 4300 digits
        return f"a {type(value).__name__} with a huge number"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _number_fix(name: str, value: Any) -> str:
    """Return the hint for a value that is not a number, such as text with a unit."""
    start = re.match(r"\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(.*)", value) if isinstance(value, str) else None
    if start is None:
        return f"give a number for {name}"
    if re.match(r",\d", start.group(2)):
        return f"write a decimal point, {start.group(1)}.{start.group(2)[1:]:.20}"
    if unit := re.search(r"[^\W\d_]+|[°%]", start.group(2)):
        if unit.group() not in _SI_UNITS:
            return f"convert {start.group(2)!r:.20} to SI units (m, kg, s, rad, N, Pa), and give the number alone"
    return f"give {start.group(1)} without unit and quotes, in SI units"


def number(element: str, name: str, value: Any, *, infinite: bool = False) -> float:
    """Return the value as a float. NaN is an error."""
    try:
        if isinstance(value, str | bytes | bool | np.bool_):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError):
        raise fail(element, f"{name} = {shown(value)} is not a number", _number_fix(name, value)) from None
    except OverflowError:  # an integer of more than 308 digits
        raise fail(element, f"{name} is above 1e308", f"give a finite {name}") from None
    if math.isnan(result) or (math.isinf(result) and not infinite):
        raise fail(element, f"{name} = {result} is not finite", f"give a finite {name}")
    return result


def positive(element: str, name: str, value: Any, *, infinite: bool = False) -> float:
    """Return a number > 0."""
    result = number(element, name, value, infinite=infinite)
    if result <= 0.0:
        raise fail(element, f"{name} = {result:g} must be above zero", f"give a positive {name}")
    return result


def positives(element: str, **values: Any) -> dict[str, float]:
    """Return numbers > 0 by name."""
    return {name: positive(element, name, value) for name, value in values.items()}


def not_negative(element: str, name: str, value: Any, *, infinite: bool = False) -> float:
    """Return a number >= 0."""
    result = number(element, name, value, infinite=infinite)
    if result < 0.0:
        raise fail(element, f"{name} = {result:g} must not be negative", f"give {name} >= 0")
    return result


def count(
    element: str,
    name: str,
    value: Any,
    minimum: int = 1,
    maximum: int | None = None,
    *,
    greatest: int = GREATEST_COUNT,
) -> int:
    """Return a whole number from ``minimum`` to ``maximum``, or to ``greatest`` if there is no maximum."""
    if type(value) is int and minimum <= value <= (greatest if maximum is None else maximum):
        return value  # the short way, because each step checks a number
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < minimum or (maximum is not None and value > maximum):
        bounds, fix = f"from {minimum} to {maximum}", f"to {maximum}"
        if maximum is None:
            bounds, fix = f"of at least {minimum}", "or more"
        raise fail(element, f"{name} = {shown(value)} must be a whole number {bounds}", f"give {minimum} {fix}")
    if maximum is None and value > greatest:
        limit = f"{greatest:.0e}" if greatest > 10**9 else f"{greatest}"
        raise fail(element, f"{name} = {shown(value)} is above {limit}", f"give at most {limit}")
    return int(value)


def index_space(element: str, name: str, index: Any, space: str, hint: str) -> None:
    """Raise a ModelError if ``index`` belongs to an element whose type is not ``space``."""
    if isinstance(index, Index) and index.space != space:
        article = "an" if index.space[0] in "aeiou" else "a"
        raise fail(element, f"{name} = {index} is the index of {article} {index.space}, not of a {space}", hint)


def index(element: str, name: str, value: Any, elements: Sized, space: str, method: str) -> int:
    """Check and return the index of an element. ``method``: the builder method that adds such elements."""
    hint, count = f"give what {method} returned", len(elements)
    index_space(element, name, value, space, hint)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < count:
        raise fail(element, f"{name} = {shown(value)} is unknown: there are {count} {space}s", hint)
    return int(value)


def simulation(element: str, sim: Any) -> None:
    """Check that a value is a Simulation."""
    if not hasattr(sim, "runtime"):
        raise fail(element, f"sim = {shown(sim)} is not a simulation", "give a gpusim.Simulation")


def instance(element: str, name: str, value: Any, kind: type, hint: str) -> None:
    """Check that a value is an object of a class."""
    if not isinstance(value, kind):
        raise fail(element, f"{name} = {shown(value)} is not a {kind.__name__}", hint)


def flag(element: str, name: str, value: Any) -> None:
    """Check that a value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise fail(element, f"{name} = {shown(value)} is neither True nor False", "give one of them")


def path(element: str, name: str, value: Any) -> Path:
    """Return a path that is given as text or as a path object."""
    if not isinstance(value, str | os.PathLike):
        raise fail(element, f"{name} = {shown(value)} is not a path", "give text or a Path")
    return Path(value)


def choice(element: str, name: str, value: Any, known: Collection[str]) -> None:
    """Check that ``value`` is one of the strings ``known``."""
    if not isinstance(value, str) or value not in known:
        raise fail(element, f"{name} = {shown(value)} is unknown", f"give one of {', '.join(map(repr, known))}")


def up_to(element: str, name: str, value: float, longest_name: str, maximum: float, unit: str = "") -> None:
    """Check that a number is at most ``maximum``. ``longest_name``: name of the argument that sets ``maximum``."""
    if value > maximum:
        shown, bound = (f"{x:g}{f' {unit}' if unit else ''}" for x in (value, maximum))
        raise fail(element, f"{name} = {shown} is above {longest_name} = {bound}", f"give a greater {longest_name}")


def name_list(element: str, given: str | Iterable[str], minimum: int = 0) -> list[str]:
    """Return a name, a wildcard, or a list of names and wildcards as a list.

    Raises:
        ModelError: there are fewer than ``minimum`` names, or a value is not a name.
    """
    several = isinstance(given, Iterable) and not isinstance(given, str) and getattr(given, "ndim", 1) > 0
    names: list[Any] = list(given) if several else [given]
    if len(names) < minimum or not all(isinstance(name, str) for name in names):
        hint = "give a name, a wildcard or a list of them, such as ['*']"
        raise fail(element, f"{given!r} is not a list of names", hint)
    return names


def matching(kind: str, patterns: str | Sequence[str], known: Collection[str]) -> list[str]:
    """Return the matching names in the order of the patterns.

    Raises:
        UnknownNameError: a pattern matches no name. The message suggests similar names.
        ModelError: the list is empty, or a value is not a name.
    """
    found = dict[str, None]()
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    for pattern in name_list(plural, patterns, 1):
        chosen = [pattern] if pattern in known else fnmatch.filter(known, pattern)
        if not chosen:
            raise unknown_name(kind, pattern, known)
        found.update(dict.fromkeys(chosen))
    return list(found)


def ratio(element: str, name: str, value: Any) -> float:
    """Return a gear ratio of either sign. The absolute value must be from 1/GREATEST_RATIO to GREATEST_RATIO."""
    result = number(element, name, value)
    if not 1.0 / GREATEST_RATIO <= abs(result) <= GREATEST_RATIO:
        rule = f"{name} = {result:g} is not within {1.0 / GREATEST_RATIO:g} to {GREATEST_RATIO:g}, of either sign"
        raise fail(element, rule, f"give a {name} within that range")
    return result


def transform(element: str, name: str, value: Any) -> None:
    """Check that a value is a Transform or None."""
    if not isinstance(value, Transform | None):
        raise fail(element, f"{name} {shown(value)} is not a Transform", "give gpusim.Transform(position, rotation)")


def numbers(element: str, name: str, value: Any, count: int, *, infinite: bool = False) -> Array:
    """Return ``count`` numbers as a float64 array. NaN is an error."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise fail(element, f"{name} = {shown(value)} is not {count} numbers", f"give {count} numbers") from None
    if array.shape != (count,):
        raise fail(element, f"{name} has shape {array.shape}, not ({count},)", f"give {count} numbers for {name}")
    if np.any(np.isnan(array)) or (not infinite and not np.all(np.isfinite(array))):
        raise fail(element, f"{name} = {shown(value)} is not finite", f"give finite numbers for {name}")
    return array


def array(element: str, value: Any) -> Array:
    """Return a float64 copy of an array of any shape. The numbers may be infinite or NaN."""
    try:
        if getattr(getattr(value, "dtype", None), "kind", "") == "c":  # NumPy would drop the imaginary part
            raise TypeError
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # includes ragged lists
        raise fail(
            element, f"value {shown(value)} is not an array of numbers", "give a number, or rows of one length"
        ) from None


def per_axis(element: str, name: str, value: Any, count: int, *, infinite: bool = False) -> Array:
    """Return ``count`` numbers, one per axis. A single number applies to all axes."""
    if np.ndim(np.array(value, dtype=object)) == 0:  # dtype object accepts ragged lists
        return np.full(count, number(element, name, value, infinite=infinite))
    return numbers(element, name, value, count, infinite=infinite)


def color(element: str, value: Any) -> tuple[float, float, float]:
    """Return an sRGB color (0 to 1) from three numbers or "#rrggbb"."""
    if isinstance(value, str):
        if not re.fullmatch("#[0-9a-fA-F]{6}", value):
            raise fail(
                element, f"color {shown(value)} is invalid", 'give "#rrggbb", such as "#c75437", or three numbers'
            )
        return (int(value[1:3], 16) / 255.0, int(value[3:5], 16) / 255.0, int(value[5:7], 16) / 255.0)
    r, g, b = numbers(element, "color", value, 3)
    if min(r, g, b) < 0.0 or max(r, g, b) > 1.0:
        raise fail(element, f"color ({r:g}, {g:g}, {b:g}) is not within 0 to 1", "give red, green, blue from 0 to 1")
    return (float(r), float(g), float(b))


def direction(element: str, name: str, value: Any) -> Array:
    """Return a unit vector along ``value``."""
    vector = numbers(element, name, value, 3)
    length = float(np.linalg.norm(vector))
    if length < 1e-9:
        raise fail(element, f"{name} = {tuple(vector.tolist())} has no direction", "give a vector that is not zero")
    unit: Array = vector / length
    return unit


def limits(element: str, lower: Array, upper: Array) -> None:
    """Check that lower limits do not exceed upper limits."""
    if np.any(lower > upper):
        k = int(np.argmax(lower > upper))
        raise fail(
            element,
            f"limit_lower = {lower[k]:g} is above limit_upper = {upper[k]:g}",
            "swap them, or leave one out for none",
        )


def min_moment(mass: float) -> float:
    """Return the minimum plausible principal moment of inertia (kg m2) of a body of ``mass`` kg."""
    radius = (0.75 * mass / (math.pi * DENSEST)) ** (1.0 / 3.0)
    return ROUND_OFF * 0.4 * mass * radius * radius


def body_inertia(element: str, value: Any, mass: float) -> Array:
    """Return the inertia tensor of a body of ``mass`` kg (kg m2).

    Raises:
        ModelError: as in :func:`inertia`, or a principal moment is implausibly small: below UNUSABLE times the moment
            of an osmium ball with the mass ``mass``.
    """
    tensor = inertia(element, value)
    smallest, ball = float(np.linalg.eigvalsh(tensor)[0]), min_moment(mass) / ROUND_OFF
    if smallest < UNUSABLE * ball:
        raise fail(
            element,
            f"inertia has the principal moment {smallest:.3g} kg m2, which no body of {mass:g} kg has: a ball of the "
            f"densest metal has {ball:.2g}",
            f"give the part's own inertia (for a point mass that of a small ball, such as {ball:.1g}), or "
            "leave it out, so that it comes from the body's shapes",
        )
    return tensor


def inertia(element: str, value: Any) -> Array:
    """Return the 3x3 inertia tensor (kg m2) from 3 (diagonal), 6 (xx, yy, zz, xy, xz, yz) or 3x3 numbers.

    Raises:
        ModelError: the shape is wrong, or the tensor is not finite, symmetric and positive definite, or above the
            maximum. A principal moment must not exceed the sum of the other two moments, or be far below the largest
            moment.
    """
    try:
        given = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise fail(element, f"inertia {shown(value)} is not numbers", "give 3, 6 or 3x3 numbers in kg m2") from None
    if given.shape == (3,):
        tensor = np.diag(given)
    elif given.shape == (6,):
        xx, yy, zz, xy, xz, yz = given
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    elif given.shape == (3, 3):
        tensor = given
    else:
        raise fail(
            element,
            f"inertia has shape {given.shape}",
            "give (ixx, iyy, izz), (ixx, iyy, izz, ixy, ixz, iyz) or a 3x3 tensor",
        )
    if not np.all(np.isfinite(tensor)):
        raise fail(element, f"inertia {given.tolist()} is not finite", "give finite numbers in kg m2")
    scale = float(np.max(np.abs(tensor)))
    if scale > GREATEST:
        raise fail(element, f"inertia {given.tolist()} exceeds {GREATEST:g} kg m2", "check its units")
    if float(np.max(np.abs(tensor - tensor.T))) > 1e-9 * scale:
        raise fail(element, "inertia is not symmetric", "give ixy = iyx, ixz = izx, iyz = izy")
    tensor = 0.5 * (tensor + tensor.T)
    moments = np.linalg.eigvalsh(tensor)
    if moments[0] <= 0.0:
        raise fail(
            element,
            f"inertia has the principal moment {moments[0]:.3g}, which must be above zero",
            "give a positive definite tensor (a point mass gets that of a small ball)",
        )
    if moments[0] < MIN_SHARE * moments[2]:
        rule = f"inertia has principal moments from {moments[0]:.3g} to {moments[2]:.3g}, too far apart to compute with"
        raise fail(element, rule, "check the sizes of the part and their units")
    if moments[0] + moments[1] < moments[2] * (1.0 - 1e-6):
        a, b, c = (f"{m:.4g}" for m in moments)
        raise fail(
            element,
            f"inertia with principal moments ({a}, {b}, {c}) breaks the triangle rule {a} + {b} >= {c}",
            "check the tensor: its axes, its reference point (the center of mass) and its products",
        )
    return tensor
