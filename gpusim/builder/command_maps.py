"""Maps of commands: units, ranges and gears of the signals that a controller sends."""

from __future__ import annotations

import math

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.builder.commands import MAPS, command_names
from gpusim.description.actuator_kinds import actuator_type
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
) -> None:
    """Give a command other units, a range or a lag.

    The actuator takes ``factor * lag(clip(command, lower, upper)) + offset``.

    Commands keep the user's units in ``sim.control``, schedules, diagrams, panels and delays. Signals of the actuator
    such as ``force.<label>.command`` read what it takes. An emergency stop sends the command that maps to the
    actuator's safe value, or the nearest one in the range.

    Args:
        command: label of an actuator's command, as in ``sim.control``.
        factor: not zero, in the actuator's unit over the command's.
        offset: in the actuator's unit.
        lower, upper: range of the command, like MuJoCo's ``ctrlrange``.
        initial: first value of the command. Default: that which maps to the actuator's.
        time_constant: of a first-order lag of the clipped command, s, like MuJoCo's activation with
            ``dyntype="filterexact"``. 0: none. It may differ per world, as ``<prefix>.<label>.time_constant``.

    Raises:
        ModelError: no such command, a zero factor, an empty range, a negative time, or an initial value outside of it.
    """
    element = f"command '{command}'"
    actuators = {name: (spec, n) for spec in self.actuators for n, name in enumerate(command_names(spec))}
    if command not in actuators:
        raise ModelError(f"ModelBuilder.set_command_map: {unknown_name('command', str(command), actuators)}")
    low, high = (
        validate.number(element, name, value, infinite=True) for name, value in (("lower", lower), ("upper", upper))
    )
    if not low < high:
        raise validate.fail(element, f"lower = {low:g} is not below upper = {high:g}", "give lower < upper")
    scale = validate.number(element, "factor", factor)
    if scale == 0.0:
        raise validate.fail(element, "factor = 0 gives the command no effect", "give another number")
    first = None if initial is None else validate.number(element, "initial", initial)
    if first is not None and not low <= first <= high:
        raise validate.fail(element, f"initial = {first:g} lies outside {low:g} to {high:g}", "give a value within")
    spec, number = actuators[command]
    lag = validate.not_negative(element, "time_constant", time_constant)
    own = CommandMap(scale, validate.number(element, "offset", offset), low, high, first, lag)
    name = actuator_type(spec.kind).commands[number]
    spec.params = spec.params | {MAPS: spec.params.get(MAPS, {}) | {name: own}}
