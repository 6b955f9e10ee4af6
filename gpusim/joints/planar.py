"""Planar joint: two translations in a plane, and the rotation about the normal of the plane."""

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
class Planar(JointType):
    """Planar joint.

    One constraint row keeps the origin of the child's joint frame in the parent's plane. Two rows keep both normals
    parallel.
    """

    name: ClassVar[str] = "planar"
    coordinates: ClassVar[tuple[str, ...]] = (TRANSLATION, TRANSLATION, ANGLE)
    needs: ClassVar[tuple[str, ...]] = ("columns",)

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows, which lock one translation and two rotations."""
        return [*frames.point_rows((2,)), *frames.parallel_axis_rows()]

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinates: two translations, and the angle."""
        return [frames.translation(0), frames.translation(1), frames.angle()]


@builder_method
def add_joint_planar(
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
    """Add a planar joint.

    Args:
        axis: normal of the plane in the joint frame. If ``axis`` is the z axis, the translations are along x and y.
        limit_lower, limit_upper: limits of both translations (m) and of the angle (rad). Give three numbers, or one
            number for all.
        damping: viscous damping of both translations (N s/m) and of the rotation (N m s/rad), or one number for all.
        friction: dry friction of both translations (N) and of the rotation (N m), or one number for all.
        limit_restitution: coefficient of restitution of the limits, 0 to 1.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    element = self.element("joint", label)
    axes = axis_params(element, 3, limit_lower, limit_upper, damping, friction, limit_restitution=limit_restitution)
    params: dict[str, Any] = dict(axes, columns=triad(validate.direction(element, "axis", axis)))
    return self.add_joint("planar", parent, child, parent_xform, child_xform, label, solver, at, **params)
