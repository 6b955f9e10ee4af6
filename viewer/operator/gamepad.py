"""Gamepads and joysticks: state of axes and buttons by name, from glfw or another device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpusim.description.operator_names import AXES, BUTTONS

_JOYSTICKS = 16


@dataclass(frozen=True)
class GamepadState:
    """Pressed buttons and axis deflections.

    Attributes:
        axes: deflections by name, see :data:`AXES`. Axes of joysticks that glfw does not know are ``axis_0``,
            ``axis_1``, ...
        buttons: names of the pressed buttons, see :data:`BUTTONS`, or ``button_0``, ``button_1``, ...
    """

    axes: Mapping[str, float] = field(default_factory=dict)
    buttons: frozenset[str] = frozenset()


class Gamepad(Protocol):
    """Protocol of a device with sticks and buttons."""

    def read(self) -> GamepadState | None:
        """Return the current state, or None if no device is connected."""


class GlfwGamepad:
    """First gamepad that glfw finds, or the first joystick without a gamepad.

    Open a window, which initializes glfw, before the first call of :meth:`read`.
    """

    def __init__(self, glfw: Any = None) -> None:
        self._glfw = glfw

    def read(self) -> GamepadState | None:
        """Return the current state, or None without a gamepad or joystick."""
        if self._glfw is None:
            import glfw  # import late: the window reports a missing glfw

            self._glfw = glfw
        found = [number for number in range(_JOYSTICKS) if self._glfw.joystick_present(number)]
        for number in found:
            if self._glfw.joystick_is_gamepad(number):
                state = self._glfw.get_gamepad_state(number)
                if state:
                    return named(list(state.axes), list(state.buttons))
        return self._raw(found[0]) if found else None

    def _raw(self, number: int) -> GamepadState | None:
        axes, buttons = (
            list(values[0][: values[1]])
            for values in (self._glfw.get_joystick_axes(number), self._glfw.get_joystick_buttons(number))
        )
        down = frozenset(f"button_{k}" for k, value in enumerate(buttons) if value)
        return GamepadState({f"axis_{k}": float(value) for k, value in enumerate(axes)}, down)


def named(axes: list[float], buttons: list[int]) -> GamepadState:
    """Convert glfw's axes and buttons to a GamepadState. Forward deflections are positive, released triggers are 0."""
    values = {name: float(value) for name, value in zip(AXES, axes, strict=False)}
    for name in values:
        if name.endswith("_y"):
            values[name] = -values[name]
        elif name.endswith("trigger"):
            values[name] = 0.5 * (values[name] + 1.0)
    return GamepadState(values, frozenset(name for name, down in zip(BUTTONS, buttons, strict=False) if down))
