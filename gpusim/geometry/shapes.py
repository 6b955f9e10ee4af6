"""Registry of all shapes. Importing this module registers them and attaches ``add_shape_...`` to the builder."""

import gpusim.geometry
from gpusim.model.registry import discover
from gpusim.model.shape_kinds import shape_kinds, shape_type

discover(gpusim.geometry.__name__, gpusim.geometry.__path__)

__all__ = ["shape_kinds", "shape_type"]
