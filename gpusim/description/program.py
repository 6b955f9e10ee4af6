"""Programs (compiled block diagrams), and the interface through which other packages use block diagrams."""

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
    """An operator command that a block diagram reads."""

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
    """Index and valid range of a diagram parameter that you can write while the simulation runs.

    Attributes:
        at: index of the parameter.
        minimum, maximum: lower and upper bound. If ``above`` is True, values must be greater than ``minimum``.
        unit, doc: unit and description for users.
    """

    at: int
    minimum: float = -math.inf
    maximum: float = math.inf
    above: bool = False
    unit: str = "-"
    doc: str = "parameter of a block"

    def check(self, name: str, values: Array) -> None:
        """Check that all values are in the valid range.

        Raises:
            ModelError: a value is out of range.
        """
        below = values <= self.minimum if self.above else values < self.minimum
        wrong = below | (values > self.maximum)
        if wrong.any():
            value = float(values[wrong][0])
            if value > self.maximum:
                rule, hint = f"{value:g} is above {self.maximum:g}", f"write {self.maximum:g} at most"
            elif self.above:
                rule, hint = f"{value:g} is not above {self.minimum:g}", f"write more than {self.minimum:g}"
            else:
                rule, hint = f"{value:g} is below {self.minimum:g}", f"write {self.minimum:g} at least"
            raise validate.fail(f"signal '{name}'", rule, hint)


@dataclass(frozen=True)
class WireInfo:
    """A wire (signal line) of a block diagram, which you can read as a signal.

    ``at`` contains the indices of the wire's values in the program's persistent values. If ``writable`` is True, you
    can write the signal.
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

    Each sample reads four arrays: input signals (worlds, inputs), parameters (1 or worlds, parameters), persistent
    values (worlds, values) and commands (worlds, controls). A sample updates the persistent values and the commands.
    The first persistent values belong to the clock (program_clock.py). The last persistent values are the previous
    values of the input signals. ``cpp`` is the C++ code that runs a sample in one world. ``run`` is a NumPy function
    that runs a sample in all worlds, with bit-identical results.

    Attributes:
        label: label of the diagram.
        period: time between samples (s). If worlds have different periods, ``period`` is the shortest period.
        signals: names of the input signals, in the order of their values.
        initial: initial persistent values, without the values of input signals.
        parameters: parameter values. ``tuned`` names the writable parameters.
        rate_at: index of the parameter with the sample rate (Hz), or None if all worlds have the same rate.
        width: number of input values.
        rings: ring buffers for the delay blocks.
        wires: wires that you can read as signals.
        inputs: operator commands that the diagram reads.
        drives: labels of the commands that the diagram sets.
        host: True if the diagram calls Python functions, and therefore runs on the host.
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
        """Return the initial persistent values, followed by zeros for the values of the input signals."""
        return np.concatenate([self.initial, np.zeros(self.width)])

    def periods(self, parameters: Array) -> Any:
        """Return the time between samples (s): one value for all worlds, or one for each row of ``parameters``."""
        return self.period if self.rate_at is None else 1.0 / parameters[:, self.rate_at]


class DiagramSpec(Protocol):
    """Interface through which the model uses a block diagram."""

    label: str
    senses: bool
    """True if the diagram is a sensor. Diagrams of sensors run first, because other diagrams read the sensors'
    signals."""

    @property
    def operator_inputs(self) -> list[OperatorInput]:
        """Return the operator commands that the diagram reads."""

    @property
    def driven(self) -> list[str]:
        """Return the labels of the commands that the diagram sets."""

    def check(self) -> None:
        """Check the diagram, as far as possible without a simulation."""

    def compile(
        self, signals: Mapping[str, Any], controls: Mapping[str, int], dt: float,
        commands: Mapping[str, str] | None = None,
    ) -> Program:  # fmt: skip
        """Compile the diagram to a program.

        Args:
            signals: signal name -> description of the signal.
            controls: command label -> column in the array of commands.
            dt: step size of the simulation (s).
            commands: command label -> unit of the command, or None if the units are unknown.
        """
