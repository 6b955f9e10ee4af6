"""Checks shared by several scenes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from gpusim.scene import Check

Recording = Mapping[str, np.ndarray]
GAPS = ("now", "greatest so far")
"""Plot labels of joint errors."""


def keeps_energy(most: float, until: float = np.inf) -> Check:
    """Return a check that a lossless machine's energy changes by at most ``most`` (J) until time ``until`` (s)."""

    def passes(run: Recording) -> bool:
        energy = (run["sim.kinetic_energy"] + run["sim.potential_energy"])[run["time"] <= until]
        return bool(np.all(np.abs(energy - energy[0]) < most))

    return Check(f"its energy stays within {most:g} J", passes)


def keeps_whole(most: float) -> Check:
    """Return a check that joint gaps are at most ``most`` (m) in all steps."""
    return Check(f"no joint opens by {most:g} m", lambda run: bool(np.all(run["sim.joint_drift_peak"] < most)))


def at(run: Recording, signal: str, time: float) -> np.ndarray:
    """Return the sample (num_worlds, ...) nearest to ``time`` (s)."""
    sample: np.ndarray = run[signal][np.argmin(np.abs(run["time"] - time))]
    return sample


def near(values: ArrayLike, expected: ArrayLike, most: float) -> bool:
    """Return whether all values deviate from the expected values by at most ``most``."""
    return bool(np.all(np.abs(np.subtract(values, expected)) <= most))
