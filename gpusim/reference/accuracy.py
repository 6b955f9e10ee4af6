"""Accuracy checks. They measure the following values, and mark worlds that exceed an accuracy limit.

* Joints: the residual is the position error of the rigid constraint rows at the start of the substep. Errors in poses
  that you have just set do not count.
* Contacts: the residual is the greatest change of an impulse in the last sweep, divided by the greatest normal impulse.
* Modes and laws of axis rows: the value is the total number of substeps in which the solver did not converge.
* Voids: the value is the volume of the largest vapor cavity in the oil, m3 (actuators/hydraulic/cavitation.py).
* Motions: the value is the largest distance by which a prescribed motion made a joint jump in one substep.
* Rotors: the value is the largest rotation angle per substep of a rotor. Only rotors that are too fast for the time
  step count (rotors.py).
"""

from __future__ import annotations

import numpy as np

from gpusim.actuators.hydraulic.cavitation import MIN_VOID
from gpusim.reference.layout import ROW_GAP, ROW_ROTATION
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

MODES, JOINTS, CONTACTS, VOIDS, JUMPS, SPINS = 4, 8, 16, 32, 64, 128
"""Bits of the state array ``inexact``. The bits show which limits a world has exceeded since the start or reset."""
TAG_MASK = (1 << 24) - 1


def relative_change(w: StepBuffers, change: Array, load: Array) -> Array:
    """Return the ratio ``change`` / ``load``. The result is 0 if ``load`` is zero or if ``change`` is negligible."""
    counts = (load > 0.0) & (change > change.dtype.type(w.accuracy_limits["min_contact_change"]))
    return np.asarray(np.where(counts, change / np.where(counts, load, 1.0), 0.0).astype(change.dtype))


def measure(w: StepBuffers) -> None:
    """Update the residuals of joints and contacts. Mark inaccurate worlds in ``inexact``."""
    state, limits = w.state.arrays, w.accuracy_limits
    counts = (w.step_last > 0.0) & (state["posed"] == 0)
    if w.topology.num_constraints:
        gaps, tilts = (_tagged(errors) for errors in _errors(w))
        w.loop_gap = _worst(counts, gaps[:, w.topology.in_loop])
        for name, errors in (("joint_drift_peak", gaps), ("joint_tilt_peak", tilts)):
            state[name][:] = np.maximum(state[name], _worst(counts, errors))
        parted = w.loop_gap > limits["loop_gap_limit"]
        state["loop_open"][:] = np.where(parted, state["loop_open"] + 1, 0)
    state["contact_residual"][:] = w.contact_residual_now
    unconverged = w.contact_residual_now > limits["contact_residual_limit"]
    state["contact_streak"][:] = np.where(unconverged, state["contact_streak"] + 1, 0)
    opened = state["joint_drift_peak"] > limits["joint_drift_limit"]
    opened |= state["joint_tilt_peak"] > limits["joint_tilt_limit"]
    unswept = state["contact_streak"] >= limits["contact_streak_limit"]
    counts = ((MODES, "not_converged"), (VOIDS, "void_peak"), (JUMPS, "jump_peak"), (SPINS, "spin_peak"))
    for bit, worlds in ((JOINTS, opened), (CONTACTS, unswept), *((bit, state[name] > 0) for bit, name in counts)):
        state["inexact"][worlds] |= bit


def measure_voids(w: StepBuffers) -> None:
    """Update the volume of the largest vapor cavity in the oil.

    The least significant bits of the stored number contain the index of the cavity.
    """
    peak = w.state.arrays["void_peak"]
    for group in w.groups.values():
        for name, first in group.type.voids.items():
            void = group.state[name].astype(np.float64)
            peak[:] = np.maximum(peak, np.max(_tagged(np.where(void > MIN_VOID, void, 0.0), first), axis=1))


def measure_jumps(w: StepBuffers) -> None:
    """Update the largest distance by which a prescribed motion made a joint jump."""
    peak = w.state.arrays["jump_peak"]
    for group in w.groups.values():
        distances = group.type.jump(group, w)
        if distances is not None:
            peak[:] = np.maximum(peak, np.max(_tagged(distances), axis=1))


def measure_spins(w: StepBuffers, angles: Array) -> None:
    """Update the largest rotation angle per substep of the rotors that are too fast for the time step."""
    peak = w.state.arrays["spin_peak"]
    peak[:] = np.maximum(peak, np.max(_tagged(angles.astype(np.float64)), axis=1, initial=0.0))


def _errors(w: StepBuffers) -> tuple[Array, Array]:
    """Return the gap (m) and the largest rotation error (rad) of each constraint, (num_worlds, constraints) each."""
    t = w.topology
    errors = np.zeros((w.num_worlds, t.num_constraints * t.block))
    errors[:, t.rigid_row] = np.abs(w.element_value[:, t.rigid_element])
    errors[:, t.coupling.rigid_row] = np.abs(w.coupling_value[:, : t.coupling.rigid])
    kinds, shape = w.layout.row_kinds, (w.num_worlds, t.num_constraints, t.block)
    gaps, tilts = (np.where(kinds == kind, errors, 0.0).reshape(shape) for kind in (ROW_GAP, ROW_ROTATION))
    square = gaps[..., 0] * gaps[..., 0]
    for k in range(1, t.block):
        square = square + gaps[..., k] * gaps[..., k]
    return np.sqrt(square), tilts.max(axis=2)


def _worst(counts: Array, errors: Array) -> Array:
    """Return the maximum error of each world in the mask ``counts``, and 0 for all other worlds, (num_worlds,)."""
    return np.where(counts, np.max(errors, axis=1, initial=0.0), 0.0)


def _tagged(values: Array, first: int = 0) -> Array:
    """Store the column number of each positive value in the least significant bits of that value.

    ``values`` is (num_worlds, n): n values for each world.
    """
    bits = values.view(np.uint64) & np.uint64(~TAG_MASK & (1 << 64) - 1)
    bits = bits | np.uint64(TAG_MASK - first) - np.arange(values.shape[1], dtype=np.uint64)
    return np.where(values > 0.0, bits.view(np.float64), values)


def constraint_of(peak: float) -> int:
    """Return the column number that :func:`_tagged` stored in the number ``peak``."""
    return TAG_MASK - (int(np.float64(peak).view(np.uint64)) & TAG_MASK)
