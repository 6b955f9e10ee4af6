"""Plan for several steps in one call of the backend: diagrams and commands of each step, and signals to record."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.description.program import Program
from gpusim.typing import Array


@dataclass
class Reading:
    """Signals that the kernels write to the columns of an array.

    Attributes:
        entries: argument ``entries`` of ``Backend.observer``, int32 (signals, 4).
        kept: tuples (name of a state array, column in the state array, column in ``array``) of values to copy.
        array: values of the signals, (num_worlds, columns) or (samples, num_worlds, columns).
    """

    entries: Array
    kept: list[tuple[str, int, int]]
    array: Array


@dataclass
class Sampling:
    """A diagram that the backend runs. Before each step, the backend runs the samples that are due.

    Attributes:
        inputs: the signals that the diagram reads.
        parameters: parameters of the diagram, (1 or num_worlds, parameters).
        name: name of the state array with the diagram's persistent values.
        delays: whether the diagram delays commands. If ``delays`` is True, an emergency stop also replaces the stored
            past commands.
    """

    program: Program
    inputs: Reading
    parameters: Array
    name: str
    delays: bool


@dataclass
class StepPlan:
    """Steps that the backend takes in one call.

    Attributes:
        programs: the diagrams, in the order in which the backend runs them.
        commands: values of n commands before each step, (steps, 1 or num_worlds, n), or None.
        columns: indices (n,) of the columns that ``commands`` sets in the array of all commands.
        record: signals to read once per ``every`` steps, or None.
    """

    programs: list[Sampling]
    commands: Array | None = None
    columns: Array | None = None
    record: Reading | None = None
    every: int = 0
