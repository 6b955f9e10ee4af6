"""Where the time of a step goes: every kernel of the staged launch on the CPU, timed call by call."""

from __future__ import annotations

import ctypes
import time
from collections import defaultdict
from typing import Any

import numpy as np

from gpusim.backends.native_backend import NativeBackend
from gpusim.backends.staged import Launch, Program
from gpusim.errors import ModelError

# Kernels of the stage collide that are told apart: where shapes touch, which manifolds go side by side, their records.
_COLLIDE = {
    "meet_pair": "narrow", "load_pair": "end", "clear_colors": "color", "color_pairs": "color", "list_colors": "color",
    "list_overflow": "color",
}  # fmt: skip
# Parts of the program in the order in which they run as one segment.
_BEFORE = ("prepare", "actuate", "kick", "start_solve")
_AFTER = ("split_impulses", "commit", "drift", "settle", "positions")
_NAMES = {"start_solve": "solve", "end_solve": "solve", "solve_pass": "solve", "commit": "drift"}


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

    The stage "end" loads, checks and stores the state and the records of manifolds; what Python and ctypes spend
    between the kernels is "calls".

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
        self._labels: dict[int, tuple[list[Launch], list[str]]] = {}
        self.stages: defaultdict[str, float] = defaultdict(float)
        self.kernels: defaultdict[str, float] = defaultdict(float)

    def runner(self, h: float) -> Any:
        """In place of the backend's."""
        size, backend = ctypes.c_double(h), self._backend
        library, address, team = backend._library, backend._address, backend._team
        # other work on the computer does not count where one thread does it all
        clock = time.thread_time if team == 1 else time.perf_counter

        def run(segment: list[Launch]) -> None:
            for launch, stage in zip(segment, self._stages(segment), strict=True):
                kernel = getattr(library, f"staged_{launch.phase}")
                begin = clock()
                kernel(address, size, launch.condition, launch.level, team)
                spent = clock() - begin
                self.stages[stage] += spent
                self.kernels[launch.phase] += spent

        return run

    def _stages(self, segment: list[Launch]) -> list[str]:
        key = len(segment)
        if key not in self._labels or self._labels[key][0] != segment:
            self._labels[key] = (segment, stage_names(self._backend.program, segment))
        return self._labels[key][1]


def stage_names(program: Program, segment: list[Launch]) -> list[str]:
    """The stage of every launch of a segment of the program's step."""
    if segment == program.begin_step:
        others = len(segment) - len(program.collide)
        return ["end"] * others + [_stage("collide", launch.phase) for launch in program.collide]
    for parts in (_BEFORE, _AFTER, ("end",), ("end_solve",), ("solve_pass",)):
        lists = [(part, getattr(program, part)) for part in parts]
        if [launch for _, launches in lists for launch in launches] == segment:
            return [_stage(part, launch.phase) for part, launches in lists for launch in launches]
    return ["other"] * len(segment)


def _stage(part: str, phase: str) -> str:
    if part == "collide":
        return _COLLIDE.get(phase, "broad")
    return _NAMES.get(part, part)
