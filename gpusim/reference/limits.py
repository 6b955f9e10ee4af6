"""Accuracy limits. accuracy.py marks a world as inexact if it exceeds one of these limits."""

from __future__ import annotations

import numpy as np

from gpusim.model.model import Model
from gpusim.reference.layout import Layout

JOINT_TOLERANCE = 0.01
"""A joint counts as open if the gap between its two points exceeds JOINT_TOLERANCE times the typical lever arm. A joint
also counts as open if the error of a locked rotation exceeds JOINT_TOLERANCE (rad). The typical lever arm is the median
distance between joints and centers of mass.
"""
USUAL_LEVER = 0.1
"""Typical lever arm (m) of a model in which every joint is at a center of mass."""
CONTACT_TOLERANCE, CONTACT_STREAK = 0.1, 50
"""A sweep has not converged if it changes an impulse by more than CONTACT_TOLERANCE times the greatest impulse. A world
is inexact after CONTACT_STREAK consecutive unconverged substeps, because impacts need a few substeps to converge."""

OPEN_LEVERS, OPEN_SUBSTEPS = 25.0, 10
"""A loop counts as broken if the gap of a joint exceeds OPEN_LEVERS times the typical lever arm in OPEN_SUBSTEPS
consecutive substeps."""
MIN_SPEED = 1e-6
"""gpusim ignores impulse changes that change the speed of the lightest body by less than MIN_SPEED (m/s)."""


def accuracy_limits(model: Model) -> dict[str, float]:
    """Return the accuracy limits. The keys are the names of the kernel settings."""
    t, layout = model.topology, Layout(model.topology)
    levers = np.linalg.norm(layout.side_arm, axis=1)
    levers = levers[(levers > 0.0) & (layout.side_body < t.num_bodies)]
    masses = [body.mass for body in model.bodies if body.mass > 0.0 and not body.kinematic]
    lever = float(np.median(levers)) if levers.size else USUAL_LEVER
    return {
        "joint_drift_limit": JOINT_TOLERANCE * lever,
        "loop_gap_limit": OPEN_LEVERS * lever,
        "usual_lever": lever,
        "joint_tilt_limit": JOINT_TOLERANCE,
        "contact_residual_limit": CONTACT_TOLERANCE,
        "min_contact_change": MIN_SPEED * min(masses, default=0.0),
        "contact_streak_limit": CONTACT_STREAK,
    }
