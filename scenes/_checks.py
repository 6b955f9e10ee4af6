"""Checks shared by several scenes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from gpusim.scene import Check

Recording = Mapping[str, np.ndarray]
GAPS = ("current", "maximum so far")
"""Plot labels of joint gaps."""


def keeps_energy(tolerance: float, until: float = np.inf) -> Check:
    """Return a check that a lossless machine's energy changes by at most ``tolerance`` (J) until time ``until`` (s)."""

    def passes(run: Recording) -> bool:
        energy = (run["sim.kinetic_energy"] + run["sim.potential_energy"])[run["time"] <= until]
        return bool(np.all(np.abs(energy - energy[0]) < tolerance))

    return Check(f"the energy changes by less than {tolerance:g} J", passes)


def joints_stay_closed(max_gap: float) -> Check:
    """Return a check that joint gaps are at most ``max_gap`` (m) in all steps."""
    return Check(f"joint gaps are below {max_gap:g} m", lambda run: bool(np.all(run["sim.joint_drift_peak"] < max_gap)))


def at(run: Recording, signal: str, time: float) -> np.ndarray:
    """Return the sample (num_worlds, ...) nearest to ``time`` (s)."""
    sample: np.ndarray = run[signal][np.argmin(np.abs(run["time"] - time))]
    return sample


def near(values: ArrayLike, expected: ArrayLike, tolerance: float) -> bool:
    """Return whether all values deviate from the expected values by at most ``tolerance``."""
    return bool(np.all(np.abs(np.subtract(values, expected)) <= tolerance))
