"""CUDA backend: compiles cuda_kernels/ with NVRTC, and runs the kernels on one GPU with CuPy.

All launches are on CuPy's current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import is_on_device
from gpusim.backends.codegen.header import FORWARD, POSE, kept_fields
from gpusim.backends.codegen.schedule_source import CONTACT_PHASES
from gpusim.backends.codegen.variants import GPU_LANES, Variant, model_variant, rays_variant, signals_variant
from gpusim.backends.cuda.builds import CudaBuilds
from gpusim.backends.cuda.device import Gpu, launch_shape
from gpusim.backends.cuda.memory import CudaMemory
from gpusim.backends.cuda.observer import ObserverLaunch
from gpusim.backends.cuda.parameters import CudaParameters
from gpusim.backends.cuda.programs import ProgramLaunch
from gpusim.backends.kernel_backend import PROBLEMS, KernelBackend
from gpusim.backends.parameters import BOUNCING
from gpusim.description.config import SolverConfig
from gpusim.description.program import Program
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.reference.contacts.contact_report import ForwardContacts
from gpusim.reference.signals.writes import REMEMBERED
from gpusim.reference.step_buffers import StepBuffers
from gpusim.solver.launch_plan import PUBLISH_ACTIVE, Launch, execute
from gpusim.typing import Array

_DEVICE_TO_HOST = 2
_STAGED_THREADS, _WARP = 128, 32
_SIGNAL_KERNELS = ("observe_worlds", "write_worlds", "restore_worlds")
# Shared memory of a block that takes tickets (bytes, cuda_kernels/tickets.cuh).
_TICKET_BYTES = 8
_MAX_GRAPHS = 64
SPECIALIZED_FROM = 256
"""Minimum number of worlds for a full build with the sizes of the model as constants."""
# Maximum number of steps per launch. The watchdog of a display GPU stops kernels that run for seconds.
MAX_STEPS = 1000


class CudaBackend(KernelBackend):
    """Backend that runs the kernels on a GPU.

    Args:
        model, state, parameters, config, real, launch: see KernelBackend.
        device: number of the GPU.
        fast: True to allow fused multiply-adds. Kernels are faster, but the results differ from results on a CPU.
        specialize: True to specialize the first build (the sizes of the model become constants). False to specialize no
            build. By default, the backend specializes the full build for fused launches with at least SPECIALIZED_FROM
            worlds.

    Raises:
        ModelError: CuPy is missing, or the GPU does not exist.
        CompileError: the kernels do not compile.
    """

    name = "cuda"
    colors_side_by_side = True

    def __init__(
        self,
        model: Model,
        state: State,
        parameters: dict[str, Array],
        config: SolverConfig,
        real: Any,
        launch: str = "auto",
        device: int | None = None,
        fast: bool = False,
        specialize: bool | None = None,
    ) -> None:
        if launch == "simd":
            rule = "only the native backend has 'simd'"
            raise validate.fail("launch", rule, "give launch='fused', 'staged' or 'auto'")
        self.memory: CudaMemory = CudaMemory(model, state, device)
        self.parameters: CudaParameters
        super().__init__(model, self.memory, parameters, config, real, launch)
        self._forward_h, self._posed, self._forward_contacts_h = 0.0, False, 0.0
        self._initial_arguments: Any = None
        self._specialize = specialize
        self._stand_in: Any = None
        with self.memory.here():
            self.builds = CudaBuilds(self.memory.cupy, self.memory.device, fast)
            self._choose_shape()
            self._load_kernels()
            self.fill_arguments()
            # The host counters are in pinned memory, to which the device copies its counters.
            self.counters = {name: self._reported[k : k + 1] for k, name in enumerate(PROBLEMS)}
            needed = 0 if self._shape.shared else self._shape.tiles
            self._ensure_slabs(self.num_worlds if self.staged else needed)

    def make_parameters(self, values: dict[str, Array]) -> CudaParameters:
        """Create the parameters in GPU memory."""
        return CudaParameters(self.model, self.memory, values, self.real, self.arguments)

    def write_columns(self, name: str, at: tuple[Any, ...], values: Any, worlds: Any) -> None:
        """Write values of a parameter in chosen worlds on the device. See :meth:`CudaParameters.write_columns`."""
        before = self.arguments.tobytes()
        self.parameters.write_columns(name, at, values, worlds)
        if name in BOUNCING:
            self.set_bounces(True)
        self.pass_on(before)

    def sync_arguments(self) -> None:
        """Copy the kernel arguments to the device."""
        self.memory.bind_array("arguments", np.frombuffer(self.arguments.tobytes(), np.uint8))

    def lanes(self) -> int:
        """Return how many contact manifolds are interleaved in memory: the warp size in staged launch, otherwise 1."""
        return GPU_LANES if self.staged else 1

    def _choose_shape(self) -> None:
        """Choose the launch shape for this GPU, and allocate pinned host memory for the counters."""
        cupy, gpu = self.memory.cupy, self.memory.cupy.cuda.Device(self.memory.device)
        self._processors = int(gpu.attributes["MultiProcessorCount"])
        self._max_shared = int(gpu.attributes["MaxSharedMemoryPerBlockOptin"])
        of_processor = int(gpu.attributes["MaxSharedMemoryPerMultiprocessor"])
        machine = Gpu(self._processors, of_processor, self._max_shared, int(cupy.cuda.runtime.memGetInfo()[1]))
        self._shape = launch_shape(self.sizes, self.layout.size, self.num_worlds, machine)
        self._pinned = cupy.cuda.alloc_pinned_memory(4 * len(PROBLEMS))
        self._reported = np.frombuffer(self._pinned, np.int32, len(PROBLEMS))
        self._reported[:] = 0

    def _load_kernels(self) -> None:
        self._kernels: dict[str, Any] = {}
        self._fused_module: Any = None
        self._signals_module: Any = None
        parts = ((1, 2) if self.sizes["shape_level"] else (0,)) if self.staged else ()
        builds = [self._variant("staged.cu", part=part) for part in parts]
        with self.memory.here():
            self._staged_modules = dict(zip(parts, self.builds.modules(builds), strict=True))
        self._steps: Any = None if self.staged else self._steps_kernel()

    def _variant(self, main: str, shared: bool = False, part: int = 0) -> Variant:
        known = self.real, self.stored, self.sizes, self.direct, self.kinds
        variant = model_variant(main, *known, bool(self._specialize), 1, shared, part)
        if self._specialize is not None or self.staged or self.num_worlds < SPECIALIZED_FROM:
            return variant
        return replace(variant, full=model_variant(main, *known, True, 1, shared, part))

    def build(self, variant: Variant) -> Any:
        """Return the CuPy module with the kernels of a build."""
        with self.memory.here():
            return self.builds.module(variant)

    def step_variant(self) -> Variant:
        """Return the build with the kernel that runs steps."""
        return self._variant("fused.cu", shared=bool(self._shape.shared))

    def _steps_kernel(self) -> Any:
        if not self._shape.shared:
            return self._kernel("run_worlds")
        return self._shared_kernel(self.build(self.step_variant()))

    def _shared_kernel(self, module: Any) -> Any:
        kernel = module.get_function("run_worlds")
        # Use the same limit in all simulations, because simulations with the same build share the kernel.
        kernel.max_dynamic_shared_size_bytes = self._max_shared
        # Percentage of the L1 cache that becomes shared memory. More blocks on a multiprocessor hide latency.
        kernel.preferred_shared_memory_carveout = 100
        return kernel

    @contextmanager
    def steps_of(self, module: Any) -> Iterator[None]:
        """Run steps with ``module`` inside the ``with`` block. ``module`` must be a build for the same model."""
        with self.memory.here():
            self._stand_in = self._shared_kernel(module) if self._shape.shared else module.get_function("run_worlds")
        try:
            yield
        finally:
            self._stand_in = None

    def _kernel(self, name: str) -> Any:
        if name not in self._kernels:
            self._kernels[name] = self._module_of(name).get_function(name)
        return self._kernels[name]

    def _module_of(self, name: str) -> Any:
        if name.startswith("staged_"):
            meets = name.removeprefix("staged_") in CONTACT_PHASES
            return self._staged_modules.get(1 if meets else 2) or self._staged_modules[0]
        if name in _SIGNAL_KERNELS:
            if self._signals_module is None:
                known = self.real, self.stored, self.kinds, self.sizes["wraps"] > 0
                self._signals_module = self.build(signals_variant(*known))
            return self._signals_module
        if self._fused_module is None:
            variant = self._variant("fused.cu")
            # If another build runs the steps, this build only reads signals, so full optimization is not necessary.
            self._fused_module = self.build(replace(variant, full=None) if self._shape.shared else variant)
        return self._fused_module

    def _ensure_slabs(self, count: int) -> None:
        memory, size = self.memory, max(count, 1) * self.layout.size
        if "slab" not in memory.arrays or memory.arrays["slab"].size < size:
            memory.arrays["slab"] = memory.cupy.zeros(size, np.uint8)
            self.arguments["slab"] = int(memory.arrays["slab"].data.ptr)
            self.sync_arguments()

    def write_operations(self, operations: Array, values: Any, worlds: Any) -> bool:
        """Write poses and velocities in chosen worlds on the device."""
        with self.memory.here():
            self.memory.push()
            cupy = self.memory.cupy
            if isinstance(values, list):
                values = self.memory.side_by_side(values, len(worlds))
            given = cupy.asarray(operations), self.memory.device_rows(worlds), cupy.asarray(values)
            memory = cupy.empty((self.num_worlds * self.sizes["bodies"] * REMEMBERED,))
            sizes = np.int32(len(operations)), np.int32(values.shape[1])
            blocks = min(-(-self.num_worlds // _WARP), self._processors * 16)
            self._kernel("write_worlds")((blocks,), (_WARP,), (self.memory.arrays["arguments"], *given, memory, *sizes))
        self.memory.device_newer = True
        self.invalidate()
        return True

    def _run(self, h: float, steps: int) -> None:
        shape, stepping = self._shape, steps > 0
        shared = shape.shared if stepping else 0
        tiles = min(shape.tiles, self.memory.arrays["slab"].size // self.layout.size)
        grid = shape.grid(self.num_worlds if shared or not stepping else tiles)
        arguments = (self.memory.arrays["arguments"], np.float64(h), np.int32(steps), np.int32(shape.lanes))
        kernel = (self._stand_in or self._steps) if stepping else self._kernel("run_worlds")
        kernel((grid,), (shape.block,), arguments, shared_mem=shared)

    def run(self, n: int, dt: float) -> bool:
        """Launch ``n`` steps of ``dt`` seconds on CuPy's current stream. Do not wait for the device.

        This call may not report a new failed world yet. A later call reports this world. To wait for the device, call
        :meth:`read_health`.

        Returns:
            True if the host knows of more failed worlds than in the previous call.
        """
        h = dt / self.config.substeps
        with self.memory.here():
            self.memory.push()
            self._take_builds()
            self.memory.substep = h if n else self.memory.substep
            if self.staged:
                run = self._runner(h)
                for _ in range(n):
                    self.plan.step(run, self._any_active(run), self.config.substeps)
            for start in range(0, 0 if self.staged else n, MAX_STEPS):
                self._run(h, min(MAX_STEPS, n - start))
            stream = self.memory.cupy.cuda.get_current_stream().ptr
            for k, name in enumerate(PROBLEMS):
                source, target = self.memory.arrays[name].data.ptr, self._reported[k:].ctypes.data
                self.memory.cupy.cuda.runtime.memcpyAsync(target, source, 4, _DEVICE_TO_HOST, stream)
        self.memory.device_newer = True
        self.invalidate()
        return self.newly("failed")

    def _take_builds(self) -> None:
        """Switch to the full builds if they are ready."""
        if self.builds.arrived():
            self._load_kernels()
            self._graphs.clear()

    def _runner(self, h: float) -> Callable[[list[Launch]], None]:
        """Return a function that runs a list of launches as a CUDA graph."""

        def run(segment: list[Launch]) -> None:
            if not segment:
                return
            key = (id(segment), h)
            if key not in self._graphs:
                if len(self._graphs) >= _MAX_GRAPHS:  # each segment and step size has one graph
                    self._graphs.clear()
                self._graphs[key] = None
                self._launch_all(segment, h)
                return
            if self._graphs[key] is None:
                self._graphs[key] = self._capture(segment, h)
            self._graphs[key].launch(self.memory.cupy.cuda.get_current_stream())

        return run

    def _launch_all(self, segment: list[Launch], h: float) -> None:
        common = self.memory.arrays["arguments"], np.float64(h)
        for launch in segment:
            blocks = self._blocks(launch)
            arguments = (*common, np.int32(launch.condition), np.int32(launch.level), np.int32(0))
            shared = _TICKET_BYTES if launch.tickets else 0
            self._kernel(f"staged_{launch.phase}")((blocks,), (_STAGED_THREADS,), arguments, shared_mem=shared)

    def _blocks(self, launch: Launch) -> int:
        limit = self._processors * 4
        if launch.items is None:
            return limit
        if launch.tickets:  # every world gets the same number of blocks
            needed = -(-launch.items // _STAGED_THREADS)
            return self.num_worlds * max(1, min(limit // self.num_worlds, needed))
        needed = -(-launch.items * self.num_worlds // _STAGED_THREADS) if launch.items else self.num_worlds
        return max(1, min(limit, needed))

    def _capture(self, segment: list[Launch], h: float) -> Any:
        stream = self.memory.cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            self._launch_all(segment, h)
            return stream.end_capture()

    def _any_active(self, run: Callable[[list[Launch]], None]) -> Callable[[], bool]:
        def any_active() -> bool:
            self.memory.arrays["active"].fill(0)
            run(PUBLISH_ACTIVE)
            return bool(self.memory.arrays["active"].get()[0])

        return any_active

    def _ensure_forward(self, h: float) -> None:
        """Run stage forward if GPU memory does not contain its results for the current state yet."""
        if self._forward_h == h and not (self.memory.host_newer or self.memory.control_newer):
            return
        with self.memory.here():
            self.memory.push()
            self._ensure_slabs(self.num_worlds)
            if self.staged:
                run = self._runner(h)
                execute(self.plan.trial, run, self._any_active(run))
            else:
                self._run(h, FORWARD)
        self.memory.device_newer, self._forward_h, self._forward_contacts_h = True, h, h

    def _pose(self) -> None:
        """Compute rotation matrices and joint angles if GPU memory does not contain them for the current state yet."""
        if not self.memory.host_newer and (self._posed or self._forward_h):
            return
        with self.memory.here():
            self.memory.push()
            self._ensure_slabs(self.num_worlds)
            self._run(0.0, POSE)
        # This kernel overwrites the contacts of stage forward in the slabs.
        self._forward_h = 0.0
        self._posed = self.memory.device_newer = True

    def current_angles(self) -> None:
        """Compute the joint angles at the current poses, including full rotations."""
        self._pose()

    def run_forward(self, h: float) -> StepBuffers:
        """Compute the forces at the current time (stage forward), and return work arrays on the host."""
        self._ensure_forward(h)
        return self.fill_work(h)

    def forward_contacts(self) -> ForwardContacts | None:
        """Return the contacts of the last stage forward, or None if the capacity of the pair buffer is 0."""
        self._ensure_forward(self._forward_contacts_h)
        return super().forward_contacts()

    def invalidate(self, initial: bool = False) -> None:
        """Invalidate the results of stage forward. With ``initial``, also invalidate the copy of the reset state."""
        if initial:
            self._initial_arguments = None
        self._forward_h, self._posed = 0.0, False
        # The user may have written to the result of host_control().
        self.memory.control_newer = self.memory.control_newer or self.memory.control_lent
        if self.memory.replays and not self.memory.capturing:
            self.memory.replayed()

    def slab_array(self, name: str) -> Array:
        """Return a host copy of the slab array ``name`` in all worlds, (num_worlds, ...)."""
        field = self.layout.fields[name]
        size = int(np.prod(field.shape, dtype=np.int64)) * field.dtype.itemsize
        if not size:
            return np.zeros((self.num_worlds, *field.shape), field.dtype)
        with self.memory.here():
            self.memory.follow_stream()
            slabs = self.memory.arrays["slab"][: self.num_worlds * self.layout.size].reshape(self.num_worlds, -1)
            # Gather the array on the device, so that only this array is copied to the host.
            own = self.memory.cupy.ascontiguousarray(slabs[:, field.offset : field.offset + size]).get()
        return np.ascontiguousarray(own).view(field.dtype).reshape(self.num_worlds, *field.shape)

    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Any, Callable[[], None]]:
        """Return a device array for signals, and a function that fills the array with kernels."""
        launch = ObserverLaunch(self, entries, width, array)
        return launch.out, launch

    def launch_items(self, kernel: str, items: int, *arguments: Any) -> None:
        """Launch the kernel ``kernel`` with one thread per item. An item is, for example, a signal element or a ray."""
        if kernel == "cast_rays" and kernel not in self._kernels:
            self._kernels[kernel] = self.build(rays_variant(self.kinds)).get_function(kernel)
        with self.memory.here():
            self.memory.push()
            blocks = min(-(-items // _STAGED_THREADS), self._processors * 16)
            self._kernel(kernel)((blocks,), (_STAGED_THREADS,), (self.memory.arrays["arguments"], *arguments))

    def program_launcher(self, program: Program, name: str) -> Callable[[Any, Array], None]:
        """Return a function that launches the kernel of a block diagram."""
        return ProgramLaunch(self, program, name)

    def launch_on_commands(self, kernel: Any, threads: int, arguments: Callable[[], tuple[Any, ...]]) -> None:
        """Launch a kernel that changes the state and the commands, with one thread per world."""
        with self.memory.here():
            self.memory.push()
            blocks = min(-(-self.num_worlds // threads), self._processors * 16)
            kernel((blocks,), (threads,), arguments())
        self.memory.commands_changed()
        self.memory.device_newer = True
        self.invalidate()

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Finish all work on the host. Then the ``with`` block can capture launches in a CUDA graph.

        Inside the ``with`` block, calls that need the host raise an error. See ``Simulation.capture``.
        """
        if self.staged:
            rule = "launch = 'staged' reads numbers on the host in each step"
            raise validate.fail("Simulation.capture", rule, "give Simulation(launch='fused')")
        memory = self.memory
        self.builds.wait()
        self._take_builds()
        memory.push()
        memory.control_lent = False
        self.invalidate()
        memory.capturing = memory.replays = True
        try:
            yield
        finally:
            memory.capturing = False
            memory.replayed()

    def last_substep(self) -> float:
        """Return the duration of the last substep (s), or 0 right after a reset. Do not wait for the device."""
        return self.memory.substep if self.memory.device_newer else super().last_substep()

    def restore(self, initial: State, worlds: Any) -> None:
        """Reset ``worlds`` (indices or a device mask) to the state ``initial`` and the default commands."""
        memory, cupy = self.memory, self.memory.cupy
        with memory.here():
            if is_on_device(worlds):
                mask = cupy.from_dlpack(worlds).astype(np.int32)
            else:
                chosen = np.zeros(self.num_worlds, np.int32)
                chosen[worlds] = 1
                mask = cupy.asarray(chosen)
                memory.substep = 0.0 if chosen.all() else self.last_substep()
            memory.push()
            if self._initial_arguments is None:
                self._initial_arguments = self._upload_initial(initial)
                self._default_control = cupy.asarray(np.asarray(self.model.default_controls, np.float64))
            arguments = (memory.arrays["arguments"], self._initial_arguments, mask, self._default_control)
            blocks = min(self.num_worlds, self._processors * 16)
            self._kernel("restore_worlds")((blocks,), (_WARP,), arguments)
            memory.overriding = memory.overriding or self._initial_stops
            for name in memory.added:
                own, first = memory.arrays[f"kept_{name}"], memory.arrays[f"initial_{name}"]
                own[...] = cupy.where((mask != 0)[:, None], first, own)
        memory.commands_changed()
        memory.device_newer = True
        self.invalidate()

    def _upload_initial(self, initial: State) -> Any:
        """Copy the state ``initial`` to the device, and return kernel arguments that point to it."""
        arguments = self.arguments.copy()
        packed = {g.type.name: g.state for g in initial.groups if g.type.variables}
        for f in kept_fields(self.kinds):
            kind = f.name.removesuffix("_state")
            if f.name in initial.arrays:
                array = initial.arrays[f.name]
            else:
                array = np.stack(list(packed[kind].values()), axis=1) if kind in packed else np.zeros(0)
            arguments[f"kept_{f.name}"] = self.memory.bind_array(f"initial_{f.name}", array)
        self._initial_stops = self.memory.holds_override(initial)
        for name in self.memory.added:
            self.memory.bind_array(f"initial_{name}", initial.arrays[name])
        return self.memory.cupy.asarray(np.frombuffer(arguments.tobytes(), np.uint8))

    def newly(self, problem: str) -> bool:
        """Return whether the host knows of a new ``problem`` in a world since the last call."""
        if problem == "overflowed" and self.config.strict:
            self.counters[problem][:] = self.memory.read_array(problem)
        return super().newly(problem)

    def make_plan(self) -> None:
        """Create the plan of staged launches for the current settings."""
        super().make_plan()
        self._graphs: dict[tuple[int, float], Any] = {}

    def keep_stopped(self, words: Array, values: Array) -> None:
        """Stop the worlds that failed on the previous backend. ``words`` contains the failure codes of all worlds."""
        with self.memory.here():
            self.memory.follow_stream()
            self.memory.arrays["health"].set(words)
            self.memory.arrays["health_value"].set(values)
            self.counters["failed"][0] = self._seen["failed"] = int(np.count_nonzero(words))
            self.memory.arrays["failed"].fill(self._seen["failed"])

    def release(self, worlds: Array) -> None:
        """Do nothing: :meth:`restore` already releases worlds from quarantine."""
