"""Samplers that a simulation feeds while it steps, such as recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class StepSampler(Protocol):
    """An observer with samples at certain steps."""

    def steps_until_sample(self, dt: float) -> int:
        """Return the number of steps of ``dt`` s until the next sample, at least 1."""

    def after_steps(self, n: int, dt: float) -> None:
        """Take a sample if it is due after ``n`` more steps."""


def pieces(samplers: list[StepSampler], n: int, dt: float) -> Iterator[int]:
    """Yield how many steps to do at once, so that all samples are taken at their steps."""
    while n > 0:
        count = min([n, *(sampler.steps_until_sample(dt) for sampler in samplers)])
        yield count
        n -= count
        for sampler in list(samplers):
            sampler.after_steps(count, dt)
