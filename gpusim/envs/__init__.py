"""Reinforcement learning: tasks, and Gymnasium environments with many worlds. ``pip install "gpusim[envs]"``.

Importing this package registers environment ids such as "gpusim/HydraulicLift-v0". Import this package before PyTorch.
"""

from gpusim.envs import setup  # noqa: F401
from gpusim.envs.distributions import LogUniform, Offset, Scale, Uniform
from gpusim.envs.env import Env
from gpusim.envs.policy import MlpPolicy, PolicySchedule
from gpusim.envs.registry import register
from gpusim.envs.task import Signals, Task
from gpusim.envs.vector_env import VectorEnv

__all__ = [
    "Env",
    "LogUniform",
    "MlpPolicy",
    "Offset",
    "PolicySchedule",
    "Scale",
    "Signals",
    "Task",
    "Uniform",
    "VectorEnv",
    "register",
]
