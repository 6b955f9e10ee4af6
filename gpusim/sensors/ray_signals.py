"""Signals of ray sensors: ``sensor.<label>`` and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.model.ray_sensors import ray_sensors
from gpusim.reference.quantities import RAY
from gpusim.sensors.signal import SignalTable

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


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
