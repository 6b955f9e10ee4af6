"""Check for CuPy and a GPU, and choose the launch shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpusim.backends.codegen.header import TILE_GAP
from gpusim.errors import ModelError

WARP = 32
_MAX_THREADS = 256
"""Maximum number of threads per block, if each block runs one world."""
_BLOCK = 64
"""Number of threads per block, if each block runs several worlds."""
_RESIDENT_THREADS = 512
"""Number of threads that a multiprocessor runs at the same time."""
_FEWEST_WARPS = 4
"""With at least this many warps per multiprocessor, shared memory is faster than global memory."""
_FEWEST_LANES = 4
_SLABS_SHARE = 8
"""The memory blocks of all worlds (slabs) use at most 1/_SLABS_SHARE of the GPU memory."""


@dataclass(frozen=True)
class LaunchShape:
    """Assignment of worlds to threads and blocks of a GPU in the fused launch.

    Attributes:
        lanes: number of threads per world: 4, 8, 16 or 32 threads of a warp, or all threads of a block.
        block: number of threads per block.
        shared: bytes of shared memory per block, or 0 if the work arrays are in global memory.
        tiles: number of worlds that run on the GPU at the same time.
    """

    lanes: int
    block: int
    shared: int
    tiles: int

    @property
    def worlds(self) -> int:
        """Return the number of worlds per block."""
        return self.block // self.lanes

    def grid(self, worlds: int) -> int:
        """Return the number of blocks that a launch needs for ``worlds`` worlds."""
        return -(-worlds // self.worlds)


@dataclass(frozen=True)
class Gpu:
    """Properties of a GPU that affect a launch.

    Attributes:
        processors: number of multiprocessors.
        shared: bytes of shared memory per multiprocessor.
        shared_of_block: maximum bytes of shared memory per block.
        memory: bytes of global memory.
    """

    processors: int
    shared: int
    shared_of_block: int
    memory: int


def load_cupy(device: int) -> Any:
    """Check that the GPU with the number ``device`` exists, and return the module cupy.

    Raises:
        ModelError: CuPy or the GPU is missing. The message contains the fix.
    """
    try:
        import cupy
    except ImportError as error:
        raise ModelError(f'CuPy is not installed ({error}); pip install "gpusim[cuda12]" or "gpusim[cuda13]"') from None
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:  # if CuPy is not installed, its error types do not exist
        raise ModelError(f"CuPy finds no GPU ({error}); install NVIDIA's driver, or use backend='native'") from None
    if isinstance(device, bool) or not isinstance(device, int) or not 0 <= device < count:
        raise ModelError(f"Simulation: device = {device!r} is not among {count} GPUs; give 0 to {count - 1}")
    return cupy


def launch_shape(sizes: dict[str, int], slab: int, worlds: int, gpu: Gpu) -> LaunchShape:
    """Choose the number of threads per world, and shared or global memory for the work arrays.

    Args:
        sizes: sizes of the model.
        slab: size of the work arrays of one world (bytes).
        worlds: number of worlds.
        gpu: properties of the GPU.
    """
    lanes = _FEWEST_LANES
    while 4 * lanes * lanes <= sizes["rows"] + sizes["pairs"] and lanes < _MAX_THREADS:
        lanes *= 2
    widest = max(sizes["sides"] * sizes["block"], sizes["elements"], sizes["bodies"], sizes["pairs"])
    full = gpu.processors * _RESIDENT_THREADS
    while 2 * lanes * worlds <= full and 4 * lanes <= widest and lanes < _MAX_THREADS:
        lanes *= 2
    crowd = -(-worlds // gpu.processors)  # worlds per multiprocessor
    near = min(gpu.shared // (slab + TILE_GAP), crowd)  # worlds that fit into the shared memory at once
    block = max(lanes, _BLOCK if crowd * lanes >= _BLOCK else WARP)
    shared = (block // lanes) * (slab + TILE_GAP)
    if shared > gpu.shared_of_block and lanes <= WARP:
        block = WARP
        shared = (block // lanes) * (slab + TILE_GAP)
    if shared <= gpu.shared_of_block and (near >= crowd or near * lanes >= _FEWEST_WARPS * WARP):
        return LaunchShape(lanes, block, shared, worlds)
    tiles = min(gpu.memory // (_SLABS_SHARE * slab), gpu.processors * max(_RESIDENT_THREADS // lanes, 1))
    whole_blocks = max(tiles // (block // lanes), 1) * (block // lanes)
    return LaunchShape(lanes, block, 0, min(worlds, whole_blocks))
