"""Importers of robot files. Each import returns a report of what was read, repaired and ignored."""

from __future__ import annotations

from gpusim.importers.hold import add_holding_servos
from gpusim.importers.report import CommandInfo, Finding, ImportReport, JointInfo, JointLimits, Mimic
from gpusim.importers.sdf import load_sdf
from gpusim.importers.urdf import load_urdf

__all__ = [
    "CommandInfo",
    "Finding",
    "ImportReport",
    "JointInfo",
    "JointLimits",
    "Mimic",
    "add_holding_servos",
    "load_sdf",
    "load_urdf",
]
