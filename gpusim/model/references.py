"""What a kind's parameters refer to, so that a copy of an element in another builder refers to the copies.

A kind declares it by name: ``references = {"joint_b": JOINT, "body_a": BODY, "point_a": point_on("body_a")}``.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.model import validate
from gpusim.model.specs import WORLD
from gpusim.transform import Transform

BODY, JOINT, ACTUATOR, SHAPE = "body", "joint", "actuator", "shape"
"""An index of such an element or a list of them; -1 is the world for a body and none for others."""
AS_IS = "as is"
"""What looks like an index or a point and is none, such as the number of a joint's coordinate."""


@dataclass(frozen=True)
class InFrame:
    """A point (or a direction), or a list of them, in the frame of the body that parameter ``body`` refers to."""

    body: str
    direction: bool = False


Reference = str | InFrame


def point_on(body: str) -> InFrame:
    """A point (3,), m, in the frame of the body that a parameter refers to; bodies (n,) and points (n, 3) alike."""
    return InFrame(body)


def direction_on(body: str) -> InFrame:
    """A vector (3,) that turns with the body that a parameter refers to; bodies (n,) and vectors (n, 3) alike."""
    return InFrame(body, direction=True)


def moved_params(
    references: Mapping[str, Reference],
    params: Mapping[str, Any],
    first: Mapping[str, int],
    pose: Transform,
    world: int = WORLD,
) -> dict[str, Any]:
    """Parameters of a copy of an element.

    Args:
        references: of the element's kind.
        params: of the element.
        first: for BODY, JOINT, ACTUATOR and SHAPE the index that the copy of element 0 has.
        pose: where the world of the copied builder lies in the frame of ``world``.
        world: what that world becomes part of, a body of the new builder or -1.
    """
    new = copy.deepcopy(dict(params))
    for name in references.keys() & params.keys():
        what = references[name]
        if isinstance(what, InFrame):
            on_world = np.equal(params[what.body], WORLD)[..., None]
            in_world = pose.rotate(params[name]) if what.direction else pose.apply(params[name])
            new[name] = np.where(on_world, in_world, params[name])
        elif what != AS_IS:
            new[name] = _shifted(params[name], first[what], world if what == BODY else WORLD)
    return new


def _shifted(index: Any, first: int, world: int) -> Any:
    if isinstance(index, int | np.integer):
        return index + first if index >= 0 else world if index == WORLD else index
    return None if index is None else [_shifted(i, first, world) for i in index]


def check_declared(element: str, references: Mapping[str, Reference], numbers: Collection[str], params: Any) -> None:
    """Whole numbers and triples of numbers are declared, since they may be indices and points.

    Args:
        element: whose parameters they are.
        references: of its kind.
        numbers: names of the kind's parameters that are numbers.
        params: of the element.

    Raises:
        ModelError: naming the first one that the kind does not declare, and one that it misses if the names are alike.
    """
    declared = references.keys() | set(numbers)
    for name in sorted(params.keys() - declared):
        if near := difflib.get_close_matches(name, declared - params.keys(), n=1, cutoff=0.8):
            raise validate.fail(element, f"unknown parameter '{name}'", f"did you mean '{near[0]}'?")
        value = params[name]
        if not isinstance(value, int | float | np.number | list | tuple | np.ndarray):
            continue
        array = np.asarray(value)
        if array.dtype.kind in "iu" or array.dtype.kind == "f" and array.shape[-1:] == (3,):
            raise validate.fail(
                element,
                f"parameter {name} = {value!r} may be an index or a point, and its kind does not say of what",
                f'declare it, references = {{"{name}": JOINT}} (or BODY, ACTUATOR, SHAPE, point_on("body"), '
                "direction_on, AS_IS of gpusim.model.references)",
            )
