"""Operator settings: range, safe value and operator behavior of an actuator command."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CommandMap:
    """Map of a command: the actuator takes ``factor * lag(clip(command, lower, upper)) + offset``.

    Attributes:
        factor, offset: the map. ``factor`` is not zero.
        lower, upper: range of the command, infinite if unlimited.
        initial: first value of the command, within the range. None: the actuator's.
        time_constant: of a first-order lag of the command, s. 0: none.
    """

    factor: float = 1.0
    offset: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    initial: float | None = None
    time_constant: float = 0.0

    def command(self, value: float) -> float:
        """Return the command for a value in the actuator's units."""
        return (value - self.offset) / self.factor


@dataclass(frozen=True)
class UiHints:
    """Operator settings of one command, used by every panel, key, joystick and emergency stop.

    Attributes:
        lower, upper: range that the operator gets, in ``unit``, lower < upper.
        limited: clip every command to this range, as MuJoCo's ``ctrlrange`` does. False: the range only applies to the
            operator, and programs may exceed it.
        safe: value in an emergency stop, within the range. None: the current value of ``measured``, so that nothing
            moves.
        unit: unit of the command, e.g. "rad", or "-" for a fraction.
        switch: the command has only two values, ``lower`` (off) and ``upper`` (on).
        springs: a released joystick returns the command to zero (valves, motors). False: the command stays, and the
            joystick sets its rate of change (positions).
        idle: the command has no effect in this model, so panels may hide it.
        measured: signal, as in ``sim.read``, and its component that measures the current value, for ``safe``.
        factor, offset: the actuator takes ``factor * command + offset``. ``measured`` is in the actuator's units.
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

    def mapped(self, own: CommandMap) -> UiHints:
        """Return the settings of a command with a map. ``self`` is in the actuator's units."""
        lower, upper = self.acting_range(own)
        ends = self._ends(own)
        first = ends[0] if own.initial is None else own.initial
        lower = lower if math.isfinite(lower) else min(ends[0], upper, first)
        upper = upper if math.isfinite(upper) else max(ends[1], lower, first)
        if not lower < upper:
            upper = lower + 1.0
        safe = None if self.safe is None else min(max(own.command(self.safe), lower), upper)
        limited = self.limited or math.isfinite(own.lower) or math.isfinite(own.upper)
        return replace(
            self, lower=lower, upper=upper, safe=safe, unit="-", limited=limited, factor=own.factor, offset=own.offset
        )

    def acting_range(self, own: CommandMap) -> tuple[float, float]:
        """Return the range to which a command with a map is clipped: that of the map, and the actuator's if any."""
        lower, upper = self._ends(own) if self.limited else (-math.inf, math.inf)
        lower, upper = min(max(lower, own.lower), own.upper), max(min(upper, own.upper), own.lower)
        return lower, upper

    def _ends(self, own: CommandMap) -> tuple[float, float]:
        """Return the range of ``self`` in units of the command."""
        ends = own.command(self.lower), own.command(self.upper)
        return min(ends), max(ends)
