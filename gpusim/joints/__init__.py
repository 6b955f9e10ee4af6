"""Joint types. Each file defines the constraint rows, the coordinates and the add method of a type."""

from gpusim.description.registry import discover

discover(__name__, __path__)
