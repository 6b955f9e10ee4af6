"""Tendon: a coordinate that is a weighted sum of joint coordinates (MuJoCo's fixed tendon).

The tendon's coordinate is the sum q = factor_1 q_1 + factor_2 q_2 + ... over coordinates q_i of other joints. Limits,
damping, friction and armature act on this sum. Springs, motors, servos and brakes can also act on the sum. For example,
an anti-roll bar is a spring on ``q_left - q_right``. A limited-slip clutch is dry friction on the difference of two
wheel angles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import (
    SUM,
    Coordinate,
    DotRow,
    JointFrames,
    JointType,
    LineRow,
    axis_params,
    joint_type,
    register,
)
from gpusim.description.specs import JointSpec
from gpusim.joints.coupling import checked_terms
from gpusim.transform import Transform


@register
class Tendon(JointType):
    """Tendon: a joint without constraint rows. Its coordinate depends on the bodies of all joints in its terms."""

    name: ClassVar[str] = "tendon"
    coordinates: ClassVar[tuple[str, ...]] = (SUM,)
    needs: ClassVar[tuple[str, ...]] = ("terms", "unit")
    sets_pose: ClassVar[bool] = False
    holds: ClassVar[bool] = False
    pulls: ClassVar[bool] = True

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return no constraint rows: the joint locks no motion."""
        return []

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinate: the weighted sum."""
        zeros = np.zeros(3)
        return [Coordinate(SUM, zeros, zeros, zeros, zeros, zeros, terms=tuple(params["terms"]))]

    def unit_of(self, joint: JointSpec, axis: int) -> str:
        """Return the unit of the tendon's terms, or "m, rad" for terms with different units."""
        return str(joint.params["unit"])

    def lets_collide(self, joint: JointSpec) -> bool:
        """Return True: a tendon does not disable collisions. Only the joints in its terms can do so."""
        return True

    def moved(
        self, params: dict[str, Any], first_joint: int, first_body: int, parent: int, pose: Transform
    ) -> dict[str, Any]:
        """Return the parameters with new joint indices, after another builder has included this builder."""
        return params | {"terms": [(joint + first_joint, axis, factor) for joint, axis, factor in params["terms"]]}


@builder_method
def add_tendon(
    self: ModelBuilder,
    terms: Sequence[tuple[int, float] | tuple[int, int, float]],
    limit_lower: float = float("-inf"),
    limit_upper: float = float("inf"),
    damping: float = 0.0,
    friction: float = 0.0,
    armature: float = 0.0,
    limit_restitution: float = 0.0,
    label: str | None = None,
    solver: str | None = None,
) -> int:
    """Add a tendon: a weighted sum of joint coordinates, on which actuators, limits and friction can act.

    Args:
        terms: list of (joint, factor) or (joint, axis, factor). The new tendon replaces a tendon in this list by the
            terms of that tendon.
        limit_lower, limit_upper: limits of the sum (m or rad). To simulate a winch, write a limit at run time. The
            limit moves to the new value over the next step.
        damping: viscous damping of the sum (N s/m or N m s/rad).
        friction: dry friction (N or N m).
        armature: additional inertia of the coordinate (kg or kg m2).
        limit_restitution: coefficient of restitution of the limits, 0 to 1.
        label: unique name, for signals such as ``joint.<label>.position`` and ``joint.<label>.tension``.
        solver: solver of the joint, "direct" or "colored". By default, the simulation chooses (see
            :meth:`ModelBuilder.set_joint_solver`).

    Returns:
        The tendon's index, which you can pass as the ``joint`` argument of any actuator on a joint coordinate.

    Raises:
        ModelError: ``terms`` is empty or has an unknown joint or coordinate, or a factor is zero.
    """
    element = self.element("joint", label)
    checked = checked_terms(self, element, terms)
    first = self.joints[checked[0][0]]
    units = {joint_type(self.joints[joint].kind).unit_of(self.joints[joint], axis) for joint, axis, _ in checked}
    axes = axis_params(element, 1, limit_lower, limit_upper, damping, friction, armature, limit_restitution)
    params: dict[str, Any] = dict(axes, terms=checked, unit=units.pop() if len(units) == 1 else "m, rad")
    return self.add_joint("tendon", first.parent, first.child, None, None, label, solver, **params)
