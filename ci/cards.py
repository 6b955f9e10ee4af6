"""GPUs for instruction counts and kernel builds, with numbers from NVIDIA's data sheets."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.backends.cuda.device import Gpu


@dataclass(frozen=True)
class Card:
    """A GPU.

    Attributes:
        gpu: resources of the GPU.
        clock: clock rate that the GPU sustains under load (1/s).
        bandwidth: memory bandwidth (bytes/s).
        fp64_cycles: number of cycles that a multiprocessor needs for one float64 instruction of a warp.
    """

    gpu: Gpu
    clock: float
    bandwidth: float
    fp64_cycles: float


CARDS = {
    "h100": Card(Gpu(132, 228 * 1024, 227 * 1024, 80 << 30), 1.75e9, 3.35e12, 0.5),
    "h200": Card(Gpu(132, 228 * 1024, 227 * 1024, 141 << 30), 1.75e9, 4.8e12, 0.5),
    "rtx4090": Card(Gpu(128, 100 * 1024, 99 * 1024, 24 << 30), 2.52e9, 1.0e12, 16.0),
}
