"""Frame timing with absolute deadlines, and statistics of the lateness of frames."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

RATE = 60.0
"""Frames per second if the refresh rate of the screen is unknown."""
_SLOWEST = 6
"""Maximum of :attr:`Pacer.every`. Frames that take more than this number of periods miss deadlines."""
_RECENT = 120
"""Number of recent frames for the displayed statistics."""


@dataclass(frozen=True)
class Jitter:
    """Lateness of frames.

    Attributes:
        rms: root mean square of the lateness (s).
        worst: maximum lateness (s).
        frames: number of frames.
        skipped: number of deadlines without a frame, because an earlier frame took too long.
    """

    rms: float
    worst: float
    frames: int
    skipped: int


class Pacer:
    """Frame timer with deadlines at ``start + k * period`` for integer k. Timing errors do not accumulate.

    If frames take longer than the period, the pacer skips deadlines regularly, for example every second deadline.

    Args:
        rate: deadlines per second.
        clock: function that returns a monotonic time (s).
        sleep: function that waits for a number of seconds.

    Attributes:
        period: time between two deadlines (s).
        every: number of periods from one frame to the next.
    """

    def __init__(
        self,
        rate: float = RATE,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.period = 1.0 / rate
        self._clock, self._sleep = clock, sleep
        self.restart()

    def restart(self) -> None:
        """Restart deadlines and statistics. Call this after slow work between frames, such as loading a scene."""
        self.every = 1
        self._start = self._woke = self._clock()
        self._number = 0
        self._busy: deque[float] = deque(maxlen=9)
        self._late: deque[float] = deque(maxlen=_RECENT)
        self._deadlines: deque[float] = deque(maxlen=_RECENT)
        self._sum, self._worst, self._frames, self._skipped = 0.0, 0.0, 0, 0

    def wait(self) -> float:
        """Sleep until the next frame is due.

        Returns:
            Deadline of the frame (s, frame clock), which may be in the past.
        """
        now = self._clock()
        self._adapt(now - self._woke)
        number = self._number + self.every
        overdue = math.floor((now - self._start) / self.period + 1e-9)
        if overdue > number:
            self._skipped += overdue - number
            number = overdue
        self._number = number
        deadline = self._start + number * self.period
        while (remaining := deadline - self._clock()) > 0.0:
            self._sleep(remaining)
        self._woke = self._clock()
        self._note(deadline, self._woke - deadline)
        return deadline

    def _adapt(self, busy: float) -> None:
        """Adapt :attr:`every`, the number of periods per frame, to the durations ``busy`` of recent frames."""
        self._busy.append(busy)
        load = median(self._busy) / self.period  # the median ignores a single slow frame
        needed = min(math.ceil(load / 0.98), _SLOWEST)
        # the hysteresis prevents oscillations of ``every``
        if needed > self.every:
            self.every = needed
        elif load < 0.8 * (self.every - 1):
            self.every -= 1

    def _note(self, deadline: float, late: float) -> None:
        self._late.append(late)
        self._deadlines.append(deadline)
        self._sum += late * late
        self._worst = max(self._worst, late)
        self._frames += 1

    def recent(self) -> Jitter:
        """Return statistics of the last 120 frames. The value ``skipped`` covers all frames since the last restart."""
        count = max(len(self._late), 1)
        rms = math.sqrt(sum(late * late for late in self._late) / count)
        return Jitter(rms, max(self._late, default=0.0), len(self._late), self._skipped)

    def overall(self) -> Jitter:
        """Return statistics of all frames since the last restart."""
        return Jitter(math.sqrt(self._sum / max(self._frames, 1)), self._worst, self._frames, self._skipped)

    def frame_rate(self) -> float:
        """Return the mean frame rate (1/s) of the last frames, or 0 before the second frame."""
        if len(self._deadlines) < 2:
            return 0.0
        return (len(self._deadlines) - 1) / (self._deadlines[-1] - self._deadlines[0])
