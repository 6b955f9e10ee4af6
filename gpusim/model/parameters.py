"""Checks of parameters that are written per world."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.model import validate
from gpusim.model.model import Model
from gpusim.typing import Array


def check_parameter(model: Model, name: str, array: Array, column: Any) -> None:
    """Rules of one parameter array (num_worlds, ...); raises ModelError naming the element."""
    if name == "mass" and np.any(array <= 0.0):
        raise validate.fail(_body(model, column), "mass must be above zero", "write a positive mass")
    if name == "inertia":
        for tensor in array[:, column]:
            validate.inertia(_body(model, column), tensor)
    if name in ("damping", "friction", "armature") and np.any(array < 0.0):
        raise validate.fail(_axis(model, column), f"{name} must not be negative", f"write {name} >= 0")
    if name == "gravity" and not np.all(np.isfinite(array)):
        raise validate.fail("sim.gravity", "is not finite", "write three finite numbers")


def _body(model: Model, column: Any) -> str:
    return model.bodies[int(column)].element


def _axis(model: Model, column: Any) -> str:
    return f"joint '{model.axes[int(column)].label}'"
