"""Kinematics, dynamics, balance and inverse kinematics of a model, batched over worlds."""

from gpusim.robotics.balance import Support, Zmp, support, zmp, zmp_of_motion
from gpusim.robotics.ik import IK, Report
from gpusim.robotics.tasks import ComTask, PointTask, PoseTask, PostureTask
from gpusim.robotics.tree import Tree

__all__ = [
    "IK",
    "ComTask",
    "PointTask",
    "PoseTask",
    "PostureTask",
    "Report",
    "Support",
    "Tree",
    "Zmp",
    "support",
    "zmp",
    "zmp_of_motion",
]
