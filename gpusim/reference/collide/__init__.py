"""Narrow phase geometry: contact points of two shapes, for most kinds computed from their support functions.

A shape (shapes.py) has a support function, and shows a face, edge or corner in each direction. The distance or
penetration depth of two convex shapes follows from their Minkowski difference (separation.py). The contact points are
the corners of the overlap of the faces that they show each other (manifolds.py). Half spaces and height fields have no
support function, so ground.py finds the points in front of them. pairs.py is the entry point. The kernels have a
specialized routine for many pairs of shape kinds. Tests compare these routines with the code here.
"""
