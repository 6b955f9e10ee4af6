"""Programs: what a diagram (gpusim/control) is compiled to. Layers below the diagrams know only this of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gpusim.model import validate
from gpusim.model.program_clock import Ring
from gpusim.typing import Array


@dataclass(frozen=True)
class OperatorInput:
    """A command that a program reads: what a person gives."""

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
    """A parameter that may be written while the simulation runs: its place among the parameters, and its rule.

    Attributes:
        at: its place.
        least: bound from below; ``above``: which it must not reach. most: bound from above.
        unit, doc: for those who read it.
    """

    at: int
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    unit: str = "-"
    doc: str = "parameter of a block"

    def check(self, name: str, values: Array) -> None:
        """Values keep the rule.

        Raises:
            ModelError: one does not.
        """
        below = values <= self.least if self.above else values < self.least
        wrong = below | (values > self.most)
        if wrong.any():
            value = float(values[wrong][0])
            if value > self.most:
                rule, mend = f"{value:g} is above {self.most:g}", f"write {self.most:g} at most"
            elif self.above:
                rule, mend = f"{value:g} is not above {self.least:g}", f"write more than {self.least:g}"
            else:
                rule, mend = f"{value:g} is below {self.least:g}", f"write {self.least:g} at least"
            raise validate.fail(f"signal '{name}'", rule, mend)


@dataclass(frozen=True)
class WireInfo:
    """A wire of a diagram that may be read as a signal: its places among the numbers that live on."""

    name: str
    shape: tuple[int, ...]
    unit: str
    doc: str
    at: tuple[int, ...]


@dataclass
class Program:
    """One diagram, ready to run.

    A sample takes what was read of the simulation (worlds, inputs), parameters (1 or worlds, parameters), the numbers
    that live on (worlds, numbers; see program_clock.py for the first of them), the commands (worlds, controls) and
    whether it is the last one that is due (worlds,), and changes numbers and commands. ``cpp`` is the body of that for
    one world, ``run`` the same in NumPy for all; both with the same bits. The last numbers are the last readings.

    Attributes:
        label: of the diagram.
        period: seconds from sample to sample; the shortest one where worlds differ.
        signals: to be read, in order.
        initial: of the numbers that live on, without the readings.
        parameters: their values; ``tuned`` names those that may be written.
        rate_at: place of the parameter that is the rate, samples a second, where worlds differ in it.
        width: numbers that are read. rings: of delays. wires: what may be read.
        inputs: its commands; ``drives``: labels of those that it gives.
        host: it runs Python functions, on the host.
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
        """That live on, at the start: with places for the last readings."""
        return np.concatenate([self.initial, np.zeros(self.width)])

    def periods(self, parameters: Array) -> Any:
        """Seconds from sample to sample: a number, or one each row of parameters."""
        return self.period if self.rate_at is None else 1.0 / parameters[:, self.rate_at]


class DiagramSpec(Protocol):
    """What a model knows of a diagram."""

    label: str
    senses: bool
    """It reads the simulation alone, and others read it."""

    @property
    def operator_inputs(self) -> list[OperatorInput]:
        """Commands that it reads."""

    @property
    def driven(self) -> list[str]:
        """Labels of the commands that it gives."""

    def check(self) -> None:
        """Check all that can be checked without a simulation."""

    def compile(
        self, signals: Mapping[str, Any], controls: Mapping[str, int], dt: float,
        commands: Mapping[str, str] | None = None,
    ) -> Program:  # fmt: skip
        """Make the program; ``signals``: their infos by name, ``controls``: columns of the commands by label,
        ``commands``: their units, where they are known.
        """
