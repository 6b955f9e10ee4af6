"""Narrow phase geometry: contact points of two shapes. For most shape kinds, the points follow from support functions.

A shape (shapes.py) has a support function. The feature of a shape that faces a given direction is a face, an edge or a
corner. The distance or penetration depth of two convex shapes follows from their Minkowski difference (separation.py).
The facing features of both shapes overlap, and the contact points are the corners of this overlap (manifolds.py). Half
spaces and height fields have no support function, so ground.py computes their contact points. pairs.py is the entry
point. The kernels have a specialized routine for many pairs of shape kinds.
"""
