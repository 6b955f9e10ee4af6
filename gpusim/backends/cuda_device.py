"""What the cuda backend needs of CuPy and of the GPU, and what is missing."""

from __future__ import annotations

from typing import Any

from gpusim.errors import ModelError

# Items of the widest phases for each thread of a block; more threads only wait for each other.
_ITEMS_A_THREAD = 4
_WARP, _MOST_THREADS = 32, 256


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


def threads_of_block(sizes: dict[str, int]) -> int:
    """Threads for one world: enough for its widest phases, in whole warps."""
    widest = max(sizes["sides"] * sizes["block"], sizes["elements"], sizes["bodies"])
    warps = -(-widest // (_WARP * _ITEMS_A_THREAD))
    return min(max(warps, 1) * _WARP, _MOST_THREADS)
