"""Revolute joint (hinge): rotation about an axis. The joint angle includes full rotations."""

from __future__ import annotations

from typing import Any, ClassVar

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
    triad,
)
from gpusim.transform import Transform
from gpusim.typing import Vector


@register
class Revolute(JointType):
    """Revolute joint.

    Three constraint rows keep the origins of both joint frames together. Two rows keep both axes parallel.
    """

    name: ClassVar[str] = "revolute"
    coordinates: ClassVar[tuple[str, ...]] = (ANGLE,)
    needs: ClassVar[tuple[str, ...]] = ("columns",)
    hinge: ClassVar[bool] = True
    picture: ClassVar[str | None] = "pin"

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows, which lock three translations and two rotations."""
        return [*frames.point_rows(), *frames.parallel_axis_rows()]

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinate: the angle about the axis."""
        return [frames.angle()]


@builder_method
def add_joint_revolute(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    axis: Vector = (0.0, 0.0, 1.0),
    limit_lower: float = float("-inf"),
    limit_upper: float = float("inf"),
    damping: float = 0.0,
    friction: float = 0.0,
    armature: float = 0.0,
    limit_restitution: float = 0.0,
    label: str | None = None,
    solver: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a revolute joint.

    Args:
        axis: axis of rotation in the joint frame.
        limit_lower, limit_upper: limits of the joint angle (rad).
        damping: viscous damping (N m s/rad).
        friction: dry friction (N m).
        armature: additional inertia of the coordinate (kg m2), for example of a geared rotor.
        limit_restitution: coefficient of restitution of the limits, 0 to 1.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    element = self.element("joint", label)
    axes = axis_params(element, 1, limit_lower, limit_upper, damping, friction, armature, limit_restitution)
    params: dict[str, Any] = dict(axes, columns=triad(validate.direction(element, "axis", axis)))
    return self.add_joint("revolute", parent, child, parent_xform, child_xform, label, solver, at, **params)
