"""NumPy functions of the solver stages. solver/schedule.py lists the stages."""

from __future__ import annotations

import numpy as np

from gpusim.reference.contacts import contact_push, contact_rows
from gpusim.reference.joints import actuate
from gpusim.reference.joints import prepare as preparation
from gpusim.reference.solve import colored_solve, contact_direct, direct_solve, world_factors
from gpusim.reference.solve import drift as motion
from gpusim.reference.solve import positions as corrections
from gpusim.reference.step_buffers import StepBuffers
from gpusim.rotations import matrix_from_quaternion

# Contact stages import scipy.spatial only when a model has contacts.


def broad_phase(w: StepBuffers) -> None:
    """Find the pairs of shapes whose bounding boxes overlap."""
    if w.contacts is not None:
        from gpusim.reference.contacts import broad_phase, narrow_phase

        w.contacts.substep[:] = 0
        w.rotation = matrix_from_quaternion(w.state.arrays["orientation"])
        narrow_phase.keep_pairs(w)
        broad_phase.search_pairs(w, w.h * w.config.substeps)


def narrow_phase(w: StepBuffers) -> None:
    """Find the contact points of each pair of shapes."""
    if w.contacts is not None:
        from gpusim.reference.contacts import narrow_phase, seams

        narrow_phase.find_manifolds(w)
        if w.contacts.pair_seam.size:
            seams.judge(w)
            seams.drop(w)


def color_contacts(w: StepBuffers) -> None:
    """Color the contact manifolds. The solver solves manifolds of one color in parallel."""
    if w.contacts is not None:
        from gpusim.reference.contacts import contact_coloring

        contact_coloring.color(w)


def prepare(w: StepBuffers) -> None:
    """Compute the Jacobian and the row velocities at the current poses."""
    preparation.prepare(w, w.h)


def prepare_contacts(w: StepBuffers) -> None:
    """Update the contact points of rolling surfaces, and compute the constraint rows of contact manifolds."""
    if w.contacts is not None:
        from gpusim.reference.contacts import contact_follow

        contact_follow.follow(w)
    contact_rows.prepare(w)


def solve(w: StepBuffers) -> None:
    """Compute the impulses of all constraint rows and contacts."""
    if not w.topology.num_constraints:
        w.mode = w.state.arrays["axis_mode"]
        w.residual_now = np.zeros(w.num_worlds)
        w.contact_residual_now = np.zeros(w.num_worlds, w.real)
        w.rate_next = w.rate
        contact_push.start_contacts(w)
        contact_direct.sweep_contacts(w, np.ones(w.num_worlds, bool), w.config.iterations)
    elif w.config.direct:
        direct_solve.solve(w)
    else:
        colored_solve.solve(w)


def _sweeps(w: StepBuffers) -> bool:
    return not w.config.direct or bool(w.topology.swept.any())


def split_impulses(w: StepBuffers) -> None:
    """Compute the displacement that corrects position errors, for the semi-implicit scheme only."""
    if not w.topology.num_constraints:
        return
    if w.config.direct:
        w.displacement += corrections.split_impulse_velocity(w)
    if _sweeps(w):
        w.displacement = colored_solve.split_impulse_velocity(w, w.displacement)


def advance_actuators(w: StepBuffers) -> None:
    """Advance the state variables of actuators after the solve."""
    actuate.advance(w)
    state_dtype = w.state.arrays["impulse"].dtype
    for group in w.state.groups:
        group.state = {name: array.astype(state_dtype, copy=False) for name, array in group.state.items()}


def drift(w: StepBuffers) -> None:
    """Advance positions and orientations from t to t + h."""
    motion.drift(w)
    motion.displace(w)
    contact_rows.slip(w)


def positions(w: StepBuffers) -> None:
    """Correct the position errors of the rigid constraint rows."""
    if not w.topology.num_constraints:
        return
    if w.config.direct:
        world_factors.factor_rigid_rows(w, w.softening > 0.0, moved=False)
        corrections.correct_direct(w)
    if _sweeps(w):
        colored_solve.correct_positions(w)


def store_contacts(w: StepBuffers) -> None:
    """Do nothing: stage relax has already stored the contacts."""


def check(w: StepBuffers) -> None:
    """Restore failed worlds to their last good state."""
    w.check()
