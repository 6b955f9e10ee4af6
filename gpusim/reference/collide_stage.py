"""Stages collide and color, once a step: close pairs of shapes, the points where they touch, their order of solving.

Imported where a model has places for pairs only: it loads numba and scipy.spatial.
"""

from __future__ import annotations

from gpusim.geometry.rotations import matrix_from_quaternion
from gpusim.reference import broad_phase, contact_coloring, narrow_phase
from gpusim.reference.work import Work


def collide(w: Work, step_time: float) -> None:
    """Find and color the contacts of all worlds at the current poses.

    Args:
        w: work with places for pairs (``w.contacts``).
        step_time: size of the whole step, s; shapes that may meet within it count as close.
    """
    assert w.contacts is not None
    w.contacts.substep[:] = 0
    w.rotation = matrix_from_quaternion(w.state.arrays["orientation"])
    narrow_phase.keep_pairs(w)
    broad_phase.search_pairs(w, step_time)
    narrow_phase.meet_pairs(w)
    contact_coloring.color(w)
