"""All kinds of blocks; importing this package registers them."""

from gpusim.model.registry import discover

discover(__name__, __path__)
