"""Bushing: a soft joint that locks nothing; springs along and about the axes of its frame hold the child."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim.geometry import Transform
from gpusim.model import validate
from gpusim.model.builder import ModelBuilder, builder_method
from gpusim.model.joint_kinds import (
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
from gpusim.typing import Array

MOTIONS = ("x", "y", "z", "rx", "ry", "rz")
"""Travels along the axes of the joint frame in the parent, m, and components of the rotation vector there, rad."""


@register
class Bushing(JointType):
    """No row; the coordinates are MOTIONS."""

    name: ClassVar[str] = "bushing"
    coordinates: ClassVar[tuple[str, ...]] = (TRANSLATION,) * 3 + (ROTATION,) * 3
    holds: ClassVar[bool] = False
    sets_pose: ClassVar[bool] = False

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """No locked motion."""
        return []

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Translation and rotation vector in the parent's frame."""
        return [*(frames.translation(k) for k in range(3)), *(frames.rotation(k) for k in range(3))]


@builder_method
def add_bushing(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    *,
    stiffness: Any,
    damping: Any = 0.0,
    label: str | None = None,
    solver: str | None = None,
) -> int:
    """Add a bushing, a soft joint: -K (travels, rotation vector) - C (their rates) acts on the child.

    Each motion is a spring of its own: ``spring.<label>_x.force`` to ``_rz`` tell its effort, and
    ``joint.<label>.position`` all six deflections.

    Args:
        parent: body index, -1 for the world.
        child: body index.
        parent_xform: joint frame in the parent's body frame; the directions of the springs.
        child_xform: joint frame in the child's body frame.
        stiffness: K, N/m and N m/rad: six numbers, for x, y, z and the turns about them, or a diagonal 6x6 matrix.
        damping: C, N s/m and N m s/rad, likewise; one number serves all.
        label: unique name.
        solver: "direct" or "colored" (:meth:`ModelBuilder.set_joint_solver`); None: the simulation chooses.

    Returns:
        The joint's index.
    """
    element = self.element("joint", label, "bushing")
    k, c = _diagonal(element, "stiffness", stiffness), _diagonal(element, "damping", damping)
    if not np.any(k > 0.0):
        raise validate.fail(element, "stiffness is zero in all motions", "give one, or leave the bodies free")
    joint = self.add_joint(
        "bushing", parent, child, parent_xform, child_xform, label, solver, **axis_params(element, 6)
    )
    for axis, motion in enumerate(MOTIONS):
        if k[axis] > 0.0 or c[axis] > 0.0:
            spring = f"{self.joints[joint].label}_{motion}"
            params = {"joint": joint, "axis": axis, "stiffness": k[axis], "damping": c[axis], "rest_length": 0.0}
            self.add_actuator("torsion_spring", spring, params)
    return joint


def _diagonal(element: str, name: str, value: Any) -> Array:
    """Six numbers of at least zero, from one for all, six or a diagonal matrix."""
    array = validate.array(element, value)
    if array.shape == (6, 6):
        coupled = np.argwhere(array - np.diag(np.diag(array)))
        if coupled.size:
            i, j = coupled[0]
            rule = f"{name}[{i}, {j}] = {array[i, j]:g} couples {MOTIONS[i]} with {MOTIONS[j]}; each has a spring alone"
            raise validate.fail(element, rule, "place and turn the frames so that the matrix is diagonal there")
        array = np.diag(array)
    numbers = validate.per_axis(element, name, array, 6)
    if np.any(numbers < 0.0):
        raise validate.fail(element, f"{name} = {float(numbers.min()):g} must not be negative", f"give {name} >= 0")
    return numbers
