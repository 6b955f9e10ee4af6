"""Native backend: the system's C++ compiler builds cuda_kernels/, and several CPU threads share the worlds."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.backends.codegen.header import FORWARD, POSE
from gpusim.backends.codegen.ray_header import split_entries
from gpusim.backends.codegen.variants import Variant, model_variant, native_arguments, program_variant, rays_variant
from gpusim.backends.kernel_backend import KernelBackend
from gpusim.backends.memory import KernelMemory
from gpusim.backends.native.compile import load_native, vector_bytes
from gpusim.backends.native.specialization import Specialization
from gpusim.backends.native.step_loop import StepLoop
from gpusim.backends.native.team import Team
from gpusim.description.config import SolverConfig
from gpusim.description.program import Program
from gpusim.description.step_plan import StepPlan
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.reference.signals.writes import REMEMBERED
from gpusim.reference.step_buffers import StepBuffers
from gpusim.solver.launch_plan import PUBLISH_ACTIVE, Launch, execute
from gpusim.typing import Array


def thread_count() -> int:
    """Return the number of threads: ``$GPUSIM_THREADS``, or the number of cores available to this process."""
    given = os.environ.get("GPUSIM_THREADS", "")
    if given:
        if not given.isdigit() or int(given) < 1:
            raise validate.fail("GPUSIM_THREADS", f"{given!r} is not a whole number of at least 1", "give 1 or more")
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# The threads of OpenMP do not survive a fork, so a forked process uses one thread.
_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


# Minimum pair capacity for which the kernels solve several manifolds of a world at once, in SIMD vectors.
MIN_WIDE = 128
# Minimum number of world groups for which the backend compiles the kernels for groups. With fewer groups, the kernels
# save less time than their compilation takes.
MIN_GROUPS = 4
# Cycles that a thread waits before it sleeps (about 50 us). A phase of a staged step takes less time.
SPINS = "3000"
# Maximum total size of the slabs of all groups that run at once (bytes). With larger slabs, worlds run one by one.
MAX_GROUP_BYTES = 4 << 30
# Target duration (s) and maximum number of steps of one launch. Each launch loads the worlds into the caches. A launch
# has at least FEW_STEPS steps, unless FEW_STEPS steps take longer than PATIENCE seconds.
PIECE, MAX_STEPS = 0.05, 1_000_000
PATIENCE, FEW_STEPS = 0.5, 10
# Bodies of a constraint, and the set of shape kinds, in the general kernels.
GENERAL_SLOTS, ALL_SHAPES = 12, 3
# Loaded libraries of this process, by digest of the build.
_LIBRARIES: dict[str, ctypes.CDLL] = {}


def general_sizes(sizes: dict[str, int]) -> dict[str, int]:
    """Return the sizes for general kernels, which many models can share."""
    shapes = ALL_SHAPES if sizes["shape_level"] else 0
    return sizes | {"slots": max(sizes["slots"], GENERAL_SLOTS), "coupled": 1, "wraps": 1, "shape_level": shapes}


def load_library(variant: Variant) -> ctypes.CDLL:
    """Return the library of a build, and compile it on first use."""
    key = variant.digest
    if key not in _LIBRARIES:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
        _LIBRARIES[key] = library = load_native(*native_arguments(variant))
        if hasattr(library, "group_bytes"):
            library.group_bytes.restype = ctypes.c_longlong
    return _LIBRARIES[key]


class NativeBackend(KernelBackend):
    """Backend that runs the kernels on the CPU. The kernels access the state arrays directly."""

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
        specialize: bool | None = None,
    ) -> None:
        self.threads = threads or thread_count()
        self._team = Team(self.threads)
        # A fused launch has one slab per thread, and at most one thread per world. A staged launch uses all threads,
        # but its phases take longer, and each world needs a slab.
        alone = launch == "simd" or (launch == "auto" and self.threads <= state.num_worlds)
        super().__init__(model, KernelMemory(model, state), parameters, config, real, "fused" if alone else launch)
        if alone and launch == "auto":
            self.launch_reason = "launch fused: every thread has a world"
        main = "staged.cu" if self.staged else "fused.cu"
        self.world_lanes = self._lanes_of_worlds(launch)
        if self.world_lanes > 1:
            self.launch_reason = f"launch simd: {self.world_lanes} worlds side by side in the processor's vectors"
        build = partial(model_variant, main, self.real, self.stored)
        known = self.direct, self.kinds
        sizes = self.sizes if specialize else general_sizes(self.sizes)
        self._library = load_library(build(sizes, *known, bool(specialize), self.world_lanes))
        sized = partial(build, self.sizes, *known, True, self.world_lanes)
        self._specialization = Specialization(sized) if specialize is None else None
        self._slab = np.zeros(0, np.uint8)
        self._piece = 1  # number of steps in the next launch
        self._address = ctypes.c_void_p(self.arguments.ctypes.data)
        self.fill_arguments()
        self._ensure_slabs(self.num_worlds if self.staged else self.team)
        if self.world_lanes > 1:
            self._ensure_memory(self.team * self._library.group_bytes(self._address))

    def lanes(self) -> int:
        """Return how many contact manifolds are interleaved in memory: SIMD vector length, or 1 for small worlds."""
        return 1 if self.sizes["pairs"] < MIN_WIDE else vector_bytes() // self.real.itemsize

    @property
    def launch(self) -> str:
        """Return the launch mode: "fused", "simd" or "staged"."""
        return "simd" if self.world_lanes > 1 else super().launch

    def _lanes_of_worlds(self, launch: str) -> int:
        """Return how many worlds a thread steps at once with SIMD instructions (codegen/group_source.py).

        Raises:
            ModelError: ``launch`` is "simd", but the model has no joints, or colored sweeps solve some joints.
        """
        wide = vector_bytes() // 8
        serves = self.direct and not self.sizes["swept_constraints"] and self.sizes["constraints"]
        if launch == "simd" and not serves:
            raise validate.fail(
                "launch", "'simd' needs joints, and the direct solver for all of them", "give launch='auto'"
            )
        pays = launch == "auto" and not self.staged and serves and self.num_worlds >= MIN_GROUPS * wide
        pays = pays and wide * self.layout.size * min(self.threads, self.num_worlds) <= MAX_GROUP_BYTES
        return wide if launch == "simd" or pays else 1

    @property
    def team(self) -> int:
        """Return the number of threads that one launch uses."""
        return 1 if _forked else self._team.size if self.staged else min(self.threads, self.num_worlds)

    def _ensure_slabs(self, count: int) -> None:
        self._ensure_memory(count * self.layout.size)

    def _ensure_memory(self, size: int) -> None:
        if self._slab.size < size:
            memory = np.zeros(size + 64, np.uint8)
            self._slab = memory[-memory.ctypes.data % 64 :]  # align the slabs to cache lines, for vectors
            self.arguments["slab"] = self.memory.bind_array("slab", self._slab)

    def run(self, n: int, dt: float) -> bool:
        """Run ``n`` steps of ``dt`` seconds. Return True if a world failed."""
        h = dt / self.config.substeps
        if self.staged:
            spent = sum(self._run_staged(h) for _ in range(n))
        else:
            size, team = ctypes.c_double(h), self.team
            spent = self._run_pieces(n, lambda first, count: self.stepping(self._address, size, count, team))
        return self._end_run(spent)

    def _run_staged(self, h: float) -> float:
        began, run = time.perf_counter(), self._runner(h)
        self.plan.step(run, self._any_active(run), self.config.substeps)
        spent = time.perf_counter() - began
        self._team.record(spent)
        return spent

    def step_loop(self, plan: StepPlan) -> Callable[[int, int, float], bool] | None:
        """Return a function that runs many steps of a plan in one call, or None in staged launch."""
        if self.staged:
            return None
        loop = StepLoop(self, plan, load_library, self._library.observe_worlds)

        def run(first: int, n: int, dt: float) -> bool:
            h = dt / self.config.substeps
            return self._end_run(self._run_pieces(n, lambda done, count: loop.run(first + done, count, h)))

        return run

    def _end_run(self, spent: float) -> bool:
        """Look for specialized kernels after a run that took ``spent`` seconds. Return True if a world failed."""
        if self._specialization is not None:
            self._specialize(self._specialization, spent)
        return self.newly("failed")

    @property
    def stepping(self) -> Any:
        """Return the library function that runs steps."""
        return self._library.run_groups if self.world_lanes > 1 else self._library.run_worlds

    def _specialize(self, specialization: Specialization, spent: float) -> None:
        """Switch to specialized kernels if they are ready."""
        variant = specialization.arrived(spent)
        if variant is not None:
            self._library = load_library(variant)
            self._specialization = None

    def _run_pieces(self, n: int, advance: Callable[[int, int], None]) -> float:
        """Run ``n`` steps in several calls of about PIECE seconds each, so that Ctrl-C can stop the run."""
        total, done = 0.0, 0
        while n > 0:
            count = n if n < self._piece else self._piece
            start = time.perf_counter()
            advance(done, count)
            spent = time.perf_counter() - start
            n, done, total = n - count, done + count, total + spent
            if n or spent * self._piece > 2.0 * PIECE * count:  # the duration of the launches is far from PIECE
                usual, few = (int(count * seconds / max(spent, 1e-6)) for seconds in (PIECE, PATIENCE))
                self._piece = max(1, min(max(usual, min(few, FEW_STEPS)), MAX_STEPS))
        return total

    def run_stage(self, stage: str, h: float) -> None:
        """Run one stage of a substep of ``h`` seconds (staged launch only). Stage "start" loads the state."""
        run = self._runner(h)
        execute(self.plan.stages[stage], run, self._any_active(run))

    def run_forward(self, h: float) -> StepBuffers:
        """Compute velocities and forces at the current time (stage forward), and return work arrays."""
        self._ensure_slabs(self.num_worlds)
        if self.staged:
            run = self._runner(h)
            execute(self.plan.trial, run, self._any_active(run))
        else:
            self._library.run_worlds(self._address, ctypes.c_double(h), FORWARD, self.team)
        return self.fill_work(h)

    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Array, Callable[[], None]]:
        """Return an array for signals (num_worlds, width), and a function that fills the array with kernels."""
        out = np.zeros((self.num_worlds, width)) if array is None else array
        if not len(entries):
            return out, lambda: None
        target = (ctypes.c_double * out.size).from_buffer(out.data)
        plain, rays = split_entries(entries, self.kinds)
        read, cast = (
            (self._address, (ctypes.c_int * listed.size).from_buffer(listed.data), target, len(listed), width)
            for listed in (plain, rays)
        )  # from_buffer keeps references to the arrays
        if not len(rays):
            return out, partial(self._library.observe_worlds, *read)
        kernel = load_library(rays_variant(self.kinds)).cast_rays

        def launch() -> None:
            if len(plain):
                self._library.observe_worlds(*read)
            kernel(*cast, 1 if _forked else min(self.threads, self.num_worlds))

        return out, launch

    def program_launcher(self, program: Program, name: str) -> Callable[[Any, Array], None]:
        """Return a function that calls the kernel of a block diagram."""
        library, arrays = load_library(program_variant(program)), self.memory.read_state().arrays
        address, number = ctypes.c_void_p, ctypes.c_int
        control = self.memory.control
        commands = address(control.ctypes.data)
        numbers, time, health = arrays[name], address(arrays["time"].ctypes.data), address(self.health.ctypes.data)
        own = address(numbers.ctypes.data), number(numbers.shape[1])
        rest = (
            number(control.shape[1]),
            ctypes.c_double(program.period),
            number(self.num_worlds),
            number(self.team),
        )

        known: list[Any] = [None, None, ()]  # cache, because finding an address takes as long as 50 blocks

        def launch(given: Array, parameters: Array) -> None:
            if known[0] is not given or known[1] is not parameters:
                stride = number(parameters.shape[1] if len(parameters) > 1 else 0)
                read = address(given.ctypes.data), number(given.shape[1]), address(parameters.ctypes.data), stride
                arguments = (time, health, *read, *own, commands, *rest)
                known[:] = given, parameters, arguments
            library.run_diagram(*known[2])

        return launch

    def write_operations(self, operations: Array, values: Array, worlds: Array) -> bool:
        """Write poses and velocities in chosen worlds (reference/signals/writes.py)."""
        memory = np.empty(self.num_worlds * self.sizes["bodies"] * REMEMBERED)
        arrays = operations, self.memory.rows_of(worlds), np.ascontiguousarray(values), memory
        addresses = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
        self._library.write_worlds(self._address, *addresses, len(operations), values.shape[1])
        return True

    def current_angles(self) -> None:
        """Compute the joint angles at the current poses, including full rotations."""
        self._ensure_slabs(self.num_worlds)
        if self.staged:
            run = self._runner(0.0)
            execute(self.plan.pose, run, self._any_active(run))
        else:
            self._library.run_worlds(self._address, ctypes.c_double(0.0), POSE, self.team)

    def _runner(self, h: float) -> Callable[[list[Launch]], None]:
        """Return a function that runs a list of launches, for substeps of ``h`` seconds."""
        size, library, team = ctypes.c_double(h), self._library, self.team

        def run(segment: list[Launch]) -> None:
            for launch in segment:
                kernel = getattr(library, f"staged_{launch.phase}")
                kernel(self._address, size, launch.condition, launch.level, team)

        return run

    def _any_active(self, run: Callable[[list[Launch]], None]) -> Callable[[], bool]:
        def any_active() -> bool:
            self.active[0] = 0
            run(PUBLISH_ACTIVE)
            return bool(self.active[0])

        return any_active

    def slab_array(self, name: str) -> Array:
        """Return a view of the slab array ``name`` in all worlds, (num_worlds, ...)."""
        return self.layout.view(self._slab, name, self.num_worlds)
