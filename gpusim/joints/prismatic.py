"""Prismatic joint (slider): one translation along an axis."""

from __future__ import annotations

from typing import Any, ClassVar

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
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
class Prismatic(JointType):
    """Prismatic joint.

    Two constraint rows keep the origin of the child's joint frame on the parent's axis. Three rows lock rotation.
    """

    name: ClassVar[str] = "prismatic"
    coordinates: ClassVar[tuple[str, ...]] = (TRANSLATION,)
    needs: ClassVar[tuple[str, ...]] = ("columns",)
    picture: ClassVar[str | None] = "rail"

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows, which lock two translations and three rotations."""
        return [*frames.point_rows((0, 1)), *frames.locked_rotation_rows()]

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinate: the translation along the axis."""
        return [frames.translation(2)]


@builder_method
def add_joint_prismatic(
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
    """Add a prismatic joint.

    Args:
        axis: direction of translation in the joint frame.
        limit_lower, limit_upper: limits of the translation (m).
        damping: viscous damping (N s/m).
        friction: dry friction (N).
        armature: additional inertia of the coordinate (kg), for example of a geared rotor.
        limit_restitution: coefficient of restitution of the limits, 0 to 1.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    element = self.element("joint", label)
    axes = axis_params(element, 1, limit_lower, limit_upper, damping, friction, armature, limit_restitution)
    params: dict[str, Any] = dict(axes, columns=triad(validate.direction(element, "axis", axis)))
    return self.add_joint("prismatic", parent, child, parent_xform, child_xform, label, solver, at, **params)
