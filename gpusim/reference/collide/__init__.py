"""Narrow phase geometry: contact points of two shapes.

Most shapes have a support function (shapes.py). A *feature* is the face, edge or corner of a shape that faces a given
direction. The distance or penetration depth of two convex shapes follows from their Minkowski difference
(separation.py). The contact points are the corners of the overlap between the features of both shapes (manifolds.py).
Half spaces and height fields have no support function, so ground.py computes their contact points. pairs.py is the
entry point.
"""
