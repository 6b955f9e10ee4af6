"""The narrow phase as geometry: contact points of any two shapes from what their support functions tell.

A shape (shapes.py) says how far it reaches in a direction and which face, edge or corner it shows there. How far two
convex shapes are apart, or by how much they have to be parted, follows from their Minkowski difference alone
(separation.py); where they touch is the part that the faces they show each other share (manifolds.py). Half spaces and
height fields have no support function and are dealt with by what lies in front of them (ground.py). pairs.py is the
front door. Nothing here knows pairs of kinds: the kernels' many special routines are checked against it.
"""
