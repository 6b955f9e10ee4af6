"""Choose the number of threads of a staged step by measurements during the simulation.

Threads wait for each other after each phase. More threads can therefore be slower. The results do not depend on the
number of threads.
"""

from __future__ import annotations

# A trial ends after TRIAL steps, or after TRIAL_TIME seconds.
TRIAL, TRIAL_TIME = 8, 0.02
# Time before the first trial, and maximum time between two trials (s). Trials take at most 1 / RARE of the time.
FIRST, LONGEST, RARE = 0.1, 2.0, 20.0
# A trial succeeds if the time per step is at most KEPT times the previous time per step.
KEPT = 0.9


class Team:
    """Tuner of the number of threads, from 1 to ``max_size``.

    The tuner tries half or twice the number of threads for some steps, and keeps the fastest number.

    Attributes:
        size: number of threads for the next step.
    """

    def __init__(self, max_size: int) -> None:
        self.size = self._usual = self._max_size = max_size
        self._up = False  # the direction of the next trial
        self._before = 0.0  # seconds per step with the previous number of threads
        self._wait = FIRST
        self._steps, self._spent = 0, 0.0

    def record(self, seconds: float) -> None:
        """Record the duration of a step (s) with ``size`` threads, and update ``size``."""
        self._steps += 1
        self._spent += seconds
        if self.size != self._usual:
            self._judge_trial()
        elif self._max_size > 1 and self._spent > self._wait and self._steps >= RARE:
            self._before = self._spent / self._steps
            self._up = self._usual == 1 or (self._usual < self._max_size and not self._up)
            self.size = min(2 * self._usual, self._max_size) if self._up else self._usual // 2
            self._steps, self._spent = 0, 0.0

    def _judge_trial(self) -> None:
        if self._steps < TRIAL and self._spent < TRIAL_TIME:
            return
        faster = self._spent <= KEPT * self._steps * self._before
        self._wait = FIRST if faster else max(min(2.0 * self._wait, LONGEST), RARE * self._spent)
        self._usual = self.size if faster else self._usual
        self.size = self._usual
        self._steps, self._spent = 0, 0.0
