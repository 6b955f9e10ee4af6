"""When programs are sampled, and with which readings: by the clock, at steps of any size.

Samples are counted from an origin in time, ``period`` apart. One is taken before the first step at whose beginning it
is due. A step that is longer than the period is followed by all the samples that it has missed, whose readings are
those of their times: on a straight line between the last reading and the present one, so that latencies, integrals and
differences of what runs steadily are right. Where a program is found with another period than its last sample had (a
rate was written, a state restored), that one holds from the next sample on, and what delays hold is put at its new
distances. ``cuda_kernels/diagram_clock.cuh`` does the same for one world, with the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.typing import Array

COUNT, WORLD, ORIGIN, BASE, PERIOD, READ = range(6)
"""Places among the numbers of a program: samples so far; the world's number; time from which samples are counted, s,
and how many there were then; the period of the last sample, s; time of the last reading, s."""
HEAD = 6
EARLY = 1e-6
"""Of a period: a sample that is due within so much is due."""
DRIFT = 1e-5
"""Of a period: as far as sums of steps may be from a sample's time by rounding, which is then counted from anew."""
MOST_AT_ONCE = 1000
"""Samples that are made up for after one long step; with more of them those in between are left out."""
CONSTANTS = {
    "COUNT": COUNT, "WORLD": WORLD, "ORIGIN": ORIGIN, "BASE": BASE, "PERIOD": PERIOD, "READ": READ,
    "EARLY": EARLY, "DRIFT": DRIFT, "MOST_AT_ONCE": MOST_AT_ONCE,
}  # fmt: skip
"""By the names that kernels know."""


@dataclass(frozen=True)
class Ring:
    """Numbers of the last samples: the newest stands before the place that ``at`` holds the number of.

    Attributes:
        at: place of that number, from 0 to room - 1.
        first: place of the ring. room: how many samples it holds.
    """

    at: int
    first: int
    room: int

    def space_anew(self, s: Array, stretch: Array) -> None:
        """Keep what was at so many new periods before the next sample; ``space_ring`` of the kernels.

        Args:
            s: numbers of some worlds; changed in place.
            stretch: new period over old one, for each world.
        """
        ago = np.arange(1, self.room + 1)
        before = np.clip(np.rint(ago * stretch[:, None]), 1.0, float(self.room))
        at, own = s[:, self.at, None], s[:, self.first : self.first + self.room]
        values = np.take_along_axis(own, (at - before).astype(int) % self.room, axis=1)
        np.put_along_axis(own, (at - ago).astype(int) % self.room, values, axis=1)


def sample_time(s: Array, period: Any) -> Any:
    """Time of the next sample, s; of numbers (worlds, n)."""
    return s[:, ORIGIN] + (s[:, COUNT] - s[:, BASE]) * period


def is_due(s: Array, time: Array, period: Any) -> Any:
    """Whether the next sample is due."""
    return time >= s[:, ORIGIN] + (s[:, COUNT] - s[:, BASE] - EARLY) * period


def has_new_period(s: Array, period: Any) -> Any:
    """Whether the last sample had another period."""
    return (s[:, COUNT] > 0.0) & (s[:, PERIOD] != period)


def take_period(s: Array, period: Array, rings: list[Ring]) -> None:
    """Go on with another period from the next sample on, which comes when it was to come: integrals have gone as far.

    Args:
        s: numbers of the worlds in which it is another one; changed in place.
        period: of those, s.
        rings: of the program.
    """
    following, stretch = sample_time(s, s[:, PERIOD]), period / s[:, PERIOD]
    for ring in rings:
        ring.space_anew(s, stretch)
    s[:, ORIGIN], s[:, BASE], s[:, PERIOD] = following, s[:, COUNT].copy(), period


def reading_share(s: Array, time: Array, period: Any) -> Array:
    """Where between the last reading (0) and the present one (1) the next sample's is."""
    at, read = sample_time(s, period), s[:, READ]
    between = (s[:, COUNT] > 0.0) & (read < time) & (time - at > EARLY * period)
    share = (at - read) / np.where(between, time - read, 1.0)
    return np.where(between, np.where(share > 0.0, share, 0.0), 1.0)


def count_sample(s: Array, time: Array, period: Any) -> None:
    """A sample was taken: the next one is a period later."""
    off = np.abs(time - sample_time(s, period))
    drifts = (off > 0.25 * EARLY * period) & (off < DRIFT * period)
    s[:, ORIGIN] = np.where(drifts, time, s[:, ORIGIN])
    s[:, BASE] = np.where(drifts, s[:, COUNT], s[:, BASE])
    s[:, COUNT] += 1.0


def end_samples(s: Array, time: Array, period: Any) -> None:
    """After the samples of a step: those that are still due are left out."""
    following = np.floor((time - s[:, ORIGIN]) / period + EARLY) + 1.0
    s[:, BASE] = np.where(is_due(s, time, period), s[:, COUNT] - following, s[:, BASE])
    s[:, READ], s[:, PERIOD] = time, period
