"""Narrow phase geometry: contact points of two shapes. For most kinds, support functions give these points.

A shape (shapes.py) has a support function. In each direction, a shape has a facing feature: a face, an edge or a
corner. The distance or penetration depth of two convex shapes follows from their Minkowski difference (separation.py).
The contact points are the corners of the overlap of both facing features (manifolds.py). Half spaces and height fields
have no support function, so ground.py computes their contact points. pairs.py is the entry point. The kernels have a
specialized routine for many pairs of shape kinds.
"""
