"""Block diagrams ("functional schemes") that drive the commands of a simulation."""

from typing import TYPE_CHECKING, Any

from gpusim.control.block import Block, block_kinds
from gpusim.control.chains import chain, heavy_chain
from gpusim.control.diagram import Diagram, Handle
from gpusim.renamed import no_attribute

__all__ = [
    "Block",
    "Diagram",
    "Handle",
    "block_kinds",
    "chain",
    "heavy_chain",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Raise an error for a missing attribute. If the attribute was renamed, the message contains its new name."""
        raise no_attribute("gpusim.control", name)
