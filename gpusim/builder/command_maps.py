"""Command maps: conversion of commands to the input values of actuators."""

from __future__ import annotations

import math
from typing import Any

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.builder.commands import ACTIVATION, MAPS, command_names
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import CommandMap
from gpusim.errors import ModelError, unknown_name


@builder_method
def set_command_map(
    self: ModelBuilder,
    command: str,
    factor: float = 1.0,
    offset: float = 0.0,
    lower: float = -math.inf,
    upper: float = math.inf,
    initial: float | None = None,
    time_constant: float = 0.0,
    *,
    integrate: bool = False,
    activation_range: tuple[float, float] | None = None,
    activation: float | None = None,
    safe: float | None = None,
) -> None:
    """Set the units, the range, a lag, an integrator or the safe value of a command. Replace an earlier map.

    The input value of the actuator is ``factor * x + offset``. By default, x is the clipped command ``clip(command,
    lower, upper)``. With a lag or an integrator, x is the *activation*: the filtered or integrated clipped command. You
    can read and write the signal ``<prefix>.<label>.activation``.

    ``sim.control``, schedules, diagrams and panels use the units of the command. Signals of the actuator, such as
    ``force.<label>.command``, contain the actuator's input value.

    Args:
        command: label of an actuator's command, as in ``sim.control``.
        factor: factor of the map, not zero (unit of the actuator / unit of the command).
        offset: offset of the map, in the unit of the actuator.
        lower, upper: range of the command, like MuJoCo's ``ctrlrange``.
        initial: initial command. Default: the command for the initial value of the actuator, or 0 with ``integrate``.
        time_constant: time constant of a first-order lag of the clipped command (s), or 0 for no lag. MuJoCo's
            equivalent is ``dyntype="filterexact"``. For a different value in each world, write the signal
            ``<prefix>.<label>.time_constant``.
        integrate: if True, the clipped command is the rate of the activation, like MuJoCo's ``dyntype="integrator"``.
        activation_range: (lower, upper) limit of the activation, like MuJoCo's ``actrange``. Default: no limits.
        activation: initial activation. Default: the initial command, or with ``integrate`` the activation for the
            actuator's initial value.
        safe: command in an emergency stop (``sim.override()``). Default: the command for the actuator's safe value, or
            the nearest command in the range. With ``integrate``, the default is 0.

    Raises:
        ModelError: the command is unknown, or a value is invalid.
    """
    element = f"command '{command}'"
    actuators = {name: (spec, n) for spec in self.actuators for n, name in enumerate(command_names(spec))}
    if not isinstance(command, str) or command not in actuators:
        raise ModelError(f"ModelBuilder.set_command_map: {unknown_name('command', str(command), actuators)}")
    validate.flag(element, "integrate", integrate)
    low, high = (
        validate.number(element, name, value, infinite=True) for name, value in (("lower", lower), ("upper", upper))
    )
    if not low < high:
        raise validate.fail(element, f"lower = {low:g} is not below upper = {high:g}", "give lower < upper")
    scale = validate.number(element, "factor", factor)
    if scale == 0.0:
        raise validate.fail(element, "factor = 0 gives the command no effect", "give another number")
    first, stop = (_within(element, name, value, low, high) for name, value in (("initial", initial), ("safe", safe)))
    spec, number = actuators[command]
    lag = validate.not_negative(element, "time_constant", time_constant)
    more = _activation(element, spec, lag, integrate, activation_range, activation)
    shift = validate.number(element, "offset", offset)
    command_map = CommandMap(scale, shift, low, high, first, lag, integrate, *more, stop)
    name = actuator_type(spec.kind).commands[number]
    spec.params = spec.params | {MAPS: spec.params.get(MAPS, {}) | {name: command_map}}


def _within(element: str, name: str, value: Any, lower: float, upper: float) -> float | None:
    """Return a number within the range, or None."""
    number = None if value is None else validate.number(element, name, value)
    if number is not None and not lower <= number <= upper:
        raise validate.fail(element, f"{name} = {number:g} lies outside {lower:g} to {upper:g}", "give a value within")
    return number


def _activation(
    element: str, spec: ActuatorSpec, lag: float, integrate: bool, between: Any, first: Any
) -> tuple[float, float, float | None]:
    """Return the limits and the initial value of an activation (filtered or integrated command)."""
    if integrate and lag:
        raise validate.fail(element, f"it integrates, and time_constant = {lag:g} s is given too", "give one of them")
    if not (integrate or lag):
        for name, value in (("activation_range", between), ("activation", first)):
            if value is not None:
                raise validate.fail(element, f"{name} needs an activation", "give integrate=True or a time_constant")
    elif any(variable.name == ACTIVATION for variable in actuator_type(spec.kind).variables):
        rule = f"the {spec.kind} has its own activation"
        raise validate.fail(element, rule, "leave out integrate and time_constant")
    lower, upper = -math.inf, math.inf
    if between is not None:
        lower, upper = (float(x) for x in validate.numbers(element, "activation_range", between, 2, infinite=True))
        if not lower < upper:
            rule = f"activation_range = ({lower:g}, {upper:g}) is an empty range"
            raise validate.fail(element, rule, "give (lower, upper)")
    return lower, upper, _within(element, "activation", first, lower, upper)
