"""What a solve has left, and which worlds went past a limit of it; part of stage drift, at no cost that shows.

Joints: the errors of the rigid rows as stage prepare has them anyway, at the poses that the substep began with. So they
are what the substep before has left; poses that were just given are nobody's work. Contacts: the greatest change of an
impulse in the last sweep as a share of the greatest normal impulse. Modes and laws: ``not_converged``. Oil: voids
(actuators/cavitation.py), which are no error of the solve and may be none of the machine. Motions: jumps onto a path.

A greatest number carries in its last bits the constraint that it is of, which one atomic operation of the kernels
finds with it; as a number it is off by 1e-8 of itself at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusim.actuators.cavitation import LEAST_VOID
from gpusim.model.model import Model
from gpusim.reference.layout import ROW_GAP, ROW_TURN, Layout
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.reference.work import Work

MODES, JOINTS, CONTACTS, VOIDS, JUMPS = 4, 8, 16, 32, 64
"""Bits of the state's ``inexact``, as in ``sim.health``: what went past its limit since the start or reset."""
TAG_MASK = (1 << 24) - 1
JOINT_SHARE = 0.01
"""A joint is open where its points are further apart than this share of the usual lever (the median distance of joints
from the centers of mass of their bodies), or a locked turn is off by as many rad."""
USUAL_LEVER = 0.1
"""m, where all joints sit in centers of mass."""
CONTACT_SHARE, CONTACT_STREAK = 0.1, 50
"""Contacts are not converged where sweeps end with changes above this share of the greatest load, in so many substeps
in a row: impacts and new contacts are through after a few."""

OPEN_LEVERS, OPEN_SUBSTEPS = 100.0, 10
"""A loop cannot close where a joint of it is apart by more than so many usual levers in so many substeps in a row. A
step through a singular pose may part it for one or two."""
LEAST_SPEED = 1e-6
"""Changes that give the lightest body less than this speed, m/s, are none."""


def accuracy_limits(model: Model) -> dict[str, float]:
    """Limits by the names of the kernels' settings; m, rad, a share, N s, and a number of substeps."""
    t, layout = model.topology, Layout(model.topology)
    levers = np.linalg.norm(layout.side_arm, axis=1)
    levers = levers[(levers > 0.0) & (layout.side_body < t.num_bodies)]
    masses = [body.mass for body in model.bodies if body.mass > 0.0 and not body.kinematic]
    lever = float(np.median(levers)) if levers.size else USUAL_LEVER
    return {
        "joint_drift_limit": JOINT_SHARE * lever,
        "loop_gap_limit": OPEN_LEVERS * lever,
        "usual_lever": lever,
        "joint_tilt_limit": JOINT_SHARE,
        "contact_residual_limit": CONTACT_SHARE,
        "contact_change_least": LEAST_SPEED * min(masses, default=0.0),
        "contact_streak_limit": CONTACT_STREAK,
    }


def share(w: Work, change: Array, load: Array) -> Array:
    """``change`` over ``load``, 0 where there is no load, or a change that moves no body."""
    counts = (load > 0.0) & (change > change.dtype.type(w.accuracy_limits["contact_change_least"]))
    return np.asarray(np.where(counts, change / np.where(counts, load, 1.0), 0.0).astype(change.dtype))


def measure(w: Work) -> None:
    """Bring what was left so far up to date, after what ``not_converged`` counts."""
    state, limits = w.state.arrays, w.accuracy_limits
    counts = (w.step_last > 0.0) & (state["posed"] == 0)
    if w.topology.num_constraints:
        gaps, turns = (_tagged(errors) for errors in _errors(w))
        w.loop_gap = _worst(counts, gaps[:, w.topology.in_loop])
        for name, errors in (("joint_drift_peak", gaps), ("joint_tilt_peak", turns)):
            state[name][:] = np.maximum(state[name], _worst(counts, errors))
        parted = w.loop_gap > limits["loop_gap_limit"]
        state["loop_open"][:] = np.where(parted, state["loop_open"] + 1, 0)
    state["contact_residual"][:] = w.contact_left
    going = w.contact_left > limits["contact_residual_limit"]
    state["contact_streak"][:] = np.where(going, state["contact_streak"] + 1, 0)
    opened = state["joint_drift_peak"] > limits["joint_drift_limit"]
    opened |= state["joint_tilt_peak"] > limits["joint_tilt_limit"]
    unswept = state["contact_streak"] >= limits["contact_streak_limit"]
    counts = ((MODES, "not_converged"), (VOIDS, "void_peak"), (JUMPS, "jump_peak"))
    for bit, found in ((JOINTS, opened), (CONTACTS, unswept), *((bit, state[name] > 0) for bit, name in counts)):
        state["inexact"][found] |= bit


def measure_voids(w: Work) -> None:
    """Bring the greatest void in oil so far up to date, tagged with its number; part of stage advance_actuators."""
    peak = w.state.arrays["void_peak"]
    for group in w.groups.values():
        for name, first in group.type.voids.items():
            void = group.state[name].astype(np.float64)
            peak[:] = np.maximum(peak, np.max(_tagged(np.where(void > LEAST_VOID, void, 0.0), first), axis=1))


def measure_jumps(w: Work) -> None:
    """Bring the greatest jump of a prescribed motion so far up to date; part of stage advance_actuators."""
    peak = w.state.arrays["jump_peak"]
    for group in w.groups.values():
        ways = group.type.jump(group, w)
        if ways is not None:
            peak[:] = np.maximum(peak, np.max(_tagged(ways), axis=1))


def _errors(w: Work) -> tuple[Array, Array]:
    """Gap and greatest error of a turn of every constraint, (num_worlds, constraints)."""
    t = w.topology
    errors = np.zeros((w.num_worlds, t.num_constraints * t.block))
    errors[:, t.rigid_row] = np.abs(w.element_value[:, t.rigid_element])
    errors[:, t.coupling.rigid_row] = np.abs(w.coupling_value[:, : t.coupling.rigid])
    kinds, shape = w.layout.row_kinds, (w.num_worlds, t.num_constraints, t.block)
    gaps, turns = (np.where(kinds == kind, errors, 0.0).reshape(shape) for kind in (ROW_GAP, ROW_TURN))
    square = gaps[..., 0] * gaps[..., 0]
    for k in range(1, t.block):
        square = square + gaps[..., k] * gaps[..., k]
    return np.sqrt(square), turns.max(axis=2)


def _worst(counts: Array, errors: Array) -> Array:
    """Greatest error (num_worlds, n) of each world that counts, (num_worlds,); NaN counts as the greatest."""
    return np.where(counts, np.max(errors, axis=1, initial=0.0), 0.0)


def _tagged(values: Array, first: int = 0) -> Array:
    """Values (num_worlds, n) with their numbers from ``first`` on in their last bits, the lowest one greatest."""
    bits = values.view(np.uint64) & np.uint64(~TAG_MASK & (1 << 64) - 1)
    bits = bits | np.uint64(TAG_MASK - first) - np.arange(values.shape[1], dtype=np.uint64)
    return np.where(values > 0.0, bits.view(np.float64), values)


def constraint_of(peak: float) -> int:
    """Which constraint (or void) a greatest number is of."""
    return TAG_MASK - (int(np.float64(peak).view(np.uint64)) & TAG_MASK)
