"""Where the time of a step goes: every kernel of the staged launch on the CPU, timed call by call."""

from __future__ import annotations

import ctypes
import time
from collections import defaultdict
from typing import Any

import numpy as np

from gpusim.backends.native_backend import NativeBackend
from gpusim.errors import ModelError
from gpusim.solver.launch_plan import Launch


def can_profile(sim: Any) -> bool:
    """Whether a simulation runs in a way that :func:`profile` can time."""
    return isinstance(sim.backend, NativeBackend) and sim.backend.staged


def staged_twin(sim: Any) -> Any:
    """A simulation in the same state that can be timed: fused launch does the same in one call."""
    from gpusim.simulation import Simulation

    twin = Simulation(
        sim.model, sim.num_worlds, "native", sim.dtype, sim.config, threads=sim.backend.threads, launch="staged"
    )
    twin.state.restore(sim.backend.read_state(), np.arange(sim.num_worlds))
    twin.changed()
    return twin


def profile(sim: Any, steps: int = 10) -> tuple[dict[str, float], dict[str, float]]:
    """Microseconds of a step by stage and by kernel, from ``steps`` further steps of the simulation.

    Stages are those of solver/schedule.py; "start" and "store" load and store the state, "calls" is what Python and
    ctypes spend between the kernels.

    Raises:
        ModelError: the simulation does not run on the native backend in staged launch.
    """
    if not can_profile(sim):
        raise ModelError("profile: only the native backend's staged launch can be timed; give launch='staged'")
    backend = sim.backend
    timer = _Timer(backend)
    backend._runner = timer.runner
    clock = time.thread_time if backend.threads == 1 else time.perf_counter
    begin = clock()
    try:
        sim.step(steps)
    finally:
        del backend._runner
    spent = clock() - begin
    stages = {name: 1e6 * seconds / steps for name, seconds in timer.stages.items()}
    stages["calls"] = max(0.0, 1e6 * spent / steps - sum(stages.values()))
    falling = sorted(timer.kernels.items(), key=lambda item: -item[1])
    kernels = {name: 1e6 * seconds / steps for name, seconds in falling}
    return stages, kernels


class _Timer:
    """Runs segments as the backend does, and adds up what each kernel takes."""

    def __init__(self, backend: NativeBackend) -> None:
        self._backend = backend
        self.stages: defaultdict[str, float] = defaultdict(float)
        self.kernels: defaultdict[str, float] = defaultdict(float)

    def runner(self, h: float) -> Any:
        """In place of the backend's."""
        size, backend = ctypes.c_double(h), self._backend
        library, address, team = backend._library, backend._address, backend._team
        # other work on the computer does not count where one thread does it all
        clock = time.thread_time if team == 1 else time.perf_counter

        def run(segment: list[Launch]) -> None:
            for launch in segment:
                kernel = getattr(library, f"staged_{launch.phase}")
                begin = clock()
                kernel(address, size, launch.condition, launch.level, team)
                spent = clock() - begin
                self.stages[launch.stage] += spent
                self.kernels[launch.phase] += spent

        return run
