"""Anchors: points and frames in the world that define joints and actuators.

The builder converts anchors to body frames at the current poses of the bodies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import validate
from gpusim.description.elements import Elements
from gpusim.description.specs import WORLD
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

Anchor = Transform | Vector
"""Type of an anchor: a frame in the world, or a point in the world (m)."""


def end_frame(builder: Elements, element: str, names: str, body: int, xform: Transform | None, at: Any) -> Transform:
    """Return the frame of an element in the body frame: ``xform``, or ``at`` converted from the world frame.

    Args:
        builder: builder with the body.
        element: name of the element for error messages.
        names: names of the arguments ``xform`` and ``at`` in the user's call, such as "parent_xform at".
        body: valid body index, -1 for the world.
        xform: frame in the body frame. Default: the body frame.
        at: frame in the world, instead of ``xform``. ``at`` is a Transform, or a point (3,) in m for a frame with the
            axes of the world.

    Raises:
        ModelError: both ``xform`` and ``at`` are given, or ``at`` is neither a point nor a frame.
    """
    _check_one(element, names, xform, at)
    if at is None:
        return xform or Transform()
    frame = at if isinstance(at, Transform) else Transform(validate.numbers(element, names.split()[1], at, 3))
    return frame if body == WORLD else builder.bodies[body].xform.inverse() * frame


def end_point(builder: Elements, element: str, names: str, body: int, point: Any, at: Any) -> Array:
    """Return a point in the body frame (3,), m: ``point``, ``at`` converted from the world frame, or the origin."""
    in_body, in_world = names.split()
    _check_one(element, names, point, at)
    if at is None:
        return np.zeros(3) if point is None else validate.numbers(element, in_body, point, 3)
    point_in_world = validate.numbers(element, in_world, at, 3)
    return point_in_world if body == WORLD else builder.bodies[body].xform.inverse().apply(point_in_world)


def _check_one(element: str, names: str, local: Any, at: Any) -> None:
    if local is not None and at is not None:
        in_body, in_world = names.split()
        raise validate.fail(
            element,
            f"{in_body} and {in_world} are both given",
            f"give {in_world} (world frame, at the current poses) or {in_body} (body frame)",
        )
