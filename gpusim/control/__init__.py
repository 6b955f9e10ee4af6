"""Block diagrams ("functional schemes") that drive the commands of a simulation."""

from gpusim.control.block import Block, block_kinds
from gpusim.control.chains import chain, heavy_chain
from gpusim.control.diagram import Diagram, Handle

__all__ = [
    "Block",
    "Diagram",
    "Handle",
    "block_kinds",
    "chain",
    "heavy_chain",
]
