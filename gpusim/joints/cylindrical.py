"""Cylindrical joint: translation along an axis and rotation about the same axis."""

from __future__ import annotations

from typing import Any, ClassVar

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
    ANGLE,
    TRANSLATION,
    Coordinate,
    DotRow,
    JointFrames,
    JointType,
    LineRow,
    axis_params,
    register,
    triad,
)
from gpusim.transform import Transform
from gpusim.typing import Vector


@register
class Cylindrical(JointType):
    """Cylindrical joint.

    Two constraint rows keep the origin of the child's joint frame on the parent's axis. Two more rows keep both axes
    parallel.
    """

    name: ClassVar[str] = "cylindrical"
    coordinates: ClassVar[tuple[str, ...]] = (TRANSLATION, ANGLE)
    needs: ClassVar[tuple[str, ...]] = ("columns",)
    picture: ClassVar[str | None] = "pin"

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows, which lock two translations and two rotations."""
        return [*frames.point_rows((0, 1)), *frames.parallel_axis_rows()]

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinates: translation along the axis, and angle about the axis."""
        return [frames.translation(2), frames.angle()]


@builder_method
def add_joint_cylindrical(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    axis: Vector = (0.0, 0.0, 1.0),
    limit_lower: Vector | float = float("-inf"),
    limit_upper: Vector | float = float("inf"),
    damping: Vector | float = 0.0,
    friction: Vector | float = 0.0,
    limit_restitution: Vector | float = 0.0,
    label: str | None = None,
    solver: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a cylindrical joint.

    Args:
        axis: common axis in the joint frame.
        limit_lower, limit_upper: limits of the translation (m) and of the angle (rad). Give two numbers, or one number
            for both.
        damping: viscous damping of the translation (N s/m) and of the rotation (N m s/rad), or one number for both.
        friction: dry friction of the translation (N) and of the rotation (N m), or one number for both.
        limit_restitution: coefficient of restitution of the limits, 0 to 1.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    element = self.element("joint", label)
    axes = axis_params(element, 2, limit_lower, limit_upper, damping, friction, limit_restitution=limit_restitution)
    params: dict[str, Any] = dict(axes, columns=triad(validate.direction(element, "axis", axis)))
    return self.add_joint("cylindrical", parent, child, parent_xform, child_xform, label, solver, at, **params)
