"""A diagram with all subsystems flattened, for checks and compilation."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusim.control.block import Block
from gpusim.control.blocks.sources import Command, Input
from gpusim.description.program import OperatorInput

Port = tuple[str, str]
"""Port: the name of a block, and the name of one of its inputs or outputs."""
SEPARATOR = "/"
"""Separator between names in a path such as "leg/pid" (subsystem and block)."""
CLOCK = "clock"
"""Middle part of ``diagram.<label>.clock.rate``, the parameter that sets the sample rate of a diagram."""


@dataclass
class Flat:
    """A diagram without subsystems. ``wires`` maps each input to the output that drives the input.

    Attributes:
        label: label of the diagram.
        rate: samples per second, or None for one sample every ``SolverConfig.dt``.
        max_rate: maximum rate if worlds may have different rates, else None.
        prefix: prefix of the signal names.
        open_ports: maps each input without a wire to the port whose wire is missing. The port can belong to an
            enclosing diagram.
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
        """Text that names the diagram in messages."""
        return f"{self.prefix} '{self.label}'"

    def of(self, name: str) -> str:
        """Return the text that names a block in messages."""
        return f"{self.element} block '{name}'"

    @property
    def operator_inputs(self) -> list[OperatorInput]:
        """Operator inputs of the diagram, with the labels of their commands in the simulation."""
        return [
            OperatorInput(
                input_label(path, found), float(found.default), found.range_lower, float(found.upper),
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
    """Return the label of an operator input."""
    return found.label or path.replace(SEPARATOR, ".")
