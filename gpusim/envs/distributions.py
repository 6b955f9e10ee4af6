"""Distributions of goals, parameters and initial states of a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.typing import Array

Distribution = Callable[[Array, Array], Array]
"""Function that converts uniform random numbers to values of the distribution (n, k). Arguments: uniform random numbers
in [0, 1) (n, k), nominal value (k,)."""


@dataclass(frozen=True)
class _Range:
    low: Any
    high: Any

    def __post_init__(self) -> None:
        name = type(self).__name__
        low, high = (validate.array(name, value) for value in (self.low, self.high))
        if low.shape != high.shape and low.size > 1 and high.size > 1:
            rule = f"low and high have the shapes {low.shape} and {high.shape}"
            raise validate.fail(name, rule, "give equal shapes, or a number")
        if not np.all(np.isfinite([np.sum(low), np.sum(high)])):
            raise validate.fail(name, f"low = {self.low}, high = {self.high} are not finite", "give finite numbers")
        if not np.all(low <= high):
            raise validate.fail(name, f"low = {self.low} is above high = {self.high}", "swap them")
        object.__setattr__(self, "_ends", (low.ravel(), high.ravel() - low.ravel()))

    def between(self, u: Array) -> Array:
        """Return ``low + u (high - low)``. ``u`` (n, k): numbers from 0 to 1 for n worlds and k components."""
        low, width = self._ends  # type: ignore[attr-defined]
        return np.asarray(low + width * u)


@dataclass(frozen=True)
class Uniform(_Range):
    """Uniform random values. ``low`` and ``high`` are numbers, or arrays with the shape of the signal."""

    def __call__(self, u: Array, nominal: Array) -> Array:
        """Return the values (n, k) for uniform numbers ``u``."""
        return self.between(u)


@dataclass(frozen=True)
class LogUniform(_Range):
    """Log-uniform random values from ``low`` to ``high``. ``low`` must be positive."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.all(np.asarray(self.low) > 0.0):
            raise validate.fail("LogUniform", f"low = {self.low} must be above 0", "give positive numbers")

    def __call__(self, u: Array, nominal: Array) -> Array:
        """Return the values (n, k) for uniform numbers ``u``."""
        low = np.ravel(self.low)
        return np.asarray(low * (np.ravel(self.high) / low) ** u)


@dataclass(frozen=True)
class Scale(_Range):
    """Nominal value times a random factor from ``low`` to ``high``.

    One factor multiplies all components of a vector.
    """

    def __call__(self, u: Array, nominal: Array) -> Array:
        """Return the values (n, k) for uniform numbers ``u`` and the nominal value (k,)."""
        return nominal * self.between(u[:, :1])


@dataclass(frozen=True)
class Offset(_Range):
    """Nominal value plus a random value from ``low`` to ``high`` for each component."""

    def __call__(self, u: Array, nominal: Array) -> Array:
        """Return the values (n, k) for uniform numbers ``u`` and the nominal value (k,)."""
        return nominal + self.between(u)
