"""Actuators: springs, motors, servos, hydraulic cylinders and applied forces."""

from gpusim.description.actuator_kinds import ActuatorType, actuator_kinds
from gpusim.description.registry import discover

discover(__name__, __path__)

PACKAGE_KINDS: tuple[ActuatorType, ...] = tuple(actuator_kinds())
"""Built-in actuator types. Actuator types of other packages are not in this tuple."""
