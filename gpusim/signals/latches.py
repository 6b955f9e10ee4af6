"""Latches: welds that the user can attach and detach while the simulation runs (joints/latch.py)."""

from __future__ import annotations

import numpy as np

from gpusim.description.joint_kinds import joint_type
from gpusim.model.sensors import breaking_sensors
from gpusim.signals.runtime import Runtime
from gpusim.typing import Array


def read_attached(runtime: Runtime, joint: int) -> Array:
    """Return 1 for worlds in which the latch ``joint`` is attached, and 0 for other worlds, (num_worlds,)."""
    closed = np.isfinite(runtime.parameter("limit_lower")[:, runtime.model.axis_of[joint, 0]])
    return (closed & ~_broken(runtime, joint)).astype(float)


def write_attached(runtime: Runtime, joint: int, worlds: Array, value: Array) -> None:
    """Attach a latch in the ``worlds`` with a ``value`` above 0.5. Detach the latch in the remaining ``worlds``.

    An attached latch locks the current relative pose of its bodies.
    """
    held = read_attached(runtime, joint)[worlds] > 0.5
    open_ = (value <= 0.5) & (held | _broken(runtime, joint)[worlds])
    _set(runtime, joint, worlds[open_], None)
    new = worlds[(value > 0.5) & ~held]
    if new.size:
        (position,) = runtime.signal_list(f"joint.{runtime.model.joints[joint].label}.position")
        _set(runtime, joint, new, np.asarray(position.read())[new])


def _broken(runtime: Runtime, joint: int) -> Array:
    """Return a mask of the worlds in which the latch has broken since the last write, (num_worlds,)."""
    sensor = breaking_sensors(runtime.model).get(joint, -1)
    if sensor < 0:
        return np.zeros(runtime.num_worlds, bool)
    return np.asarray(runtime.read_state()["joint_slack"][:, sensor] > 0.0)


def reset_latches(runtime: Runtime, worlds: Array) -> None:
    """Attach or detach all latches as in the builder."""
    for joint in switched(runtime):
        spec = runtime.model.joints[joint]
        start = spec.params["limit_lower"]
        _set(runtime, joint, worlds, np.tile(start, (worlds.size, 1)) if np.isfinite(start[0]) else None)


def switched(runtime: Runtime) -> list[int]:
    """Return the indices of the joints that are latches."""
    return [k for k, joint in enumerate(runtime.model.joints) if joint_type(joint.kind).switched]


def _set(runtime: Runtime, joint: int, worlds: Array, locked: Array | None) -> None:
    """Attach a latch at the joint coordinates ``locked`` (n, 6), or detach the latch if ``locked`` is None."""
    if not worlds.size:
        return
    if joint in (breaking := breaking_sensors(runtime.model)):
        runtime.state.arrays["joint_slack"][worlds, breaking[joint]] = 0.0
    for k in range(6 if runtime.model.joints[joint].params.get("rotation", True) else 3):
        axis = runtime.model.axis_of[joint, k]
        for name, free in (("limit_lower", -np.inf), ("limit_upper", np.inf)):
            runtime.write_parameter(name, axis, worlds, np.full(worlds.size, free))
        if locked is not None:
            for name in ("limit_lower", "limit_upper"):
                runtime.write_parameter(name, axis, worlds, locked[:, k])
