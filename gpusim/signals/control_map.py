"""Commands by label: ``sim.control``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import is_on_device
from gpusim.builder.commands import APPLIED
from gpusim.errors import ModelError, unknown_name
from gpusim.signals.runtime import Runtime
from gpusim.typing import Array


def check_free(runtime: Runtime, label: str) -> None:
    """Raise an error if a diagram sets the command ``label``.

    Raises:
        ModelError: a diagram sets the command.
    """
    if label in runtime.drivers and label.endswith(APPLIED):
        rule = "is the value after the actuator's delay"
        raise validate.fail(f"command '{label}'", rule, f"write '{label.removesuffix(APPLIED)}'")
    if label in runtime.drivers:
        rule = f"diagram '{runtime.drivers[label]}' sets it in each sample"
        raise validate.fail(f"command '{label}'", rule, "write an input of the diagram")


def matchable_commands(runtime: Runtime, pattern: str) -> list[str]:
    """Return the commands that the name or wildcard ``pattern`` can match.

    Names can match all commands. Wildcards match operator commands (``model.operator_commands``). If no operator
    command matches, the wildcard can match all commands that no diagram sets.
    """
    operators = runtime.model.operator_commands
    if pattern in runtime.model.controls:
        return [pattern]
    if fnmatch.filter(operators, pattern):
        return operators
    return [label for label in runtime.model.controls if label not in runtime.drivers]


def command_values(element: str, value: Any, count: int) -> Array:
    """Return the values of a command in ``count`` worlds, (count,). ``value`` is a number or an array (count,).

    Raises:
        ModelError: the shape is invalid, or a value is not finite. The message contains ``element``.
    """
    array = validate.array(element, value)
    try:
        filled = np.broadcast_to(array, (count,))
    except ValueError:
        rule = f"value {value!r} does not fit {count} worlds"
        raise validate.fail(element, rule, "give a number, or one for each world") from None
    if not np.all(np.isfinite(filled)):
        raise validate.fail(element, f"value {value!r} is not finite", "give finite numbers")
    return filled


_SHOWN = 3
"""Number of labels that ``repr(sim.control)`` shows."""


class ControlMap(MutableMapping[str, Any]):
    """Commands by label. Set ``sim.control[label]`` to a number or an array (num_worlds,).

    Each command keeps its value until you change it.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"sim.control has no attribute {name!r}; write sim.control[{name!r}] = ...")
        super().__setattr__(name, value)

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._columns = runtime.model.controls

    @property
    def array(self) -> Array:
        """Return the commands of all worlds on the host, (num_worlds, commands).

        If you write to this array, call ``sim.invalidate()`` afterwards.
        """
        return self._runtime.backend.memory.host_control()

    def _column(self, label: str) -> int:
        if not isinstance(label, str):
            raise validate.fail("sim.control", f"{label!r} is not a label", "give a command's label, such as 'motor'")
        if label not in self._columns:
            raise unknown_name("command", label, self._columns)
        return self._columns[label]

    def __repr__(self) -> str:
        """Return a line with the number of commands, the number of worlds, and the first labels."""
        labels = ", ".join(f"'{label}'" for label in list(self._columns)[:_SHOWN])
        more = ", ..." if len(self) > _SHOWN else ""
        count, worlds = len(self), self._runtime.num_worlds
        numbers = f"{count} command{'s' * (count != 1)}, {worlds} world{'s' * (worlds != 1)}"
        return f"<sim.control: {numbers}{f'; {labels}{more}' if labels else ''}>"

    def __getitem__(self, label: str) -> Array:
        column = self._column(label)
        self._runtime.backend.memory.hold_overridden()
        return self.array[:, column].copy()

    def __setitem__(self, label: str, value: Any) -> None:
        column = self._column(label)
        element = f"command '{label}'"
        check_free(self._runtime, label)
        if is_on_device(value):
            self._runtime.backend.memory.write_commands(slice(column, column + 1), value)
            self._runtime.invalidate()
            return
        self.array[:, column] = command_values(element, value, self._runtime.num_worlds)
        self._runtime.invalidate()

    def __delitem__(self, label: str) -> None:
        raise ModelError(f"command '{label}' cannot be removed; write a value instead")

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
