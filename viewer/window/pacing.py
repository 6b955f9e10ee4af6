"""Frames at absolute deadlines, and how well they are met."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

RATE = 60.0
"""Frames per second where the screen does not tell its own rate."""
_SLOWEST = 6
"""A frame may take so many periods of the screen before deadlines are skipped."""
_RECENT = 120
"""How many frames the shown figures are of."""


@dataclass(frozen=True)
class Jitter:
    """How late frames began.

    Attributes:
        rms: root mean square of the lateness, s.
        worst: greatest lateness, s.
        frames: how many.
        skipped: deadlines at which there was no frame, because the one before took too long.
    """

    rms: float
    worst: float
    frames: int
    skipped: int


class Pacer:
    """Begins frames at ``start + k * period`` for whole k, so that nothing adds up over time.

    Where frames take longer than the period, every second, third, ... deadline is used, so that the rhythm stays even.

    Args:
        rate: deadlines per second.
        clock: s, never goes back.
        sleep: waits for some seconds.

    Attributes:
        period: s.
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
        """Begin anew, without the figures so far: after work that is not part of any frame, such as a new scene."""
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
            Its deadline, s on the clock; in the past where there was no time left to sleep.
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
        while (left := deadline - self._clock()) > 0.0:
            self._sleep(left)
        self._woke = self._clock()
        self._note(deadline, self._woke - deadline)
        return deadline

    def _adapt(self, busy: float) -> None:
        """Use so many periods for a frame as its work takes."""
        self._busy.append(busy)
        share = median(self._busy) / self.period  # one stall is no rhythm
        needed = min(math.ceil(share / 0.98), _SLOWEST)
        # the gap between the two bounds keeps the rhythm from changing to and fro
        if needed > self.every:
            self.every = needed
        elif share < 0.8 * (self.every - 1):
            self.every -= 1

    def _note(self, deadline: float, late: float) -> None:
        self._late.append(late)
        self._deadlines.append(deadline)
        self._sum += late * late
        self._worst = max(self._worst, late)
        self._frames += 1

    def recent(self) -> Jitter:
        """Of the last two seconds or so."""
        count = max(len(self._late), 1)
        rms = math.sqrt(sum(late * late for late in self._late) / count)
        return Jitter(rms, max(self._late, default=0.0), len(self._late), self._skipped)

    def overall(self) -> Jitter:
        """Of all frames."""
        return Jitter(math.sqrt(self._sum / max(self._frames, 1)), self._worst, self._frames, self._skipped)

    def frame_rate(self) -> float:
        """Frames per second of late; 0 before the second one."""
        if len(self._deadlines) < 2:
            return 0.0
        return (len(self._deadlines) - 1) / (self._deadlines[-1] - self._deadlines[0])
