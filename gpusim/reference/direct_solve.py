"""Stage solve, direct: all joint rows at once; limits, friction and saturation by switching modes.

    (J v + b) + gamma p = target,   v = v_kicked + M^-1 J^T p

Each pass refreshes the curvature bias and the curved laws from the newest velocities and corrects p with the
same factor (which also removes what the regularization left). A world whose axis rows change mode, or
whose compliances moved far, is factored again. A world's passes depend on that world alone.
"""

from __future__ import annotations

import numpy as np

from gpusim.reference import actuate
from gpusim.reference.curvature import curvature
from gpusim.reference.factor import Factor, diagonal, products
from gpusim.reference.laws import AT_LOWER, AT_UPPER, STICK, solve_row
from gpusim.reference.work import Work
from gpusim.typing import Array

PASSES = 3
# Compliances that moved by more than this share since the factorization are factored again.
STALE = 0.2
# Rows without any slope get this share of their response as compliance's inverse: p = P to rounding.
LEAST_SLOPE = {np.dtype(np.float64): 1e-30, np.dtype(np.float32): 1e-24}


class Rows:
    """Compliance and target of every row in the current modes, (num_worlds, constraints, block)."""

    def __init__(self, w: Work, response: Array) -> None:
        shape = (w.num_worlds, w.topology.num_constraints, w.topology.block)
        self.gamma = np.zeros(shape, w.real)
        self.target = np.zeros(shape, w.real)
        self.floor = LEAST_SLOPE[w.real] / response

    def fill(self, w: Work, mode: Array) -> None:
        """Write the axis rows: sticking rows are rigid, the others compliant."""
        impulse, slope = w.law.total(mode)
        contact = mode & 7
        rigid = contact >= STICK
        slope = np.maximum(slope, self.floor)
        stop = np.where(contact == AT_LOWER, w.law.velocity_lower, 0.0)
        stop = np.where(contact == AT_UPPER, w.law.velocity_upper, stop)
        rows = w.topology.axis_row
        flat = self.gamma.reshape(w.num_worlds, -1)
        flat[:, rows] = np.where(rigid, 0.0, 1.0 / slope)
        self.target.reshape(w.num_worlds, -1)[:, rows] = np.where(rigid, stop, impulse / slope)


def solve(w: Work) -> None:
    """Fill ``impulse``, ``twist``, ``axis_velocity_next``; keep the factor for the position stage."""
    t = w.topology
    blocks = products(t, w.jacobian, w.mass_jacobian)
    own = diagonal(t, blocks)
    response = np.maximum(own.reshape(w.num_worlds, -1)[:, t.axis_row], np.finfo(w.real).tiny * 1e6)
    mode = w.state.arrays["axis_mode"].copy()
    _start_modes(w, mode, response)
    rows = Rows(w, response)
    rows.fill(w, mode)
    factor = Factor(t, blocks, rows.gamma, own)
    factored = rows.gamma.copy()
    w.impulse = np.zeros_like(w.impulse)
    left = np.full(w.num_worlds, PASSES)
    switches = np.zeros(w.num_worlds, np.int64)
    while True:
        active = left > 0
        curvature(w)
        error = _residual(w, rows)
        if not active.any():
            break
        change = np.where(active[:, None, None], factor.solve(error), 0.0)
        w.impulse += change
        w.twist = np.where(active[:, None, None], w.twist + w.apply_impulse(change), w.twist)
        left -= active
        w.active = active[:, None]
        _axis_velocity_next(w)
        actuate.refresh(w, w.axis_velocity_next)
        changed = _switch_modes(w, mode, response, active) & (switches < w.config.iterations)
        rows.fill(w, mode)
        stale = np.any(np.abs(rows.gamma - factored) > STALE * factored, axis=(1, 2))
        again = np.flatnonzero(changed | (active & stale & (switches < w.config.iterations)))
        if again.size:
            switches[again] += 1
            left[again] = np.maximum(left[again], 2)
            factor.replace(Factor(t, blocks[again], rows.gamma[again], own[again]), again)
            factored[again] = rows.gamma[again]
    _axis_velocity_next(w)
    w.mode = mode
    w.factor = factor
    w.residual = np.max(np.abs(np.where(t.row_used, error, 0.0)), axis=(1, 2), initial=0.0)


def _residual(w: Work, rows: Rows) -> Array:
    shape = w.impulse.shape
    residual = rows.target - w.row_velocity(w.twist) - w.bias.reshape(shape) - rows.gamma * w.impulse
    return residual


def _axis_velocity_next(w: Work) -> None:
    rows = w.topology.axis_row
    flat = w.row_velocity(w.twist).reshape(w.num_worlds, -1)
    w.axis_velocity_next = flat[:, rows] + w.bias[:, rows]


def _start_modes(w: Work, mode: Array, response: Array) -> None:
    """Modes of the last substep serve as the first guess; rows that have no friction or limit now are free."""
    if not w.law.switches:
        mode[:] = 0
        return
    law, contact = w.law, mode & 7
    fresh = solve_row(law, w.axis_velocity, response)[1]
    gone = (contact == AT_LOWER) & ~np.isfinite(law.velocity_lower)
    gone |= (contact == AT_UPPER) & ~np.isfinite(law.velocity_upper)
    gone |= (contact < AT_LOWER) & ((law.friction > 0.0) != (contact > 0))
    gone |= (w.h_prev <= 0.0)
    mode[:] = np.where(gone, fresh, mode)


def _switch_modes(w: Work, mode: Array, response: Array, active: Array) -> Array:
    """Modes that each row alone would take at the solution; True for active worlds where one differs."""
    if not w.law.switches:
        return np.zeros(w.num_worlds, bool)
    impulse = w.impulse.reshape(w.num_worlds, -1)[:, w.topology.axis_row]
    free = w.axis_velocity_next - response * impulse
    new = solve_row(w.law, free, response)[1]
    changed = active & np.any(new != mode, axis=1)
    mode[changed] = new[changed]
    return np.asarray(changed)
