"""Signals of sensors and sites: ``sensor.<label>.force``, ``sensor.<label>.distance``, ``site.<label>.position`` ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.compiler.ray_sensors import ray_sensors
from gpusim.description.specs import CONTACT_SENSOR, JOINT_SENSOR
from gpusim.model.sensors import of_kind
from gpusim.reference.signals.quantities import CONTACT_WRENCH, IMU, JOINT_WRENCH, RAY, SITE
from gpusim.signals.signal import SignalTable

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


def add_force_signals(sim: Simulation, table: SignalTable) -> None:
    """Add the signals of force sensors in joints and of contact sensors."""
    for kind, quantities in ((JOINT_SENSOR, JOINT_WRENCH), (CONTACT_SENSOR, CONTACT_WRENCH)):
        for index, sensor in enumerate(of_kind(sim.model, kind)):
            for quantity in quantities:
                table.observe(f"sensor.{sensor.label}.{quantity.name}", quantity, (index,))


def add_ray_signals(sim: Simulation, table: SignalTable) -> None:
    """Add distances and hits, one row per ray."""
    first = 0
    for sensor, spec in ray_sensors(sim.model):
        count = len(spec.rays)
        rays = tuple(range(first, first + count))
        for quantity in RAY:
            name = f"sensor.{sensor.label}" + (f".{quantity.name}" if quantity.name else "")
            table.observe(name, quantity, rays, shape=(count, *quantity.shape))
        first += count


def add_site_signals(sim: Simulation, table: SignalTable) -> None:
    """Add ``site.<label>.position`` and so on."""
    for index, site in enumerate(sim.model.sites):
        for quantity in (*SITE, *IMU):
            table.observe(f"site.{site.label}.{quantity.name}", quantity, (index,))
