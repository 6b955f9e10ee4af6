"""Assembly of closed loops: find poses that close all loops, and velocities that keep the loops closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.reference.signals.quantities import COORDINATE
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import Signal
from gpusim.solver import assembly
from gpusim.solver.velocity_projection import Held, project
from gpusim.validate import matching


def assemble(runtime: Runtime, tolerance: float, iterations: int) -> Any:
    """Move bodies until all joints are closed. See :meth:`gpusim.Simulation.assemble`."""
    iterations = validate.count("Simulation.assemble", "iterations", iterations, 0)
    report = assembly.assemble(runtime.backend.work, runtime.state, tolerance, iterations)
    _copy_to_reset_state(runtime, "position", "orientation", "angle")
    return report


def project_velocities(runtime: Runtime, hold: str | Sequence[str], tolerance: float) -> Any:
    """Change the velocities to satisfy all joints. See :meth:`gpusim.Simulation.project_velocities`."""
    tolerance = validate.not_negative("Simulation.project_velocities", "tolerance", tolerance)
    table = runtime.signal_table().by_name
    nothing = isinstance(hold, Sequence) and not hold
    held = [_held(table[name]) for name in (() if nothing else matching("signal", hold, table))]
    report = project(runtime.backend.work, runtime.state, runtime.now, held, tolerance)
    _copy_to_reset_state(runtime, "linear_velocity", "angular_momentum")
    return report


def _copy_to_reset_state(runtime: Runtime, *names: str) -> None:
    """Copy the current state to the reset state, in worlds that have not run yet."""
    start = np.flatnonzero(runtime.state.arrays["time"] == 0.0)
    for name in names:
        runtime.initial.arrays[name][start] = runtime.state.arrays[name][start]
    runtime.backend.invalidate(initial=True)
    runtime.invalidate()


def _held(signal: Signal) -> Held:
    """Return the velocities that the projection must keep so that a velocity signal does not change.

    Raises:
        ModelError: the signal is not a velocity.
    """
    if signal.quantity is COORDINATE[1]:
        return Held(signal.at)
    if signal.target is None or signal.target.what not in ("linear", "angular"):
        hint = "give joint.<label>.velocity, or a body's linear_velocity or angular_velocity"
        raise validate.fail(f"signal '{signal.info.name}'", "is not a velocity that can be constrained", hint)
    return Held((), signal.target.index, 3 * (signal.target.what == "angular"))
