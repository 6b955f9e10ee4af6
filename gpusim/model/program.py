"""Programs: what a diagram (gpusim/control) is compiled to. Layers below the diagrams know only this of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gpusim.model import validate
from gpusim.typing import Array

EARLY = 1e-6
"""Of a period: a sample that is due within so much is due. Kernels know it by this name (backends/variants.py)."""
MOST_AT_ONCE = 1000
"""Samples that are made up for after one long step; with more of them those in between are left out."""


def due_time(number: Any, period: Any) -> Any:
    """Time from which on a sample is taken, s, by its number; ``sample_due`` of cuda_kernels/diagram.cu."""
    return (number - EARLY) * period


def next_sample(number: Any, time: Any, period: Any) -> Any:
    """Number of the sample after the last of a step; ``next_sample`` of cuda_kernels/diagram.cu."""
    following = np.floor(time / period + EARLY) + 1.0
    return np.where(number > following, number, following)


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


@dataclass(frozen=True)
class Ring:
    """Numbers of the last samples: the newest stands before the place that ``at`` holds the number of.

    Attributes:
        at: place of that number, from 0 to room - 1.
        first: place of the ring. room: how many samples it holds.
    """

    at: int
    first: int
    room: int

    def space_anew(self, numbers: Array, shift: Array, stretch: Array) -> None:
        """Keep what was at so many new periods ago, after a change of the rate.

        Args:
            numbers: that live on, of some worlds; changed in place.
            shift: how long before the next sample the last one was, in old periods, one each world.
            stretch: new period over old one, likewise.
        """
        ago = np.arange(1, self.room + 1)
        # From the next sample back to the last one it is ``shift``; the newest that is held was one sample ago.
        before = np.rint(1.0 + ago * stretch[:, None] - shift[:, None])
        held = (numbers[:, self.at, None] - np.clip(before, 1, self.room)).astype(int) % self.room
        values = np.take_along_axis(numbers[:, self.first : self.first + self.room], held, axis=1)
        places = (numbers[:, self.at, None] - ago).astype(int) % self.room
        np.put_along_axis(numbers[:, self.first : self.first + self.room], places, values, axis=1)


@dataclass
class Program:
    """One diagram, ready to run.

    Samples are counted by time: a step longer than the period is followed by as many samples as it has missed, all with
    the same readings, so that integrators, filters and delays go by the clock at any step.

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
        rings: of delays. wires: what may be read.
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
    rings: list[Ring] = field(default_factory=list)

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
