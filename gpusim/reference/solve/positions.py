"""Stage positions: correct the position errors of rigid constraint rows after the drift. Velocities do not change.

The direct solver computes dx = -M^-1 J^T A^-1 C for all rows, with the factorization of the velocity solve. C contains
the position errors. The correction is linear, so a correction that rotates a body by theta leaves an error of about L
theta^2. L is a typical lever arm of the model (``usual_lever``, limits.py).

Near a singular pose of a kinematic loop, a tiny error would cause a large rotation and open the joints. In models with
loops, the solver therefore limits theta to ``theta^2 <= error / L`` (a trust region). It repeats the correction with a
new factorization of the rigid rows at the corrected pose.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.joints import elements, prepare
from gpusim.reference.layout import ROW_GAP
from gpusim.reference.solve.drift import move
from gpusim.reference.solve.world_factors import factor_rigid_rows
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

SPLIT_FRACTION = 0.2
# In loops, the solver corrects positions at most MAX_CORRECTIONS times. The corrections end if the maximum error is
# below CLOSED, or above CLOSING_RATIO times the previous error. Errors are rotations (rad), or gaps divided by L. After
# the first correction, an error between OPEN and APART does not end the corrections, because the first correction uses
# an old factor. If a new factor does not reduce the error, the loop cannot close, and more corrections would add
# energy.
MAX_CORRECTIONS, CLOSED, OPEN, APART, CLOSING_RATIO = 8, 1e-5, 2e-4, 1e-2, 0.9


def correct_direct(w: StepBuffers) -> None:
    """Correct the position errors of all rigid rows with the direct solver."""
    t = w.topology
    if t.loops.any():
        return _close_loops(w)
    errors = np.where(w.stalled[:, None, None] | t.swept[:, None], 0.0, row_errors(w)).astype(w.real)
    change = w.apply_impulse(w.factor.solve(-errors))
    move(w, change[..., :3].astype(np.float64), change[..., 3:].astype(np.float64))


def _close_loops(w: StepBuffers) -> None:
    """Correct the position errors of models with loops. Repeat the correction while the errors decrease."""
    state, real = w.state.arrays, w.real.type
    closing = np.ones(w.num_worlds, bool)
    before = np.full(w.num_worlds, np.inf, w.real)
    for k in range(MAX_CORRECTIONS):
        closing &= before > real(CLOSED)
        if not closing.any():
            return
        errors = np.where(w.topology.swept[:, None], 0.0, row_errors(w)).astype(w.real)
        error = _greatest_error(w, errors)
        if k:
            shrinks = (error > real(CLOSED)) & (error < real(CLOSING_RATIO) * before)
            closing &= shrinks | ((k == 1) & (error > real(OPEN)) & (error < real(APART)))
            factor_rigid_rows(w, closing, moved=True)
        change = w.apply_impulse(w.factor.solve(-errors))
        change = change * _trusted_fraction(w, error, change)[:, None, None]
        ended = ~closing
        saved = state["position"][ended], state["orientation"][ended]
        move(w, change[..., :3].astype(np.float64), change[..., 3:].astype(np.float64))
        state["position"][ended], state["orientation"][ended] = saved
        before = error


def _greatest_error(w: StepBuffers, errors: Array) -> Array:
    gaps = (w.layout.row_kinds == ROW_GAP).reshape(errors.shape[1:])
    lever = w.real.type(w.accuracy_limits["usual_lever"])
    return np.asarray(np.where(gaps, np.abs(errors) / lever, np.abs(errors)).max(axis=(1, 2)))


def _trusted_fraction(w: StepBuffers, error: Array, change: Array) -> Array:
    """Return the fraction of the correction ``change`` that is inside the trust region, (num_worlds,)."""
    rotation = change[..., 3:]
    square = (
        rotation[..., 0] * rotation[..., 0] + rotation[..., 1] * rotation[..., 1] + rotation[..., 2] * rotation[..., 2]
    )
    square = np.where(w.topology.dynamic, square, w.real.type(0)).max(axis=1)
    return np.where(square > error, error / np.where(square > error, square, w.real.type(1)), w.real.type(1))


def row_errors(w: StepBuffers) -> Array:
    """Return the position errors of all rigid rows, (num_worlds, constraints, block), with 0 for axis rows."""
    t = w.topology
    w.rotation = rotations.matrix_from_quaternion(w.state.arrays["orientation"])
    errors = np.zeros((w.num_worlds, t.num_constraints * t.block))
    if t.coupling.row.size:
        counted = w.state.arrays["angle"].copy()
        elements.track_angles(w)
        elements.evaluate(w)
        w.state.arrays["angle"][:] = counted
        errors[:, t.rigid_row] = w.element_value[:, t.rigid_element]
        errors[:, t.coupling.rigid_row] = prepare.coupling_values(w)[:, : t.coupling.rigid]
    else:
        errors[:, t.rigid_row] = elements.rigid_values(w)
    return errors.reshape(w.num_worlds, t.num_constraints, t.block)


def split_impulse_velocity(w: StepBuffers) -> Array:
    """Return the displacement that corrects the fraction SPLIT_FRACTION of the position errors."""
    t = w.topology
    errors = np.zeros((w.num_worlds, t.num_constraints * t.block))
    errors[:, t.rigid_row] = w.element_value[:, t.rigid_element]
    errors[:, t.coupling.rigid_row] = w.coupling_value[:, : t.coupling.rigid]
    shaped = errors.reshape(w.num_worlds, t.num_constraints, t.block).astype(w.real)
    shaped[:, t.swept] = 0.0
    return w.apply_impulse(w.factor.solve(-w.real.type(SPLIT_FRACTION) * shaped))
