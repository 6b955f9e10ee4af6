"""Graph coloring of constraints: no two of one color share a dynamic body; what no color can hold is the overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array

# What stands for a color where there is none; one without a color is swept first, with split masses.
OVERFLOW, FACTORED = -1, -2


@dataclass
class ColorSets:
    """Constraints by color, and those that no color could hold."""

    colors: list[Array]
    """Constraints of each color, rising."""
    color_of: Array
    """(constraints,) color of each constraint, -1 for the overflow, FACTORED for those that are not swept."""
    overflow: Array
    """Constraints in no color, rising."""
    overflow_load: Array
    """(bodies,) how many sides of overflow constraints act on each dynamic body; at least 1, and 1 for others."""


def color_constraints(bodies: Array, dynamic: Array, max_colors: int = 32, among: Array | None = None) -> ColorSets:
    """Greedy coloring, largest degree first (ties by number), with one bit mask of used colors for each body.

    Args:
        bodies: (constraints, slots) body of every slot.
        dynamic: (bodies,) True where a body can move; static bodies never conflict.
        max_colors: how many colors there may be, 1 to 62.
        among: those that are swept, rising; None for all.

    Returns:
        Constraints by color in rising order; those that fit none of the colors (a body with more joints than
        that) as overflow.
    """
    among = np.arange(bodies.shape[0]) if among is None else among
    own = bodies[among]
    load = np.bincount(own.ravel(), minlength=dynamic.shape[0])
    degree = np.where(dynamic, load, 0)[own].sum(axis=1)
    order = np.lexsort((np.arange(among.size), -degree))
    found = _assign_colors(own, dynamic, order, max_colors)
    used = int(found.max(initial=-1)) + 1
    color = np.full(bodies.shape[0], FACTORED, found.dtype)
    color[among] = found
    overflow = np.flatnonzero(color == OVERFLOW)
    return ColorSets(
        colors=[np.flatnonzero(color == k) for k in range(used)],
        color_of=color,
        overflow=overflow,
        overflow_load=_overflow_load(bodies[overflow], dynamic),
    )


def _assign_colors(bodies: Array, dynamic: Array, order: Array, max_colors: int) -> Array:
    """Return the first free color of each constraint in the given order; OVERFLOW where all colors are taken."""
    color = np.full(bodies.shape[0], OVERFLOW, dtype=np.int64)
    masks, moves, sides, every = [0] * dynamic.shape[0], dynamic.tolist(), bodies.tolist(), (1 << max_colors) - 1
    for c in order.tolist():
        moving = [body for body in sides[c] if moves[body]]
        free = every
        for body in moving:
            free &= ~masks[body]
        if free:
            first = free & -free
            color[c] = first.bit_length() - 1
            for body in moving:
                masks[body] |= first
    return color


def _overflow_load(bodies: Array, dynamic: Array) -> Array:
    """How many sides of the overflow act on each dynamic body, at least 1: the parts into which its mass splits."""
    sides = np.bincount(bodies.ravel(), minlength=dynamic.shape[0])
    return np.where(dynamic, np.maximum(sides, 1), 1).astype(np.int64)
