"""Assembly: brings roughly placed joints together by damped least squares (Levenberg-Marquardt)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusim.reference import prepare
from gpusim.reference.drift import move
from gpusim.reference.factor import Factor, diagonal, products
from gpusim.reference.positions import row_errors
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-14, 1e6
GREATEST_TURN = 0.5


@dataclass
class AssemblyReport:
    """What :meth:`Simulation.assemble` reached.

    ``before`` and ``after`` hold the greatest row error of every joint and coupling by label, m or rad,
    (num_worlds,) each.
    """

    before: dict[str, Array]
    after: dict[str, Array]
    iterations: int
    tolerance: float
    num_worlds: int

    @property
    def converged(self) -> Array:
        """True for worlds in which every joint is within the tolerance, (num_worlds,)."""
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


def assemble(sim: Simulation, tolerance: float, iterations: int) -> AssemblyReport:
    """Move the bodies, weighted by their mass, until all rigid rows are zero; velocities stay."""
    w, t = sim.backend.work, sim.model.topology
    prepare.prepare(w, sim.config.dt)
    errors = row_errors(w)
    before = _by_label(t.constraint_labels, errors)
    damping = np.full(sim.num_worlds, FIRST_DAMPING)
    count = 0
    while count < iterations and np.any(_size(errors) > tolerance):
        count += 1
        saved = {k: sim.state.arrays[k].copy() for k in ("position", "orientation", "angle")}
        _move(sim, errors, damping)
        new = row_errors(w)
        better = ~(_square(new) > _square(errors))
        for name, array in saved.items():
            sim.state.arrays[name][~better] = array[~better]
        errors = np.where(better[:, None, None], new, errors)
        damping = np.clip(np.where(better, 0.1 * damping, 10.0 * damping), LEAST_DAMPING, MOST_DAMPING)
    prepare.prepare(w, sim.config.dt)
    sim.state.arrays["step_before"][:] = 0.0
    return AssemblyReport(before, _by_label(t.constraint_labels, row_errors(w)), count, tolerance, sim.num_worlds)


def _move(sim: Simulation, errors: Array, damping: Array) -> None:
    """One damped step dx = -M^-1 J^T (A + damping diag A)^-1 C, no body turning by more than half a radian."""
    w, t = sim.backend.work, sim.model.topology
    prepare.prepare(w, sim.config.dt)
    blocks = products(t, w.jacobian, w.mass_jacobian)
    own = diagonal(t, blocks)
    gamma = own * damping[:, None, None].astype(own.dtype)
    # Axis rows take no part.
    gamma.reshape(sim.num_worlds, -1)[:, t.axis_row] = 1e20
    change = w.apply_impulse(Factor(t, blocks, gamma, own).solve(-errors.astype(w.real))).astype(np.float64)
    turn = np.max(np.abs(change[..., 3:]), axis=(1, 2), initial=0.0)
    change *= (GREATEST_TURN / np.maximum(turn, GREATEST_TURN))[:, None, None]
    move(w, change[..., :3], change[..., 3:])


def _size(errors: Array) -> Array:
    return np.max(np.abs(errors), axis=(1, 2), initial=0.0)


def _square(errors: Array) -> Array:
    return np.sum(errors * errors, axis=(1, 2))


def _by_label(labels: list[str], errors: Array) -> dict[str, Array]:
    sizes = np.max(np.abs(errors), axis=2)
    return {label: sizes[:, k] for k, label in enumerate(labels)}
