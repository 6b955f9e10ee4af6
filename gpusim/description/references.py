"""Element parameters that refer to other elements, such as a body index.

When a builder copies elements, the references in the copies point to the copied elements.

A kind of element declares which parameters are references. Example: ``references = {"joint_b": JOINT, "body_a": BODY,
"point_a": point_on("body_a")}``.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.description.specs import WORLD
from gpusim.transform import Transform

BODY, JOINT, ACTUATOR, SHAPE = "body", "joint", "actuator", "shape"
"""The parameter is the index of an element, or a list of indices. -1 means the world for BODY, and no element for
JOINT, ACTUATOR and SHAPE."""
AS_IS = "as is"
"""The parameter is not a reference, although its name suggests one. An example is the index of a joint coordinate."""


@dataclass(frozen=True)
class InFrame:
    """Points or directions in the frame of a body. ``body`` is the name of the parameter with the body's index."""

    body: str
    direction: bool = False


Reference = str | InFrame


def point_on(body: str) -> InFrame:
    """Declare a point (3,), m, in the frame of a body. ``body`` is the name of the parameter with the body's index.

    If ``body`` contains n bodies, the array has one point for each body, (n, 3).
    """
    return InFrame(body)


def direction_on(body: str) -> InFrame:
    """Declare a vector (3,) that rotates with a body. ``body`` is the name of the parameter with the body's index.

    If ``body`` contains n bodies, the array has one vector for each body, (n, 3).
    """
    return InFrame(body, direction=True)


def moved_params(
    references: Mapping[str, Reference],
    params: Mapping[str, Any],
    first: Mapping[str, int],
    pose: Transform,
    world: int = WORLD,
) -> dict[str, Any]:
    """Return the parameters for a copy of an element.

    Args:
        references: the parameters that refer to other elements.
        params: parameters of the element.
        first: BODY, JOINT, ACTUATOR or SHAPE -> index of the first copied element in the new builder.
        pose: pose of the copied builder's world in the frame of ``world``.
        world: index of a body in the new builder, -1 for the world. The copy uses this body instead of the world.
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
    """Check that all references are declared.

    Args:
        element: name of the element with these parameters, for error messages.
        references: the parameters that refer to other elements.
        numbers: names of the numeric parameters of the element's kind.
        params: parameters of the element.

    Raises:
        ModelError: a parameter is not declared, or its name is misspelled. The message names the parameter.
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
                f"parameter {name} = {value!r} may be an index or a point, but its kind does not declare it",
                f'add references = {{"{name}": JOINT}} (or BODY, ACTUATOR, SHAPE, point_on("body"), '
                "direction_on, AS_IS of gpusim.description.references)",
            )
