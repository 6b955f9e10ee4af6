"""The irregular loop of the coloring, compiled by numba and cached."""

from __future__ import annotations

import numpy as np

from gpusim.compiled import compiled
from gpusim.typing import Array


@compiled
def assign_colors(bodies: Array, dynamic: Array, order: Array, max_colors: int) -> Array:
    """First free color of each constraint in the given order; -1 where all ``max_colors`` are taken."""
    masks = np.zeros(dynamic.shape[0], dtype=np.int64)
    color = np.full(bodies.shape[0], -1, dtype=np.int64)
    for position in range(order.shape[0]):
        c = order[position]
        taken = np.int64(0)
        for s in range(bodies.shape[1]):
            if dynamic[bodies[c, s]]:
                taken |= masks[bodies[c, s]]
        for k in range(max_colors):
            bit = np.int64(1) << k
            if taken & bit == 0:
                color[c] = k
                for s in range(bodies.shape[1]):
                    masks[bodies[c, s]] |= bit
                break
    return color
