"""Combined block solve of soft axis rows and rigid rows of one constraint, in the colored solver.

An axis row with the law ``p = P - D u`` has the compliance gamma = 1/D. Let A be J M^-1 J^T of the axis rows, after
elimination of the rigid rows. If the solver solves two axis rows i and j one after another, each sweep multiplies their
errors by the factor

    A_ij^2 / ((A_ii + gamma_i) (A_jj + gamma_j))

If the factor exceeds COUPLING_LIMIT, both axis rows join the block of the rigid rows. The solver then inverts J M^-1
J^T + gamma of this whole block.
"""

from __future__ import annotations

import numpy as np

from gpusim.reference.joints.factor import REGULARIZATION, inverse
from gpusim.reference.joints.laws import STICK
from gpusim.reference.solve.color_batch import AxisStep, ColorBatch
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matvec
from gpusim.typing import Array

# Minimum response of an axis row, as a fraction of its response without the rigid rows. If the rigid rows lock the
# axis, the computed response is only round-off.
MIN_RESPONSE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}
COUPLING_LIMIT = 0.1


def join_soft_rows(w: StepBuffers, batch: ColorBatch, block: Array, product: Array) -> None:
    """Join strongly coupled soft axis rows to the block of the rigid rows of their constraint.

    Args:
        w: work arrays of the substep.
        batch: constraints. The function replaces the inverses and axis steps of ``batch``.
        block: matrices of the rigid rows, (worlds, n, block, block).
        product: J M^-1 J^T of all rows, (worlds, n, block, block).
    """
    gamma = _compliances(w, batch, product)
    batch.gamma = gamma
    soft = gamma > 0.0
    joins = np.asarray(soft.any(axis=2))
    if not joins.any():
        return
    held = soft | batch.rigid
    both = (held[..., :, None] & held[..., None, :]) & (soft[..., :, None] | soft[..., None, :])
    full = np.where(both, product, block).astype(w.real)
    index = np.arange(w.topology.block)
    diagonal = product[..., index, index].astype(w.real)
    full[..., index, index] = np.where(soft, diagonal * (1.0 + REGULARIZATION[w.real]) + gamma, full[..., index, index])
    batch.inverse = np.where(joins[..., None, None], inverse(full), batch.inverse)
    for step in batch.axes:
        _eliminate(w, batch, step, product, held, joins)


def min_response(w: StepBuffers, response: Array, alone: Array) -> Array:
    """Return ``response``, but at least a small fraction of ``alone`` (the response without the rigid rows)."""
    lower = np.maximum(MIN_RESPONSE[w.real] * alone, np.finfo(w.real).tiny * 1e6)
    return np.maximum(response, lower).astype(w.real)


def _compliances(w: StepBuffers, batch: ColorBatch, product: Array) -> Array:
    """Return the compliances of the axis rows that join the block, and 0 for all other rows, (worlds, n, block)."""
    n = batch.constraints.size
    gamma = np.zeros((w.num_worlds, n, w.topology.block), w.real)
    if len(batch.axes) < 2:
        return gamma
    several = np.unique(batch.axes[1].k)
    response, slope = np.zeros_like(gamma), np.zeros_like(gamma)
    unit_impulses = np.zeros((*gamma.shape, gamma.shape[-1]), w.real)
    linear = w.law.total(np.zeros_like(w.mode))[1]
    for step in batch.axes:
        response[:, step.k, step.local_row] = step.response
        slope[:, step.k, step.local_row] = linear[:, step.axis]
        unit_impulses[:, step.k, step.local_row] = step.impulse
    stiff = slope * response >= COUPLING_LIMIT
    if not stiff[:, several].any():
        return gamma
    with np.errstate(divide="ignore"):
        yields = np.where(stiff, 1.0 / slope, 0.0).astype(w.real)
    cross = np.matmul(unit_impulses, product.swapaxes(-1, -2))
    total = response + yields
    strong = cross * cross > COUPLING_LIMIT * total[..., :, None] * total[..., None, :]
    strong &= stiff[..., :, None] & stiff[..., None, :] & ~np.eye(w.topology.block, dtype=bool)
    return np.where(strong.any(axis=-1), yields, gamma)


def _eliminate(w: StepBuffers, batch: ColorBatch, step: AxisStep, product: Array, held: Array, joins: Array) -> None:
    """Recompute the impulse, motion and response of axis rows in constraints with joined rows."""
    k, local_row = step.k, step.local_row
    number = np.arange(k.size)
    inverse_diagonal = batch.inverse[:, k, local_row, local_row]
    soft = batch.gamma[:, k, local_row]
    block = batch.inverse[:, k, :, local_row].transpose(1, 0, 2) / inverse_diagonal[..., None]
    response = 1.0 / inverse_diagonal - soft
    coupled = np.where(held[:, k], product[:, k, local_row], 0.0)
    free = -matvec(batch.inverse[:, k], coupled)
    alone = product[:, k, local_row, local_row]
    impulse = np.where((soft > 0.0)[..., None], block, free)
    response = np.where(soft > 0.0, response, alone + np.vecdot(free, coupled))
    impulse[:, number, local_row] = 1.0
    motion = matvec(batch.mass_jacobian[:, k].swapaxes(-1, -2), impulse)
    new = joins[:, k]
    step.impulse = np.where(new[..., None], impulse, step.impulse).astype(w.real)
    step.motion = np.where(new[..., None], motion, step.motion).astype(w.real)
    step.response = np.where(new, min_response(w, response, alone), step.response).astype(w.real)


def linear_error(w: StepBuffers, batch: ColorBatch, speed: Array, impulse: Array, mode: Array) -> Array:
    """Return the residuals of the joined rows' linear laws at row velocities ``speed``, (worlds, n, block)."""
    error = np.zeros_like(speed)
    if not (batch.gamma > 0.0).any():
        return error
    known, slope = w.law.total(mode)
    for step in batch.axes:
        k, local_row = step.k, step.local_row
        missed = known[:, step.axis] - slope[:, step.axis] * speed[:, k, local_row] - impulse[:, k, local_row]
        linear = mode[:, step.axis] < STICK
        error[:, k, local_row] = np.where(linear, batch.gamma[:, k, local_row] * missed, 0.0)
    return error
