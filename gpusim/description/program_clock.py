"""Clock of programs (compiled diagrams): sample times, and input values of samples. Any step size is possible.

Samples are due at multiples of ``period`` from a time origin. A sample runs before the first step that starts at or
after its due time. If a step is longer than the period, the program runs the missed samples after the step (at most the
last 1000). The inputs of missed samples are linear interpolations between the previous and the current values of the
signals. The kernel version in ``cuda_kernels/signals/diagram_clock.cuh`` gives bit-identical results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.typing import Array

COUNT, WORLD, ORIGIN, BASE, PERIOD, READ = range(6)
"""Indices in a program's persistent values. COUNT: number of samples so far. WORLD: index of the world. ORIGIN: time
origin (s). BASE: number of samples at the time origin. PERIOD: period of the last sample (s). READ: time of the last
reading (s)."""
HEAD = 6
EARLY = 1e-6
"""Tolerance for early samples, as a fraction of the period: a sample may run this much before its due time."""
DRIFT = 1e-5
"""Maximum timing error of a sample that counts as round-off, as a fraction of the period. After a smaller timing error,
the clock moves the time origin to the actual time of the sample."""
MAX_AT_ONCE = 1000
"""Maximum number of missed samples that a program runs after a long step. The program skips all older samples."""
CONSTANTS = {
    "COUNT": COUNT, "WORLD": WORLD, "ORIGIN": ORIGIN, "BASE": BASE, "PERIOD": PERIOD, "READ": READ,
    "EARLY": EARLY, "DRIFT": DRIFT, "MAX_AT_ONCE": MAX_AT_ONCE,
}  # fmt: skip
"""Kernel constants: name -> value."""


@dataclass(frozen=True)
class Ring:
    """Ring buffer with a value for each of the last samples.

    Attributes:
        at: index of the persistent value that stores the next slot to write (0 to room - 1).
        first: index of the persistent value that stores slot 0.
        room: number of slots.
    """

    at: int
    first: int
    room: int

    def resample(self, s: Array, ratio: Array) -> None:
        """Resample the buffer to a new period. The kernel version is named ``resample_ring``.

        Args:
            s: persistent values of the worlds to change, changed in place.
            ratio: new period / old period, for each world.
        """
        ago = np.arange(1, self.room + 1)
        before = np.clip(np.rint(ago * ratio[:, None]), 1.0, float(self.room))
        at, buffer = s[:, self.at, None], s[:, self.first : self.first + self.room]
        values = np.take_along_axis(buffer, (at - before).astype(int) % self.room, axis=1)
        np.put_along_axis(buffer, (at - ago).astype(int) % self.room, values, axis=1)


def sample_time(s: Array, period: Any) -> Any:
    """Return the time of the next sample (s) from persistent values (worlds, n)."""
    return s[:, ORIGIN] + (s[:, COUNT] - s[:, BASE]) * period


def is_due(s: Array, time: Array, period: Any) -> Any:
    """Return whether the next sample is due."""
    return time >= s[:, ORIGIN] + (s[:, COUNT] - s[:, BASE] - EARLY) * period


def has_new_period(s: Array, period: Any) -> Any:
    """Return whether the period has changed since the last sample."""
    return (s[:, COUNT] > 0.0) & (s[:, PERIOD] != period)


def take_period(s: Array, period: Array, rings: list[Ring]) -> None:
    """Switch to another period. The time of the next sample does not change.

    Args:
        s: persistent values of the worlds with a new period, changed in place.
        period: new period of each world (s).
        rings: ring buffers of the program.
    """
    next_time, ratio = sample_time(s, s[:, PERIOD]), period / s[:, PERIOD]
    for ring in rings:
        ring.resample(s, ratio)
    s[:, ORIGIN], s[:, BASE], s[:, PERIOD] = next_time, s[:, COUNT].copy(), period


def reading_fraction(s: Array, time: Array, period: Any) -> Array:
    """Return the interpolation factor of the next sample, from 0 (previous inputs) to 1 (current inputs)."""
    at, read = sample_time(s, period), s[:, READ]
    between = (s[:, COUNT] > 0.0) & (read < time) & (time - at > EARLY * period)
    fraction = (at - read) / np.where(between, time - read, 1.0)
    return np.where(between, np.where(fraction > 0.0, fraction, 0.0), 1.0)


def count_sample(s: Array, time: Array, period: Any) -> None:
    """Increase the count of samples by one. The next sample is due one period later."""
    error = np.abs(time - sample_time(s, period))
    drifts = (error > 0.25 * EARLY * period) & (error < DRIFT * period)
    s[:, ORIGIN] = np.where(drifts, time, s[:, ORIGIN])
    s[:, BASE] = np.where(drifts, s[:, COUNT], s[:, BASE])
    s[:, COUNT] += 1.0


def skip_samples(s: Array, time: Array, period: Any) -> None:
    """If more than MAX_AT_ONCE samples are due, skip the oldest samples."""
    due = np.floor((time - s[:, ORIGIN]) / period + EARLY) + 1.0 - (s[:, COUNT] - s[:, BASE])
    s[:, BASE] -= np.maximum(due - MAX_AT_ONCE, 0.0)


def end_samples(s: Array, time: Array, period: Any) -> None:
    """Store the time and period after the samples of a step. Skip all samples that are still due."""
    next_time = np.floor((time - s[:, ORIGIN]) / period + EARLY) + 1.0
    s[:, BASE] = np.where(is_due(s, time, period), s[:, COUNT] - next_time, s[:, BASE])
    s[:, READ], s[:, PERIOD] = time, period
