"""Shapes, meshes, hulls, frames and rotations.

Add a shape with ``builder.add_shape_<name>(body, ...)``. Each kind of shape has one file:

* plane (half space below z = 0), height field: on the world or a kinematic body
* sphere, ellipsoid, superellipsoid, box, wheel (axle z, one contact point)
* capsule, cylinder, cone, barrel (axis z)
* hull: of points, or of a mesh (``add_shape_mesh``)

``gpusim.geometry.shapes`` registers all kinds (``shape_type``). ``gpusim.model.mass`` sums the masses of shapes.
"""

from gpusim import rotations
from gpusim.transform import Transform

__all__ = ["Transform", "rotations"]
