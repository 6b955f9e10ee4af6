"""Points (parameter combinations) of a sweep: a grid, or random points."""

from __future__ import annotations

import itertools
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.errors import ModelError
from gpusim.scene import WHOLE, scene_modules, scene_parameters

MAX_POINTS = 1_000_000
"""Maximum number of points."""
Values = Sequence[Any] | tuple[float, float]
Point = dict[str, Any]


class Span(tuple[float, float]):
    """Range from which a sweep draws random values of a parameter, such as ``Span((50.0, 150.0))``."""


def parse_values(name: str, text: str) -> Sequence[Any]:
    """Parse ``LO:HI:N`` (N evenly spaced numbers), ``A,B,C`` (list of numbers or texts) or ``LO:HI`` (a Span).

    Raises:
        ModelError: the text has another form, or N is too large.
    """
    parts = text.split(":")
    if len(parts) == 3 and parts[2].strip().isdecimal():
        _check_count(int(parts[2]))
    try:
        if len(parts) == 3 and int(parts[2]) > 0:
            return [float(x) for x in np.linspace(float(parts[0]), float(parts[1]), int(parts[2]))]
        if len(parts) == 2 and float(parts[0]) < float(parts[1]):
            return Span((float(parts[0]), float(parts[1])))
    except ValueError:
        parts = []
    values = [value.strip() for value in text.split(",")]
    if len(parts) != 1 or not all(values):
        hint = "give LO:HI:N, LO:HI with --sample, or values A,B,C"
        raise ModelError(f"sweep: the values {text!r} of parameter '{name}' cannot be read; {hint}")
    for kind in (int, float):
        with suppress(ValueError):
            numbers = [kind(value) for value in values]
            if all(map(math.isfinite, numbers)):
                return numbers
    return values


def _check_count(count: int) -> None:
    if count > MAX_POINTS:
        rule = f"it has {count} points, and at most {MAX_POINTS} are possible"
        raise validate.fail("sweep", rule, "give fewer values")


def whole_ranges(scene: str | Callable[..., Any], axes: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Replace the range of each whole-number parameter by all whole numbers in the range.

    Args:
        scene: name of a scene, or a function with the annotation ``int`` for whole numbers. For an unknown scene, the
            ranges stay unchanged.
        axes: dict from parameter names to values.
    """
    for name, values in axes.items():
        if isinstance(values, Span):
            _check_span(name, values)
    whole = set[str]()
    if callable(scene):
        with suppress(Exception):  # annotations may be anything
            whole = {name for name, kind in typing.get_type_hints(scene).items() if kind is int}
    elif scene in scene_modules():
        whole = {p.name for p in scene_parameters(scene) if p.type == WHOLE}
    return {
        name: range(math.ceil(values[0]), math.floor(values[1]) + 1)
        if name in whole and isinstance(values, Span)
        else values
        for name, values in axes.items()
    }


def _check_span(name: str, span: Span) -> None:
    try:
        low, high = map(float, span)
    except OverflowError:  # an integer of more than 308 digits
        low, high = -math.inf, math.inf
    if not -math.inf < low <= high < math.inf:
        rule = f"range ({low:g}, {high:g}) of parameter '{name}' is not finite, or not (low, high)"
        raise validate.fail("sweep", rule, "give e.g. (50.0, 150.0)")


def grid(axes: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Return every combination of values. The last parameter varies fastest.

    Raises:
        ModelError: a parameter has no values or has a range, or there are too many combinations.
    """
    for name, values in axes.items():
        if isinstance(values, Span):
            hint = f"give {values[0]:g}:{values[1]:g}:N, or --sample"
            raise ModelError(f"sweep: parameter '{name}' is a range without a number of values; {hint}")
        if not len(values):
            raise ModelError(f"sweep: parameter '{name}' has no values; give at least one")
    _check_count(math.prod(len(values) for values in axes.values()))
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def sample(axes: Mapping[str, Sequence[Any]], count: int, seed: int = 0) -> list[Point]:
    """Return random points. Values are uniform over the range or the list of a parameter.

    Raises:
        ModelError: ``count`` is below 1 or too large, ``seed`` is negative, or a parameter has no values.
    """
    _check_count(validate.count("sweep", "num_samples", count))
    validate.count("sweep", "seed", seed, 0, greatest=2**128)
    if not axes:
        raise validate.fail("sweep", f"num_samples = {count} and there are no parameters", "give parameters to sample")
    if empty := [name for name, values in axes.items() if not len(values)]:
        raise ModelError(f"sweep: parameter '{empty[0]}' has no values; give at least one")
    for name, values in axes.items():
        if isinstance(values, Span):
            _check_span(name, values)
    draws = np.random.default_rng(seed)
    drawn = {
        name: draws.uniform(*values, count).tolist()
        if isinstance(values, Span)
        else [values[k] for k in draws.integers(len(values), size=count)]
        for name, values in axes.items()
    }
    return [dict(zip(drawn, values, strict=True)) for values in zip(*drawn.values(), strict=True)]
