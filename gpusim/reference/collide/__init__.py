"""Narrow phase geometry: contact points of two shapes, for most kinds computed from their support functions.

A shape (shapes.py) has a support function. In each direction, a shape shows a feature: a face, an edge or a corner. The
distance or penetration depth of two convex shapes follows from their Minkowski difference (separation.py). The contact
points are the corners of the overlap of the features that two shapes show each other (manifolds.py). Half spaces and
height fields have no support function, so ground.py computes their contact points. pairs.py is the entry point. The
kernels have a specialized routine for many pairs of shape kinds. Tests compare these routines with the code here.
"""
