"""All kinds of blocks. Importing this package registers the kinds."""

from gpusim.description.registry import discover

discover(__name__, __path__)
