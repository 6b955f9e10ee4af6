"""Signals of sensors and sites: ``sensor.<label>.force``, ``sensor.<label>.distance``, ``site.<label>.position`` ..."""

from __future__ import annotations

from gpusim.compiler.ray_sensors import ray_sensors
from gpusim.description.specs import CONTACT_SENSOR, JOINT_SENSOR
from gpusim.model.sensors import of_kind
from gpusim.reference.signals.quantities import CONTACT_WRENCH, IMU, JOINT_WRENCH, RAY, SITE
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import SignalTable


def add_force_signals(runtime: Runtime, table: SignalTable) -> None:
    """Add the signals of joint force sensors and contact sensors."""
    for kind, quantities in ((JOINT_SENSOR, JOINT_WRENCH), (CONTACT_SENSOR, CONTACT_WRENCH)):
        for index, sensor in enumerate(of_kind(runtime.model, kind)):
            for quantity in quantities:
                table.observe(f"sensor.{sensor.label}.{quantity.name}", quantity, (index,))


def add_ray_signals(runtime: Runtime, table: SignalTable) -> None:
    """Add the signals of ray sensors, such as distances and hit points."""
    first = 0
    for sensor, spec in ray_sensors(runtime.model):
        count = len(spec.rays)
        rays = tuple(range(first, first + count))
        for quantity in RAY:
            name = f"sensor.{sensor.label}" + (f".{quantity.name}" if quantity.name else "")
            table.observe(name, quantity, rays, shape=(count, *quantity.shape))
        first += count


def add_site_signals(runtime: Runtime, table: SignalTable) -> None:
    """Add the signals of all sites, such as ``site.<label>.position``."""
    for index, site in enumerate(runtime.model.sites):
        for quantity in (*SITE, *IMU):
            table.observe(f"site.{site.label}.{quantity.name}", quantity, (index,))
