"""Exporters of models to other formats.

Each export returns a report, which lists the model features that the format cannot represent.
"""

from __future__ import annotations

from gpusim.exporters.mjcf import to_mjcf
from gpusim.exporters.report import ExportReport
from gpusim.exporters.usd import to_usd

__all__ = ["ExportReport", "to_mjcf", "to_usd"]
