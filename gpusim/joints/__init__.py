"""Joints, one file each. Each defines its locked rows, its coordinates and its limits."""

from gpusim.model.registry import discover

discover(__name__, __path__)
