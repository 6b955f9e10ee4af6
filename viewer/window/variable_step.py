"""A step that follows the time that steps take, so that a simulation keeps pace with the clock when its load rises."""

from __future__ import annotations

import math
from collections import deque
from statistics import median

from gpusim.model import validate

SHARE = 0.8
"""Share of the real time that steps may take; the rest is for pictures and what else must be done."""
RECENT = 5
"""Steps whose median counts: one that the computer delays changes nothing."""
GRADES = 4
"""Sizes of steps from one to its double: the step stays as it is while the load changes little."""


class VariableStep:
    """Chooses steps between two sizes: as small as the measured time of a step lets real time be kept.

    ::

        step = VariableStep(least=1e-3, most=1e-2)
        while running:
            began = time.perf_counter()
            sim.step(dt=step.size)
            step.took(time.perf_counter() - began)

    Motions then depend on the computer: for the same bits again, take steps of one size.

    Args:
        least: step while there is time, s.
        most: step that may be taken under load, s; where that does not suffice, the simulation falls behind.

    Raises:
        ModelError: sizes that are not above zero or do not rise.
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
        """Tell how much real time a step has taken, s; ``size`` is the next one's."""
        self._recent.append(seconds / SHARE)
        wanted = min(max(median(self._recent), self.least), self.most)
        grade = math.ceil(GRADES * math.log2(wanted / self.least) - 1e-9)
        self.size = min(self.least * 2.0 ** (grade / GRADES), self.most)
