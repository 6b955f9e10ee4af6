"""What touches bodies with a sensor: the contacts' impulses over the last kick, as the state keeps them.

Sums go over pairs and points in their order, number by number, as the kernels do (cuda_kernels/observe.cuh). A bounce
is not among them: its impulse is spent within the step. Points act at their arms of that kick.
"""

from __future__ import annotations

import numpy as np

from gpusim.model.contact_fields import POINTS
from gpusim.reference.contact_rows import cross
from gpusim.reference.now import Now
from gpusim.typing import Array


def contact_wrench(now: Now, i: Array) -> Array:
    """Force and torque (about the center of mass) on the bodies of contact sensors, world frame, (num_worlds, n, 6)."""
    s = now.state
    body_of, worlds = now.model.contact.body, now.num_worlds
    bodies = now.sensors["contact_sensor_body"][i]
    total = np.zeros((worlds, bodies.size, 6))
    kick = s["kick_before"][:, None]
    for m in range(int(s["pair_count"].max(initial=0))):
        listed = m < s["pair_count"]
        points = np.where(listed, s["pair_points"][:, m], 0)
        if not points.any():
            continue
        arms = s["contact_arm"][:, m].astype(float).reshape(worlds, POINTS, 2, 3)
        for side, sign in ((0, -1.0), (1, 1.0)):
            body = body_of[s["pair_shapes"][:, m, side]]
            mine = (body[:, None] == bodies) & (points > 0)[:, None]
            if mine.any():
                own = _pair_wrench(s, m, points, arms[:, :, side], sign)
                total = np.where(mine[..., None], total + own[:, None], total)
    return np.where(kick[..., None] > 0.0, total / np.where(kick > 0.0, kick, 1.0)[..., None], 0.0)


def _pair_wrench(s: dict[str, Array], m: int, points: Array, arms: Array, sign: float) -> Array:
    """Of one pair, on its A or B, N s and N m s, (num_worlds, 6)."""
    total, middle = np.zeros((len(points), 6)), np.zeros((len(points), 3))
    for k in range(POINTS):
        there = (k < points)[:, None]
        impulse, arm = sign * s["contact_impulse"][:, m, k].astype(float), arms[:, k]
        total[:, :3] = np.where(there, total[:, :3] + impulse, total[:, :3])
        total[:, 3:] = np.where(there, total[:, 3:] + cross(arm, impulse), total[:, 3:])
        middle = np.where(there, middle + arm, middle)
    middle = middle / np.maximum(points, 1)[:, None]
    shear = sign * s["pair_force"][:, m].astype(float)
    total[:, :3] += shear
    total[:, 3:] += cross(middle, shear) + sign * s["pair_torque"][:, m].astype(float)
    return total
