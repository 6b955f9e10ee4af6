"""Graph coloring of constraints: no two of one color share a dynamic body."""

from __future__ import annotations

import numpy as np

from gpusim.model.topology import ColorSets
from gpusim.typing import Array


def color_constraints(bodies: Array, dynamic: Array, max_colors: int = 62) -> ColorSets:
    """Greedy coloring, largest degree first (ties by number), with one bit mask of used colors for each body.

    Args:
        bodies: (constraints, slots) body of every slot.
        dynamic: (bodies,) True where a body can move; static bodies never conflict.
        max_colors: how many colors are shared, at most 62; each constraint that fits none of them (a body with
            more joints than that) gets a color of its own, so the sweep stays Gauss-Seidel.

    Returns:
        Constraints by color in rising order.
    """
    from gpusim.solver.coloring_loop import assign_colors  # numba compiles on import

    load = np.bincount(bodies.ravel(), minlength=dynamic.shape[0])
    degree = np.where(dynamic, load, 0)[bodies].sum(axis=1)
    order = np.lexsort((np.arange(bodies.shape[0]), -degree))
    color = assign_colors(bodies.astype(np.int64), dynamic.astype(np.bool_), order.astype(np.int64), max_colors)
    used = int(color.max()) + 1 if color.size else 0
    left = np.flatnonzero(color < 0)
    color[left] = used + np.arange(left.size)
    return ColorSets([np.flatnonzero(color == k) for k in range(used + left.size)], color)
