"""Actuators: springs, motors, servos, hydraulic cylinders, applied forces; one file each."""

from gpusim.model.registry import discover

discover(__name__, __path__)
