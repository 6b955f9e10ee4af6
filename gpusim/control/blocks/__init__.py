"""All block types. Importing this package registers them."""

from gpusim.description.registry import discover

discover(__name__, __path__)
