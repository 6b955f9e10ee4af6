"""Operator settings of an actuator command: range, safe value and behavior of joysticks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CommandMap:
    """Linear map from a command to an actuator: the actuator gets ``factor * x + offset``.

    Without a lag or an integrator, x is the command, clipped to its range. With a lag or an integrator, x is the
    activation.

    Attributes:
        factor, offset: coefficients of the map. ``factor`` is not zero.
        lower, upper: range of the command, infinite if unlimited.
        initial: initial command, within the range. If ``initial`` is None, the initial command gives the actuator its
            initial value.
        time_constant: time constant of a first-order lag of the command (s), or 0 for no lag.
        integrate: True if the command is the rate of change of the activation (activation unit per second).
        activation_lower, activation_upper: range of the activation.
        activation: initial activation. If ``activation`` is None, a lag starts at the initial command. An integrator
            without ``activation`` starts at the activation that gives the actuator its initial value.
        safe: command in an emergency stop. If ``safe`` is None, the stop gives the actuator its safe value, or sets the
            rate of an integrator to 0.
    """

    factor: float = 1.0
    offset: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    initial: float | None = None
    time_constant: float = 0.0
    integrate: bool = False
    activation_lower: float = -math.inf
    activation_upper: float = math.inf
    activation: float | None = None
    safe: float | None = None

    @property
    def has_activation(self) -> bool:
        """Return whether the command has an activation (a lag or an integrator)."""
        return self.integrate or self.time_constant > 0.0

    def acting(self) -> CommandMap:
        """Return the linear map to the actuator: from the activation if the command has one, else from the command."""
        lower, upper = self.activation_lower, self.activation_upper
        if not self.integrate:  # the activation of a lag stays between its initial value and the range of the command
            first = [] if self.activation is None else [self.activation]
            lower, upper = min([self.lower, *first]), max([self.upper, *first])
        return CommandMap(self.factor, self.offset, lower, upper, self.activation)

    def command(self, value: float) -> float:
        """Return the command for a value in the actuator's units."""
        return (value - self.offset) / self.factor


@dataclass(frozen=True)
class UiHints:
    """Operator settings of a command, for panels, keys, joysticks and the emergency stop.

    Attributes:
        lower, upper: range of the operator's command, in ``unit``, with lower < upper.
        limited: True if gpusim clips all commands to this range, like MuJoCo's ``ctrlrange``. False if the range only
            limits the operator, not programs.
        safe: value of the command in an emergency stop, within the range. If ``safe`` is None, the command becomes the
            current value of ``measured``, so that the motion stops.
        unit: unit of the command, such as "rad", or "-" for a fraction.
        switch: whether the command has only two values, ``lower`` (off) and ``upper`` (on).
        springs: whether a released joystick returns the command to zero (valves, motors). If ``springs`` is False, the
            joystick sets the rate of change of the command (positions).
        idle: whether the command has no effect in the model. Panels may hide idle commands.
        measured: signal name and component index. If ``safe`` is None, an emergency stop sends this signal as command.
        factor, offset: the actuator gets ``factor * command + offset``. ``measured`` is in the actuator's units.
    """

    lower: float = -1.0
    upper: float = 1.0
    safe: float | None = 0.0
    unit: str = "-"
    switch: bool = False
    springs: bool = True
    idle: bool = False
    measured: tuple[str, int] | None = None
    limited: bool = True
    factor: float = 1.0
    offset: float = 0.0

    def mapped(self, command_map: CommandMap) -> UiHints:
        """Convert the settings from the units of the actuator to the units of the mapped command."""
        if command_map.integrate:
            return _of_rate(command_map)
        lower, upper = self.acting_range(command_map)
        ends = self._ends(command_map)
        first = ends[0] if command_map.initial is None else command_map.initial
        lower = lower if math.isfinite(lower) else min(ends[0], upper, first)
        upper = upper if math.isfinite(upper) else max(ends[1], lower, first)
        if not lower < upper:
            upper = lower + 1.0
        safe = command_map.safe
        if safe is None and self.safe is not None:
            safe = command_map.command(self.safe)
        limited = self.limited or math.isfinite(command_map.lower) or math.isfinite(command_map.upper)
        return replace(
            self,
            lower=lower,
            upper=upper,
            safe=None if safe is None else min(max(safe, lower), upper),
            unit=self.unit if (command_map.factor, command_map.offset) == (1.0, 0.0) else "-",
            limited=limited,
            factor=command_map.factor,
            offset=command_map.offset,
        )

    def acting_range(self, command_map: CommandMap) -> tuple[float, float]:
        """Return the lower and upper limit of a mapped command.

        If ``limited`` is True, the actuator's range also applies.
        """
        lower, upper = self._ends(command_map) if self.limited else (-math.inf, math.inf)
        lower, upper = (
            min(max(lower, command_map.lower), command_map.upper),
            max(min(upper, command_map.upper), command_map.lower),
        )
        return lower, upper

    def _ends(self, command_map: CommandMap) -> tuple[float, float]:
        """Return ``lower`` and ``upper``, converted to units of the mapped command."""
        ends = command_map.command(self.lower), command_map.command(self.upper)
        return min(ends), max(ends)


def _of_rate(command_map: CommandMap) -> UiHints:
    """Return the operator settings of a command that is the input of an integrator."""
    ends = [0.0 if command_map.initial is None else command_map.initial]
    lower = command_map.lower if math.isfinite(command_map.lower) else min(-1.0, command_map.upper - 1.0, *ends)
    upper = command_map.upper if math.isfinite(command_map.upper) else max(1.0, lower + 1.0, *ends)
    limited = math.isfinite(command_map.lower) or math.isfinite(command_map.upper)
    safe = 0.0 if command_map.safe is None else command_map.safe
    return UiHints(lower, upper, safe=min(max(safe, lower), upper), limited=limited)
