"""Assembly: move bodies until all joints close, by damped least squares (Levenberg-Marquardt)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim import validate
from gpusim.model.state import State
from gpusim.reference.joints import prepare
from gpusim.reference.joints.factor import Factor, diagonal, products
from gpusim.reference.solve.drift import move
from gpusim.reference.solve.positions import row_errors
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

FIRST_DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-2, 1e-14, 1e6
MAX_ROTATION = 0.5


@dataclass
class AssemblyReport:
    """Result of :meth:`Simulation.assemble`.

    ``before`` and ``after`` map the label of each joint and coupling to its maximum position error in each world (m or
    rad), (num_worlds,).
    """

    before: dict[str, Array]
    after: dict[str, Array]
    iterations: int
    tolerance: float
    num_worlds: int

    @property
    def converged(self) -> Array:
        """Return a mask of the worlds in which all joints and couplings are within the tolerance, (num_worlds,)."""
        fine = np.ones(self.num_worlds, dtype=bool)
        for residual in self.after.values():
            fine &= residual <= self.tolerance
        return fine

    def __str__(self) -> str:
        if not self.after:
            return "nothing to assemble: the model has no joint"
        worst = max(self.after, key=lambda k: float(self.after[k].max()))
        return (
            f"assembled {int(self.converged.sum())} of {self.converged.size} worlds in {self.iterations} iterations; "
            f"greatest residual {float(self.after[worst].max()):.3g} at joint '{worst}'"
        )


def assemble(w: StepBuffers, state: State, tolerance: float, iterations: int) -> AssemblyReport:
    """Move the bodies until all position errors are within ``tolerance``. Velocities do not change.

    ``w`` contains the work arrays of ``state``. The function stops after ``iterations`` iterations.
    """
    tolerance = validate.not_negative("Simulation.assemble", "tolerance", tolerance)
    iterations = int(validate.not_negative("Simulation.assemble", "iterations", iterations))
    t = w.topology
    prepare.prepare(w, w.config.dt)
    errors = row_errors(w)
    before = by_label(t.constraint_labels, errors)
    damping = np.full(w.num_worlds, FIRST_DAMPING)
    count = 0
    while count < iterations and np.any(_size(errors) > tolerance):
        count += 1
        saved = {k: state.arrays[k].copy() for k in ("position", "orientation", "angle")}
        _move(w, errors, damping)
        new = row_errors(w)
        better = ~(_square(new) > _square(errors))
        for name, array in saved.items():
            state.arrays[name][~better] = array[~better]
        errors = np.where(better[:, None, None], new, errors)
        damping = np.clip(np.where(better, 0.1 * damping, 10.0 * damping), MIN_DAMPING, MAX_DAMPING)
    prepare.prepare(w, w.config.dt)
    state.arrays["step_before"][:] = 0.0
    return AssemblyReport(before, by_label(t.constraint_labels, row_errors(w)), count, tolerance, w.num_worlds)


def _move(w: StepBuffers, errors: Array, damping: Array) -> None:
    """Apply a damped step dx = -M^-1 J^T (A + damping diag A)^-1 C, with A = J M^-1 J^T and the position errors C."""
    t = w.topology
    prepare.prepare(w, w.config.dt)
    blocks = products(t, w.jacobian, w.mass_jacobian)
    response = diagonal(t, blocks)
    gamma = response * damping[:, None, None].astype(response.dtype)
    # A very large compliance gamma disables the axis rows.
    gamma.reshape(w.num_worlds, -1)[:, t.axis_row] = 1e20
    factor = Factor(t, blocks, gamma, response, 0.0, w.heavy_share)
    change = w.apply_impulse(factor.solve(-errors.astype(w.real))).astype(np.float64)
    max_rotation = np.max(np.abs(change[..., 3:]), axis=(1, 2), initial=0.0)
    change *= (MAX_ROTATION / np.maximum(max_rotation, MAX_ROTATION))[:, None, None]
    move(w, change[..., :3], change[..., 3:])


def _size(errors: Array) -> Array:
    return np.max(np.abs(errors), axis=(1, 2), initial=0.0)


def _square(errors: Array) -> Array:
    return np.sum(errors * errors, axis=(1, 2))


def by_label(labels: list[str], errors: Array) -> dict[str, Array]:
    """Return a dict that maps each constraint label to the maximum position error in each world, (num_worlds,)."""
    sizes = np.max(np.abs(errors), axis=2)
    return {label: sizes[:, k] for k, label in enumerate(labels)}
