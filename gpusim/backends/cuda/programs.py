"""Run a block diagram on a GPU (cuda_kernels/diagram.cu), with one thread per world."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.backends.codegen.variants import program_variant
from gpusim.backends.cuda.launcher import Launcher
from gpusim.description.program import Program
from gpusim.typing import Array

THREADS = 128
"""Threads per block."""


class ProgramLaunch:
    """Launcher of the kernel that runs a block diagram at its sample times.

    Args:
        backend: backend that contains the state and the commands.
        program: compiled block diagram.
        name: name of the state array that contains the state variables of the diagram.
    """

    def __init__(self, backend: Launcher, program: Program, name: str) -> None:
        self._backend, self._name, self._period = backend, name, program.period
        self._kernel = backend.build(program_variant(program)).get_function("run_diagram")
        self._parameters: tuple[Array, Any] | None = None

    def __call__(self, given: Any, parameters: Array) -> None:
        """Launch the kernel.

        Args:
            given: input signals on the device, (num_worlds, inputs).
            parameters: parameters of the diagram on the host, (1 or num_worlds, parameters). The launcher copies
                changed parameters to the device.
        """
        self._backend.launch_on_commands(self._kernel, THREADS, lambda: self._arguments(given, parameters))

    def _arguments(self, given: Any, parameters: Array) -> tuple[Any, ...]:
        backend, integer = self._backend, np.int32
        arrays = backend.memory.arrays
        numbers, control = arrays[f"kept_{self._name}"], arrays["control"]
        stride = parameters.shape[1] if len(parameters) > 1 else 0
        read = arrays["kept_time"], arrays["health"], given, integer(given.shape[1])
        own = self._uploaded(parameters), integer(stride), numbers, integer(numbers.shape[1])
        rest = control, integer(control.shape[1]), np.float64(self._period), integer(backend.num_worlds), integer(1)
        return *read, *own, *rest

    def _uploaded(self, parameters: Array) -> Any:
        if self._parameters is None or not np.array_equal(self._parameters[0], parameters):
            self._parameters = parameters.copy(), self._backend.memory.to_device(parameters)
        return self._parameters[1]
