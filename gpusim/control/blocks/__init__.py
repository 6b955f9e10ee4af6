"""All kinds of blocks; importing this package registers them."""

from gpusim.description.registry import discover

discover(__name__, __path__)
