"""Ports of subsystems: named as the blocks are."""

from __future__ import annotations

from gpusim.control.block import Block, Context, Kind, Wire, block
from gpusim.control.blocks.sources import Source
from gpusim.errors import ModelError


@block("inlet")
class Inlet(Source):
    """An input of a subsystem, of the block's name."""

    def wires(self, given: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Where a diagram is not used as a subsystem, a number."""
        return {"out": Kind()}

    def run(self, c: Context, given: dict[str, Wire]) -> dict[str, Wire]:
        """Never in a subsystem, whose inlets are taken apart."""
        raise ModelError(f"{c.element}: an inlet is an input of a subsystem alone; take a block 'input' or 'signal'")


@block("outlet")
class Outlet(Block):
    """An output of a subsystem, of the block's name."""

    def run(self, c: Context, given: dict[str, Wire]) -> dict[str, Wire]:
        """What comes in."""
        return {"out": given["in"]}
