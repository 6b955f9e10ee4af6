"""Constraints of one color, and the matrices for the block solves of these constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.reference.joints.factor import REGULARIZATION, inverse
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matvec
from gpusim.typing import Array


@dataclass
class ColorBatch:
    """Constraints of one color, or the overflow (constraints without a color).

    ``bodies`` is (n, slots), and Jacobians are (worlds, n, block, slots * 6).
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
    """Laws of actuators that couple several axes, for a batch of constraints.

    ``k`` is the index of the law's constraint in the batch. ``number`` is the index of the law in the model.
    ``rows`` is True for used rows, (n, block). ``product`` is J M^-1 J^T. ``inverse`` is (product + compliance)^-1.
    """

    k: Array
    number: Array
    rows: Array
    product: Array
    inverse: Array

    def refit(self, w: StepBuffers) -> None:
        """Recompute the inverses with the current compliances."""
        both = self.rows[:, :, None] & self.rows[:, None, :]
        block = np.where(both, self.product, 0.0).astype(w.real)
        index = np.arange(w.topology.block)
        block[..., index, index] *= 1.0 + REGULARIZATION[w.real]
        block = block + w.coupled_gamma[:, self.number]
        block[..., index, index] = np.where(self.rows, block[..., index, index], 1.0)
        self.inverse = inverse(block)

    def error(self, w: StepBuffers, speed: Array, impulse: Array) -> Array:
        """Return the residual of the laws at row velocities ``speed``, (num_worlds, n, block)."""
        compliance = matvec(w.coupled_gamma[:, self.number], impulse[:, self.k])
        return np.where(self.rows, w.coupled_target[:, self.number] - speed[:, self.k] - compliance, 0.0)

    def write_residuals(self, w: StepBuffers, members: Array, error: Array, change: Array) -> None:
        """Write each row's residual to ``error``, and the impulse change that removes the residual to ``change``."""
        speed = (w.row_velocity(w.twist) + w.bias.reshape(w.solved.shape))[:, members]
        residual = self.error(w, speed, w.solved[:, members])
        inverse_diagonal = np.diagonal(self.inverse, axis1=-2, axis2=-1)
        gamma = np.diagonal(w.coupled_gamma[:, self.number], axis1=-2, axis2=-1)
        at = members[self.k]
        error[:, at] = np.maximum(1.0 - gamma * inverse_diagonal, 0.0) * residual
        change[:, at] = inverse_diagonal * residual


@dataclass
class AxisStep:
    """Axis rows of n constraints in a batch, one row for each constraint.

    ``impulse`` changes the velocities of the bodies by ``motion``, (worlds, n, slots * 6).
    """

    k: Array
    local_row: Array
    axis: Array
    impulse: Array
    motion: Array
    response: Array
