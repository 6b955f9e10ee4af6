"""All kinds of blocks. Importing this package registers all kinds."""

from gpusim.description.registry import discover

discover(__name__, __path__)
