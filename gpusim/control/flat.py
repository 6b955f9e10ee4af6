"""A diagram with all its subsystems taken apart, as it is checked and compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.control.block import Block
from gpusim.control.blocks.sources import Command, Input
from gpusim.model.program import OperatorInput

Port = tuple[str, str]
"""A block's name and one of its ports."""
SEPARATOR = "/"
"""Between a subsystem and what is in it."""
CLOCK = "clock"
"""Under this name, as of a block, a diagram has the rate in which worlds differ."""


@dataclass
class Flat:
    """Blocks by path, and for each input port the output that drives it.

    Attributes:
        label: of the diagram. rate: samples a second; None for every step. most_rate: up to which worlds may differ in
            it; None: they do not. prefix: of its signals.
        open_ports: for inputs that nothing drives the port that is to get a wire: itself, or an input of a subsystem.
    """

    label: str
    rate: float | None = None
    most_rate: float | None = None
    prefix: str = "diagram"
    blocks: dict[str, Block] = field(default_factory=dict)
    wires: dict[Port, Port] = field(default_factory=dict)
    open_ports: dict[Port, str] = field(default_factory=dict)

    @property
    def element(self) -> str:
        """For messages."""
        return f"{self.prefix} '{self.label}'"

    def of(self, name: str) -> str:
        """A block, for messages."""
        return f"{self.element} block '{name}'"

    @property
    def operator_inputs(self) -> list[OperatorInput]:
        """Commands that it reads, by the labels under which the simulation has them."""
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
        """Labels of the commands that it gives."""
        return [name for b in self.blocks.values() if isinstance(b, Command) for name in b.names]


def input_label(path: str, found: Input) -> str:
    """Label of an operator input: its own, or its path."""
    return found.label or path.replace(SEPARATOR, ".")
