"""All kinds of blocks. Importing ``gpusim.control.blocks`` registers all kinds of blocks."""

from gpusim.description.registry import discover

discover(__name__, __path__)
