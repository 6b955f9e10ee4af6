"""Hydraulic actuators: circuits, and cylinders with a valve."""

from gpusim.description.registry import discover

discover(__name__, __path__)
