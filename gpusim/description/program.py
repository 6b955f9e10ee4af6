"""Programs: compiled diagrams (gpusim/control), and the interface through which lower layers use diagrams."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gpusim import validate
from gpusim.description.program_clock import Ring
from gpusim.typing import Array


@dataclass(frozen=True)
class OperatorInput:
    """A command that a program reads from the operator."""

    label: str
    default: float
    lower: float
    upper: float
    unit: str = ""
    keys: tuple[str, ...] = ()
    axis: str = ""
    switch: bool = False


@dataclass(frozen=True)
class Tuned:
    """A parameter that may be written while the simulation runs: its index and its valid range.

    Attributes:
        at: its index.
        least: lower bound. ``above``: the value must exceed it. most: upper bound.
        unit, doc: description for users.
    """

    at: int
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    unit: str = "-"
    doc: str = "parameter of a block"

    def check(self, name: str, values: Array) -> None:
        """Check that values are in range.

        Raises:
            ModelError: a value is out of range.
        """
        below = values <= self.least if self.above else values < self.least
        wrong = below | (values > self.most)
        if wrong.any():
            value = float(values[wrong][0])
            if value > self.most:
                rule, hint = f"{value:g} is above {self.most:g}", f"write {self.most:g} at most"
            elif self.above:
                rule, hint = f"{value:g} is not above {self.least:g}", f"write more than {self.least:g}"
            else:
                rule, hint = f"{value:g} is below {self.least:g}", f"write {self.least:g} at least"
            raise validate.fail(f"signal '{name}'", rule, hint)


@dataclass(frozen=True)
class WireInfo:
    """A wire of a diagram that can be read as a signal, with its indices among the persistent values.

    ``writable``: the signal can also be written.
    """

    name: str
    shape: tuple[int, ...]
    unit: str
    doc: str
    at: tuple[int, ...]
    writable: bool = False


@dataclass
class Program:
    """A compiled diagram.

    A sample takes the readings (worlds, inputs), parameters (1 or worlds, parameters), persistent values (worlds,
    values, see program_clock.py for the first of them), commands (worlds, controls) and whether it is the last due
    sample (worlds,). It changes persistent values and commands. ``cpp`` is the code for one world. ``run`` does the
    same in NumPy for all worlds, bit for bit. The last persistent values are the last readings.

    Attributes:
        label: label of the diagram.
        period: time between samples, s, the shortest one if worlds differ.
        signals: names of signals to read, in order.
        initial: initial persistent values without the readings.
        parameters: parameter values. ``tuned`` names the writable ones.
        rate_at: index of the sample rate parameter, Hz, if worlds differ in it.
        width: number of readings. rings: buffers of delays. wires: readable wires.
        inputs: its commands from the operator. ``drives``: labels of commands that it sets.
        host: it calls Python functions, so it runs on the host.
    """

    label: str
    period: float
    signals: list[str]
    initial: Array
    parameters: Array
    tuned: dict[str, Tuned]
    wires: list[WireInfo]
    inputs: list[OperatorInput]
    drives: list[str]
    cpp: str
    helpers: str
    run: Callable[[Array, Array, Array, Array, Array], None]
    numpy: str
    host: bool = False
    operations: int = 0
    rate_at: int | None = None
    rings: list[Ring] = field(default_factory=list)
    width: int = 0

    @property
    def numbers(self) -> Array:
        """Return the initial persistent values, including space for the last readings."""
        return np.concatenate([self.initial, np.zeros(self.width)])

    def periods(self, parameters: Array) -> Any:
        """Return the time between samples, s: one number, or one for each row of parameters."""
        return self.period if self.rate_at is None else 1.0 / parameters[:, self.rate_at]


class DiagramSpec(Protocol):
    """Interface of a diagram for models."""

    label: str
    senses: bool
    """True if it only reads the simulation and other diagrams read it, so it runs before them."""

    @property
    def operator_inputs(self) -> list[OperatorInput]:
        """Return the commands that it reads."""

    @property
    def driven(self) -> list[str]:
        """Return the labels of the commands that it sets."""

    def check(self) -> None:
        """Check everything that needs no simulation."""

    def compile(
        self, signals: Mapping[str, Any], controls: Mapping[str, int], dt: float,
        commands: Mapping[str, str] | None = None,
    ) -> Program:  # fmt: skip
        """Compile the program.

        Args:
            signals: their infos by name.
            controls: columns of the commands by label.
            dt: of the simulation, s.
            commands: units of the commands, if known.
        """
