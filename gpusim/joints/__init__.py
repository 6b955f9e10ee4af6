"""Joints. The file of each kind defines the constraint rows, the coordinates and their limits."""

from gpusim.description.registry import discover

discover(__name__, __path__)
