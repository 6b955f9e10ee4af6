"""Frames and rotations; shapes, mass properties and meshes join them with contacts."""

from gpusim.geometry.transform import Transform

__all__ = ["Transform"]
