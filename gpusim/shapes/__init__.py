"""Shapes of bodies, for contacts, ray hits and masses. ``builder.add_shape_<name>(body, ...)`` adds a shape.

Importing this package registers all shape types:

* for the world or a kinematic body: plane (half space below z = 0), height field, triangle mesh, terrain from files
* sphere, ellipsoid, superellipsoid, box, wheel (axle z, one contact point with a convex shape)
* capsule, cylinder, cone, barrel (axis z)
* hull of points, hull of a mesh, or hulls of the convex parts of a mesh (``add_shape_mesh``)
"""

from gpusim.description.registry import discover

discover(__name__, __path__)
