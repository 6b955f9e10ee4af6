"""Shapes of bodies: they determine contacts, ray hits and masses. ``builder.add_shape_<name>(body, ...)`` adds a shape.

Each shape type has one file. Importing this package registers all shape types:

* plane (half space below z = 0), height field, triangle mesh, terrain from files: on the world or a kinematic body
* sphere, ellipsoid, superellipsoid, box, wheel (axle z, one contact point with a convex shape)
* capsule, cylinder, cone, barrel (axis z)
* hull: of points, of a mesh or of its convex parts (``add_shape_mesh``)
"""

from gpusim.description.registry import discover

discover(__name__, __path__)
