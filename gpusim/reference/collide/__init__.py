"""The narrow phase: contact points of a pair of shapes, in scalar loops compiled by numba.

``collide`` is its front door. Every function has a twin of the same name in cuda_kernels/collide/ that does the same
operations in the same order.
"""
