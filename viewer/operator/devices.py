"""Keyboard and gamepad: conversion of pressed keys, buttons and sticks to input values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gpusim.viewer.operator.drive import Drive
from gpusim.viewer.operator.gamepad import Gamepad, GamepadState
from gpusim.viewer.operator.inputs import Input
from gpusim.viewer.operator.mapping import InputMapping, bound_inputs


class Devices:
    """Input devices of an operator.

    Args:
        gamepad: the gamepad, or None.

    Attributes:
        gamepad: gamepad of the operator, or None.
        connected: True if the gamepad was connected at the last poll.
    """

    def __init__(self, gamepad: Gamepad | None) -> None:
        self.gamepad = gamepad
        self.connected = False
        self._keys: set[str] = set()
        self._bound: set[str] = set()
        self._drives: list[Drive] = []
        self._stop_button = ""
        self._stop_button_down = False

    def use(self, mapping: InputMapping, inputs: Mapping[str, Input]) -> None:
        """Set the mapping."""
        self._drives = [
            Drive(binding, inputs[name]) for binding in mapping.bindings for name in bound_inputs(binding, inputs)
        ]
        self._bound = {key for binding in mapping.bindings for key in binding.keys}
        self._stop_button = mapping.stop_button

    def disarm(self) -> None:
        """Ignore all pressed keys, buttons and sticks until the user releases them."""
        for drive in self._drives:
            drive.disarm()

    def key(self, name: str, down: bool) -> bool:
        """Record a key press or release."""
        if name not in self._bound:
            return False
        if down:
            self._keys.add(name)
        else:
            self._keys.discard(name)
        return True

    def let_go(self) -> None:
        """Mark all keys as released."""
        self._keys.clear()

    def poll(
        self, seconds: float, value: Callable[[str], float], stop: Callable[[str], None]
    ) -> Iterator[tuple[str, float, str]]:
        """Yield (input, new value, source) for each input that a device has moved since the last call.

        Args:
            seconds: real time since the last call (s).
            value: function that returns an input's current value.
            stop: function to call with the name of the device, such as "gamepad", when the user presses the stop
                button.
        """
        state = self.gamepad.read() if self.gamepad is not None else None
        self.connected = state is not None
        pad = state or GamepadState()
        pressed = self._stop_button in pad.buttons
        if pressed and not self._stop_button_down:
            stop("gamepad")
        self._stop_button_down = pressed
        for drive in self._drives:
            name = drive.target.name
            moved = drive.update(self._keys, pad, value(name), seconds)
            if moved is not None:
                yield name, moved, drive.source
