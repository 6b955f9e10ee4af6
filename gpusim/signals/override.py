"""Override of commands, which holds chosen commands at given values in chosen worlds, as in an emergency stop.

The override is part of the state (array OVERRIDE). Copies, resets and replays of the state therefore include it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.commands import APPLIED, command_hints
from gpusim.description.ui_hints import UiHints
from gpusim.model.state import OVERRIDE
from gpusim.signals.control_map import command_values
from gpusim.signals.delays import Delays
from gpusim.signals.observe import chosen_commands
from gpusim.signals.runtime import Runtime
from gpusim.typing import Array

VALUE, SAFE = 1.0, 2.0
"""Codes in the state array OVERRIDE: the override holds the command at a given value (VALUE) or safe value (SAFE)."""
ELEMENT = "Simulation.override"


class Override:
    """Override of commands in a simulation."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._controls = runtime, runtime.model.controls
        runtime.add_state(OVERRIDE, np.zeros((runtime.num_worlds, 2 * len(self._controls))))

    def hold(self, values: Mapping[str, Any] | None, worlds: Array) -> None:
        """Hold commands at ``values`` in the worlds with the indices ``worlds`` (n,).

        If ``values`` is None (emergency stop), hold all commands at their safe values.
        """
        held, count = self._runtime.state.arrays[OVERRIDE], len(self._controls)
        if values is None:
            fresh, columns = held[worlds, :count] != SAFE, np.arange(count)
            given = np.where(fresh, safe_commands(self._runtime)[worlds], held[worlds, count:])
        else:
            given, columns = self._given(values, worlds.size)
        at = worlds[:, None]
        held[at, columns], held[at, count + columns] = SAFE if values is None else VALUE, given
        self._settle_delays(worlds)
        self._runtime.invalidate()
        self._runtime.backend.memory.hold_overridden()

    def _given(self, values: Mapping[str, Any], count: int) -> tuple[Array, Array]:
        """Return the values to hold, (count, commands), and the columns of these commands."""
        if not isinstance(values, Mapping):
            rule = f"values = {values!r} is not a dict"
            raise validate.fail(ELEMENT, rule, "give {'boom': 0.0}, or None for all; worlds=... chooses worlds")
        columns, given = [], []
        for pattern, value in values.items():
            for label in self._labels(pattern):
                columns.append(self._controls[label])
                given.append(command_values(f"{ELEMENT}: command '{label}'", value, count))
        return np.array(given, float).reshape(len(columns), count).T, np.array(columns, np.int64)

    def _labels(self, names: Any) -> list[str]:
        """Return the labels of the commands that match labels or wildcards."""
        labels = chosen_commands(self._runtime, names)
        for label in labels:
            if label.endswith(APPLIED):
                hint = f"give '{label.removesuffix(APPLIED)}'"
                raise validate.fail(f"command '{label}'", "is the value after the actuator's delay", hint)
        return labels

    def release(self, names: str | Sequence[str] | None, worlds: Array) -> None:
        """End the override of the commands ``names``, or of all commands if ``names`` is None.

        The commands keep their current values until the user or a diagram writes new values.
        """
        labels = self._controls if names is None else self._labels(names)
        self._runtime.backend.memory.hold_overridden()
        columns = np.array([self._controls[label] for label in labels], np.int64)
        held = self._runtime.state.arrays[OVERRIDE]
        at, count = worlds[:, None], len(self._controls)
        if held[at, columns].any():
            held[at, columns] = held[at, count + columns] = 0.0
            self._runtime.invalidate()

    def held(self) -> Array:
        """Return a mask of the overridden commands, (num_worlds, commands)."""
        return np.array(self._runtime.read_state()[OVERRIDE][:, : len(self._controls)] != 0.0)

    def _settle_delays(self, worlds: Array) -> None:
        """Fill the delay buffers of overridden commands with the override values."""
        held, count = self._runtime.state.arrays[OVERRIDE], len(self._controls)
        for running in self._runtime.running:
            if isinstance(running.program, Delays):
                numbers = self._runtime.state.arrays[running.name]
                running.program.settle(numbers, worlds, held[worlds, :count] != 0.0, held[worlds, count:])


def safe_commands(runtime: Runtime) -> Array:
    """Return the safe values of all commands, (num_worlds, commands).

    For position servos, the safe value is the current position. For operator inputs of diagrams, the safe value is the
    default value. All other commands have a fixed safe value.
    """
    values = np.repeat(runtime.model.default_controls[None].astype(float), runtime.num_worlds, axis=0)
    for label, hints in command_hints(runtime.model).items():
        values[:, runtime.model.controls[label]] = safe_value(hints, runtime)
    return values


def safe_value(hints: UiHints, runtime: Runtime) -> Any:
    """Return the safe value of a command: one number, or an array (num_worlds,)."""
    if hints.measured is None or hints.safe is not None:
        return float(hints.safe or 0.0)
    signal, axis = hints.measured
    (measured,) = runtime.signal_list(signal)
    reached = np.asarray(measured.read()).reshape(runtime.num_worlds, -1)[:, axis]
    return np.clip((reached - hints.offset) / hints.factor, hints.lower, hints.upper)
