"""Impulse-velocity law of a joint axis (description/actuator_kinds.py), and its solution for a single axis.

The law is piecewise linear: p = P - D u with the impulse p, the velocity u and the coefficients P and D. The mode of an
axis row selects a segment: FREE (no friction), SLIDE_UP and SLIDE_DOWN (friction at its maximum), STICK, AT_LOWER and
AT_UPPER (position limits). A *clamped term* is the force of an actuator with a force limit. If clamped term j is at a
bound, the mode also contains CLAMP_UP << 2 j or CLAMP_DOWN << 2 j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.arrays import add_columns
from gpusim.description.actuator_kinds import Group
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

FREE, SLIDE_UP, SLIDE_DOWN, STICK, AT_LOWER, AT_UPPER = range(6)
CONTACT_BITS, CLAMP_UP, CLAMP_DOWN = 7, 8, 16
# A joint beyond its limit returns by the fraction LIMIT_RECOVERY of the error per substep. The speed is at most
# LIMIT_SPEED (m/s, rad/s).
LIMIT_RECOVERY, LIMIT_SPEED = 0.2, 1.0
# Near a dead point of a loop, a fast return to the limit would make other joints rotate very fast. LOOP_SPEED is
# therefore the maximum speed of a joint in a loop that returns to its limit. The limit then acts like a damper.
LOOP_SPEED = 0.02


@dataclass
class ClampedTerm:
    """Clamped term ``clamp(impulse - slope * velocity, -bound, bound)`` of each axis row, (num_worlds, axes)."""

    impulse: Array
    slope: Array
    bound: Array

    def part(self, clamp: Array) -> tuple[Array, Array]:
        """Return P and D of this term's linear law ``P - D u`` in the mode ``clamp``."""
        inside = clamp == 0
        bound = np.where(clamp == CLAMP_UP, self.bound, -self.bound)
        return np.where(inside, self.impulse, bound), np.where(inside, self.slope, 0.0)


def clamp_of(mode: Array, number: int) -> Array:
    """Return the mode of clamped term ``number``: 0 (between the bounds), CLAMP_UP or CLAMP_DOWN."""
    return np.asarray((mode >> 2 * number) & (CLAMP_UP | CLAMP_DOWN))


class AxisLaw:
    """Impulse-velocity laws of all axis rows in this substep. Arrays are (num_worlds, axes)."""

    def __init__(self, w: StepBuffers) -> None:
        p, kick = w.axis_parameters, w.kick_time
        shape = (w.num_worlds, w.topology.axis_row.size)
        self.terms: dict[str, tuple[Group, Array, Array]] = {}
        # For each actuator group with force limits: the numbers, P, D and S of its clamped terms.
        self.clamped: dict[str, tuple[Group, Array, tuple[Array, Array, Array]]] = {}
        self.rubbing: dict[str, tuple[Group, Array]] = {}
        damping = w.broadcast(p["damping"])
        armature = w.broadcast(p["armature"])
        self.base_impulse, self.base_slope = w.damper_law(damping)
        self.base_impulse = self.base_impulse + armature * w.rate
        self.base_slope = self.base_slope + armature
        self.friction = np.broadcast_to(kick * p["friction"], shape).astype(w.real)
        self.lower = np.broadcast_to(p["limit_lower"], shape).astype(w.real)
        self.upper = np.broadcast_to(p["limit_upper"], shape).astype(w.real)
        sensor = w.sensors["axis_sensor"]
        if (sensor >= 0).any():  # widen the limits of joints that may break
            slack = np.where(sensor >= 0, w.state.arrays["joint_slack"][:, sensor], 0.0).astype(w.real)
            self.lower, self.upper = self.lower - slack, self.upper + slack

    def sum(self, w: StepBuffers) -> None:
        """Add up the coefficients P and D of all linear terms, and collect the clamped terms."""
        self.impulse = self.base_impulse.astype(w.real)
        self.slope = self.base_slope.astype(w.real)
        for group, impulse, slope in self.terms.values():
            _add(self.impulse, group, impulse)
            _add(self.slope, group, slope)
        self._push_back(w)
        count = max((int(numbers.max(initial=-1)) + 1 for _, numbers, _ in self.clamped.values()), default=0)
        self.clamped_terms = [ClampedTerm(*(np.zeros_like(self.impulse) for _ in range(3))) for _ in range(count)]
        for group, numbers, values in self.clamped.values():
            for number, term in enumerate(self.clamped_terms):
                pick = np.flatnonzero(numbers == number)
                for target, value in zip((term.impulse, term.slope, term.bound), values, strict=True):
                    target[:, group.axis[pick]] = value[:, pick]

    def _push_back(self, w: StepBuffers) -> None:
        """Add a linear law that moves axes of loops back to their position limits."""
        self.held_lower, self.held_upper = (np.zeros(self.impulse.shape, bool) for _ in range(2))
        at = w.looped_axes
        if not w.config.direct or not at.size:
            return
        for sign, limit, held in ((1.0, self.lower, self.held_lower), (-1.0, self.upper, self.held_upper)):
            speed = limit_velocity(sign * (limit - w.axis_position)[:, at], w.h)
            held[:, at] = speed > LOOP_SPEED
            if held.any():
                slope = np.where(held[:, at], 1.0 / w.axis_response(at), 0.0)
                self.impulse[:, at] += np.where(held[:, at], sign * speed * slope, 0.0)
                self.slope[:, at] += slope

    def bound(self, w: StepBuffers) -> None:
        """Compute the velocity bounds of the axis rows from their position limits."""
        lower = limit_velocity(self.lower - w.axis_position, w.h)
        upper = limit_velocity(w.axis_position - self.upper, w.h)
        self.velocity_lower = np.where(self.held_lower, LOOP_SPEED, lower)
        self.velocity_upper = np.where(self.held_upper, -LOOP_SPEED, -upper)
        self.rubs = bool((self.friction > 0.0).any())
        self.limited = bool((self.velocity_lower > -np.inf).any() or (self.velocity_upper < np.inf).any())
        self.switches = bool(self.clamped) or self.rubs or self.limited

    def total(self, mode: Array) -> tuple[Array, Array]:
        """Return P and D of the law ``P - D u`` in the modes ``mode``, including friction and clamped terms."""
        impulse, slope = self.impulse, self.slope
        if self.clamped_terms:
            clamped_impulse, clamped_slope = clamped_part(self.clamped_terms, mode)
            impulse, slope = impulse + clamped_impulse, slope + clamped_slope
        if self.rubs:
            contact = mode & CONTACT_BITS
            sign = (contact == SLIDE_DOWN).astype(impulse.dtype) - (contact == SLIDE_UP)
            impulse = impulse + sign * self.friction
        return impulse, slope


def friction_impulse(law: AxisLaw, mode: Array, impulse: Array) -> Array:
    """Return the dry friction impulse of each axis row. The impulse is 0 at a position limit.

    Args:
        law: impulse-velocity laws.
        mode, impulse: solution of the axis rows, (num_worlds, axes).
    """
    contact, (clamped_impulse, _) = mode & CONTACT_BITS, clamped_part(law.clamped_terms, mode)
    stuck = np.clip(impulse - (law.impulse + clamped_impulse), -law.friction, law.friction)
    sliding = np.where(contact == SLIDE_DOWN, law.friction, np.where(contact == SLIDE_UP, -law.friction, 0.0))
    return np.asarray(np.where(contact == STICK, stuck, sliding))


def clamped_part(terms: list[ClampedTerm], mode: Array) -> tuple[Array | float, Array | float]:
    """Return the coefficients P and D of the law ``P - D u``, summed over all clamped terms in their modes."""
    impulse: Array | float = 0.0
    slope: Array | float = 0.0
    for number, term in enumerate(terms):
        term_impulse, term_slope = term.part(clamp_of(mode, number))
        impulse, slope = impulse + term_impulse, slope + term_slope
    return impulse, slope


def limit_velocity(gap: Array, h: float) -> Array:
    """Return the minimum velocity that keeps an axis above its lower limit, or moves it back to this limit.

    ``gap`` is the lower limit minus the position (m or rad).
    """
    recovery = np.minimum(LIMIT_RECOVERY * gap / h, LIMIT_SPEED)
    bound: Array = np.where(gap > 0.0, recovery, gap / h)
    return bound.astype(gap.dtype)


def _add(target: Array, group: Group, values: Array) -> None:
    """Add the values of an actuator group to the columns of its axes in ``target``."""
    if group.unique_axes:
        target[:, group.axis] += values
    else:
        add_columns(target, group.axis, values)


def solve_row(
    law: AxisLaw, free_velocity: Array, response: Array, at: Array | slice = slice(None)
) -> tuple[Array, Array]:
    """Solve the law of each axis row while the impulses of all other rows stay constant.

    Args:
        law: impulse-velocity laws, after :meth:`AxisLaw.sum` and :meth:`AxisLaw.bound`.
        free_velocity: velocity of each row for zero impulse.
        response: velocity change of each row per unit impulse on the row, positive.
        at: indices of the axes to solve.

    Returns:
        The velocities u and the modes. u satisfies ``u = free_velocity + response p(u)`` with the law p(u).
    """
    impulse, slope = law.impulse[:, at], law.slope[:, at]
    friction, lower, upper = law.friction[:, at], law.velocity_lower[:, at], law.velocity_upper[:, at]
    terms = [ClampedTerm(t.impulse[:, at], t.slope[:, at], t.bound[:, at]) for t in law.clamped_terms]
    clamp = np.zeros(impulse.shape, np.int64)
    for _ in range(len(terms) + 1):
        clamped_impulse, clamped_slope = clamped_part(terms, clamp)
        velocity, contact = _with_friction(
            impulse + clamped_impulse, slope + clamped_slope, free_velocity, response, friction
        )
        added = _new_clamps(terms, clamp, np.clip(velocity, lower, upper))
        if not added.any():
            break
        clamp |= added
    contact = np.where(velocity < lower, AT_LOWER, np.where(velocity > upper, AT_UPPER, contact))
    return np.clip(velocity, lower, upper), (contact + clamp).astype(np.int32)


def _new_clamps(terms: list[ClampedTerm], clamp: Array, velocity: Array) -> Array:
    """Return the mode bits of terms that are not clamped yet and exceed a bound at ``velocity``."""
    up, down = np.zeros_like(clamp), np.zeros_like(clamp)
    excess: Array | float = 0.0
    for number, term in enumerate(terms):
        effort = term.impulse - term.slope * velocity
        linear = clamp_of(clamp, number) == 0
        above, below = linear & (effort > term.bound), linear & (-effort > term.bound)
        up |= np.where(above, CLAMP_UP << 2 * number, 0)
        down |= np.where(below, CLAMP_DOWN << 2 * number, 0)
        excess = excess + np.where(above, effort - term.bound, np.where(below, effort + term.bound, 0.0))
    # Let the excess be the effort beyond a bound. Clamp only at the bound (upper or lower) with the greater total
    # excess.
    return np.where(excess > 0.0, up, np.where(excess < 0.0, down, up | down))


def _with_friction(
    impulse: Array, slope: Array, free_velocity: Array, response: Array, friction: Array
) -> tuple[Array, Array]:
    divisor = 1.0 + response * slope
    velocity = (free_velocity + response * impulse) / divisor
    stick = response * friction / divisor
    up, down = velocity > stick, velocity < -stick
    contact = np.where(up, SLIDE_UP, np.where(down, SLIDE_DOWN, STICK))
    contact = np.where(friction > 0.0, contact, FREE)
    result = np.where(up, velocity - stick, np.where(down, velocity + stick, 0.0))
    return np.where(friction > 0.0, result, velocity), contact
