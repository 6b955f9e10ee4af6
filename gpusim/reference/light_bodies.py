"""Constraint rows of bodies that are far lighter than their neighbors, such as links between two imported joints.

A light body dominates the response of its constraint rows to an impulse. After elimination, only the small response of
the heavy bodies remains. So the threshold for weak pivots and the softening (factor.py) must be shares of the response
of the heavy bodies.
"""

from __future__ import annotations

import numpy as np

from gpusim.model.model import Model
from gpusim.typing import Array

LIGHT = 1e-4
"""A body is light if its mass is below this share of a jointed body's mass."""
CARRIED = 0.1
"""Share of the heavy mass that replaces the mass of a light body."""
LEAST = 1e-5
"""Least share. Smaller pivots are round-off."""


def heavy_share(model: Model) -> Array:
    """Return the share of each row's response that comes from heavy bodies, (constraints * block,), 1 if all are heavy.

    The masses come from the builder. Masses that you write later have no effect on the result.
    """
    t = model.topology
    mass = np.where(t.dynamic, [*(body.mass for body in model.bodies), 0.0], 0.0)
    heavy, before, joined = mass, np.zeros(0), t.constraint_bodies
    while not np.array_equal(heavy, before):
        before, reached = heavy, heavy.copy()
        np.maximum.at(reached, joined, heavy[joined].max(axis=1, initial=0.0, keepdims=True))
        heavy = np.where(t.dynamic & (mass < LIGHT * reached), reached, mass)
    light = mass < heavy
    share = np.ones(t.num_bodies + 1)
    share[light] = np.clip(mass[light] / (CARRIED * heavy[light]), LEAST, 1.0)
    return np.repeat(share[joined].min(axis=1, initial=1.0), t.block)
