"""Block diagrams ("functional schemes") that drive the commands of a simulation."""

from gpusim.control.block import Block, block_kinds
from gpusim.control.chains import chain, heavy_chain
from gpusim.control.diagram import Diagram, Handle
from gpusim.control.sensors import add_encoder, add_imu, add_range_finder

__all__ = [
    "Block",
    "Diagram",
    "Handle",
    "add_encoder",
    "add_imu",
    "add_range_finder",
    "block_kinds",
    "chain",
    "heavy_chain",
]
