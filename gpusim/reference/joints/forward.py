"""Stage forward: compute the actuator forces at the current time with a trial substep.

After the trial substep, the backend restores the state.
"""

from __future__ import annotations

import numpy as np

from gpusim.reference.joints.laws import friction_impulse
from gpusim.reference.step_buffers import StepBuffers


def forward(w: StepBuffers) -> None:
    """Compute the forces (N or N m) of all actuators on their axes in a trial substep, including dry friction."""
    law, kick = w.law, np.where(w.kick_time > 0.0, w.kick_time, 1.0)
    w.term_forces = {}
    for name, (group, impulse, slope) in law.terms.items():
        w.term_forces[name] = (impulse - slope * w.rate_next[:, group.axis]) / kick
    for name, (group, _, (impulse, slope, bound)) in law.clamped.items():
        effort = impulse - slope * w.rate_next[:, group.axis]
        w.term_forces[name] = w.term_forces.get(name, 0.0) + np.clip(effort, -bound, bound) / kick
    rows = w.solved.reshape(w.num_worlds, -1)[:, w.topology.axis_row]
    friction = friction_impulse(law, w.mode, rows) if law.rubbing else rows
    for name, (group, bound) in law.rubbing.items():
        total = law.friction[:, group.axis]
        fraction = np.where(total > 0.0, bound / np.where(total > 0.0, total, 1.0), 0.0)
        w.term_forces[name] = w.term_forces.get(name, 0.0) + fraction * friction[:, group.axis] / kick
