"""Loop that runs many steps in one call of the native backend.

The ctypes structures must match the C structures in cuda_kernels/step_loop.cu.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpusim.backends.codegen.ray_header import split_entries
from gpusim.backends.codegen.variants import Variant, program_variant, rays_variant
from gpusim.backends.kinds import Kinds
from gpusim.backends.memory import HostMemory
from gpusim.description.step_plan import Reading, Sampling, StepPlan
from gpusim.model.state import OVERRIDE
from gpusim.typing import Array

LOOP = Variant("step loop", "step_loop.cu", {}, {"GPUSIM_REAL": "double", "GPUSIM_STORED": "double"})
_POINTER, _NUMBER, _DOUBLE = ctypes.c_void_p, ctypes.c_longlong, ctypes.c_double


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class _Copy(ctypes.Structure):
    _fields_ = _fields(_POINTER, "source") + _fields(_NUMBER, "stride column")


class _Reading(ctypes.Structure):
    _fields_ = _fields(_POINTER, "observe cast entries rays out copies") + _fields(
        _NUMBER, "entry_count ray_count copy_count width"
    )


class _Program(ctypes.Structure):
    _fields_ = [
        ("inputs", _Reading), *_fields(_POINTER, "due sample parameters numbers"), ("period", _DOUBLE),
        *_fields(_NUMBER, "stride count delays"),
    ]  # fmt: skip


class _Loop(ctypes.Structure):
    _fields_ = [
        *_fields(_POINTER, "arguments step time health control held programs commands command_columns"),
        ("record", _Reading), ("h", _DOUBLE),
        *_fields(_NUMBER, "worlds controls threads program_count command_count command_worlds every"),
    ]  # fmt: skip


class Stepper(Protocol):
    """Interface of the native backend for :class:`StepLoop`."""

    arguments: Any
    kinds: Kinds
    health: Array

    @property
    def memory(self) -> HostMemory:
        """Return the memory with the state and the commands."""

    @property
    def stepping(self) -> Any:
        """Return the library function that runs steps."""

    @property
    def team(self) -> int:
        """Return the number of threads."""


class StepLoop:
    """Loop over the steps of a plan. C structures describe the loop for the library.

    Args:
        backend: backend that runs the steps.
        plan: plan of the steps.
        load: function that returns the library of a build.
        observe: library function that reads signals.
    """

    def __init__(self, backend: Stepper, plan: StepPlan, load: Callable[[Variant], Any], observe: Any) -> None:
        self._backend, self._load, self._observe, self._kept = backend, load, observe, list[Any]()
        state, loop = backend.memory.read_state().arrays, _Loop()
        self._run, self._stepping = load(LOOP).run_loop, None
        self._run.argtypes = _POINTER, _NUMBER, _NUMBER
        loop.arguments = backend.arguments.ctypes.data
        loop.time, loop.health = self._pointer(state["time"]), self._pointer(backend.health)
        loop.control, loop.held = self._pointer(backend.memory.control), self._pointer(state[OVERRIDE])
        loop.worlds, loop.controls = backend.memory.control.shape
        programs = (_Program * len(plan.programs))(*map(self._program, plan.programs))
        loop.programs, loop.program_count = ctypes.addressof(programs), len(plan.programs)
        self._kept.append(programs)
        if plan.commands is not None and plan.columns is not None:
            loop.commands = self._pointer(plan.commands)
            loop.command_columns = self._pointer(plan.columns.astype(np.int32))
            _, loop.command_worlds, loop.command_count = plan.commands.shape
        if plan.record is not None:
            loop.record, loop.every = self._reading(plan.record), plan.every
        self._loop, self._address = loop, ctypes.c_void_p(ctypes.addressof(loop))

    def run(self, first: int, n: int, h: float) -> None:
        """Run ``n`` steps in substeps of ``h`` seconds, starting with the step with the index ``first``."""
        loop, stepping = self._loop, self._backend.stepping
        if stepping is not self._stepping:  # True in the first run, and when specialized kernels are ready
            loop.step, self._stepping = _function(stepping), stepping
        loop.h, loop.threads = h, self._backend.team
        self._run(self._address, first, n)

    def _pointer(self, array: Array) -> int:
        """Return the address of an array. If the array is not contiguous, return the address of a copy."""
        self._kept.append(np.ascontiguousarray(array))
        return int(self._kept[-1].ctypes.data)

    def _reading(self, reading: Reading) -> _Reading:
        backend, out = self._backend, _Reading()
        plain, rays = split_entries(reading.entries, backend.kinds)
        out.entries, out.rays, out.out = self._pointer(plain), self._pointer(rays), self._pointer(reading.array)
        out.entry_count, out.ray_count, out.width = len(plain), len(rays), reading.array.shape[-1]
        if len(plain):
            out.observe = _function(self._observe)
        if len(rays):
            out.cast = _function(self._load(rays_variant(backend.kinds)).cast_rays)
        copies = (_Copy * len(reading.kept))()
        for copy, (name, at, column) in zip(copies, reading.kept, strict=True):
            array = backend.memory.read_state().arrays[name]
            copy.source, copy.stride, copy.column = self._pointer(array) + 8 * at, array.shape[1], column
        self._kept.append(copies)
        out.copies, out.copy_count = ctypes.addressof(copies), len(copies)
        return out

    def _program(self, sampling: Sampling) -> _Program:
        library = self._load(program_variant(sampling.program))
        numbers, parameters = self._backend.memory.read_state().arrays[sampling.name], sampling.parameters
        out = _Program(inputs=self._reading(sampling.inputs))
        out.due, out.sample = _function(library.somewhere_due), _function(library.run_diagram)
        out.parameters, out.numbers = self._pointer(parameters), self._pointer(numbers)
        out.period, out.count, out.delays = sampling.program.period, numbers.shape[1], sampling.delays
        out.stride = parameters.shape[1] if len(parameters) > 1 else 0
        return out


def _function(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
