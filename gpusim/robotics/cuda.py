"""Inverse kinematics on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.backends.codegen.robot_header import OUTPUTS, TABLES
from gpusim.backends.codegen.variants import robotics_variant
from gpusim.backends.cuda.builds import CudaBuilds
from gpusim.backends.cuda.device import load_cupy
from gpusim.robotics.native import KernelSolver, Problem
from gpusim.typing import Array

DEVICE, WARP = 0, 32
MAX_THREADS = 1 << 16
"""Maximum number of threads in one kernel launch."""


class CudaSolver(KernelSolver):
    """Solver on GPU 0. The tables of the tree and the tasks stay in GPU memory.

    Raises:
        ModelError: CuPy is not installed, or there is no GPU.
        CompileError: the kernels do not compile.
    """

    def __init__(self, ik: Problem) -> None:
        super().__init__(ik)
        self._cupy = load_cupy(DEVICE)
        with self._cupy.cuda.Device(DEVICE):
            self._kernel = CudaBuilds(self._cupy, DEVICE).module(robotics_variant()).get_function("solve_worlds")
            self._device_tables: dict[str, Any] = {name: self._cupy.asarray(x) for name, x in self._tables.items()}

    def launch(self, robot: Array, arrays: dict[str, Array]) -> None:
        """Copy the arrays to the GPU, run the kernel, and copy the outputs back."""
        cupy, blocks = self._cupy, min(-(-int(robot["worlds"]) // WARP), MAX_THREADS // WARP)
        threads = blocks * WARP
        with cupy.cuda.Device(DEVICE):
            arguments = self._device_tables | {name: cupy.asarray(array) for name, array in arrays.items()}
            arguments["memory"] = cupy.empty((threads * self._sizes["work"],))
            for name in (*TABLES, *OUTPUTS):
                robot[name] = int(arguments[name].data.ptr)
            numbers = cupy.asarray(np.frombuffer(robot.tobytes(), np.uint8))
            self._kernel((blocks,), (WARP,), (numbers, np.int32(threads)))
            for name in OUTPUTS:
                if name in arrays and arrays[name].size:
                    arguments[name].get(out=arrays[name])
