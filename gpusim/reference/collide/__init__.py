"""Narrow phase geometry: contact points of two shapes. For most shape kinds, the points follow from support functions.

A shape (shapes.py) has a support function. The feature that faces a given direction is a face, an edge or a corner of
the shape. The distance or penetration depth of two convex shapes follows from their Minkowski difference
(separation.py). The contact points are the corners of the overlap between the facing features of both shapes
(manifolds.py). Half spaces and height fields have no support function, so ground.py computes their contact points.
pairs.py is the entry point. For many combinations of two shape kinds, the CUDA kernels use a specialized routine.
"""
