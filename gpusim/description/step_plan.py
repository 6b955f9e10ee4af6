"""Plan of many steps in one call: diagrams and commands before each step, recorded signals after some."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.description.program import Program
from gpusim.typing import Array


@dataclass
class Reading:
    """Signals that kernels read into the columns of an array.

    Attributes:
        entries: as in ``Backend.observer``, (n, 4) int32.
        kept: name of a state array, its column, and the column that gets it.
        array: (num_worlds, columns), or (samples, num_worlds, columns).
    """

    entries: Array
    kept: list[tuple[str, int, int]]
    array: Array


@dataclass
class Sampling:
    """A diagram that is sampled before each step in which it is due.

    Attributes:
        inputs: the signals that it reads.
        parameters: (1 or num_worlds, parameters).
        name: state array with its numbers.
        delays: whether it delays commands, and so takes the values of overridden ones.
    """

    program: Program
    inputs: Reading
    parameters: Array
    name: str
    delays: bool


@dataclass
class StepPlan:
    """Many steps.

    Attributes:
        programs: the diagrams, in the order of their samples.
        commands: values before each step, (steps, 1 or num_worlds, n). None: none.
        columns: the commands that they set, (n,).
        record: signals to read after every ``every`` steps. None: none.
    """

    programs: list[Sampling]
    commands: Array | None = None
    columns: Array | None = None
    record: Reading | None = None
    every: int = 0
