"""Actuator laws that couple several axes, as compliant constraint rows.

A law ``p = P - D u`` with a matrix D (description/actuator_kinds.py) becomes the constraint

    u + G p = t,   G = D^-1, t = G P
"""

from __future__ import annotations

import numpy as np

from gpusim.reference.joints.factor import inverse
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def counts(w: StepBuffers) -> Array:
    """Return the number of axes of each coupled law."""
    return np.asarray(w.topology.row_used[w.topology.coupled_constraint].sum(axis=1))


def invert(w: StepBuffers) -> None:
    """Compute the compliances G and targets t from the current laws."""
    for k, n in enumerate(counts(w)):
        gamma = inverse(w.coupled_slope[:, k, :n, :n].astype(w.real))
        w.coupled_gamma[:, k, :n, :n] = gamma
        w.coupled_target[:, k, :n] = np.matmul(gamma, w.coupled_impulse[:, k, :n, None].astype(w.real))[..., 0]


def fill(w: StepBuffers, gamma: Array, target: Array) -> None:
    """Write the diagonal compliances to ``gamma``, and the targets to ``target``, (num_worlds, constraints, block)."""
    at = w.topology.coupled_constraint
    gamma[:, at] = np.diagonal(w.coupled_gamma, axis1=-2, axis2=-1)
    target[:, at] = w.coupled_target


def off_diagonal(w: StepBuffers) -> Array:
    """Return the compliance matrices of all coupled laws with zero diagonals, (num_worlds, coupled, block, block)."""
    return np.where(np.eye(w.topology.block, dtype=bool), w.real.type(0.0), w.coupled_gamma)


def off_diagonal_product(w: StepBuffers, impulse: Array) -> Array:
    """Return the products of :func:`off_diagonal` and the impulses (num_worlds, constraints, block)."""
    coupled = impulse[:, w.topology.coupled_constraint]
    return np.asarray(np.matmul(off_diagonal(w), coupled[..., None])[..., 0])
