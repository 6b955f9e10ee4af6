"""Spatial tendon: a rope over points, spheres, cylinders and pulleys. Its coordinate is the total length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.wraps import Wrap
from gpusim.transform import Transform
from gpusim.typing import Vector


@dataclass(frozen=True)
class Pulley:
    """Pulley between two branches of a tendon, as in MuJoCo.

    The tendon's length includes the length of the branch after the pulley, divided by ``divisor``.
    """

    divisor: float


@builder_method
def add_spatial_tendon(
    self: ModelBuilder,
    path: Sequence[tuple[int, Vector] | Wrap | Pulley],
    limit_lower: float = float("-inf"),
    limit_upper: float = float("inf"),
    damping: float = 0.0,
    friction: float = 0.0,
    armature: float = 0.0,
    limit_restitution: float = 0.0,
    label: str | None = None,
    solver: str | None = None,
) -> int:
    """Add a frictionless tendon along a path of points, spheres and cylinders (MuJoCo's spatial tendon).

    Each segment between two points becomes a joint ``<label>_part<number>``: a distance joint or a wrapped rope. The
    tendon's length excludes straight segments between two points of the same body, because their length is constant.

    Args:
        path: list of points (body, point in the body frame in m). Insert a :class:`gpusim.Wrap` between two points if
            the rope can wrap around a surface between them. Insert a :class:`gpusim.Pulley` between two branches.
        limit_lower, limit_upper: limits of the length (m). To simulate a winch, write a limit at run time. The limit
            moves to the new value over the next step.
        damping, friction, armature, limit_restitution, label, solver: see :meth:`add_tendon`.

    Returns:
        The tendon's index, which you can pass as the ``joint`` argument of any actuator on a joint coordinate.

    Raises:
        ModelError: a wrap in the path is not between two points, or no segment of the path can change its length.
    """
    element = self.element("joint", label)
    name = label or f"joint{len(self.joints)}"
    terms: list[tuple[int, float]] = []
    for a, wrap, b, divisor in _parts(self, element, path):
        part = f"{name}_part{len(terms)}"
        if wrap is not None:
            joint = self.add_joint_wrapped_rope(a[0], b[0], wrap, a[1], b[1], label=part, solver=solver)
        elif a[0] != b[0]:
            ends = Transform(a[1]), Transform(b[1])
            joint = self.add_joint_distance(a[0], b[0], *ends, label=part, solver=solver)
        else:
            continue
        terms.append((joint, 1.0 / divisor))
    if not terms:
        raise validate.fail(element, "has no segment with variable length", "give points on different bodies")
    return self.add_tendon(
        terms, limit_lower, limit_upper, damping, friction, armature, limit_restitution, label=name, solver=solver
    )


def _parts(builder: ModelBuilder, element: str, path: Any) -> list[tuple[Any, Wrap | None, Any, float]]:
    """Return the segments of a path as tuples (first point, wrap or None, second point, divisor of the length)."""
    if not isinstance(path, list | tuple):
        raise validate.fail(element, f"path = {path!r} is not a list", "give points (body, point), Wraps and Pulleys")
    segments: list[tuple[Any, Wrap | None, Any, float]] = []
    divisor, last, wrap = 1.0, None, None
    for item in path:
        if isinstance(item, Pulley):
            _no_wrap(element, wrap, "a pulley")
            divisor, last = validate.positive(element, "divisor of a pulley", item.divisor), None
        elif isinstance(item, Wrap):
            _no_wrap(element, wrap, "another Wrap")
            if last is None:
                raise validate.fail(element, "a Wrap follows no point", "give a point of the rope before each Wrap")
            wrap = item
        else:
            point = _point(builder, element, item)
            if last is not None:
                segments.append((last, wrap, point, divisor))
            last, wrap = point, None
    _no_wrap(element, wrap, "the end of the path")
    return segments


def _no_wrap(element: str, wrap: Wrap | None, follower: str) -> None:
    if wrap is not None:
        raise validate.fail(element, f"{follower} follows a Wrap", "give a point of the rope after each Wrap")


def _point(builder: ModelBuilder, element: str, item: Any) -> tuple[int, Any]:
    if not isinstance(item, list | tuple) or len(item) != 2:
        raise validate.fail(
            element,
            f"{item!r} in its path is not a pair (body, point)",
            "give a Wrap, a Pulley or a pair (body, point)",
        )
    body = builder.check_body(element, "body of a point", item[0])
    return body, np.asarray(validate.numbers(element, "point", item[1], 3))
