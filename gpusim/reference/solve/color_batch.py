"""Constraints of one color, with the matrices that solve them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.reference.joints.factor import REGULARIZATION, inverse
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matvec
from gpusim.typing import Array


@dataclass
class ColorBatch:
    """The n constraints of one color, or of the overflow (constraints without a color).

    ``bodies`` (n, slots) contains the bodies of each constraint. Jacobians are (worlds, n, block, slots * 6), with
    ``block`` rows per constraint.
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
    """(worlds, n, block) compliances of the axis rows that joined the block of the rigid rows (soft_rows.py). The
    values of all other rows are 0."""


@dataclass
class CoupledRows:
    """The n actuator laws that couple several axes, in a batch of constraints.

    ``k`` contains the index of each law's constraint in the batch. ``number`` contains the index of each law in the
    model. ``rows`` marks the used rows, (n, block). ``product`` is J M^-1 J^T. ``inverse`` is (product +
    compliance)^-1.
    """

    k: Array
    number: Array
    rows: Array
    product: Array
    inverse: Array

    def refit(self, w: StepBuffers) -> None:
        """Recompute ``inverse`` with the current compliances."""
        both = self.rows[:, :, None] & self.rows[:, None, :]
        block = np.where(both, self.product, 0.0).astype(w.real)
        index = np.arange(w.topology.block)
        block[..., index, index] *= 1.0 + REGULARIZATION[w.real]
        block = block + w.coupled_gamma[:, self.number]
        block[..., index, index] = np.where(self.rows, block[..., index, index], 1.0)
        self.inverse = inverse(block)

    def error(self, w: StepBuffers, speed: Array, impulse: Array) -> Array:
        """Return the residuals of the laws, (num_worlds, n, block), at the row velocities ``speed``."""
        compliance = matvec(w.coupled_gamma[:, self.number], impulse[:, self.k])
        return np.where(self.rows, w.coupled_target[:, self.number] - speed[:, self.k] - compliance, 0.0)

    def write_residuals(self, w: StepBuffers, members: Array, error: Array, change: Array) -> None:
        """Write the residual of each row to ``error``, and the impulse change that corrects it to ``change``."""
        speed = (w.row_velocity(w.twist) + w.bias.reshape(w.solved.shape))[:, members]
        residual = self.error(w, speed, w.solved[:, members])
        inverse_diagonal = np.diagonal(self.inverse, axis1=-2, axis2=-1)
        gamma = np.diagonal(w.coupled_gamma[:, self.number], axis1=-2, axis2=-1)
        at = members[self.k]
        error[:, at] = np.maximum(1.0 - gamma * inverse_diagonal, 0.0) * residual
        change[:, at] = inverse_diagonal * residual


@dataclass
class AxisStep:
    """Axis rows of n constraints in a batch, with one axis row per constraint.

    The impulses ``impulse`` change the twists of the bodies by ``motion``, (worlds, n, slots * 6).
    """

    k: Array
    local_row: Array
    axis: Array
    impulse: Array
    motion: Array
    response: Array
