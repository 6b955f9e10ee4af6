"""Joints: one file each, stating the rows that it locks, its coordinates and its limits."""

from gpusim.joints.base import discover

discover(__name__, __path__)
