"""Warning about ropes and tendons that start far beyond their length limit."""

from __future__ import annotations

import warnings

import numpy as np

from gpusim.errors import callers_level
from gpusim.model.model import Model
from gpusim.model.ropes import rope_table
from gpusim.reference.joints.laws import LIMIT_SPEED
from gpusim.reference.signals.state_reader import StateReader
from gpusim.typing import Array

FAR = 0.1
"""Minimum distance beyond the limit that causes a warning, m or rad."""


def warn_about_long_ropes(model: Model, parameters: dict[str, Array], now: StateReader) -> None:
    """Before the first step, warn about the rope or tendon that exceeds its length limit most."""
    axes = rope_table(model)["rope_axis"]
    lower, upper = (np.asarray(parameters[f"limit_{side}"])[:, axes] for side in ("lower", "upper"))
    if not np.isfinite(upper[lower < upper]).any():
        return
    value = now.axis_value(axes)
    excess = np.where(lower < upper, value - upper, -np.inf)
    world, at = (int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    if not excess[world, at] > FAR:
        return
    joint = model.joints[model.axes[axes[at]].joint]
    limit = np.broadcast_to(upper, excess.shape)[world, at]
    warnings.warn(
        f"world {world}: {joint.element} starts at {value[world, at]:.4g}, beyond its limit of {limit:.4g}, which pulls"
        f" it in with up to {LIMIT_SPEED:g} per s; set a larger limit (float('inf') for none), or start within it",
        stacklevel=callers_level(),
    )
