"""Joints, one file for each kind. It defines the constraint rows, the coordinates and their limits."""

from gpusim.description.registry import discover

discover(__name__, __path__)
