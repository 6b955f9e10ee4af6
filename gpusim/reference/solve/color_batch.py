"""Constraints of one color, which are solved together, with what their block solves need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.reference.joints.factor import REGULARIZATION, inverse
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matvec
from gpusim.typing import Array


@dataclass
class ColorBatch:
    """One color of the running substep, or the overflow.

    Bodies (n, slots), Jacobians (worlds, n, block, slots * 6). ``load`` (n, slots) is the number of parts into which
    the mass of each slot's body is split. ``mass_jacobian`` includes it. It is None in a color, where bodies are whole.
    """

    constraints: Array
    bodies: Array
    jacobian: Array
    mass_jacobian: Array
    inverse: Array
    rigid: Array
    load: Array | None
    axes: list[AxisStep]
    coupled: CoupledRows
    gamma: Array
    """(worlds, n, block) compliances of axis rows that are solved with the rigid ones, 0 elsewhere (soft_rows.py)."""


@dataclass
class CoupledRows:
    """Coupled laws of a batch: members k, their numbers, rows (n, block), J M^-1 J^T and inverses with compliance."""

    k: Array
    number: Array
    rows: Array
    product: Array
    inverse: Array

    def refit(self, w: StepBuffers) -> None:
        """Recompute the inverses with the current compliances."""
        both = self.rows[:, :, None] & self.rows[:, None, :]
        block = np.where(both, self.product, 0.0).astype(w.real)
        place = np.arange(w.topology.block)
        block[..., place, place] *= 1.0 + REGULARIZATION[w.real]
        block = block + w.coupled_gamma[:, self.number]
        block[..., place, place] = np.where(self.rows, block[..., place, place], 1.0)
        self.inverse = inverse(block)

    def error(self, w: StepBuffers, speed: Array, impulse: Array) -> Array:
        """Return the residual of the laws at row velocities (num_worlds, n, block)."""
        given = matvec(w.coupled_gamma[:, self.number], impulse[:, self.k])
        return np.where(self.rows, w.coupled_target[:, self.number] - speed[:, self.k] - given, 0.0)

    def leave(self, w: StepBuffers, members: Array, error: Array, change: Array) -> None:
        """Write each row's residual and single-row impulse change, (num_worlds, constraints, block), in place."""
        speed = (w.row_velocity(w.twist) + w.bias.reshape(w.solved.shape))[:, members]
        missed = self.error(w, speed, w.solved[:, members])
        own = np.diagonal(self.inverse, axis1=-2, axis2=-1)
        gamma = np.diagonal(w.coupled_gamma[:, self.number], axis1=-2, axis2=-1)
        at = members[self.k]
        error[:, at] = np.maximum(1.0 - gamma * own, 0.0) * missed
        change[:, at] = own * missed


@dataclass
class AxisStep:
    """One axis row of several constraints of a color: member k, row index in the block, axis.

    A unit impulse of the row includes the impulses that keep the constraint's rigid rows solved: ``impulse`` (worlds,
    n, block). ``motion`` (worlds, n, slots * 6) is the velocity change of the bodies, ``response`` that of the row
    itself.
    """

    k: Array
    place: Array
    axis: Array
    impulse: Array
    motion: Array
    response: Array
