"""Joint types. Each file defines the constraint rows, the coordinates and the limits of one or more joint types."""

from gpusim.description.registry import discover

discover(__name__, __path__)
