"""Ball joint: three rotations about a point."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
    CHORD,
    ROTATION,
    TOTAL_ROTATION,
    Coordinate,
    DotRow,
    JointFrames,
    JointType,
    LineRow,
    angle_of_chord,
    axis_params,
    chord_of,
    register,
)
from gpusim.description.specs import JointSpec
from gpusim.transform import Transform
from gpusim.typing import Array, Vector


@register
class Ball(JointType):
    """Ball joint: three constraint rows keep the origins of both joint frames together.

    The coordinates are the three components and the length of the rotation vector. With a cone limit, the chord is a
    fifth coordinate. The chord is the distance between the tips of two unit vectors: the cone axis in the parent and
    the cone axis in the child.
    """

    name: ClassVar[str] = "ball"
    coordinates: ClassVar[tuple[str, ...]] = (ROTATION, ROTATION, ROTATION, TOTAL_ROTATION, CHORD)
    options: ClassVar[tuple[str, ...]] = ("cone_axis",)
    picture: ClassVar[str | None] = "socket"
    position_is: ClassVar[str] = "quaternion"

    def kinds(self, joint: JointSpec) -> tuple[str, ...]:
        """Return the kinds of the coordinates in :meth:`coordinate_list`."""
        return self.coordinates if "cone_axis" in joint.params else self.coordinates[:4]

    def moves(self, joint: JointSpec) -> int:
        """Return 3: the joint moves along three coordinates. The other coordinates only have limits."""
        return 3

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows, which lock three translations."""
        return [*frames.point_rows()]

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinates: rotation vector, length of this vector, and chord (only with a cone limit)."""
        cone = [frames.chord(params["cone_axis"])] if "cone_axis" in params else []
        return [*(frames.rotation(k) for k in range(3)), frames.total_rotation(), *cone]


def cone_of(joint: JointSpec) -> tuple[float, Array]:
    """Return the cone limit (rad, or infinity without a cone) and the cone axis (joint frame) of a ball joint."""
    axis = joint.params.get("cone_axis")
    if axis is None:
        return np.inf, np.array([0.0, 0.0, 1.0])
    return float(angle_of_chord(joint.params["limit_upper"][4])), axis


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
    cone_limit: float = float("inf"),
    cone_axis: Vector = (0.0, 0.0, 1.0),
) -> int:
    """Add a ball joint.

    Args:
        limit: maximum angle of the relative rotation, rad (as in MuJoCo).
        cone_limit: maximum angle between the parent's and the child's ``cone_axis`` (rad), below pi. Rotation about
            ``cone_axis`` stays free, as in USD's spherical joint. To set different limits in each world, write the
            signal ``joint.<label>.cone_limit``.
        cone_axis: axis of the cone, in the joint frame.
        damping: viscous damping about the parent's axes (N m s/rad).
        friction: dry friction about the parent's axes (N m).
        armature: additional inertia about all axes (kg m2), for example of a rotor.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    element = self.element("joint", label)
    max_angle = validate.positive(element, "limit", limit, infinite=True)
    cone = validate.positive(element, "cone_limit", cone_limit, infinite=True)
    rotor = validate.number(element, "armature", armature)
    extra: dict[str, Any] = {}
    if np.isfinite(cone):
        if cone >= np.pi:
            raise validate.fail(element, f"cone_limit = {cone:g} is not below pi", "leave it out for a free joint")
        extra["cone_axis"] = validate.direction(element, "cone_axis", cone_axis)
    zeros = (0.0,) * (1 + len(extra))
    params: dict[str, Any] = extra | axis_params(
        element,
        3 + len(zeros),
        limit_upper=(*(np.inf,) * 3, max_angle, *(float(chord_of(cone)),) * len(extra)),
        damping=(*validate.per_axis(element, "damping", damping, 3), *zeros),
        friction=(*validate.per_axis(element, "friction", friction, 3), *zeros),
        armature=(*(rotor,) * 3, *zeros),
    )
    return self.add_joint("ball", parent, child, parent_xform, child_xform, label, solver, at, **params)
