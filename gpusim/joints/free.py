"""Free joint of a floating base: it locks no motion. Damping, friction and armature act on all six motions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import (
    ROTATION,
    TRANSLATION,
    Coordinate,
    DotRow,
    JointFrames,
    JointType,
    LineRow,
    axis_params,
    register,
)
from gpusim.description.specs import JointSpec
from gpusim.transform import Transform
from gpusim.typing import Vector

_MOTIONS = (*(TRANSLATION,) * 3, *(ROTATION,) * 3)


@register
class Free(JointType):
    """Free joint. Its position is the pose of the child's joint frame in the parent's joint frame.

    The joint has coordinates only if it has damping, friction or armature. Only the rates of these coordinates are
    meaningful.
    """

    name: ClassVar[str] = "free"
    coordinates: ClassVar[tuple[str, ...]] = ()
    position_is: ClassVar[str] = "pose"
    holds: ClassVar[bool] = False
    bears: ClassVar[bool] = False

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return no constraint rows: the joint locks no motion."""
        return []

    def kinds(self, joint: JointSpec) -> tuple[str, ...]:
        """Return the kinds of three translations and three rotations, or () for a joint without parameters."""
        return _MOTIONS if joint.params else ()

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinates: translations and rotations along the parent's axes, or [] if ``params`` is empty."""
        if not params:
            return []
        return [*(frames.translation(k) for k in range(3)), *(frames.rotation(k) for k in range(3))]

    def lets_collide(self, joint: JointSpec) -> bool:
        """Return True, because a free joint does not connect its bodies."""
        return True

    def check_model(self, joints: Sequence[JointSpec], builder: Elements) -> None:
        """Raise ModelError if a body is the child of more than one free joint."""
        first: dict[int, str] = {}
        for joint in joints:
            if joint.child in first:
                raise validate.fail(
                    joint.element,
                    f"body '{builder.body_label(joint.child)}' already has the free joint '{first[joint.child]}'",
                    "remove one of them",
                )
            first[joint.child] = joint.label


@builder_method
def add_joint_free(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    damping: Vector | float = 0.0,
    friction: Vector | float = 0.0,
    armature: Vector | float = 0.0,
    label: str | None = None,
    solver: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a free joint.

    Damping, friction and armature act on the velocities of the child's joint frame, along the axes of the parent's
    joint frame, as in MuJoCo.

    Args:
        damping: viscous damping of translations (N s/m) and rotations (N m s/rad). Give one number or six.
        friction: dry friction of translations (N) and rotations (N m). Give one number or six.
        armature: additional inertia of translations (kg) and rotations (kg m2). Give one number or six.
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.

    Raises:
        ModelError: damping, friction or armature is negative.
    """
    element = self.element("joint", label)
    params: dict[str, Any] = dict(axis_params(element, 6, damping=damping, friction=friction, armature=armature))
    acts = any(params[name].any() for name in ("damping", "friction", "armature"))
    return self.add_joint(
        "free", parent, child, parent_xform, child_xform, label, solver, at, **(params if acts else {})
    )
