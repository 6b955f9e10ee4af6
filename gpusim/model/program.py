"""Programs: what a diagram (gpusim/control) is compiled to. Layers below the diagrams know only this of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpusim.model import validate
from gpusim.typing import Array

EARLY = 1e-6
"""Of a period: a sample that is due within so much is due. Kernels know it by this name (backends/variants.py)."""


def due_time(number: Any, period: Any) -> Any:
    """Time from which on a sample is taken, s, by its number; ``sample_due`` of cuda_kernels/diagram.cu."""
    return (number - EARLY) * period


def next_sample(number: Any, time: Any, period: Any) -> Any:
    """Number of the sample after one; ``next_sample`` of cuda_kernels/diagram.cu.

    One that came late, after a step longer than the period, does not make up for those left out.
    """
    following = np.floor(time / period + EARLY) + 1.0
    return np.where(number + 1.0 > following, number + 1.0, following)


def sample_at(time: Any, period: Any) -> Any:
    """Number of the first sample that is not before a time."""
    return np.floor(time / period - EARLY) + 1.0


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
    that live on (worlds, numbers; the first counts samples, the second is the world's number) and the commands
    (worlds, controls), and changes the last two. ``cpp`` is the body of that for one world, ``run`` the same in NumPy
    for all; both with the same bits.

    Attributes:
        label: of the diagram.
        period: seconds from sample to sample; the shortest one where worlds differ.
        signals: to be read, in order.
        initial: of the numbers that live on.
        parameters: their values; ``tuned`` names those that may be written.
        rate_at: place of the parameter that is the rate, samples a second, where worlds differ in it.
        wires: what may be read.
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
    run: Callable[[Array, Array, Array, Array], None]
    numpy: str
    host: bool = False
    operations: int = 0
    rate_at: int | None = None

    def periods(self, parameters: Array) -> Any:
        """Seconds from sample to sample: a number, or one each row of parameters."""
        return self.period if self.rate_at is None else 1.0 / parameters[:, self.rate_at]


class DiagramSpec(Protocol):
    """What a model knows of a diagram."""

    label: str

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
