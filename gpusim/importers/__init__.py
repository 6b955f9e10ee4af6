"""Importers for MJCF, URDF, SDF and USD files.

Each importer returns a builder, and a report of repaired and ignored elements.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpusim.importers.hold import add_holding_servos
    from gpusim.importers.mjcf import load_mjcf
    from gpusim.importers.report import CommandInfo, Finding, ImportReport, JointInfo, JointLimits, Mimic
    from gpusim.importers.sdf import load_sdf
    from gpusim.importers.sensor_info import SensorInfo
    from gpusim.importers.urdf import load_urdf
    from gpusim.importers.usd import load_usd

__all__ = [
    "CommandInfo",
    "Finding",
    "ImportReport",
    "JointInfo",
    "JointLimits",
    "Mimic",
    "SensorInfo",
    "add_holding_servos",
    "load_mjcf",
    "load_sdf",
    "load_urdf",
    "load_usd",
]

_MODULES = {"add_holding_servos": "hold", "SensorInfo": "sensor_info"}
_MODULES |= {name: name[5:] for name in __all__ if name.startswith("load_")}


def __getattr__(name: str) -> Any:
    """Return a loader or a report class, and import its module on first use."""
    if name in __all__:
        return getattr(importlib.import_module(f"gpusim.importers.{_MODULES.get(name, 'report')}"), name)
    raise AttributeError(f"module 'gpusim.importers' has no attribute {name!r}")
