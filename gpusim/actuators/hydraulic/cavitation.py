"""Cavitation: the oil pressure cannot fall below the vapor pressure p_v. At this pressure, a void (vapor cavity) opens.

A node or chamber has the pressure p and a void with the volume v. After a step of h seconds, the values are p+ and v+:

    v+ = v + C (p+ - p) - h (sum of inflows(p+) - S u+),   v+ >= 0,   p+ >= p_v,   v+ (p+ - p_v) = 0

C is the compliance of the oil. S is the piston area, u+ is the piston velocity, and S u+ is the flow into a chamber.
The pressure is p_v until oil or the piston fills the void. The vapor has no mass, so the oil mass is conserved.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gpusim.typing import Array

VAPOR_PRESSURE = 0.0
"""Default vapor pressure (absolute), Pa."""
MAX_ITERATIONS = 40
# Newton's method ends if every pressure change is below this fraction of the maximum pressure.
PRECISION = 1e-13
# Fraction of a node's stiffness at vapor pressure, which keeps the compliance matrix of the consumers finite.
STIFFNESS_LEFT = 1e-8
# Minimum fraction of a motor's displacement (with an empty inlet), which keeps the compliance matrix finite.
MIN_FILLING = 1e-8
# Maximum number of bisections for the pressure of a chamber.
MAX_HALVINGS = 100
MIN_VOID = 1e-12
"""A void with a smaller volume (m3) is a round-off error and causes no warning."""


class Balance(Protocol):
    """Interface of the flow balance at the nodes of a circuit (circuit.py). Arrays are (num_worlds, nodes)."""

    fixed: Array
    vapor: Array

    def equations(self, p: Array, load: Array) -> tuple[Array, Array]:
        """Return the residual of the flow balance (m3/s), and its derivatives with respect to the pressures."""

    def error(self, p: Array, load: Array) -> Array:
        """Return the residual of the flow balance (m3/s)."""

    def step_fraction(self, p: Array, move: Array, error: Array, load: Array) -> Array:
        """Return the fraction (0 to 1) of the Newton step ``-move`` to take, (num_worlds,)."""


def solve_pressures(balance: Balance, start: Array, load: Array) -> tuple[Array, Array]:
    """Compute the node pressures by Newton's method, with the vapor pressure as lower bound.

    Args:
        balance: flow balance of the nodes.
        start: initial guess of the pressures (Pa).
        load: flow into cylinders and motors, plus void volume divided by step size (m3/s).

    Returns:
        Pressures (Pa), and void volumes after the step divided by the step size (m3/s), (num_worlds, nodes) each.
    """
    fixed, vapor = balance.fixed, np.broadcast_to(balance.vapor, start.shape)
    p, active = np.where(fixed, start, np.maximum(start, vapor)), np.ones(len(start), bool)
    for _ in range(MAX_ITERATIONS):
        error, matrix = balance.equations(p, load)
        move, limited = _bounded_move(matrix, error, np.where(fixed, np.inf, p - vapor))
        fraction = balance.step_fraction(p, move, error, load)[:, None]
        at_vapor = limited & (fraction == 1.0)
        moved = np.where(fixed, p, np.where(at_vapor, vapor, np.maximum(p - fraction * move, vapor)))
        p = np.where(active[:, None], moved, p)
        active &= np.abs(fraction * move).max(axis=1) > PRECISION * np.abs(p).max(axis=1)
        if not active.any():
            break
    error = balance.error(p, load)
    return p, np.where(~fixed & (p <= vapor) & (error > 0.0), error, 0.0)


def _bounded_move(matrix: Array, error: Array, max_move: Array) -> tuple[Array, Array]:
    """Return the Newton step, limited to ``max_move`` at each node, and a mask of the limited nodes.

    ``matrix`` must be an M-matrix (Chandrasekaran, A special case of the complementary pivot problem, 1970).
    """
    limited, identity = np.isfinite(max_move), np.eye(error.shape[1])
    while True:
        rows = np.where(limited[..., None], identity, matrix)
        move = np.linalg.solve(rows, np.where(limited, max_move, error)[..., None])[..., 0]
        residual = error - np.add.accumulate(matrix * move[:, None], axis=2)[..., -1]
        free = limited & (residual < 0.0)
        if not free.any():
            return move, limited
        limited &= ~free


def slope_increase(slope: Array, change: Array, force_decrease: Array) -> Array:
    """Return an increase D' - D of the force slopes D, (num_worlds, rows, rows).

    The increase prevents an oscillation of the velocities from one solver pass to the next. The BFGS update D' is
    positive definite, and D' c = f: D' = D - (D c)(D c)^T/(c D c) + f f^T/(f c). The increase is only nonzero if f c >
    c D c > 0.

    Args:
        slope: slopes D at the current velocities (num_worlds, rows, rows).
        change: velocity change c since the previous solver pass (num_worlds, rows).
        force_decrease: decrease f of the forces that the change c causes.
    """
    product = np.matmul(slope, change[..., None])[..., 0]
    slope_energy, force_energy = _sums(change * product), _sums(change * force_decrease)
    steeper = (force_energy > slope_energy) & (slope_energy > 0.0)
    safe = [np.where(steeper, x, 1.0)[:, None, None] for x in (slope_energy, force_energy)]
    increase = (
        force_decrease[:, :, None] * force_decrease[:, None] / safe[1]
        - product[:, :, None] * product[:, None] / safe[0]
    )
    return np.where(steeper[:, None, None], increase, 0.0)


def _sums(values: Array) -> Array:
    return np.asarray(np.add.accumulate(values, axis=1)[:, -1])


def filled_fraction(liquid: Array, taken: Array, void: Array) -> Array:
    """Return the oil-filled fraction of a motor's displacement.

    Args:
        liquid, void: volumes of oil and of the void at the motor's inlet (m3).
        taken: volume that the motor would displace in the step without cavitation (m3).
    """
    fraction = np.maximum(liquid, MIN_FILLING * taken) / np.where(taken > 0.0, taken, 1.0)
    return np.where((void > 0.0) & (liquid < taken), fraction, 1.0)
