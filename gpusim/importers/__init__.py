"""Readers of other people's robot files; what each one found, repaired and passed over is in its report."""

from __future__ import annotations

from gpusim.importers.hold import add_holding_servos
from gpusim.importers.report import ImportReport, JointInfo, JointLimits, Mimic
from gpusim.importers.urdf import load_urdf

__all__ = ["ImportReport", "JointInfo", "JointLimits", "Mimic", "add_holding_servos", "load_urdf"]
