"""Block LDL^T factorization of A = J M^-1 J^T + gamma. compiler/elimination.py plans the operations."""

from __future__ import annotations

import numpy as np

from gpusim.compiler.topology import Topology
from gpusim.rotations import matvec
from gpusim.typing import Array

# The regularization makes redundant constraints solvable. For example, a closed loop may lock a motion twice.
REGULARIZATION = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-6}
# Rows in loops may be (nearly) dependent. The pivots of dependent rows are mostly round-off, and would give random
# impulses. A pivot is weak if it is below WEAK_PIVOT times the row's response to its own impulse.
WEAK_PIVOT = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-3}
# In worlds with a weak pivot, the code multiplies the diagonal by 1 + SOFTENING. Directions with a relative response
# below SOFTENING then get almost no impulse. Later passes correct the error in all other directions.
SOFTENING = {np.dtype(np.float64): 3e-7, np.dtype(np.float32): 1e-5}


def products(t: Topology, jacobian: Array, mass_jacobian: Array) -> Array:
    """Return the blocks of J M^-1 J^T, (worlds, blocks, block, block), in the sparsity pattern of the factor."""
    blocks = np.zeros((jacobian.shape[0], t.elimination.num_blocks, t.block, t.block), jacobian.dtype)
    for target, side_i, side_j in t.assembly.rounds:
        blocks[:, target] += np.matmul(jacobian[:, side_i], mass_jacobian[:, side_j].swapaxes(-1, -2))
    return blocks


def diagonal(t: Topology, blocks: Array) -> Array:
    """Return the diagonal of J M^-1 J^T, (worlds, constraints, block), with 1 for unused rows."""
    values = np.diagonal(blocks[:, : t.num_constraints], axis1=-2, axis2=-1)
    return np.where(t.row_used, values, values.dtype.type(1.0))


class Factor:
    """Block factorization A = L D L^T, which solves A x = r for any right-hand side r.

    Args:
        t: topology with the planned operations.
        blocks: result of :func:`products`.
        gamma: compliance, added to the diagonal, (worlds, constraints, block).
        response: result of :func:`diagonal`.
        damping: fraction of ``response`` to add to the diagonal near singular poses, (worlds, 1, 1).
        heavy_share: result of :func:`light_bodies.heavy_share`, (constraints, block).
    """

    def __init__(
        self, t: Topology, blocks: Array, gamma: Array, response: Array, damping: Array | float, heavy_share: Array
    ) -> None:
        self.levels = t.elimination.levels
        blocks = blocks.copy()
        count = t.num_constraints
        dtype = blocks.dtype
        heavy = heavy_share.astype(dtype)
        # Every row needs a nonzero pivot, even if the row is unused or its bodies cannot move.
        total = response * (dtype.type(1.0 + REGULARIZATION[dtype]) + damping * heavy) + gamma
        total = np.where(total > 0.0, total, dtype.type(1.0))
        # Free axis rows have a compliance of 1e30. Without the scale, the round-off of free rows would change other
        # rows.
        one = dtype.type(1.0)
        self.scale = None if not t.axis_row.size else np.sqrt(np.where(response > 0.0, response / total, one))
        if self.scale is not None:
            blocks *= self.scale[:, t.elimination.block_row][..., :, None]
            blocks *= self.scale[:, t.elimination.block_column][..., None, :]
            total = total * self.scale * self.scale
        pivots = blocks[:, :count]
        index = np.arange(t.block)
        pivots[..., index, index] = total
        self.inverse = np.zeros((blocks.shape[0], count, t.block, t.block), dtype)
        self.weak = np.zeros(blocks.shape[0], bool)
        self.lower: list[Array] = []
        for level in self.levels:
            self.inverse[:, level.pivots] = inverse(pivots[:, level.pivots])
            looped = level.pivots[t.may_depend[level.pivots]]
            if looped.size:
                min_pivot = dtype.type(WEAK_PIVOT[dtype]) * heavy[looped] * total[:, looped]
                self.weak |= (block_pivots(pivots[:, looped]) < min_pivot).any(axis=(1, 2))
            column = blocks[:, level.edge]
            lower = np.matmul(column, self.inverse[:, level.edge_pivot])
            self.lower.append(lower)
            for target, left, right in level.updates:
                blocks[:, target] -= np.matmul(lower[:, left], column[:, right].swapaxes(-1, -2))

    def solve(self, right: Array) -> Array:
        """Return A^-1 r for right-hand sides r (worlds, constraints, block)."""
        return self.backward(self.forward(right[..., None])[1][..., 0])

    def forward(self, right: Array) -> tuple[Array, Array]:
        """Return Y = L^-1 S r and Z = D^-1 Y, with the diagonal matrix S of row scales.

        r has n columns, (worlds, constraints, block, n).
        """
        y = right.copy() if self.scale is None else right * self.scale[..., None]
        for level, lower in zip(self.levels, self.lower, strict=True):
            for row, edge, pivot in level.forward:
                y[:, row] -= np.matmul(lower[:, edge], y[:, pivot])
        return y, np.matmul(self.inverse, y)

    def backward(self, x: Array) -> Array:
        """Return S L^-T x for x (worlds, constraints, block), with the diagonal matrix S of row scales."""
        y = x.copy()
        for level, lower in zip(reversed(self.levels), reversed(self.lower), strict=True):
            for pivot, edge, row in level.backward:
                y[:, pivot] -= matvec(lower[:, edge].swapaxes(-1, -2), y[:, row])
        return y if self.scale is None else y * self.scale

    def replace(self, other: Factor, worlds: Array) -> None:
        """Replace the factors of the worlds in the mask ``worlds`` by the factors in ``other``."""
        self.inverse[worlds] = other.inverse
        self.weak[worlds] = other.weak
        if self.scale is not None and other.scale is not None:
            self.scale[worlds] = other.scale
        for mine, theirs in zip(self.lower, other.lower, strict=True):
            mine[worlds] = theirs


def block_pivots(matrices: Array) -> Array:
    """Return the n pivots of Gaussian elimination without row exchanges, (..., n), for matrices (..., n, n)."""
    m = matrices.copy()
    for p in range(m.shape[-1] - 1):
        factor = m[..., p + 1 :, p] / m[..., None, p, p]
        m[..., p + 1 :, p + 1 :] -= factor[..., None] * m[..., p, None, p + 1 :]
    return np.diagonal(m, axis1=-2, axis2=-1)


def inverse(matrices: Array) -> Array:
    """Return the inverses of matrices (..., n, n). For a singular matrix, all entries are NaN."""
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        result = np.full_like(matrices, np.nan)
        flat, out = matrices.reshape(-1, *matrices.shape[-2:]), result.reshape(-1, *matrices.shape[-2:])
        for k, matrix in enumerate(flat):
            try:
                out[k] = np.linalg.inv(matrix)
            except np.linalg.LinAlgError:
                continue
        return result
