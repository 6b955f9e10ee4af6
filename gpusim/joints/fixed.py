"""Fixed joint (weld): locks all motions."""

from __future__ import annotations

from typing import Any, ClassVar

from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import DotRow, JointFrames, JointType, LineRow, register
from gpusim.description.specs import JointSpec
from gpusim.transform import Transform


@register
class Fixed(JointType):
    """Fixed joint. Three constraint rows lock translation, and three lock rotation."""

    name: ClassVar[str] = "fixed"
    coordinates: ClassVar[tuple[str, ...]] = ()
    welds: ClassVar[bool] = True

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return the constraint rows, which lock all six motions."""
        return [*frames.point_rows(), *frames.locked_rotation_rows()]

    def lets_collide(self, joint: JointSpec) -> bool:
        """Return False: welded bodies do not collide."""
        return False


@builder_method
def add_joint_fixed(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    label: str | None = None,
    solver: str | None = None,
    at: Anchor | None = None,
) -> int:
    """Add a fixed joint.

    Args:
        parent, child, parent_xform, child_xform, label, solver, at: see ``add_joint``.

    Returns:
        The joint's index.
    """
    return self.add_joint("fixed", parent, child, parent_xform, child_xform, label, solver, at)
