"""Step size that adapts to the computing time, for real-time simulation under load."""

from __future__ import annotations

import math
from collections import deque
from statistics import median

from gpusim import validate

TIME_FRACTION = 0.8
"""Maximum computing time of a step, divided by the step size."""
RECENT = 5
"""The median computing time of this number of recent steps determines the step size."""
GRADES = 4
"""Number of possible step sizes in each interval from dt to 2 dt."""


class AdaptiveStep:
    """Adaptive step size: the smallest step size, between two limits, at which the simulation runs in real time.

    ::

        step = AdaptiveStep(min_dt=1e-3, max_dt=1e-2)
        while running:
            began = time.perf_counter()
            sim.step(dt=step.size)
            step.record(time.perf_counter() - began)

    Results with an adaptive step size depend on the computer. For reproducible results, use a fixed step size.

    Args:
        min_dt: minimum step size, used without load (s).
        max_dt: maximum step size under load (s).

    Raises:
        ModelError: a size is not positive, or min_dt is above max_dt.
    """

    def __init__(self, min_dt: float, max_dt: float) -> None:
        self.min_dt = validate.positive("AdaptiveStep", "min_dt", min_dt)
        self.max_dt = validate.positive("AdaptiveStep", "max_dt", max_dt)
        if self.min_dt > self.max_dt:
            rule = f"min_dt = {self.min_dt:g} s is above max_dt = {self.max_dt:g} s"
            raise validate.fail("AdaptiveStep", rule, "give the smaller step as min_dt")
        self.size = self.min_dt
        self._recent: deque[float] = deque(maxlen=RECENT)

    def record(self, seconds: float) -> None:
        """Record the computing time of a step (s), and update ``size`` for the next step."""
        self._recent.append(seconds / TIME_FRACTION)
        target = min(max(median(self._recent), self.min_dt), self.max_dt)
        grade = math.ceil(GRADES * math.log2(target / self.min_dt) - 1e-9)
        self.size = min(self.min_dt * 2.0 ** (grade / GRADES), self.max_dt)
