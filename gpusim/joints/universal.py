"""Universal joint (Cardan joint, Hooke joint): rotations about two perpendicular axes.

The first axis is fixed in the parent, and the second axis is fixed in the child.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
    ANGLE,
    Coordinate,
    DotRow,
    JointFrames,
    JointType,
    LineRow,
    axis_params,
    register,
)
from gpusim.transform import Transform
from gpusim.typing import Vector


@register
class Universal(JointType):
    """Universal joint.

    Three constraint rows keep the origins of both joint frames together. One row keeps both axes perpendicular. The
    relative angular velocity is q1' a1 + q2' a2 with the parent's axis a1 and the child's axis a2.
    """

    name: ClassVar[str] = "universal"
    coordinates: ClassVar[tuple[str, ...]] = (ANGLE, ANGLE)
    needs: ClassVar[tuple[str, ...]] = ("columns",)
    picture: ClassVar[str | None] = "cross"

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows, which lock three translations and one rotation."""
        return [*frames.point_rows(), frames.perpendicular_row(0, 1)]

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinates: the angle about the parent's axis, and the angle about the child's axis."""
        a, b = frames.axes_a, frames.axes_b
        zeros = np.zeros(3)
        return [
            Coordinate(ANGLE, a[:, 0], zeros, zeros, a[:, 1], b[:, 1]),
            Coordinate(ANGLE, b[:, 1], zeros, zeros, a[:, 0], b[:, 0], axis_on_child=True),
        ]


@builder_method
def add_joint_universal(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    axis: Vector = (1.0, 0.0, 0.0),
    axis2: Vector = (0.0, 1.0, 0.0),
    limit_lower: Vector | float = float("-inf"),
    limit_upper: Vector | float = float("inf"),
    damping: Vector | float = 0.0,
    friction: Vector | float = 0.0,
    armature: Vector | float = 0.0,
    limit_restitution: Vector | float = 0.0,
    label: str | None = None,
    solver: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a universal joint.

    Args:
        axis: first axis in the joint frame, fixed in the parent.
        axis2: second axis in the joint frame, fixed in the child, perpendicular to ``axis``.
        limit_lower, limit_upper: limits of the first and the second angle (rad). Give two numbers, or one number for
            both.
        damping: viscous damping (N m s/rad).
        friction: dry friction (N m).
        armature: additional inertia of the coordinate (kg m2), for example of a geared rotor.
        limit_restitution: coefficient of restitution of the limits, 0 to 1.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    element = self.element("joint", label)
    first = validate.direction(element, "axis", axis)
    second = validate.direction(element, "axis2", axis2)
    if abs(float(first @ second)) > 1e-6:
        raise validate.fail(element, "axis and axis2 are not perpendicular", "give two axes at a right angle")
    axes = axis_params(element, 2, limit_lower, limit_upper, damping, friction, armature, limit_restitution)
    params: dict[str, Any] = dict(axes, columns=np.stack([first, second, np.cross(first, second)], axis=1))
    return self.add_joint("universal", parent, child, parent_xform, child_xform, label, solver, at, **params)
