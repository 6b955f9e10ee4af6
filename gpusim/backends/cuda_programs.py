"""Diagrams on a GPU: the launch of a program's own kernel (cuda_kernels/diagram.cu), one thread a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.backends.variants import program_variant
from gpusim.model.program import Program
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.backends.cuda_backend import CudaBackend

THREADS = 128
"""Of a block."""


class ProgramLaunch:
    """Samples one diagram in the worlds where it is due; nothing is copied to the host.

    Args:
        backend: whose state and commands it changes.
        program: of the diagram.
        name: of the array of the state that holds its numbers.
    """

    def __init__(self, backend: CudaBackend, program: Program, name: str) -> None:
        self._backend, self._name, self._period = backend, name, program.period
        self._kernel = backend.build(program_variant(program)).get_function("run_diagram")
        self._parameters: tuple[Array, Any] | None = None

    def __call__(self, given: Any, parameters: Array) -> None:
        """Launch it.

        Args:
            given: what was read of the simulation, (worlds, inputs) on the device.
            parameters: (1 or worlds, parameters) on the host; copied where they have changed.
        """
        self._backend.launch_on_commands(self._kernel, THREADS, lambda: self._arguments(given, parameters))

    def _arguments(self, given: Any, parameters: Array) -> tuple[Any, ...]:
        backend, integer = self._backend, np.int32
        numbers, control = backend.device_array(f"kept_{self._name}"), backend.device_array("control")
        stride = parameters.shape[1] if len(parameters) > 1 else 0
        read = backend.device_array("kept_time"), backend.device_array("health"), given, integer(given.shape[1])
        own = self._placed(parameters), integer(stride), numbers, integer(numbers.shape[1])
        rest = control, integer(control.shape[1]), np.float64(self._period), integer(backend.num_worlds), integer(1)
        return *read, *own, *rest

    def _placed(self, parameters: Array) -> Any:
        """The parameters on the device."""
        if self._parameters is None or not np.array_equal(self._parameters[0], parameters):
            self._parameters = parameters.copy(), self._backend.to_device(parameters)
        return self._parameters[1]
