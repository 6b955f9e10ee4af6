"""Status of the simulation: time, speed and counts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim.viewer.overlays.base import Frame, Overlay, register
from gpusim.viewer.overlays.canvas import Canvas
from gpusim.viewer.overlays.panels import Row, add_panel


def profile_rows(frame: Frame) -> list[tuple[str, str]]:
    """Return (name, value) rows of the status table, without unknown values."""
    sim, timings = frame.sim, frame.timings
    rows = []
    if sim is not None:
        rows.append(("time", f"{sim.time:.3f} s"))
    if timings.real_time_factor is not None:
        rows.append(("real time", f"{timings.real_time_factor:.2f} x"))
    if timings.step is not None:
        rows.append(("step", f"{1e3 * timings.step:.2f} ms"))
    if timings.frame is not None:
        rows.append(("frame", f"{1e3 * timings.frame:.1f} ms"))
    rows.append(("bodies", str(len(frame.model.bodies))))
    if sim is not None:
        if frame.model.shapes:
            rows.append(("contacts", str(contact_points(frame))))
        rows.append(("worlds", str(sim.num_worlds)))
        rows.append(("backend", sim.backend_name))
    return rows


def contact_points(frame: Frame) -> int:
    """Return the number of contact points in the drawn worlds after the last step.

    Before the first step, the function runs a trial step, which does not change the state.
    """
    assert frame.sim is not None
    if not np.any(frame.sim.read_state()["time"]):
        return len(frame.contacts or ())
    state, worlds = frame.sim.read_state(), list(frame.worlds)
    points, count = state["pair_points"][worlds], state["pair_count"][worlds]
    return int(points[np.arange(points.shape[1]) < count[:, None]].sum())


@register
class ProfileOverlay(Overlay):
    """Status table in the upper right corner."""

    name: ClassVar[str] = "profile"
    key: ClassVar[str] = "t"
    description: ClassVar[str] = "simulation time, real-time factor, step and frame times, counts"

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw the table. Before the first step, run a trial step to count contact points."""
        add_panel(canvas, "profile", [Row(*row) for row in profile_rows(frame)], right=True)
