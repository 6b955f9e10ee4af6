"""All shapes: importing this module registers them and attaches ``add_shape_...`` to the builder."""

import gpusim.geometry
from gpusim.geometry.base import shape_kinds, shape_type
from gpusim.model.registry import discover

discover(gpusim.geometry.__name__, gpusim.geometry.__path__)

__all__ = ["shape_kinds", "shape_type"]
