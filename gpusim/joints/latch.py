"""Latch: a weld that you can attach and detach at run time, for grippers, couplers, magnets and suction cups.

A latch is a joint with six coordinates. When you attach the latch, it sets ``limit_lower = limit_upper`` to lock the
current relative pose of its bodies. With ``rotation=False``, only the three translations get limits. A detached latch
has no limits.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import Anchor
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import axis_params, register
from gpusim.description.specs import WORLD, JointSpec
from gpusim.joints.bushing import Bushing
from gpusim.model.sensors import BREAKS
from gpusim.transform import Transform


@register
class Latch(Bushing):
    """Latch: a bushing without springs. While the latch is attached, limits lock its coordinates."""

    name: ClassVar[str] = "latch"
    options: ClassVar[tuple[str, ...]] = ("rotation", *BREAKS)
    switched: ClassVar[bool] = True

    def lets_collide(self, joint: JointSpec) -> bool:
        """Return True, because both bodies can touch before you attach the latch."""
        return True


@builder_method
def add_latch(
    self: ModelBuilder,
    parent: int,
    child: int,
    parent_xform: Transform | None = None,
    child_xform: Transform | None = None,
    attached: bool = False,
    label: str | None = None,
    solver: str | None = None,
    at: Anchor | None = None,
    break_force: float = float("inf"),
    break_torque: float = float("inf"),
    rotation: bool = True,
) -> int:
    """Add a latch: a weld between two bodies that you can attach and detach while the simulation runs.

    To attach the latch, call ``sim.write("joint.<label>.attached", 1.0, worlds)``. The latch then locks the current
    relative pose of the bodies. To detach the latch, write 0. A reset restores the initial value ``attached``. The
    shapes of both bodies can always collide with each other.

    If you give ``break_force`` or ``break_torque``, the latch can break. It detaches in a world after a step with a
    mean load above this limit. It stays detached until you reset this world or write ``attached``. A breakable latch
    has a force sensor with the same label. The signals ``sensor.<label>.force`` and ``sensor.<label>.torque`` contain
    the load of the latch.

    Args:
        attached: True if the latch is attached at the start. Both joint frames must then coincide.
        break_force: maximum force (N) that the latch holds.
        break_torque: maximum torque (N m) that the latch holds, about the origin of the parent's joint frame.
        at: pose of the latch in the world, as in ``add_joint``. Without any frame, the latch is at the child's pose.
        rotation: True to lock translation and rotation. False to lock only translation, like a ball joint.
        parent, child, parent_xform, child_xform, label, solver: see ``add_joint``.

    Returns:
        The joint's index.

    Raises:
        ModelError: ``attached`` or ``rotation`` is not a boolean, ``break_force`` or ``break_torque`` is not positive,
            or a sensor already has the label.
    """
    element = self.element("joint", label)
    body = self.check_body(element, "child", child)
    if parent_xform is None and child_xform is None and at is None and body != WORLD:
        at = self.bodies[body].xform  # attached latches must not move the bodies
    for name, flag in (("attached", attached), ("rotation", rotation)):
        validate.flag(element, name, flag)
    limits = np.full(6, np.inf)
    if attached:
        limits[: 6 if rotation else 3] = 0.0
    params: dict[str, Any] = dict(axis_params(element, 6, limit_lower=-limits, limit_upper=limits))
    if not rotation:
        params["rotation"] = False
    breaks = {
        name: validate.positive(element, name, value, infinite=True)
        for name, value in zip(BREAKS, (break_force, break_torque), strict=True)
    }
    breakable = any(np.isfinite(value) for value in breaks.values())
    if breakable:
        params |= breaks
    index = self.add_joint("latch", parent, child, parent_xform, child_xform, label, solver, at, **params)
    if breakable:
        self.add_force_sensor(index, self.joints[index].label)
    return index
