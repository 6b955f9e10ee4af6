"""Overlays: engineering data drawn over the scene."""

from __future__ import annotations

from gpusim.viewer.overlays import (  # noqa: F401  (importing registers them)
    boxes,
    colors,
    contacts,
    joints,
    labels,
    mass,
    pressure,
    profile,
    rays,
    wireframe,
)
from gpusim.viewer.overlays.base import Frame, Overlay, Timings, chosen_overlays, overlays

__all__ = ["Frame", "Overlay", "Timings", "chosen_overlays", "overlays"]
