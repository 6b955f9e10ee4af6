"""Lint for models: checks for valid but suspicious data, such as joints outside their limits or open loops."""

from gpusim.lint.bodies import fallen
from gpusim.lint.compare import Comparison, compare_with_mujoco
from gpusim.lint.lint import check_model

__all__ = ["Comparison", "check_model", "compare_with_mujoco", "fallen"]
