"""Checks of the types and values of block parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from gpusim import validate
from gpusim.control import units
from gpusim.control.unit_hints import hint

_LARGEST = 2**53
"""Maximum magnitude of whole numbers. A diagram computes with float64."""
Positive: TypeAlias = float
"""Annotation of a number > 0."""
NotNegative: TypeAlias = float
"""Annotation of a number >= 0."""


def _whole(element: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise validate.fail(element, f"{name} = {value!r} is not a whole number", "give an integer")
    if abs(value) > _LARGEST:
        raise validate.fail(element, f"{name} = {validate.shown(value)} is too large", f"give at most {_LARGEST}")


def _text(element: str, name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise validate.fail(element, f"{name} = {value!r} is not text", 'give it in quotes, as "text"')


def _unit(element: str, name: str, value: Any) -> None:
    _text(element, name, value)
    if units.parse(value) is None:
        known = 'make it of m, kg, s, A, K, deg, N, J, W, Pa, V, Hz ..., as "N m/s", or "-" for none'
        raise validate.fail(element, f"{name} = {value!r} is unknown", hint(value) or known)


def _names(element: str, name: str, value: Any) -> None:
    """Check that a value is a name, or a list of names without duplicates."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(x, str) and x for x in listed):
        raise validate.fail(element, f"{name} = {value!r} is not a list of names", 'give a list such as ["a", "b"]')
    twice = [x for x in listed if listed.count(x) > 1]
    if twice:
        raise validate.fail(element, f"{name} has {twice[0]!r} twice", "give each name once")


_TYPES: dict[str, Callable[[str, str, Any], object]] = {
    "bool": validate.flag, "int": _whole, "str": _text, "Sequence[str]": _names,
    "float": validate.number, "Positive": validate.positive, "NotNegative": validate.not_negative,
}  # fmt: skip
"""Checks by annotation."""


def check_type(element: str, name: str, annotation: str, value: Any) -> None:
    """Check that a parameter has the declared type. If the parameter is a unit, check that the unit is known.

    Raises:
        ModelError: the parameter has another type, or the unit is unknown.
    """
    bare = annotation.removesuffix(" | None")
    if value is None and bare != annotation:
        return
    check = _unit if name == "unit" else _TYPES.get(bare)
    if check is not None:
        check(element, name, value)


def check_bounds(element: str, lower: float | None, upper: float | None) -> None:
    """Check optional bounds: ``lower`` must be less than ``upper``."""
    for name, value in (("lower", lower), ("upper", upper)):
        if value is not None:
            validate.number(element, name, value)
    if lower is not None and upper is not None and not lower < upper:
        raise validate.fail(element, f"lower = {lower:g} is not below upper = {upper:g}", "swap them")


def check_words(element: str, name: str, given: Sequence[str]) -> None:
    """Check that port names contain only letters, digits and underscores."""
    for word in given:
        if not word.isidentifier():
            raise validate.fail(
                element, f"{name} has {word!r}, which is not a valid name", "give letters, digits and _"
            )
