"""Joints, one file each. Each defines its locked rows, its coordinates and its limits."""

from gpusim.description.registry import discover

discover(__name__, __path__)
