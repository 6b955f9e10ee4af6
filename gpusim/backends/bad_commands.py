"""Error messages for failed worlds. They list all commands that are NaN or infinite."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpusim.model.model import Model
from gpusim.typing import Array

_NAMED = 3


class BadCommands:
    """Writer of the part of an error message that lists NaN or infinite commands.

    Args:
        model: the model of the simulation.
        drivers: maps the label of a command to the label of the diagram that writes the command.
    """

    def __init__(self, model: Model, drivers: Mapping[str, str]) -> None:
        self._labels = {column: label for label, column in model.controls.items()}
        # Skip the programs that delay commands, because they are not diagrams of the user.
        diagrams = {diagram.label for diagram in model.diagrams}
        self._drivers = {label: driver for label, driver in drivers.items() if driver in diagrams}

    def reported(self, commands: Array) -> str:
        """Return a text that lists the NaN or infinite commands of a world, or "" if all commands are finite."""
        bad = [int(column) for column in np.flatnonzero(~np.isfinite(commands))]
        reported = [self._reported(self._labels[column], float(commands[column])) for column in bad[:_NAMED]]
        if len(bad) > _NAMED:
            reported.append(f"{len(bad) - _NAMED} more commands are not finite")
        return "".join(f"; {one}" for one in reported)

    def _reported(self, label: str, value: float) -> str:
        given = f", which diagram '{self._drivers[label]}' gives" if label in self._drivers else ""
        return f"command '{label}' = {value}{given}"
