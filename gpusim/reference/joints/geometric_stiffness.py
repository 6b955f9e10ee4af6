"""Geometric stiffness of light bodies under tension, as part of stage prepare.

A pulling force F at the moment arm r acts like a torsion spring with the stiffness (r.F) 1 - sym(r F^T). Let omega be
the natural frequency of this spring with the body's inertia I. Explicit steps diverge if omega h > 2. To stay stable,
the solver replaces I by

    I_eff = I + 1.05 s h^2/4 K,  K = sum (r.F) (1 - r r^T/r^2),  r.F > 0 only,
    s = min(1, (g - 0.3)/0.3),  g = h^2/8 tr(I^-1 K).

The solver uses I_eff for a body if g > 0.3 and at least two constraints pull on the body. F comes from the impulses of
the last substep.

K increases immediately, but decreases gradually over several steps.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

FACTOR, THRESHOLD, RAMP, FADE = 1.05, 0.3, 0.3, 0.004


def stiffened(w: StepBuffers, inertia_inverse_effective: Array) -> Array:
    """Return the inverses of the inertias I_eff, (num_worlds, bodies, 3, 3)."""
    kick = w.state.arrays["kick_before"].astype(w.real)
    stored = w.state.arrays["tension_stiffness"]
    previous = stored.astype(w.real)
    stored[:] = 0.0
    if not w.layout.num_sides or not (kick > 0.0).any() or (not previous.any() and _surely_soft(w, kick)):
        return inertia_inverse_effective
    rotation = w.rotation_real
    transposed = rotation.swapaxes(-1, -2)
    total = _of_last_kick(w, kick)
    last = np.matmul(np.matmul(rotation, previous), transposed)
    fades = np.trace(previous, axis1=-2, axis2=-1) > np.trace(total, axis1=-2, axis2=-1)
    total = np.where(fades[..., None, None], last + w.real.type(FADE) * (total - last), total)
    quarter = w.real.type(0.25 * w.h * w.h)
    # Let w be the maximum squared frequency. The trace of I^-1 K is between w and 3 w.
    growth = 0.5 * quarter * np.einsum("wbij,wbij->wb", w.inertia_inverse, total)
    needed = (growth > THRESHOLD) & w.topology.dynamic & (kick > 0.0)[:, None]
    if not needed.any():
        return inertia_inverse_effective
    pick = needed[..., None, None]
    stored[:] = np.where(pick, np.matmul(np.matmul(transposed, total), rotation), 0.0)
    ramp = np.minimum((growth - THRESHOLD) / RAMP, 1.0).astype(w.real)[..., None, None]
    # All other bodies get an identity matrix, so that every matrix has an inverse.
    total = np.where(pick, ramp, w.real.type(1.0)) * np.where(pick, total, np.eye(3, dtype=w.real))
    inertia = np.matmul(np.matmul(rotation, w.inertia), transposed)
    stiff = np.linalg.inv(inertia + FACTOR * quarter * total)
    changed: Array = np.where(pick, stiff, inertia_inverse_effective)
    return changed


def _of_last_kick(w: StepBuffers, kick: Array) -> Array:
    """Return the stiffness K from the impulses of the last substep, in the world frame, (num_worlds, bodies, 3, 3)."""
    force, arm = side_forces(w, kick)
    pull = rotations.dot(arm, force)
    square = rotations.dot(arm, arm)
    pulls = (pull > 0.0) & (square > 0.0)
    along = (pull / np.where(pulls, square, 1.0))[..., None, None] * arm[..., :, None] * arm[..., None, :]
    terms = pull[..., None, None] * np.eye(3, dtype=w.real) - along
    columns = np.zeros((w.num_worlds, w.layout.num_sides + 1, 10), w.real)
    columns[:, :-1, :9] = np.where(pulls[..., None], terms.reshape(*pull.shape, 9), 0.0)
    columns[:, :-1, 9] = pulls
    sums = w.layout.sum_sides(columns)
    counts = (sums[..., 9] > 1.5)[..., None, None]
    total: Array = np.where(counts, sums[..., :9].reshape(w.num_worlds, -1, 3, 3), 0.0)
    return total


def _surely_soft(w: StepBuffers, kick: Array) -> bool:
    """Return True if a fast estimate shows that no body needs the inertia I_eff."""
    running = kick[kick > 0.0]
    force = float(np.abs(w.state.arrays["impulse"]).max()) * w.topology.block / float(running.min())
    bound = w.layout.longest_arm * w.topology.body_sides.shape[1] * force
    return 0.25 * w.h * w.h * bound <= THRESHOLD * w.min_inertia


def side_forces(w: StepBuffers, kick: Array) -> tuple[Array, Array]:
    """Return the mean forces (N) of constraints on their bodies in the last substep, and the moment arms (m)."""
    impulse = w.state.arrays["impulse"][:, w.layout.side_constraint]
    safe = np.where(kick > 0.0, kick, 1.0)
    wrench = np.matmul(impulse[:, :, None, :], w.jacobian)[:, :, 0] / safe[:, None, None]
    return wrench[..., :3], w.layout.side_arms(w.rotation_real)
