"""Bushing: a soft joint that locks no motion. Translational and rotational springs hold the child."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
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
from gpusim.transform import Transform
from gpusim.typing import Array

MOTIONS = ("x", "y", "z", "rx", "ry", "rz")
"""Names of the coordinates: translations (m), then rotation vector (rad), in the parent's joint frame."""


@register
class Bushing(JointType):
    """Bushing joint without constraint rows. MOTIONS contains the names of its six coordinates."""

    name: ClassVar[str] = "bushing"
    coordinates: ClassVar[tuple[str, ...]] = (TRANSLATION,) * 3 + (ROTATION,) * 3
    holds: ClassVar[bool] = False
    sets_pose: ClassVar[bool] = False

    def rows(self, frames: JointFrames, params: dict[str, Any]) -> list[DotRow | LineRow]:
        """Return no constraint rows: the joint locks no motion."""
        return []

    def coordinate_list(self, frames: JointFrames, params: dict[str, Any]) -> list[Coordinate]:
        """Return the coordinates: translation and rotation vector in the parent's joint frame."""
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
    at: Anchor | None = None,
) -> int:
    """Add a bushing: a soft joint with springs and dampers for all six relative motions.

    The wrench on the child is -K q - C q', where q contains three translations and three rotations. The signal
    ``joint.<label>.position`` contains q.

    If K and C are diagonal, each coordinate with a nonzero entry gets a separate spring. The signals are
    ``spring.<label>_x.force`` to ``spring.<label>_rz.force``. Otherwise, the bushing is one actuator with the signals
    ``bushing.<label>.force_x`` to ``bushing.<label>.torque_z``.

    Args:
        parent: body index, -1 for the world.
        child: body index.
        parent_xform: joint frame in the parent's body frame. Its axes are the axes of all springs.
        child_xform: joint frame in the child's body frame.
        stiffness: matrix K (N/m and N m/rad). Give a symmetric 6x6 matrix, its diagonal (x, y, z, rotations about x, y,
            z), or one number for the whole diagonal.
        damping: matrix C (N s/m and N m s/rad), in one of the formats of ``stiffness``.
        label: unique name.
        solver: solver of the joint, "direct" or "colored". By default, the simulation chooses (see
            :meth:`ModelBuilder.set_joint_solver`).
        at: pose of the bushing in the world, instead of both joint frames (see :meth:`ModelBuilder.add_joint`).

    Returns:
        The joint's index.
    """
    element = self.element("joint", label, "bushing")
    k, c = _matrix(element, "stiffness", stiffness), _matrix(element, "damping", damping)
    if not np.any(k) and not np.any(c):
        rule = "stiffness and damping are zero in all motions"
        raise validate.fail(element, rule, "give a stiffness or damping, or use no joint")
    joint = self.add_joint(
        "bushing", parent, child, parent_xform, child_xform, label, solver, at, **axis_params(element, 6)
    )
    name = self.joints[joint].label
    if np.any(k - np.diag(np.diag(k))) or np.any(c - np.diag(np.diag(c))):
        entries = {f"{x}{i}{j}": m[i, j] for x, m in (("k", k), ("c", c)) for i in range(6) for j in range(i, 6)}
        self.add_actuator("matrix_spring", name, {"joint": joint, **entries})
        return joint
    for axis, motion in enumerate(MOTIONS):
        if k[axis, axis] > 0.0 or c[axis, axis] > 0.0:
            numbers = {"stiffness": k[axis, axis], "damping": c[axis, axis], "rest_length": 0.0}
            self.add_actuator("torsion_spring", f"{name}_{motion}", {"joint": joint, "axis": axis, **numbers})
    return joint


def _matrix(element: str, name: str, value: Any) -> Array:
    """Return a symmetric 6x6 matrix, given as one number, six numbers or a matrix."""
    array = validate.array(element, value)
    if array.shape != (6, 6):
        array = np.diag(validate.per_axis(element, name, array, 6))
    if np.any(np.diag(array) < 0.0):
        raise validate.fail(element, f"{name} = {np.diag(array).min():g} must not be negative", f"give {name} >= 0")
    skew = np.argwhere(np.abs(array - array.T) > 1e-9 * np.abs(array).max())
    if skew.size:
        i, j = skew[0]
        rule = f"{name}[{i}, {j}] = {array[i, j]:g} and {name}[{j}, {i}] = {array[j, i]:g} differ"
        raise validate.fail(element, rule, "give a symmetric matrix")
    return 0.5 * (array + array.T)
