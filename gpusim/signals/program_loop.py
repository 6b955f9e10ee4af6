"""Stepping of a simulation with diagrams."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gpusim.description.step_plan import Sampling, StepPlan
from gpusim.signals.programs import sample_programs
from gpusim.signals.runtime import Runtime


class ProgramLoop:
    """Loop over the steps of a simulation with diagrams."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._made: list[Any] = []
        self._run: Callable[[int, int, float], bool] | None = None

    def advance(self, n: int, size: float) -> None:
        """Advance all worlds by ``n`` steps of ``size`` seconds."""
        runtime = self._runtime
        # The prepared call contains pointers to these arrays. Writes to parameters and new rows replace the arrays.
        now = [runtime.backend, *[r.parameters for r in runtime.running]]
        if len(now) != len(self._made) or any(map(operator.is_not, now, self._made)):
            programs = samplings(runtime)
            self._made = now
            self._run = None if programs is None else runtime.backend.step_loop(StepPlan(programs))
        if self._run is None:
            for _ in range(n):
                sample_programs(runtime)
                runtime.backend.advance(1, size, runtime.quarantine.check)
        elif self._run(0, n, size):
            runtime.quarantine.check()


def samplings(runtime: Runtime) -> list[Sampling] | None:
    """Return the data for running all diagrams in the backend between steps, or None if a diagram needs Python."""
    found = list[Sampling]()
    for running in runtime.running:
        sampling = running.sampling()
        if sampling is None:
            return None
        found.append(sampling)
    return found
