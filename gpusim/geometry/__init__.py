"""Shapes, meshes and hulls; frames and rotations.

Shapes are added with ``builder.add_shape_<name>(body, ...)``; one file each:

* plane (half space below z = 0), height field: on the world or a kinematic body
* sphere, ellipsoid, superellipsoid; capsule, cylinder, cone, barrel (axis z); box; wheel (axle z, one contact point)
* hull: of points, or of a mesh (``add_shape_mesh``)

``shapes`` knows them all by name (``shape_type``); ``gpusim.model.mass`` sums up what they weigh.
"""

from gpusim import rotations
from gpusim.transform import Transform

__all__ = ["Transform", "rotations"]
