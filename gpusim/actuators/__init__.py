"""Actuators: springs, motors, servos, hydraulic cylinders, applied forces; one file each."""

from gpusim.joints.base import discover

discover(__name__, __path__)
