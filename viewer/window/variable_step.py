"""Variable step size that follows the computing time, so that a simulation stays real-time under load."""

from __future__ import annotations

import math
from collections import deque
from statistics import median

from gpusim import validate

SHARE = 0.8
"""Share of real time for steps. The rest is for pictures and other work."""
RECENT = 5
"""Number of steps for the median, which ignores single delayed steps."""
GRADES = 4
"""Number of step sizes per factor of two. Coarse grades keep the step size constant under small load changes."""


class VariableStep:
    """Step size between two limits, as small as the measured computing time allows in real time.

    ::

        step = VariableStep(least=1e-3, most=1e-2)
        while running: began = time.perf_counter() sim.step(dt=step.size) step.took(time.perf_counter() - began)

    Results then depend on the computer. For bitwise reproducible results use a fixed step size.

    Args:
        least: minimum step size, used without load, s.
        most: maximum step size under load, s. If that does not suffice, the simulation falls behind.

    Raises:
        ModelError: a size is not positive, or least is above most.
    """

    def __init__(self, least: float, most: float) -> None:
        self.least = validate.positive("VariableStep", "least", least)
        self.most = validate.positive("VariableStep", "most", most)
        if self.least > self.most:
            rule = f"least = {self.least:g} s is above most = {self.most:g} s"
            raise validate.fail("VariableStep", rule, "give the smaller step as least")
        self.size = self.least
        self._recent: deque[float] = deque(maxlen=RECENT)

    def took(self, seconds: float) -> None:
        """Report the computing time of a step, s, and update ``size`` for the next one."""
        self._recent.append(seconds / SHARE)
        wanted = min(max(median(self._recent), self.least), self.most)
        grade = math.ceil(GRADES * math.log2(wanted / self.least) - 1e-9)
        self.size = min(self.least * 2.0 ** (grade / GRADES), self.most)
