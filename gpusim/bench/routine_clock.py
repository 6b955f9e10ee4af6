"""Profile of a fused step. A separate build counts the processor cycles of each C++ function of the solver."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from gpusim.backends.codegen.variants import Variant, clocked_variant, model_variant
from gpusim.backends.cuda.backend import CudaBackend
from gpusim.backends.native.backend import NativeBackend, load_library
from gpusim.errors import ModelError
from gpusim.typing import Array

ROUTINES = 96
"""Maximum number of routines, as in cuda_kernels/routine_clock.cuh."""
STEP = ("contacts", "substep", "store_contacts", "check")
"""Routines that together make up a step. Loading and storing the state does not count."""
MIN_SECONDS = 0.2
"""Minimum duration of a measurement, s."""
GROUPS = ("contacts", "impulses", "substep")
"""Routines that consist of consecutive stages."""


def clock_routines(sim: Any, steps: int = 10) -> dict[str, float]:
    """Return the fraction of a step's time that each C++ function (routine) takes, largest first.

    The fraction of a function includes the functions that it calls. The first thread of each world counts the cycles,
    including waits. The time of a step is the sum of the times of the functions in STEP.

    Args:
        sim: simulation in fused launch on the CUDA or the native backend. The simulation advances in calls of ``steps``
            steps until MIN_SECONDS have passed.
        steps: number of steps per call.

    Raises:
        ModelError: the simulation has another launch or backend.
        CompileError: the kernels do not compile.
    """
    backend = sim.backend
    counted: Callable[[Any, Variant], AbstractContextManager[Any]]
    if isinstance(backend, NativeBackend) and backend.launch == "fused":
        (variant, names), counted = clocked_variant(_native_variant(backend)), _on_cpu
    elif isinstance(backend, CudaBackend) and backend.launch == "fused":
        (variant, names), counted = clocked_variant(_cuda_variant(backend)), _on_gpu
    else:
        rule = f"clock_routines: launch '{getattr(backend, 'launch', 'numpy')}' cannot be measured"
        raise ModelError(f"{rule}; give backend='cuda' or 'native' with launch='fused'")
    assert len(names) <= ROUTINES
    with counted(backend, variant) as read:
        before, end = read(), time.perf_counter() + MIN_SECONDS
        sim.step(steps)
        while time.perf_counter() < end:
            sim.step(steps)
        spent = (read() - before)[: len(names)]
    cycles = dict(zip(names, spent.tolist(), strict=True))
    whole = sum(cycles.get(name, 0) for name in STEP)
    shares = {name: count / whole for name, count in cycles.items() if count}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _native_variant(backend: NativeBackend) -> Variant:
    return model_variant("fused.cu", backend.real, backend.stored, backend.sizes, backend.direct, backend.kinds)


def _cuda_variant(backend: CudaBackend) -> Variant:
    """Return the full build of the step kernel, or the quick build if there is no full build."""
    variant = backend.step_variant()
    return variant.full or variant


@contextmanager
def _on_cpu(backend: NativeBackend, variant: Variant) -> Iterator[Any]:
    """Within a ``with`` block, use CPU kernels that count cycles."""
    usual, backend._library = backend._library, load_library(variant)
    threads, backend.threads = backend.threads, 1
    specialization, backend._specialization = backend._specialization, None
    numbers = (ctypes.c_ulonglong * ROUTINES).in_dll(backend._library, "routine_cycles")
    try:
        yield lambda: np.array(numbers, np.uint64).astype(np.int64)
    finally:
        backend._library, backend.threads, backend._specialization = usual, threads, specialization


@contextmanager
def _on_gpu(backend: CudaBackend, variant: Variant) -> Iterator[Any]:
    """Within a ``with`` block, use GPU kernels that count cycles."""
    import cupy

    with backend.memory.here():
        module = backend.builds.full_module(variant)
        numbers = cupy.ndarray((ROUTINES,), np.uint64, module.get_global("routine_cycles"))

    def read() -> Array:
        with backend.memory.here():
            return np.asarray(numbers.get()).astype(np.int64)

    with backend.steps_of(module):
        yield read
