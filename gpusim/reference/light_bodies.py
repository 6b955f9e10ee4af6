"""Constraint rows of very light bodies, such as the small bodies between two imported joints.

An impulse on such a constraint row moves almost only the light body. The factorization subtracts this motion from the
pivot of the row. The remaining pivot contains only the motion of heavy bodies, so it is tiny.
"""

from __future__ import annotations

import numpy as np

from gpusim.model.model import Model
from gpusim.typing import Array

LIGHT = 1e-4
"""Maximum mass of a light body, as a fraction of the mass of a body that is jointed to it."""
CARRIED = 0.1
"""Mass that the solver assumes for a light body, as a fraction of the heavy body's mass."""
MIN_FRACTION = 1e-5
"""Lower bound of the result of :func:`heavy_share`."""


def heavy_share(model: Model) -> Array:
    """Return the fraction of each row's response that comes from heavy bodies, (constraints * block,).

    The masses in the builder determine the fractions. Later mass changes have no effect.
    """
    t = model.topology
    mass = np.where(t.dynamic, [*(body.mass for body in model.bodies), 0.0], 0.0)
    heavy, before, joined = mass, np.zeros(0), t.constraint_bodies
    while not np.array_equal(heavy, before):
        before, reached = heavy, heavy.copy()
        np.maximum.at(reached, joined, heavy[joined].max(axis=1, initial=0.0, keepdims=True))
        heavy = np.where(t.dynamic & (mass < LIGHT * reached), reached, mass)
    light = mass < heavy
    fraction = np.ones(t.num_bodies + 1)
    fraction[light] = np.clip(mass[light] / (CARRIED * heavy[light]), MIN_FRACTION, 1.0)
    return np.repeat(fraction[joined].min(axis=1, initial=1.0), t.block)
