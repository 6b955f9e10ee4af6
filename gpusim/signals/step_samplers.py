"""Samplers: observers that take samples while a simulation steps, such as recordings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Protocol

from gpusim import validate


class StepSampler(Protocol):
    """Interface of a sampler."""

    def steps_until_sample(self, dt: float) -> int:
        """Return the number of steps of ``dt`` seconds until the next sample, at least 1."""

    def after_steps(self, n: int, dt: float) -> None:
        """Count ``n`` more steps of ``dt`` seconds, and take a sample if it is due."""


class RegularSampler:
    """Sampler with a fixed rate.

    The sampler takes each sample at the step nearest to the sample time. The caller takes the first sample at the
    current time.

    Args:
        element: name of the sampler for error messages.
        rate: samples per second of simulated time, or None for a sample at every step.
        dt: step size of the simulation (s).
        sample: function that takes a sample.

    Raises:
        ModelError: the rate is above the step rate.
    """

    def __init__(self, element: str, rate: float | None, dt: float, sample: Callable[[], None]) -> None:
        if rate is not None and not validate.positive(element, "rate", rate) * dt <= 1.0 + 1e-9:
            rule = f"rate = {rate!r} is not between 0 and {1.0 / dt:g}, the number of steps per second"
            raise validate.fail(element, rule, "give a rate in this range, or None for every step")
        self._rate, self._dt, self._base, self._steps, self._taken = rate, dt, 0.0, 0, 1
        self._sample = sample

    def steps_until_sample(self, dt: float) -> int:
        """Return the number of steps of ``dt`` seconds until the next sample, at least 1."""
        if self._rate is None:
            return 1
        if dt != self._dt:
            self._base, self._steps, self._dt = self._base + self._steps * self._dt, 0, dt
        return max(round((self._taken / self._rate - self._base) / dt) - self._steps, 1)

    def after_steps(self, n: int, dt: float) -> None:
        """Count ``n`` more steps of ``dt`` seconds, and take a sample if it is due."""
        due = self.steps_until_sample(dt)
        self._steps += n
        if n >= due:
            now = self._base + self._steps * dt
            self._taken = max(self._taken + 1, math.floor(now * (self._rate or 0.0) + 0.5) + 1)
            self._sample()


def pieces(samplers: list[StepSampler], n: int, dt: float) -> Iterator[int]:
    """Split ``n`` steps into parts that end at sample times. Yield the number of steps in each part."""
    while n > 0:
        count = min([n, *(sampler.steps_until_sample(dt) for sampler in samplers)])
        yield count
        n -= count
        for sampler in list(samplers):
            sampler.after_steps(count, dt)
