"""Ranges of signals, for gauges: from the parameters of what they belong to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim.actuators.base import actuator_type
from gpusim.model.model import Model

Params = Mapping[str, Any]
_STROKE = ("stroke_min", "stroke_max")
_PRESSURE = ("tank_pressure", "supply_pressure")

_ACTUATORS: dict[tuple[str, str], Callable[[Params], tuple[float, float]]] = {
    ("cylinder", "position"): lambda p: (p[_STROKE[0]], p[_STROKE[1]]),
    ("cylinder", "pressure_a"): lambda p: (p[_PRESSURE[0]], p[_PRESSURE[1]]),
    ("cylinder", "pressure_b"): lambda p: (p[_PRESSURE[0]], p[_PRESSURE[1]]),
    ("cylinder", "command"): lambda p: (-1.0, 1.0),
    ("cylinder", "spool"): lambda p: (-1.0, 1.0),
    ("cylinder", "brake"): lambda p: (0.0, 1.0),
    ("motor", "command"): lambda p: (-1.0, 1.0),
}
"""Least and greatest value by signal; others have none that is known."""


def signal_range(model: Model, name: str) -> tuple[float, float] | None:
    """Least and greatest value of a signal, in its unit; None where nothing tells.

    Args:
        model: whose signal it is.
        name: as in ``sim.read``.
    """
    prefix, _, rest = name.partition(".")
    label, _, reading = rest.rpartition(".")
    found: tuple[float, float] | None = None
    if prefix == "joint" and reading == "position":
        found = _joint_range(model, label)
    elif rule := _ACTUATORS.get((prefix, reading)):
        spec = next((s for s in model.actuators if s.label == label and actuator_type(s.kind).prefix == prefix), None)
        found = rule(spec.params) if spec is not None else None
    if found is None:
        return None
    lower, upper = (float(value) for value in found)
    return (lower, upper) if math.isfinite(lower) and math.isfinite(upper) and lower < upper else None


def _joint_range(model: Model, label: str) -> tuple[float, float] | None:
    joint = next((joint for joint in model.joints if joint.label == label), None)
    if joint is None or "limit_lower" not in joint.params:
        return None
    lower, upper = np.ravel(joint.params["limit_lower"]), np.ravel(joint.params["limit_upper"])
    return (float(lower[0]), float(upper[0])) if lower.size == 1 and upper.size == 1 else None
