"""Distance joint: a rod (fixed distance between two points) or a rope (limited distance)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import end_frame
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
    DISTANCE,
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
class Distance(JointType):
    """Distance joint. A rod has a constraint row for the distance. A rope has a limit on the distance."""

    name: ClassVar[str] = "distance"
    coordinates: ClassVar[tuple[str, ...]] = (DISTANCE,)
    needs: ClassVar[tuple[str, ...]] = ("rod",)
    options: ClassVar[tuple[str, ...]] = ("moves",)
    sets_pose: ClassVar[bool] = False
    pulls: ClassVar[bool] = True
    picture: ClassVar[str | None] = "line"

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return one constraint row along the line between both points for a rod with constant length.

        Ropes and rods with variable length have no constraint rows.
        """
        locked = params["rod"] is not None and "moves" not in params
        return [LineRow(frames.point_a, frames.point_b, params["rod"])] if locked else []

    def moving(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return rod parameters with both limits set to the length of the rod. Return None for a rope."""
        if params["rod"] is None:
            return None
        limits = {name: np.array([params["rod"]]) for name in ("limit_lower", "limit_upper")}
        return params | limits | {"moves": True}

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinate: the distance between both points."""
        return [frames.distance()]


@builder_method
def add_joint_distance(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    min_distance: float = 0.0,
    max_distance: float = float("inf"),
    damping: float = 0.0,
    label: str | None = None,
    solver: str | None = None,
    at_a: Vector | None = None,
    at_b: Vector | None = None,
) -> int:
    """Add a rope, a rod, or a segment of a tendon between the origins of two joint frames.

    The signal ``joint.<label>.tension`` is the tension (N).

    Args:
        parent: body index, -1 for the world.
        child: body index.
        parent_xform: joint frame in the parent's body frame. Its origin is the first point.
        child_xform: joint frame in the child's body frame. Its origin is the second point.
        min_distance: minimum distance (m), 0 for a rope.
        max_distance: maximum distance (m), equal to ``min_distance`` for a rod. A joint without limits only measures
            the distance, for example for a tendon over pulleys. To simulate a winch, write
            ``joint.<label>.limit_upper`` at run time. The limit moves to the new length over the next step. If you
            write one limit of a rod, both limits change.
        damping: viscous damping along the line (N s/m).
        label, solver: see ``add_joint``.
        at_a, at_b: both points in the world frame (m) for the current poses of the bodies, instead of ``parent_xform``
            and ``child_xform``.

    Returns:
        The joint's index.

    Raises:
        ModelError: ``min_distance`` is above ``max_distance``, a length is negative, or ``max_distance`` is zero.
    """
    element = self.element("joint", label)
    min_length = validate.not_negative(element, "min_distance", min_distance)
    max_length = validate.number(element, "max_distance", max_distance, infinite=True)
    if max_length < 0.0:
        raise validate.fail(element, f"max_distance = {max_length:g} is a negative length", "give a length above zero")
    if min_length > max_length:
        raise validate.fail(
            element,
            f"min_distance = {min_length:g} is above max_distance = {max_length:g}",
            "swap them, or make them equal",
        )
    if max_length <= 0.0:
        raise validate.fail(element, "max_distance = 0 gives a rod without length", "use a ball joint")
    rod = min_length if min_length == max_length else None
    unbounded = float("-inf"), float("inf")
    limits = unbounded if rod is not None else (min_length if min_length > 0.0 else unbounded[0], max_length)
    params: dict[str, Any] = dict(
        axis_params(element, 1, limit_lower=limits[0], limit_upper=limits[1], damping=damping), rod=rod
    )
    validate.transform(element, "parent_xform", parent_xform)
    validate.transform(element, "child_xform", child_xform)
    ends = (
        end_frame(self, element, "parent_xform at_a", self.check_body(element, "parent", parent), parent_xform, at_a),
        end_frame(self, element, "child_xform at_b", self.check_body(element, "child", child), child_xform, at_b),
    )
    return self.add_joint("distance", parent, child, *ends, label, solver, **params)
