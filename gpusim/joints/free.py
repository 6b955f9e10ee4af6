"""Free joint: no rows. It names a floating base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import DotRow, JointFrames, JointType, LineRow, register
from gpusim.description.specs import JointSpec
from gpusim.transform import Transform


@register
class Free(JointType):
    """Free joint that locks nothing. Its position is the pose of the child's joint frame in the parent's."""

    name: ClassVar[str] = "free"
    coordinates: ClassVar[tuple[str, ...]] = ()
    position_is: ClassVar[str] = "pose"
    holds: ClassVar[bool] = False
    bears: ClassVar[bool] = False

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return no row."""
        return []

    def lets_collide(self, joint: JointSpec) -> bool:
        """Return True: the bodies are not joined."""
        return True

    def check_model(self, joints: Sequence[JointSpec], builder: Elements) -> None:
        """Raise ModelError if a body is the child of more than one free joint."""
        first: dict[int, str] = {}
        for joint in joints:
            if joint.child in first:
                raise validate.fail(
                    joint.element,
                    f"body '{builder.body_label(joint.child)}' has the free joint '{first[joint.child]}' already",
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
    label: str | None = None,
    solver: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a free joint.

    Args:
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    return self.add_joint("free", parent, child, parent_xform, child_xform, label, solver, at)
