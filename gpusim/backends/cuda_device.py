"""What the cuda backend needs of CuPy and of the GPU, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpusim.backends.header import TILE_GAP
from gpusim.errors import ModelError

WARP = 32
_MOST_THREADS = 256
"""Of a block that one world has to itself: kernels are compiled for no more."""
_BLOCK = 64
"""Threads of a block that several worlds share."""
_RESIDENT_THREADS = 512
"""That run side by side on a multiprocessor, by the registers that the fused kernel is compiled for."""
_FEWEST_WARPS = 4
"""Of a multiprocessor that work in shared memory must leave, or memory that is farther away is faster."""
_FEWEST_LANES = 4
_SLABS_SHARE = 8
"""Slabs take one part in so many of the GPU's memory at most."""


@dataclass(frozen=True)
class LaunchShape:
    """How worlds lie on a GPU in fused launch.

    Attributes:
        lanes: threads of a world: 1, 2, 4, ... 32 of a warp, or a whole block.
        block: threads of a block.
        shared: bytes of shared memory of a block; 0: worlds work in slabs of global memory.
        tiles: worlds that run side by side, each with a slab where there is no shared memory.
    """

    lanes: int
    block: int
    shared: int
    tiles: int

    @property
    def worlds(self) -> int:
        """Of a block."""
        return self.block // self.lanes

    def grid(self, worlds: int) -> int:
        """Blocks for so many worlds."""
        return -(-worlds // self.worlds)


@dataclass(frozen=True)
class Gpu:
    """What a launch depends on: multiprocessors; bytes of shared memory of one, and of a block; bytes of all memory."""

    processors: int
    shared: int
    shared_of_block: int
    memory: int


def load_cupy(device: int) -> Any:
    """The module cupy, with a GPU of number ``device`` that answers.

    Raises:
        ModelError: what is missing, and the mend.
    """
    try:
        import cupy
    except ImportError as error:
        raise ModelError(f'CuPy is not installed ({error}); pip install "gpusim[cuda12]" or "gpusim[cuda13]"') from None
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:  # CuPy raises its own errors, which can't be named where it is not installed
        raise ModelError(f"CuPy finds no GPU ({error}); install NVIDIA's driver, or use backend='native'") from None
    if isinstance(device, bool) or not isinstance(device, int) or not 0 <= device < count:
        raise ModelError(f"Simulation: device = {device!r} is not among {count} GPUs; give 0 to {count - 1}")
    return cupy


def launch_shape(sizes: dict[str, int], slab: int, worlds: int, gpu: Gpu) -> LaunchShape:
    """How many threads a world has, and where it works.

    The busiest thread's operations fall with the threads of a world, and what all of them take of the machine rises: by
    counts (``gpusim bench --estimate``) about the square root of the rows is a fair middle. Few worlds take more,
    until the GPU is full.

    Args:
        sizes: of the model.
        slab: bytes of one world's work.
        worlds: how many there are.
        gpu: the machine.
    """
    lanes = _FEWEST_LANES
    while 4 * lanes * lanes <= sizes["rows"] + sizes["pairs"] and lanes < _MOST_THREADS:
        lanes *= 2
    widest = max(sizes["sides"] * sizes["block"], sizes["elements"], sizes["bodies"], sizes["pairs"])
    full = gpu.processors * _RESIDENT_THREADS
    while 2 * lanes * worlds <= full and 4 * lanes <= widest and lanes < _MOST_THREADS:
        lanes *= 2
    crowd = -(-worlds // gpu.processors)  # worlds of a multiprocessor
    near = min(gpu.shared // (slab + TILE_GAP), crowd)  # of them side by side in shared memory
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
