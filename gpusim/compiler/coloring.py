"""Graph coloring of constraints.

Two constraints of the same color never share a dynamic body. Constraints without a color form the overflow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array

# Values of ``color_of`` for constraints without a color. OVERFLOW: sweeps solve the constraint first, with split
# masses. FACTORED: sweeps skip the constraint.
OVERFLOW, FACTORED = -1, -2


@dataclass
class ColorSets:
    """Result of graph coloring: the constraints of each color, and the overflow (constraints without a color)."""

    colors: list[Array]
    """Constraints of each color, in ascending order."""
    color_of: Array
    """(constraints,) color index, OVERFLOW without a color, or FACTORED for constraints of the direct solver."""
    overflow: Array
    """Constraints without a color, in ascending order."""
    overflow_load: Array
    """(bodies,) max(1, number of overflow constraints) of each dynamic body, and 1 for other bodies."""


def color_constraints(bodies: Array, dynamic: Array, max_colors: int = 32, among: Array | None = None) -> ColorSets:
    """Color the constraints greedily, in order of descending degree. Constraints of equal degree keep their order.

    Args:
        bodies: bodies of each constraint, (constraints, slots).
        dynamic: (bodies,) True for bodies that can move. Constraints of one color may share immovable bodies.
        max_colors: maximum number of colors, 1 to 62.
        among: indices of the constraints that get a color, in ascending order, or None for all.

    Returns:
        Constraints of each color in ascending order, and the overflow. The overflow is not empty if, for example, a
        body has more than ``max_colors`` joints.
    """
    among = np.arange(bodies.shape[0]) if among is None else among
    selected = bodies[among]
    load = np.bincount(selected.ravel(), minlength=dynamic.shape[0])
    degree = np.where(dynamic, load, 0)[selected].sum(axis=1)
    order = np.lexsort((np.arange(among.size), -degree))
    assigned = _assign_colors(selected, dynamic, order, max_colors)
    used = int(assigned.max(initial=-1)) + 1
    color = np.full(bodies.shape[0], FACTORED, assigned.dtype)
    color[among] = assigned
    overflow = np.flatnonzero(color == OVERFLOW)
    return ColorSets(
        colors=[np.flatnonzero(color == k) for k in range(used)],
        color_of=color,
        overflow=overflow,
        overflow_load=_overflow_load(bodies[overflow], dynamic),
    )


def _assign_colors(bodies: Array, dynamic: Array, order: Array, max_colors: int) -> Array:
    """Assign the first free color to each constraint, in the order ``order``. Return the colors."""
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
    """Return the mass splitting divisor of each body: the number of overflow constraints on the body, at least 1."""
    sides = np.bincount(bodies.ravel(), minlength=dynamic.shape[0])
    return np.where(dynamic, np.maximum(sides, 1), 1).astype(np.int64)
