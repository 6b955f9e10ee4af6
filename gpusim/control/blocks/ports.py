"""Ports of subsystems. A port has the name of its block."""

from __future__ import annotations

from gpusim.control.block import Block, Context, Kind, Wire, block
from gpusim.control.blocks.sources import Source
from gpusim.errors import ModelError


@block("inport")
class Inport(Source):
    """Input of a subsystem. The name of the block is the name of the input."""

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a number of unknown unit."""
        return {"out": Kind()}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Raise an error if the diagram is not a subsystem.

        The compiler removes the inports of subsystems before it traces the blocks.
        """
        raise ModelError(f"{c.element}: 'inport' works only in a subsystem; use 'input' or 'signal' here")


@block("outport")
class Outport(Block):
    """Output of a subsystem. The name of the block is the name of the output."""

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the input."""
        return {"out": inputs["in"]}
