"""Mode switching of axis rows in the direct solver (active-set method).

From low to high velocity, the segments of the piecewise linear law (laws.py) are AT_LOWER, SLIDE_DOWN, STICK, SLIDE_UP
and AT_UPPER. In each solver pass, an axis row switches only to an adjacent segment.
"""

from __future__ import annotations

import numpy as np

from gpusim.reference.joints.laws import (
    AT_LOWER,
    AT_UPPER,
    CLAMP_DOWN,
    CLAMP_UP,
    CONTACT_BITS,
    FREE,
    SLIDE_DOWN,
    SLIDE_UP,
    STICK,
    AxisLaw,
    clamp_of,
)
from gpusim.typing import Array

# Tolerance for the velocity at the boundary of a segment (m/s or rad/s).
DEAD_BAND = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
# With contacts, a row could alternate between stick and slip forever, because contacts change after each switch. After
# many switches, a sliding row sticks only if its reverse velocity exceeds a minimum. The minimum is a fraction of the
# velocity change due to friction. The fraction starts at REVERSAL_FRACTION and doubles up to MAX_DOUBLINGS times.
REVERSAL_FRACTION, MAX_DOUBLINGS = 1e-3, 6


def adjacent_modes(
    law: AxisLaw, mode: Array, velocity: Array, impulse: Array, response: Array, reversal_fraction: Array
) -> Array:
    """Return the new modes of axis rows: a row that has left its segment of the law moves to the adjacent segment.

    Args:
        law: impulse-velocity laws of the axis rows.
        mode: current modes, (num_worlds, axes).
        velocity, impulse: row velocities and row impulses with the current modes.
        response: velocity change of each row per unit impulse on the row, positive.
        reversal_fraction: (num_worlds,) result of :func:`reversal_fractions`.
    """
    dead = DEAD_BAND[velocity.dtype]
    slack = dead / response
    contact, clamps = mode & CONTACT_BITS, mode & ~CONTACT_BITS
    linear = law.impulse - law.slope * velocity
    clamped_impulse: Array | float = 0.0
    for number, term in enumerate(law.clamped_terms):
        clamp, effort = clamp_of(mode, number), term.impulse - term.slope * velocity
        clamped_impulse = clamped_impulse + np.where(
            clamp == 0, effort, np.where(clamp == CLAMP_UP, term.bound, -term.bound)
        )
        clamps = clamps + ((_next_clamp(clamp, effort, term.bound, slack) - clamp) << 2 * number)
    # Impulse of friction and stops.
    stop_impulse = impulse - (linear + clamped_impulse)
    fraction = reversal_fraction.astype(velocity.dtype)[:, None]
    reversal = np.where(fraction > 0.0, np.maximum(dead, fraction * law.friction * response), dead)
    new = _next_loose(law, contact, velocity, dead, reversal)
    new = _next_held(law, new, contact, stop_impulse, slack, dead)
    # If both stops are equal, the row stays at its stop, whatever the sign of the impulse.
    locked = law.velocity_lower == law.velocity_upper
    new = np.where(locked, np.where(contact >= AT_LOWER, contact, AT_LOWER), new)
    return (new + clamps).astype(mode.dtype)


def off_stop(law: AxisLaw, mode: Array, velocity: Array) -> Array:
    """Return a mask of the rows in mode AT_LOWER or AT_UPPER whose velocity differs from their velocity bound."""
    contact, lower, upper = mode & CONTACT_BITS, law.velocity_lower, law.velocity_upper
    bound = np.where(contact == AT_LOWER, lower, upper)
    return (contact >= AT_LOWER) & (np.abs(velocity - bound) > DEAD_BAND[velocity.dtype]) & (lower != upper)


def reversal_fractions(late: Array, excess: Array) -> Array:
    """Return the reverse velocity at which a sliding row sticks, divided by the velocity change due to friction.

    Args:
        late: (num_worlds,) True for worlds with many mode switches. The result is 0 in all other worlds.
        excess: number of mode switches after the first CAREFUL_AFTER switches (direct_solve.py).
    """
    return np.where(late, REVERSAL_FRACTION * 2.0 ** np.clip(excess, 0, MAX_DOUBLINGS), 0.0)


def first_move(mode: int, target: int) -> int:
    """Return ``mode`` with one change: the first part that differs from ``target`` gets the value in ``target``."""
    part, differs = CONTACT_BITS, mode ^ target
    if not differs & part:
        part = CLAMP_UP | CLAMP_DOWN
        while not differs & part:
            part <<= 2
    return (mode & ~part) | (target & part)


def _next_clamp(clamp: Array, effort: Array, bound: Array, slack: Array) -> Array:
    leaving = np.where(effort > bound + slack, CLAMP_UP, np.where(effort < -bound - slack, CLAMP_DOWN, 0))
    back_from_up = np.where(effort < bound - slack, 0, clamp)
    back_from_down = np.where(effort > -bound + slack, 0, clamp)
    return np.where(clamp == 0, leaving, np.where(clamp == CLAMP_UP, back_from_up, back_from_down))


def _next_loose(law: AxisLaw, contact: Array, velocity: Array, dead: float, reversal: Array) -> Array:
    """Return the new modes of free and sliding rows, which depend on their velocities."""
    rubs, lower, upper = law.friction > 0.0, law.velocity_lower, law.velocity_upper
    loose = contact <= SLIDE_DOWN
    reverses = ((contact == SLIDE_UP) & (velocity < -reversal)) | ((contact == SLIDE_DOWN) & (velocity > reversal))
    new = np.where(reverses, STICK, contact)
    # A row that slides up first sticks and then reaches the lower stop, unless the stop moves up.
    new = np.where(loose & (velocity < lower - dead) & ~((contact == SLIDE_UP) & (lower < 0.0)), AT_LOWER, new)
    new = np.where(loose & (velocity > upper + dead) & ~((contact == SLIDE_DOWN) & (upper > 0.0)), AT_UPPER, new)
    new = np.where((contact == FREE) & rubs, STICK, new)
    rubbing = (contact == SLIDE_UP) | (contact == SLIDE_DOWN) | (contact == STICK)
    return np.where(rubbing & ~rubs, FREE, new)


def _next_held(law: AxisLaw, new: Array, contact: Array, stop_impulse: Array, slack: Array, dead: float) -> Array:
    """Return the new modes of rows that stick or are at a position limit.

    ``stop_impulse`` is the impulse of friction and position limits.
    """
    friction, lower, upper = law.friction, law.velocity_lower, law.velocity_upper
    rubs = friction > 0.0
    sticks = (contact == STICK) & rubs
    new = np.where(sticks & (stop_impulse > friction + slack), SLIDE_DOWN, new)
    new = np.where(sticks & (stop_impulse < -friction - slack), SLIDE_UP, new)
    new = np.where(sticks & (lower > dead), AT_LOWER, new)
    new = np.where(sticks & (upper < -dead), AT_UPPER, new)
    # Find the segment next to each stop, and the friction impulse at the boundary between stop and segment.
    above = np.where(lower > 0.0, SLIDE_UP, np.where(lower < 0.0, SLIDE_DOWN, STICK))
    below = np.where(upper < 0.0, SLIDE_DOWN, np.where(upper > 0.0, SLIDE_UP, STICK))
    above, below = np.where(rubs, above, FREE), np.where(rubs, below, FREE)
    edge_above = np.where(above == SLIDE_UP, -friction, friction)
    edge_below = np.where(below == SLIDE_DOWN, friction, -friction)
    new = np.where((contact == AT_LOWER) & (stop_impulse < edge_above - slack), above, new)
    return np.where((contact == AT_UPPER) & (stop_impulse > edge_below + slack), below, new)
