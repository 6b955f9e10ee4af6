"""Stable axis limits of gauges and scopes, computed without imgui."""

from __future__ import annotations

import math

import numpy as np

from gpusim.typing import Array

MAX_DECIMALS = 4
"""Maximum number of decimals on the panel."""
FLOOR = 10.0 ** (1 - MAX_DECIMALS)
"""Minimum axis span in the displayed unit: 0.001, which is ten times the smallest displayed step."""
MIN_RATIO = 0.01
"""Minimum axis span, divided by the maximum magnitude of the values."""
_SHRINK = 0.5
"""If the values use less than this fraction of the axis span, the axis limits shrink."""
_STEPS = 5.0
"""Minimum number of rounding steps in an axis span. Axis limits are multiples of the rounding step."""


class Span:
    """Axis limits for the values of the last seconds.

    Args:
        min_width: minimum width. :data:`FLOOR` and :data:`MIN_RATIO` can require more.
    """

    def __init__(self, min_width: float = 0.0) -> None:
        self._min_width = min_width
        self._ends: tuple[float, float] | None = None

    def clear(self) -> None:
        """Discard the previous limits."""
        self._ends = None

    def around(self, values: Array) -> tuple[float, float]:
        """Return the lower and the upper axis limit for the finite values."""
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
        """Widen a range to the minimum span around its center."""
        short = max(self._min_width, FLOOR, MIN_RATIO * max(abs(low), abs(high))) - (high - low)
        return (low - 0.5 * short, high + 0.5 * short) if short > 0.0 else (low, high)


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Round a range outward to multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / _STEPS
    power = 10.0 ** math.floor(math.log10(rough))
    step = max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= rough * (1.0 + 1e-9))
    return math.floor(low / step) * step, math.ceil(high / step) * step
