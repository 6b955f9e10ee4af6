"""Ends of gauges and scopes that hold still while values wander, and that noise never fills. No imgui."""

from __future__ import annotations

import math

import numpy as np

from gpusim.typing import Array

MOST_DECIMALS = 4
"""Numbers on the panel have at most so many."""
FLOOR = 10.0 ** (1 - MOST_DECIMALS)
"""Least span, in the unit that is shown: ten times what the last decimal can tell."""
SHARE = 0.01
"""Least span over the magnitude of the values."""
_SHRINK = 0.5
"""Ends come nearer only where the values need less than this share of what there is."""
_STEPS = 5.0
"""Ends are multiples of a round number of about this share of the span."""


class Span:
    """Ends for the values of the last seconds.

    They go outward at once where a value passes them, to round numbers, and come back only where half of the span is
    left empty: values that wander, or creep as a window of time moves on, do not move them in every frame.

    Args:
        least: span that is shown at least, besides :data:`FLOOR` and :data:`SHARE`.
    """

    def __init__(self, least: float = 0.0) -> None:
        self._least = least
        self._ends: tuple[float, float] | None = None

    def clear(self) -> None:
        """Forget the values."""
        self._ends = None

    def around(self, values: Array) -> tuple[float, float]:
        """Lower and upper end for values of any shape; those that are not finite count for nothing."""
        finite = values[np.isfinite(values)]
        if not finite.size:
            return self._ends or (0.0, 1.0)
        low, high = self._widened(float(finite.min()), float(finite.max()))
        ends = self._ends
        if ends is None or low < ends[0] or high > ends[1] or high - low < _SHRINK * (ends[1] - ends[0]):
            self._ends = _rounded(low, high)
        assert self._ends is not None
        return self._ends

    def _widened(self, low: float, high: float) -> tuple[float, float]:
        """As wide as makes sense, about the same middle."""
        short = max(self._least, FLOOR, SHARE * max(abs(low), abs(high))) - (high - low)
        return (low - 0.5 * short, high + 0.5 * short) if short > 0.0 else (low, high)


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Outward to multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / _STEPS
    power = 10.0 ** math.floor(math.log10(rough))
    step = max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= rough * (1.0 + 1e-9))
    return math.floor(low / step) * step, math.ceil(high / step) * step
