"""Posts that support elevated hinges between the world and a body."""

from __future__ import annotations

import numpy as np

from gpusim.description.joint_kinds import joint_frames
from gpusim.description.specs import WORLD
from gpusim.model.model import Model
from gpusim.stage.floor import Ground
from gpusim.stage.machine_parts import MachineParts
from gpusim.stage.materials import FIXTURE
from gpusim.stage.parts import Part, cylinder_part, is_hinge
from gpusim.typing import Array

_LOW = 4.0
"""Minimum height of a hinge that gets a post, relative to half of the pin's length."""
_ASLANT = 0.5


def posts(model: Model, machine: MachineParts, grounds: list[Ground], up: Array) -> list[Part]:
    """Return a post and a foot for every elevated hinge between the world and a body."""
    level = next((ground for ground in grounds if ground.level), None)
    if level is None:
        return []
    floor = float(level.point @ up)
    parts: list[Part] = []
    for joint in model.joints:
        if not is_hinge(joint) or joint.parent != WORLD or joint.child in machine.pictured:
            continue
        frames = joint_frames(joint)
        radius, half = machine.pin_size(joint)
        axis = behind(frames.axes_a[:, 2])
        upright = abs(float(axis @ up)) > _ASLANT
        axis = -up if upright else axis
        top = frames.point_a + axis * (half + 0.7 * radius)
        height = float(top @ up) - floor
        if height < _LOW * half:
            continue
        post = 1.1 * radius
        middle = top - 0.5 * height * up
        parts.append(cylinder_part(WORLD, middle, up, post, 0.5 * height, FIXTURE))
        parts.append(cylinder_part(WORLD, top - (height - 0.4 * post) * up, up, 4.0 * post, 0.4 * post, FIXTURE))
    return parts


def behind(axis: Array) -> Array:
    """Return ``axis`` or ``-axis``: the direction away from the usual camera positions (front, right, above)."""
    direction: Array = -axis if float(axis @ np.array([1.0, -1.5, 1.2])) > 0.0 else axis
    return direction
