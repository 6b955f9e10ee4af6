"""Where the time of a fused step goes: the routines of the schedule count their cycles, in a build of its own."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from gpusim.backends.cuda_backend import CudaBackend
from gpusim.backends.native_backend import NativeBackend, load_library
from gpusim.backends.variants import Variant, clocked_variant, model_variant
from gpusim.errors import ModelError
from gpusim.typing import Array

ROUTINES = 96
"""Room for their numbers, as in cuda_kernels/routine_clock.cuh."""
STEP = ("contacts", "substep", "store_contacts", "check")
"""What a step is made of beside reading and writing the state."""
LEAST_SECONDS = 0.2
"""To look at, so that what else the computer does is a small share."""
GROUPS = ("contacts", "impulses", "substep")
"""Routines that are stages one after another."""


def clock_routines(sim: Any, steps: int = 10) -> dict[str, float]:
    """Shares of a step by routine, those that it calls included, the greatest first.

    Cycles are those of a world's first thread, waiting included; of a GPU with several worlds to a warp a share is of
    the warp's time. A step is what the routines of STEP take together.

    Args:
        sim: in fused launch, on the cuda or the native backend; it goes on by ``steps`` steps, once or as often as
            fit into LEAST_SECONDS.
        steps: how many to look at at once.

    Raises:
        ModelError: another launch or backend.
        CompileError: the kernels do not compile.
    """
    backend = sim.backend
    counted: Callable[[Any, Variant], AbstractContextManager[Any]]
    if isinstance(backend, NativeBackend) and backend.launch == "fused":
        (variant, names), counted = clocked_variant(_native_variant(backend)), _on_cpu
    elif isinstance(backend, CudaBackend) and backend.launch == "fused":
        (variant, names), counted = clocked_variant(_cuda_variant(backend)), _on_gpu
    else:
        rule = f"clock_routines: launch '{getattr(backend, 'launch', 'numpy')}' can't be clocked"
        raise ModelError(f"{rule}; give backend='cuda' or 'native' with launch='fused'")
    assert len(names) <= ROUTINES
    with counted(backend, variant) as read:
        before, end = read(), time.perf_counter() + LEAST_SECONDS
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
    """What steps run in once their full build is there."""
    variant = backend.step_variant()
    return variant.full or variant


@contextmanager
def _on_cpu(backend: NativeBackend, variant: Variant) -> Iterator[Any]:
    """Reads the numbers of a clocked library that runs in place of the backend's, by one thread: others would be held
    up by whatever else the computer does."""
    usual, backend._library = backend._library, load_library(variant)
    threads, backend.threads = backend.threads, 1
    numbers = (ctypes.c_ulonglong * ROUTINES).in_dll(backend._library, "routine_cycles")
    try:
        yield lambda: np.array(numbers, np.uint64).astype(np.int64)
    finally:
        backend._library, backend.threads = usual, threads


@contextmanager
def _on_gpu(backend: CudaBackend, variant: Variant) -> Iterator[Any]:
    """The same on the device."""
    import cupy

    with backend._here():
        module = backend.builds.full_module(variant)
        numbers = cupy.ndarray((ROUTINES,), np.uint64, module.get_global("routine_cycles"))

    def read() -> Array:
        with backend._here():
            return np.asarray(numbers.get()).astype(np.int64)

    with backend.steps_of(module):
        yield read
