"""Free joint: no row at all; names a floating base."""

from __future__ import annotations

from typing import Any, ClassVar

from gpusim.geometry import Transform
from gpusim.joints.base import DotRow, JointFrames, JointType, LineRow, register
from gpusim.model.builder import ModelBuilder, builder_method


@register
class Free(JointType):
    """Nothing is locked; the position reads the pose of the child's joint frame in the parent's."""

    name: ClassVar[str] = "free"
    coordinates: ClassVar[tuple[str, ...]] = ()
    position_is: ClassVar[str] = "pose"
    holds: ClassVar[bool] = False

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """No locked motion."""
        return []


@builder_method
def add_joint_free(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    label: str | None = None,
) -> int:
    """Add a free joint.

    Args:
        parent: body index, -1 for the world.
        child: body index.
        parent_xform: joint frame in the parent's body frame.
        child_xform: joint frame in the child's body frame.
        label: unique name.

    Returns:
        The joint's index.
    """
    return self.add_joint("free", parent, child, parent_xform, child_xform, label)
