"""Shapes for contacts, rays and masses. Add one with ``builder.add_shape_<name>(body, ...)``.

Each kind of shape has one file, and importing this package registers all kinds:

* plane (half space below z = 0), height field, triangle mesh, terrain from files: on the world or a kinematic body
* sphere, ellipsoid, superellipsoid, box, wheel (axle z, one contact point with a convex shape)
* capsule, cylinder, cone, barrel (axis z)
* hull: of points, of a mesh or of its convex parts (``add_shape_mesh``)
"""

from gpusim.description.registry import discover

discover(__name__, __path__)
