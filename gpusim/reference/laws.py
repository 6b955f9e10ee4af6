"""The law of an axis row, and its closed-form solution for one row (actuators/base.py states it).

Modes of an axis row: FREE (linear), SLIDE_UP and SLIDE_DOWN (friction at its bound), STICK, AT_LOWER and AT_UPPER;
plus 8 or 16 where the clamped share sits at its upper or lower bound.
"""

from __future__ import annotations

import numpy as np

from gpusim.actuators.base import Group
from gpusim.arrays import add_columns
from gpusim.reference.work import Work
from gpusim.typing import Array

FREE, SLIDE_UP, SLIDE_DOWN, STICK, AT_LOWER, AT_UPPER = range(6)
CLAMP_UP, CLAMP_DOWN = 8, 16
# A limit that is already passed is left at this share of the depth each substep, and no faster than this.
LIMIT_RECOVERY, LIMIT_SPEED = 0.2, 1.0


class AxisLaw:
    """Impulse law of all axis rows in this substep; arrays (num_worlds, axes)."""

    def __init__(self, w: Work) -> None:
        p, kick = w.axis_parameters, w.kick_time
        shape = (w.num_worlds, w.topology.axis_row.size)
        self.shares: dict[str, tuple[Group, Array, Array]] = {}
        self.clamped: tuple[Group, Array, Array, Array] | None = None
        damping = w.broadcast(p["damping"])
        armature = w.broadcast(p["armature"])
        self.own_impulse, self.own_slope = w.damper_law(damping)
        self.own_impulse = self.own_impulse + armature * w.axis_velocity
        self.own_slope = self.own_slope + armature
        self.friction = np.broadcast_to(kick * p["friction"], shape).astype(w.real)
        self.lower = np.broadcast_to(p["limit_lower"], shape).astype(w.real)
        self.upper = np.broadcast_to(p["limit_upper"], shape).astype(w.real)

    def sum(self, w: Work) -> None:
        """Totals of all shares: P, D, clamped Ps, Ds, S, and the velocity bounds."""
        self.impulse = self.own_impulse.astype(w.real)
        self.slope = self.own_slope.astype(w.real)
        for group, impulse, slope in self.shares.values():
            _add(self.impulse, group, impulse)
            _add(self.slope, group, slope)
        if self.clamped is not None:
            group, impulse, slope, most = self.clamped
            self.servo_impulse, self.servo_slope, self.servo_most = (np.zeros_like(self.impulse) for _ in range(3))
            for target, values in (
                (self.servo_impulse, impulse), (self.servo_slope, slope), (self.servo_most, most),
            ):  # fmt: skip
                _add(target, group, values)

    def bound(self, w: Work) -> None:
        """Velocity bounds from the limits, and what can switch at all."""
        self.velocity_lower = _bound(self.lower - w.axis_position, w.h)
        self.velocity_upper = -_bound(w.axis_position - self.upper, w.h)
        self.rubs = bool((self.friction > 0.0).any())
        self.limited = bool((self.velocity_lower > -np.inf).any() or (self.velocity_upper < np.inf).any())
        self.switches = self.clamped is not None or self.rubs or self.limited

    def total(self, mode: Array) -> tuple[Array, Array]:
        """P and D of the linear part in the given modes, friction included."""
        impulse, slope = self.impulse, self.slope
        if self.clamped is not None:
            clamp = mode & 24
            inside = clamp == 0
            bound = np.where(clamp == CLAMP_UP, self.servo_most, -self.servo_most)
            impulse = impulse + np.where(inside, self.servo_impulse, bound)
            slope = slope + np.where(inside, self.servo_slope, 0.0)
        if self.rubs:
            contact = mode & 7
            sign = (contact == SLIDE_DOWN).astype(impulse.dtype) - (contact == SLIDE_UP)
            impulse = impulse + sign * self.friction
        return impulse, slope


def _bound(gap: Array, h: float) -> Array:
    """Least velocity that keeps or brings the axis at its limit; ``gap`` > 0 where it is passed."""
    recovery = np.minimum(LIMIT_RECOVERY * gap / h, LIMIT_SPEED)
    bound: Array = np.where(gap > 0.0, recovery, gap / h)
    return bound.astype(gap.dtype)


def _add(target: Array, group: Group, values: Array) -> None:
    """Add a group's columns to the axes; the general way costs more and is only needed for a shared axis."""
    if group.unique_axes:
        target[:, group.axis] += values
    else:
        add_columns(target, group.axis, values)


def solve_row(
    law: AxisLaw, free_velocity: Array, response: Array, at: Array | slice = slice(None)
) -> tuple[Array, Array]:
    """Row velocity and mode that solve the law for a row alone.

    Args:
        law: the totals.
        free_velocity: row velocity without this row's own impulse.
        response: row velocity for a unit impulse, above zero.
        at: which axes.

    Returns:
        u with ``u = free_velocity + response p`` and p on the law, and the mode; unique, for the law falls with u.
    """
    impulse, slope = law.impulse[:, at], law.slope[:, at]
    servo: Array | float = 0.0
    servo_slope: Array | float = 0.0
    if law.clamped is not None:
        servo, servo_slope, most = law.servo_impulse[:, at], law.servo_slope[:, at], law.servo_most[:, at]
    friction, lower, upper = law.friction[:, at], law.velocity_lower[:, at], law.velocity_upper[:, at]
    args = free_velocity, response, friction
    velocity, contact = _with_friction(impulse + servo, slope + servo_slope, *args)
    clamp: Array = np.zeros((), np.int32)
    if law.clamped is not None:
        effort = servo - servo_slope * np.clip(velocity, lower, upper)
        for sign, code in ((1.0, CLAMP_UP), (-1.0, CLAMP_DOWN)):
            beyond = sign * effort > most
            other, other_contact = _with_friction(impulse + sign * most, slope, *args)
            velocity = np.where(beyond, other, velocity)
            contact = np.where(beyond, other_contact, contact)
            clamp = np.where(beyond, code, clamp)
    contact = np.where(velocity < lower, AT_LOWER, np.where(velocity > upper, AT_UPPER, contact))
    return np.clip(velocity, lower, upper), (contact + clamp).astype(np.int32)


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
