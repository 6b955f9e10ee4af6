"""Actuators: springs, motors, servos, hydraulic cylinders and applied forces."""

from gpusim.description.actuator_kinds import ActuatorType, actuator_kinds
from gpusim.description.registry import discover

discover(__name__, __path__)

PACKAGE_KINDS: tuple[ActuatorType, ...] = tuple(actuator_kinds())
"""Actuator types of gpusim. Types that are registered later come from other packages."""
