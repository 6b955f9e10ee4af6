"""Joints: one file each, stating the rows that it locks, its coordinates and its limits."""

from gpusim.model.registry import discover

discover(__name__, __path__)
