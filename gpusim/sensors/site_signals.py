"""Signals of sites: pose, velocity and IMU quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.reference.quantities import IMU, SITE
from gpusim.sensors.signal import SignalTable

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


def add_site_signals(sim: Simulation, table: SignalTable) -> None:
    """Add ``site.<label>.position`` and so on."""
    for index, site in enumerate(sim.model.sites):
        for quantity in (*SITE, *IMU):
            table.observe(f"site.{site.label}.{quantity.name}", quantity, (index,))
