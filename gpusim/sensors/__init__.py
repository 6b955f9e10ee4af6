"""Sensors: sites, force sensors, ray sensors, and measured sensors (IMU, encoder, range finder).

Measured sensors are block diagrams. Python imports them on first use.
"""

from typing import TYPE_CHECKING, Any

from gpusim.sensors import force_sensors, ray_sensors, sites  # noqa: F401  (attach add_site ... to ModelBuilder)

if TYPE_CHECKING:
    from gpusim.sensors.measured import add_encoder, add_imu, add_range_finder

__all__ = ["add_encoder", "add_imu", "add_range_finder"]


def __getattr__(name: str) -> Any:
    """Import the functions for measured sensors on first use."""
    if name in __all__:
        from gpusim.sensors import measured

        return getattr(measured, name)
    raise AttributeError(f"module 'gpusim.sensors' has no attribute {name!r}")
