"""Factorizations of the direct solver in chosen worlds."""

from __future__ import annotations

import numpy as np

from gpusim.reference.joints import coupled_laws, prepare
from gpusim.reference.joints.factor import SOFTENING, Factor, diagonal, products
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def factor_worlds(w: StepBuffers, blocks: Array, gamma: Array, response: Array, worlds: Array) -> Factor:
    """Factor the matrix A of the joint rows (factor.py) in the worlds with the indices ``worlds``."""
    blocks, gamma, response = _softened(w, blocks)[worlds], gamma[worlds], response[worlds]

    def factored(at: Array) -> Factor:
        damping = (w.factor_damping + w.softening)[worlds[at], None, None].astype(w.real)
        return Factor(w.topology, blocks[at], gamma[at], response[at], damping, w.heavy_share)

    factor = factored(np.arange(worlds.size))
    pick = np.flatnonzero(factor.weak & (w.softening[worlds] == 0.0))
    if pick.size:
        w.softening[worlds[pick]] = SOFTENING[w.real]
        factor.replace(factored(pick), pick)
    return factor


def factor_rigid_rows(w: StepBuffers, worlds: Array, moved: bool) -> None:
    """Factor the matrices of the rigid rows for stage positions.

    The matrices exclude axis rows. Otherwise, friction, limits or stiff springs could prevent the correction of a gap
    in a loop.

    Args:
        w: work arrays of the substep.
        worlds: mask of the worlds to factor, (num_worlds,).
        moved: True to recompute the Jacobians at the current poses first.
    """
    at, system = np.flatnonzero(worlds), w.direct
    if not at.size:
        return
    blocks, response, gamma = system.blocks, system.response, system.rows.gamma
    if moved:
        prepare.update_rows(w, worlds)
        blocks = products(w.topology, w.jacobian, w.mass_jacobian)
        response = diagonal(w.topology, blocks)
    direct = ~w.layout.axis_swept
    rows = w.topology.axis_row[direct]
    gamma.reshape(w.num_worlds, -1)[np.ix_(at, rows)] = 1.0 / system.rows.floor[np.ix_(at, direct)]
    w.factor.replace(factor_worlds(w, blocks, gamma, response, at), at)


def _softened(w: StepBuffers, blocks: Array) -> Array:
    """Return the blocks of A, including the off-diagonal compliances of coupled laws."""
    at = w.topology.coupled_constraint
    if not at.size:
        return blocks
    soft = blocks.copy()
    soft[:, at] += coupled_laws.off_diagonal(w)
    return soft
