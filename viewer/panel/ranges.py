"""Ranges of signals for gauges, from joint limits and from the declared ranges of actuator readings."""

from __future__ import annotations

import math

import numpy as np

from gpusim.description.actuator_kinds import actuator_type
from gpusim.model.model import Model


def signal_range(model: Model, name: str) -> tuple[float, float] | None:
    """Return the minimum and maximum of a signal in the unit of the signal, or None if the range is unknown.

    Args:
        model: the model that has the signal.
        name: name of the signal, as in ``sim.read``.
    """
    prefix, _, rest = name.partition(".")
    label, _, reading = rest.rpartition(".")
    found: tuple[float, float] | None = None
    if prefix == "joint" and reading == "position":
        found = _joint_range(model, label)
    else:
        found = _actuator_range(model, prefix, label, reading)
    if found is None:
        return None
    lower, upper = (float(value) for value in found)
    return (lower, upper) if math.isfinite(lower) and math.isfinite(upper) and lower < upper else None


def _actuator_range(model: Model, prefix: str, label: str, name: str) -> tuple[float, float] | None:
    for spec in model.actuators:
        kind = actuator_type(spec.kind)
        if spec.label == label and kind.prefix == prefix:
            reading = next((reading for reading in kind.readings if reading.name == name), None)
            return reading.range(spec.params) if reading is not None and reading.range is not None else None
    return None


def _joint_range(model: Model, label: str) -> tuple[float, float] | None:
    joint = next((joint for joint in model.joints if joint.label == label), None)
    if joint is None or "limit_lower" not in joint.params:
        return None
    lower, upper = np.ravel(joint.params["limit_lower"]), np.ravel(joint.params["limit_upper"])
    return (float(lower[0]), float(upper[0])) if lower.size == 1 and upper.size == 1 else None
