"""Graph coloring of constraints: no two of one color share a dynamic body; what no color can hold is the overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array


@dataclass
class ColorSets:
    """Constraints by color, and those that no color could hold."""

    colors: list[Array]
    """Constraints of each color, rising."""
    color_of: Array
    """(constraints,) color of each constraint, -1 for the overflow."""
    overflow: Array
    """Constraints in no color, rising."""
    overflow_load: Array
    """(bodies,) how many sides of overflow constraints act on each dynamic body; at least 1, and 1 for others."""


def color_constraints(bodies: Array, dynamic: Array, max_colors: int = 32) -> ColorSets:
    """Greedy coloring, largest degree first (ties by number), with one bit mask of used colors for each body.

    Args:
        bodies: (constraints, slots) body of every slot.
        dynamic: (bodies,) True where a body can move; static bodies never conflict.
        max_colors: how many colors there may be, 1 to 62.

    Returns:
        Constraints by color in rising order; those that fit none of the colors (a body with more joints than
        that) as overflow.
    """
    from gpusim.model.coloring_loop import assign_colors  # numba compiles on import

    load = np.bincount(bodies.ravel(), minlength=dynamic.shape[0])
    degree = np.where(dynamic, load, 0)[bodies].sum(axis=1)
    order = np.lexsort((np.arange(bodies.shape[0]), -degree))
    color = assign_colors(bodies.astype(np.int64), dynamic.astype(np.bool_), order.astype(np.int64), max_colors)
    used = int(color.max(initial=-1)) + 1
    overflow = np.flatnonzero(color < 0)
    return ColorSets(
        colors=[np.flatnonzero(color == k) for k in range(used)],
        color_of=color,
        overflow=overflow,
        overflow_load=_overflow_load(bodies[overflow], dynamic),
    )


def _overflow_load(bodies: Array, dynamic: Array) -> Array:
    """How many sides of the overflow act on each dynamic body, at least 1: the parts into which its mass splits."""
    sides = np.bincount(bodies.ravel(), minlength=dynamic.shape[0])
    return np.where(dynamic, np.maximum(sides, 1), 1).astype(np.int64)
