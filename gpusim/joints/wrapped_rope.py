"""Wrapped rope: a rope between two points that can wrap around a sphere or a cylinder."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import end_point
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
    DISTANCE,
    Coordinate,
    DotRow,
    JointFrames,
    JointType,
    LineRow,
    axis_params,
    register,
)
from gpusim.description.specs import WORLD, JointSpec
from gpusim.description.wraps import CYLINDER, SPHERE, Wrap, WrappedPath
from gpusim.transform import Transform
from gpusim.typing import Array, Vector


@register
class WrappedRope(JointType):
    """Wrapped rope: a joint without constraint rows. The rope pulls on its end points and on the surface."""

    name: ClassVar[str] = "wrapped_rope"
    coordinates: ClassVar[tuple[str, ...]] = (DISTANCE,)
    needs: ClassVar[tuple[str, ...]] = ("path",)
    sets_pose: ClassVar[bool] = False
    holds: ClassVar[bool] = False
    bears: ClassVar[bool] = False
    pulls: ClassVar[bool] = True
    picture: ClassVar[str | None] = "wrap"

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return no constraint rows: the joint locks no motion."""
        return []

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinate: the length of the rope."""
        zeros = np.zeros(3)
        return [Coordinate(DISTANCE, zeros, zeros, zeros, zeros, zeros, path=params["path"])]

    def lets_collide(self, joint: JointSpec) -> bool:
        """Return True: the bodies at the ends of a rope can collide."""
        return True

    def moved(
        self, params: dict[str, Any], first_joint: int, first_body: int, parent: int, pose: Transform
    ) -> dict[str, Any]:
        """Return the parameters with new body indices and world points, after another builder has included this one."""
        return params | {"path": params["path"].moved(first_body, parent, pose)}


@builder_method
def add_joint_wrapped_rope(
    self: ModelBuilder,
    parent: int,
    child: int,
    around: Wrap,
    point_a: Vector | None = None,
    point_b: Vector | None = None,
    max_length: float = float("inf"),
    damping: float = 0.0,
    label: str | None = None,
    solver: str | None = None,
    at_a: Vector | None = None,
    at_b: Vector | None = None,
) -> int:
    """Add a frictionless rope from a point on ``parent`` over a sphere or cylinder to a point on ``child``.

    The joint coordinate is the length of the rope. For a rope over several sheaves, use
    :meth:`ModelBuilder.add_spatial_tendon`. The signal ``joint.<label>.tension`` is the tension (N).

    Args:
        parent: body of the first point, -1 for the world.
        child: body of the second point, -1 for the world. ``child`` may be the same body as ``parent``.
        around: sphere or cylinder on any body. The rope is straight if one of its end points is inside this surface.
        point_a: first point in the parent's body frame (m), by default the origin of this frame.
        point_b: second point in the child's body frame (m), by default the origin of this frame.
        max_length: maximum length (m). Without a maximum length, the joint only measures the length of the rope, for
            example for a tendon. To simulate a winch, write ``joint.<label>.limit_upper`` at run time. The limit moves
            to the new length over the next step.
        damping: viscous damping along the rope (N s/m).
        label, solver: see ``add_joint``.
        at_a, at_b: both points in the world frame (m) for the current poses of the bodies, instead of ``point_a`` and
            ``point_b``.

    Returns:
        The joint's index.

    Raises:
        ModelError: ``around`` is invalid, ``max_length`` is not positive, or both points and the surface are on the
            same body.
    """
    element = self.element("joint", label)
    longest = validate.positive(element, "max_length", max_length, infinite=True)
    bodies = self.check_body(element, "parent", parent), self.check_body(element, "child", child)
    ends = (
        end_point(self, element, "point_a at_a", bodies[0], point_a, at_a),
        end_point(self, element, "point_b at_b", bodies[1], point_b, at_b),
    )
    path = WrappedPath(bodies[0], _triple(ends[0]), bodies[1], _triple(ends[1]), checked_wrap(self, element, around))
    params: dict[str, Any] = dict(axis_params(element, 1, limit_upper=longest, damping=damping), path=path)
    first, second = _two_bodies(self, element, path)
    frames = {body: Transform(point) for body, point in zip(bodies[::-1], ends[::-1], strict=True)}
    frames.setdefault(path.wrap.body, path.wrap.xform)
    return self.add_joint("wrapped_rope", first, second, frames[first], frames[second], label, solver, **params)


def _two_bodies(builder: ModelBuilder, element: str, path: WrappedPath) -> tuple[int, int]:
    """Return two different bodies from the bodies of the end points and of the surface."""
    bodies = list(dict.fromkeys((path.body_a, path.body_b, path.wrap.body)))
    if len(bodies) < 2:
        rule = (
            f"both points and the {path.wrap.shape} are on {builder.body_label(bodies[0])}, so its length is constant"
        )
        raise validate.fail(element, rule, "put one of them on another body")
    moving = [b for b in bodies[1:] if b != WORLD and not builder.bodies[b].kinematic]
    return (bodies[0], moving[0]) if moving else (bodies[1], bodies[0])


def checked_wrap(builder: ModelBuilder, element: str, wrap: Wrap) -> Wrap:
    """Check the sphere or cylinder of a rope, and return a checked copy.

    Raises:
        ModelError: ``wrap`` is not a Wrap, or has an invalid value. The message contains ``element``.
    """
    if not isinstance(wrap, Wrap):
        raise validate.fail(element, f"around = {wrap!r} is not a Wrap", "give gpusim.Wrap(body, radius)")
    validate.choice(element, "shape of its Wrap", wrap.shape, (SPHERE, CYLINDER))
    validate.transform(element, "xform of its Wrap", wrap.xform)
    body = builder.check_body(element, "body of its Wrap", wrap.body)
    side = None if wrap.side is None else _triple(validate.numbers(element, "side of its Wrap", wrap.side, 3))
    if wrap.side_body is not None:
        builder.check_body(element, "side_body of its Wrap", wrap.side_body)
        if side is None:
            raise validate.fail(element, "its Wrap has a side_body without a side", "give side, or leave both out")
    radius = validate.positive(element, "radius of its Wrap", wrap.radius)
    return Wrap(body, radius, wrap.xform, wrap.shape, side, wrap.side_body)


def _triple(point: Array) -> tuple[float, float, float]:
    x, y, z = (float(v) for v in point)
    return x, y, z
