"""Measure the time of each stage of a step, and of each kernel. In a fused launch, measure C++ functions instead."""

from __future__ import annotations

import ctypes
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim.backends.cuda.backend import CudaBackend
from gpusim.backends.native.backend import NativeBackend
from gpusim.bench.drive import synchronize
from gpusim.bench.routine_clock import GROUPS, clock_routines
from gpusim.errors import ModelError
from gpusim.solver import schedule
from gpusim.solver.launch_plan import Launch

Runner = Callable[[list[Launch]], None]
Times = dict[str, float]
BUSY_BYTES = 128 << 20
"""Number of bytes that a GPU writes in about 50 us, to keep the GPU busy while Python queues timed launches."""


def can_profile(sim: Any) -> bool:
    """Return whether :func:`profile` can time a simulation."""
    return isinstance(sim.backend, NativeBackend | CudaBackend) and sim.backend.launch in ("fused", "staged")


def twin_of(sim: Any, launch: str) -> Any:
    """Return a copy of a simulation that runs on the native backend in the given launch mode."""
    from gpusim.simulation import Simulation

    twin = Simulation(
        sim.model, sim.num_worlds, "native", sim.dtype, sim.config, threads=sim.backend.threads, launch=launch
    )
    twin.backend.memory.state.restore(sim.backend.memory.read_state(), np.arange(sim.num_worlds))
    twin.control.array[...] = sim.control.array
    twin.invalidate()
    return twin


def profile(sim: Any, steps: int = 10) -> tuple[Times, Times]:
    """Return the time (microseconds) of each stage and of each kernel in a step. Run at least ``steps`` steps.

    solver/schedule.py lists the stages. The additional stages "start" and "store" load and store the state. On a CPU,
    "calls" is the time in Python between the kernel calls of a staged launch.

    Raises:
        ModelError: the backend is "numpy", or the launch is "simd".
    """
    if not can_profile(sim):
        rule = "profile: only the native and the cuda backend can be timed"
        raise ModelError(f"{rule}; give launch='staged' or 'fused' there")
    if sim.backend.launch == "fused":
        return _fused(sim, steps)
    timer = _CpuTimer(sim.backend) if isinstance(sim.backend, NativeBackend) else _GpuTimer(sim.backend)
    sim.backend._runner = timer.runner
    begin = timer.clock()
    try:
        timer.run(sim, steps)
    finally:
        del sim.backend._runner
    spent = timer.clock() - begin
    stages = {name: 1e6 * seconds / steps for name, seconds in timer.stages.items()}
    if isinstance(sim.backend, NativeBackend):  # a GPU runs kernels in parallel with Python
        stages["calls"] = max(0.0, 1e6 * spent / steps - sum(stages.values()))
    falling = sorted(timer.kernels.items(), key=lambda item: -item[1])
    return stages, {name: 1e6 * seconds / steps for name, seconds in falling}


def _fused(sim: Any, steps: int) -> tuple[Times, Times]:
    """Return the time of each stage and of each C++ function in a fused launch."""
    fractions = clock_routines(sim, steps)
    synchronize(sim)
    # thread time excludes other programs, but needs a single thread
    alone = isinstance(sim.backend, NativeBackend) and sim.backend.threads == 1
    clock = time.thread_time if alone else time.perf_counter
    begin = clock()
    sim.step(steps)
    synchronize(sim)
    step_us = 1e6 * (clock() - begin) / steps
    stages = {stage.name for stage in schedule.stages()}
    by_stage = {name: step_us * fraction for name, fraction in fractions.items() if name in stages}
    return by_stage, {n: step_us * s for n, s in fractions.items() if n not in stages and n not in GROUPS}


class _Timer:
    """Total time (s) of each stage and of each kernel."""

    def __init__(self) -> None:
        self.stages: defaultdict[str, float] = defaultdict(float)
        self.kernels: defaultdict[str, float] = defaultdict(float)
        self.clock: Callable[[], float] = time.perf_counter

    def add(self, launch: Launch, seconds: float) -> None:
        """Add the time of a launch."""
        self.stages[launch.stage] += seconds
        self.kernels[launch.phase] += seconds

    def run(self, sim: Any, steps: int) -> None:
        """Run the timed steps."""
        sim.step(steps)


class _CpuTimer(_Timer):
    """Timer of the kernel calls of the native backend."""

    def __init__(self, backend: NativeBackend) -> None:
        super().__init__()
        self._backend = backend
        # thread time excludes other programs, but needs a single thread
        self.clock = time.thread_time if backend.threads == 1 else time.perf_counter

    def runner(self, h: float) -> Runner:
        """Return a function that runs and times the kernel launches of a step of ``h`` s."""
        size, backend, clock = ctypes.c_double(h), self._backend, self.clock
        library, address, team = backend._library, backend._address, backend.team

        def run(segment: list[Launch]) -> None:
            for launch in segment:
                kernel = getattr(library, f"staged_{launch.phase}")
                begin = clock()
                kernel(address, size, launch.condition, launch.level, team)
                self.add(launch, clock() - begin)

        return run


class _GpuTimer(_Timer):
    """Timer of single launches with CUDA events."""

    def __init__(self, backend: CudaBackend) -> None:
        import cupy

        super().__init__()
        self._backend, self._cuda = backend, cupy.cuda
        self._launched: list[tuple[Launch, Any, Any]] = []
        with backend.memory.here():
            self._busy = cupy.zeros(BUSY_BYTES, np.uint8)

    def runner(self, h: float) -> Runner:
        """Return a function that runs and times the kernel launches of a step of ``h`` s."""

        def run(segment: list[Launch]) -> None:
            for launch in segment:
                begin, end = self._cuda.Event(), self._cuda.Event()
                begin.record()
                self._backend._launch_all([launch], h)
                end.record()
                self._launched.append((launch, begin, end))

        return run

    def run(self, sim: Any, steps: int) -> None:
        """Run the timed steps, after one step that counts the kernel launches."""
        sim.step(1)
        count = len(self._launched)
        self._launched.clear()
        for _ in range(steps):
            with self._backend.memory.here():
                for _ in range(count):
                    self._busy.fill(0)
            sim.step(1)
            for launch, begin, end in self._launched:
                end.synchronize()
                self.add(launch, 1e-3 * self._cuda.get_elapsed_time(begin, end))
            self._launched.clear()
