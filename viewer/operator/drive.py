"""Conversion of keys and sticks to values, with dead zone, expo curve, direction and rate limit."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from gpusim.viewer.operator.gamepad import GamepadState
from gpusim.viewer.operator.inputs import Input
from gpusim.viewer.operator.mapping import Binding, mode_of

KEYBOARD, GAMEPAD = "keyboard", "gamepad"


def shaped(deflection: float, dead_zone: float, expo: float) -> float:
    """Apply dead zone and expo curve to a stick's deflection (-1 to 1), and return the result."""
    size = (min(abs(deflection), 1.0) - dead_zone) / (1.0 - dead_zone)
    if size <= 0.0:
        return 0.0
    nonlinear = (1.0 - expo) * size + expo * size**3
    return nonlinear if deflection > 0.0 else -nonlinear


def limited(present: float, target: float, max_change: float) -> float:
    """Clamp ``target`` to the range from ``present - max_change`` to ``present + max_change``."""
    return min(max(target, present - max_change), present + max_change)


class Drive:
    """Converter of the keys and sticks of a binding to the value of one input.

    Attributes:
        binding, target: the binding, and the input that the binding moves.
        source: last device that moved the input, "keyboard" or "gamepad".
    """

    def __init__(self, binding: Binding, target: Input) -> None:
        self.binding, self.target = binding, target
        self.mode = mode_of(binding, target)
        self.source = KEYBOARD
        self._output = 0.0
        self._armed = True
        self._pressed = False

    def disarm(self) -> None:
        """Ignore keys and sticks of the binding until the user releases them, for example after an emergency stop."""
        self._armed = False
        self._output = 0.0

    def update(self, keys: AbstractSet[str], pad: GamepadState, present: float, seconds: float) -> float | None:
        """Return the input's new value, or None if the binding does not move the input.

        Args:
            keys: names of the keys that are down.
            pad: state of the gamepad.
            present: the input's current value.
            seconds: real time since the last call (s).
        """
        if self.mode == "switch":
            return self._toggled(keys, pad, present)
        deflection = self._deflection(keys, pad)
        if not self._armed:
            self._armed = deflection == 0.0
            return None
        before, self._output = self._output, limited(self._output, deflection, self.binding.rate_limit * seconds)
        if self.mode == "spring":
            return self.target.at(self._output) if self._output != before else None
        if self._output == 0.0:
            return None
        span = self.target.upper - self.target.lower
        return self.target.clamp(present + self._output * self.binding.speed * span * seconds)

    def _deflection(self, keys: AbstractSet[str], pad: GamepadState) -> float:
        by_keys = 0.0
        if len(self.binding.keys) == 2:
            lower, upper = self.binding.keys
            by_keys = float(upper in keys) - float(lower in keys)
        stick = shaped(pad.axes.get(self.binding.axis, 0.0), self.binding.dead_zone, self.binding.expo)
        if by_keys or stick:
            self.source = KEYBOARD if abs(by_keys) >= abs(stick) else GAMEPAD
        return self.binding.scale * (by_keys if abs(by_keys) >= abs(stick) else stick)

    def _toggled(self, keys: AbstractSet[str], pad: GamepadState, present: float) -> float | None:
        by_key = bool(set(self.binding.keys) & keys)
        pressed = by_key or self.binding.button in pad.buttons
        fresh, self._pressed = pressed and not self._pressed, pressed
        if not self._armed:
            self._armed = not pressed
            return None
        if not fresh:
            return None
        self.source = KEYBOARD if by_key else GAMEPAD
        middle = 0.5 * (self.target.lower + self.target.upper)
        return self.target.lower if present > middle else self.target.upper
