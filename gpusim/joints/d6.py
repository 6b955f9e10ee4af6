"""D6 joint: translations along axes of the parent, followed by successive rotations.

PhysX and USD use the name D6. The equivalent in MuJoCo is a body with several hinges and slides. Each axis has separate
limits, damping, friction, armature and drives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
    ANGLE,
    MIDDLE_ANGLE,
    OUTER_ANGLE,
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
from gpusim.description.specs import JointSpec
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

_ROTATION_KINDS = {0: (), 1: (ANGLE,), 2: (ANGLE, ANGLE), 3: (OUTER_ANGLE, MIDDLE_ANGLE, OUTER_ANGLE)}


@register
class D6(JointType):
    """D6 joint with up to three translations and up to three rotations. Constraint rows lock all other motions.

    The parameters "linear" (n, 3) and "angular" (m, 3) contain the n translation axes and m rotation axes. All axes of
    one kind are perpendicular unit vectors in the joint frame. The columns of the parameter "columns" (3, 3) are a
    right-handed triad along the rotation axes.
    """

    name: ClassVar[str] = "d6"
    needs: ClassVar[tuple[str, ...]] = ("columns", "linear", "angular")
    picture: ClassVar[str | None] = "socket"

    def kinds(self, joint: JointSpec) -> tuple[str, ...]:
        """Return the kinds of the coordinates: first translations, then rotations."""
        return (TRANSLATION,) * len(joint.params["linear"]) + _ROTATION_KINDS[len(joint.params["angular"])]

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows, which lock all motions that have no joint axis."""
        num_rotations = len(params["angular"])
        locked: list[DotRow] = []
        if num_rotations == 0:
            locked = frames.locked_rotation_rows()
        elif num_rotations == 1:
            locked = frames.parallel_axis_rows()
        elif num_rotations == 2:
            locked = [frames.perpendicular_row(0, 1)]
        if not len(params["linear"]):
            return [*frames.point_rows(), *locked]
        normals = [frames.axes_a @ params["columns"].T @ axis for axis in _complement(params["linear"])]
        return [*(DotRow(u, frames.point_a, frames.point_b, True) for u in normals), *locked]

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinates: first the translations along the parent's axes, then the rotations."""
        to_parent = frames.axes_a @ params["columns"].T
        slides = [replace(frames.translation(2), axis=to_parent @ axis) for axis in params["linear"]]
        return [*slides, *_rotations(frames, params)]


def _complement(axes: Array) -> Array:
    """Return the unit vectors that complete one to three perpendicular unit vectors ``axes`` to a triad."""
    if len(axes) == 1:
        return triad(axes[0]).T[:2]
    return np.cross(axes[0], axes[1])[None] if len(axes) == 2 else np.zeros((0, 3))


def _rotations(frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
    count, a, b = len(params["angular"]), frames.axes_a.T, frames.axes_b.T
    if count < 2:
        return [frames.angle()] * count
    zeros = np.zeros(3)

    def rotation(kind: str, axis: Array, other: Array, ref_a: Array, ref_b: Array, on_child: bool = True) -> Coordinate:
        return Coordinate(
            kind, axis, zeros, zeros, ref_a, ref_b, on_child, frame_a=a.T, frame_b=b.T, other=other
        )  # fmt: skip

    if count == 2:
        return [rotation(ANGLE, a[0], zeros, a[1], b[1], False), rotation(ANGLE, b[1], zeros, a[0], b[0])]
    # The columns are right-handed. If the third axis is opposite to the third column, its angle has the opposite sign.
    hand = float(np.sign(params["columns"][:, 2] @ params["angular"][2]))
    return [
        rotation(OUTER_ANGLE, a[0], b[2], a[2], b[2], False),
        rotation(MIDDLE_ANGLE, b[2], a[0], a[0], b[2]),
        rotation(OUTER_ANGLE, hand * b[2], a[0], a[0], b[0]),
    ]


def _axes(element: str, name: str, axes: Sequence[Vector]) -> Array:
    if not isinstance(axes, list | tuple) and (not isinstance(axes, np.ndarray) or axes.ndim != 2):
        raise validate.fail(element, f"{name} = {axes!r} is not a list of directions", "give a list of (x, y, z)")
    directions = [validate.direction(element, f"{name}[{k}]", axis) for k, axis in enumerate(axes)]
    if len(directions) > 3:
        raise validate.fail(element, f"{name} has {len(directions)} axes", "give at most three")
    matrix = np.reshape(directions, (-1, 3))
    if np.abs(matrix @ matrix.T - np.eye(len(matrix))).max(initial=0.0) > 1e-6:
        rule = f"{name} are not perpendicular"
        raise validate.fail(element, rule, "give perpendicular axes, or use two joints with a body between them")
    return matrix


def _columns(linear: Array, angular: Array) -> Array:
    if len(angular) > 1:
        return np.stack([angular[0], angular[1], np.cross(angular[0], angular[1])], axis=1)
    directions = angular if len(angular) else linear
    return triad(directions[0]) if len(directions) == 1 else np.eye(3)


@builder_method
def add_joint_d6(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    linear_axes: Sequence[Vector] = (),
    angular_axes: Sequence[Vector] = (),
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
    """Add a joint with up to three translations and up to three successive rotations.

    Each rotation also rotates the next axis. The coordinates are first the translations, then the rotations. With three
    rotations, the middle angle is between -pi/2 and pi/2 rad. At these two values, the first and the last axis align
    (gimbal lock). When the joint passes gimbal lock, the first and the last angle jump by pi. To avoid gimbal lock,
    limit the middle angle.

    Args:
        linear_axes: up to three perpendicular directions in the joint frame, fixed in the parent.
        angular_axes: up to three perpendicular rotation axes in the joint frame, in the zero pose. The first axis is
            fixed in the parent, and the last axis is fixed in the child.
        limit_lower, limit_upper: limits (m or rad). Give one number for each coordinate, or one number for all.
        damping: viscous damping (N s/m or N m s/rad).
        friction: dry friction (N or N m).
        armature: additional inertia of the coordinate (kg or kg m2), for example of a geared rotor.
        limit_restitution: coefficient of restitution of the limits, 0 to 1.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.

    Raises:
        ModelError: the joint has no axis, more than three linear or angular axes, or axes that are not perpendicular.
    """
    element = self.element("joint", label)
    linear, angular = _axes(element, "linear_axes", linear_axes), _axes(element, "angular_axes", angular_axes)
    count = len(linear) + len(angular)
    if count == 0:
        raise validate.fail(
            element, "has neither linear_axes nor angular_axes", "give at least one axis, or use add_joint_fixed"
        )
    axes = axis_params(element, count, limit_lower, limit_upper, damping, friction, armature, limit_restitution)
    params: dict[str, Any] = dict(axes, columns=_columns(linear, angular), linear=linear, angular=angular)
    return self.add_joint("d6", parent, child, parent_xform, child_xform, label, solver, at, **params)
