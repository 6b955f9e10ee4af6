"""The native backend: cuda_kernels/ built by the system's C++ compiler, worlds spread over threads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim.backends.compile import build_native
from gpusim.backends.kernel_backend import POSE, SENSE, KernelBackend
from gpusim.backends.staged import TELL_ACTIVE, Launch
from gpusim.backends.variants import Variant, model_variant
from gpusim.model import validate
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.reference.work import Work
from gpusim.solver.config import SolverConfig
from gpusim.typing import Array


def thread_count(threads: int | None = None) -> int:
    """Threads for many worlds: as given, GPUSIM_THREADS, or the cores that this process may use.

    Raises:
        ModelError: not a whole number of at least 1.
    """
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise validate.fail(
                "Simulation", f"threads = {threads!r} must be a whole number of at least 1", "give 1 or more, or None"
            )
        return threads
    given = os.environ.get("GPUSIM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Builds of this process by what they were made of.
_LIBRARIES: dict[tuple[object, ...], ctypes.CDLL] = {}


def load_library(variant: Variant) -> ctypes.CDLL:
    """The library of a build, made and loaded at its first use.

    Threads that wait for the next phase of a staged launch must not keep a core from others, which would stop them all
    on a busy computer: OpenMP reads the setting when it is loaded.
    """
    key = (variant.main, *sorted(variant.defines.items()), variant.generated["sizes.cuh"])
    if key not in _LIBRARIES:
        path = build_native(variant.main, variant.generated, variant.defines)
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        _LIBRARIES[key] = ctypes.CDLL(str(path))
    return _LIBRARIES[key]


class NativeBackend(KernelBackend):
    """Serves the front door from kernels that run on the CPU; the state's arrays are the kernels' own."""

    name = "native"

    def __init__(
        self,
        model: Model,
        state: State,
        parameters: dict[str, Array],
        config: SolverConfig,
        real: Any,
        launch: str = "auto",
        threads: int | None = None,
        specialize: bool = False,
    ) -> None:
        super().__init__(model, state, parameters, config, real, launch)
        self.threads = thread_count(threads)
        main = "staged.cu" if self.staged else "fused.cu"
        variant = model_variant(main, self.real, self.stored, self.sizes, self.direct, specialize)
        self._library = load_library(variant)
        self._kept: dict[str, Array] = {}
        self._slab = np.zeros(0, np.uint8)
        self._address = ctypes.c_void_p(self.arguments.ctypes.data)

    def place(self, name: str, array: Array) -> int:
        """The array itself serves, and is kept alive."""
        self._kept[name] = np.ascontiguousarray(array)
        return self._kept[name].ctypes.data

    def sync_arguments(self) -> None:
        """The arguments are read where they are."""

    def bind(self, control: Array) -> None:
        """Take the commands from ``control``, (num_worlds, controls)."""
        self.fill_arguments(control)
        self._ensure_slabs(self.num_worlds if self.staged else min(self.threads, self.num_worlds))

    def _ensure_slabs(self, count: int) -> None:
        if self._slab.size < count * self.layout.size:
            self._slab = np.zeros(count * self.layout.size + 64, np.uint8)
            self.arguments["slab"] = self.place("slab", self._slab)

    def advance(self, n: int, dt: float) -> bool:
        """Run ``n`` steps of ``dt`` seconds; True if a world failed."""
        h = dt / self.config.substeps
        if self.staged:
            run = self._runner(h)
            for _ in range(n):
                self.program.run_step(run, self._any_active(run), self.config.substeps)
        else:
            self._library.run_worlds(self._address, ctypes.c_double(h), n, self.threads)
        return bool(self.failed[0])

    def run_stage(self, stage: str, h: float) -> None:
        """One stage of a substep of ``h`` seconds on the slabs ("start" loads the state); staged launch only."""
        run = self._runner(h)
        self.program.run_stage(stage, run, self._any_active(run))

    def sensed(self, h: float) -> Work:
        """Velocities and forces at the current time (stage sense)."""
        self._ensure_slabs(self.num_worlds)
        if self.staged:
            run = self._runner(h)
            run(self.program.start)
            self.program.run_impulses(run, self._any_active(run))
            run(self.program.sense)
        else:
            self._library.run_worlds(self._address, ctypes.c_double(h), SENSE, self.threads)
        return self.fill_work(h)

    def current_angles(self) -> None:
        """Bring the counted joint angles up to the current poses."""
        self._ensure_slabs(self.num_worlds)
        if self.staged:
            self._runner(0.0)(self.program.pose)
        else:
            self._library.run_worlds(self._address, ctypes.c_double(0.0), POSE, self.threads)

    def _runner(self, h: float) -> Callable[[list[Launch]], None]:
        """Executes segments of the staged program for substeps of ``h`` seconds."""
        size, library = ctypes.c_double(h), self._library

        def run(segment: list[Launch]) -> None:
            for launch in segment:
                kernel = getattr(library, f"staged_{launch.phase}")
                kernel(self._address, size, launch.condition, launch.level, self.threads)

        return run

    def _any_active(self, run: Callable[[list[Launch]], None]) -> Callable[[], bool]:
        def any_active() -> bool:
            self.active[0] = 0
            run(TELL_ACTIVE)
            return bool(self.active[0])

        return any_active

    def slab_array(self, name: str) -> Array:
        """A view."""
        return self.layout.view(self._slab, name, self.num_worlds)
