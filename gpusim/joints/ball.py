"""Ball joint: three rotations about a point."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
    ROTATION,
    TOTAL_ROTATION,
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
class Ball(JointType):
    """Ball joint with three point rows. Its coordinates are the rotation vector's components and its length."""

    name: ClassVar[str] = "ball"
    coordinates: ClassVar[tuple[str, ...]] = (ROTATION, ROTATION, ROTATION, TOTAL_ROTATION)
    picture: ClassVar[str | None] = "socket"
    position_is: ClassVar[str] = "quaternion"
    limits_alone: ClassVar[int] = 1

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the rows of three locked motions."""
        return [*frames.point_rows()]

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the rotation vector in the parent's axes, and its length."""
        return [*(frames.rotation(k) for k in range(3)), frames.total_rotation()]


@builder_method
def add_joint_ball(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    limit: float = float("inf"),
    damping: Vector | float = 0.0,
    friction: Vector | float = 0.0,
    armature: float = 0.0,
    label: str | None = None,
    solver: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a ball joint.

    Args:
        limit: greatest angle of the whole relative rotation, rad (like MuJoCo's ball range).
        damping: viscous, about the parent's axes, N m s/rad.
        friction: dry, about the parent's axes, N m.
        armature: inertia of a rotor that turns with the child, about any axis, kg m2.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    element = self.element("joint", label)
    greatest = validate.positive(element, "limit", limit, infinite=True)
    rotor = validate.number(element, "armature", armature)
    params: dict[str, Any] = dict(
        axis_params(
            element,
            4,
            limit_upper=(np.inf, np.inf, np.inf, greatest),
            damping=(*validate.per_axis(element, "damping", damping, 3), 0.0),
            friction=(*validate.per_axis(element, "friction", friction, 3), 0.0),
            armature=(rotor, rotor, rotor, 0.0),
        )
    )
    return self.add_joint("ball", parent, child, parent_xform, child_xform, label, solver, at, **params)
