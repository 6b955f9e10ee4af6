"""Kinematics, dynamics, balance and inverse kinematics of a model's joints, batched over worlds."""

from gpusim.robotics.tree import Tree

__all__ = ["Tree"]
