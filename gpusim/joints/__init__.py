"""Joint types. Each file defines a joint type with its constraint rows and coordinates, and how to add it."""

from gpusim.description.registry import discover

discover(__name__, __path__)
