"""A diagram with all its subsystems flattened, for checks and compilation."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.control.block import Block
from gpusim.control.blocks.sources import Command, Input
from gpusim.description.program import OperatorInput

Port = tuple[str, str]
"""Name of a block and of one of its ports."""
SEPARATOR = "/"
"""Separator between a subsystem and its blocks in a path."""
CLOCK = "clock"
"""Name under which a diagram has its rate as a parameter, as if it were a block."""


@dataclass
class Flat:
    """Blocks by path, and for each input port the output that drives it.

    Attributes:
        label: label of the diagram.
        rate: samples per second; None for every step.
        max_rate: maximum rate if worlds may differ in it, else None.
        prefix: prefix of its signals.
        open_ports: for each open input the port that needs a wire: the input itself, or an input of a subsystem.
    """

    label: str
    rate: float | None = None
    max_rate: float | None = None
    prefix: str = "diagram"
    blocks: dict[str, Block] = field(default_factory=dict)
    wires: dict[Port, Port] = field(default_factory=dict)
    open_ports: dict[Port, str] = field(default_factory=dict)

    @property
    def element(self) -> str:
        """Name of the diagram for messages."""
        return f"{self.prefix} '{self.label}'"

    def of(self, name: str) -> str:
        """Return the name of a block for messages."""
        return f"{self.element} block '{name}'"

    @property
    def operator_inputs(self) -> list[OperatorInput]:
        """Commands that the diagram reads, by the labels that the simulation uses."""
        return [
            OperatorInput(
                input_label(path, found), float(found.default), found.least, float(found.upper),
                found.unit or "", tuple(found.keys), found.axis, found.switch,
            )
            for path, found in self.blocks.items()
            if isinstance(found, Input)
        ]  # fmt: skip

    @property
    def driven(self) -> list[str]:
        """Labels of the commands that the diagram writes."""
        return [name for b in self.blocks.values() if isinstance(b, Command) for name in b.names]


def input_label(path: str, found: Input) -> str:
    """Return the label of an operator input, by default its path."""
    return found.label or path.replace(SEPARATOR, ".")
