"""Signals of force sensors: ``sensor.<label>.force`` and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.model.sensors import of_kind
from gpusim.model.specs import CONTACT_SENSOR, JOINT_SENSOR
from gpusim.reference.quantities import CONTACT_WRENCH, JOINT_WRENCH
from gpusim.sensors.signal import SignalTable

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


def add_force_signals(sim: Simulation, table: SignalTable) -> None:
    """Add the signals of force sensors in joints and of contact sensors."""
    for kind, quantities in ((JOINT_SENSOR, JOINT_WRENCH), (CONTACT_SENSOR, CONTACT_WRENCH)):
        for index, sensor in enumerate(of_kind(sim.model, kind)):
            for quantity in quantities:
                table.observe(f"sensor.{sensor.label}.{quantity.name}", quantity, (index,))
