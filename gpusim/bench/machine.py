"""The machine: its name, and its bandwidth and arithmetic rate, each measured in a fraction of a second."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = (
    "numpy",
    "numba",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "mujoco",
    "mujoco-warp",
    "warp-lang",
    "newton",
    "pybullet",
    "rapier3d",
)
LEAST_COPY, GREATEST_COPY = 1 << 14, 1 << 27  # bytes
MEASURED_FOR = 0.03  # s
CHAIN = 24
VECTOR = 4096  # numbers that stay in the L1 cache
# Lanes of a multiprocessor for float32 and float64 by compute capability. Newer GPUs use the newest known entry.
LANES = {
    70: (64, 32), 72: (64, 32), 75: (64, 2), 80: (64, 32), 86: (128, 2), 87: (128, 2), 89: (128, 2),
    90: (128, 64), 100: (128, 64), 103: (128, 2), 120: (128, 2),
}  # fmt: skip


def describe() -> dict[str, Any]:
    """Return the machine and the software, for the head of a report."""
    from gpusim import __version__

    facts: dict[str, Any] = {
        "gpusim": __version__,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "cores": available_cores(),
        "compiler": compiler_name(),
        "gpu": gpu_name(),
    }
    return facts | {name: found for name in PACKAGES if (found := package_version(name))}


def commit() -> str:
    """Return the git commit of this checkout, with "+" if files differ from it, or "" outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    head = _output(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"])
    changed = _output(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"])
    return head + ("+" if head and changed else "")


def cpu_name() -> str:
    """Return the model of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return _output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.processor() or platform.machine()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiler_name() -> str:
    """Return the first line of the C++ compiler's version. The result is empty if there is none."""
    from gpusim.backends.native.compile import find_compiler
    from gpusim.errors import GpusimError

    try:
        return _output([find_compiler(), "--version"]).partition("\n")[0]
    except GpusimError:
        return ""


def gpu_name() -> str:
    """Return the name of the GPU that CuPy sees. The result is empty if it sees none."""
    try:
        import cupy

        name = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    except Exception:  # CuPy raises its own errors if the driver is missing
        return ""
    return name.decode() if isinstance(name, bytes) else str(name)


def package_version(name: str) -> str:
    """Return the version of an installed distribution. The result is empty if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def bandwidth(size: float, threads: int, gpu: bool) -> float:
    """Return the bytes per second, reads plus writes, that a copy moves.

    Args:
        size: bytes of the working set; it selects the cache level (CPU).
        threads: CPU threads.
        gpu: return the GPU memory's bandwidth instead, from clock and bus width.
    """
    if gpu:
        return gpu_bandwidth()
    rounded = 1 << max(LEAST_COPY, min(GREATEST_COPY, int(size))).bit_length() - 1
    return _copy_bandwidth(rounded, threads)


def rate(dtype: Any, threads: int, gpu: bool) -> float:
    """Return multiplications and additions per second, not fused.

    Args:
        dtype: float32 or float64.
        threads: CPU threads.
        gpu: return the GPU's rate instead, from lanes and clock.
    """
    return gpu_rate(np.dtype(dtype)) if gpu else _cpu_rate(np.dtype(dtype), threads)


def scalar_rate(threads: int) -> float:
    """Return multiplications and additions per second without vectors: the limit of scalar code."""
    return _cpu_scalar_rate(threads)


def gpu_bandwidth() -> float:
    """Return memory clock times bus width, twice per cycle, bytes/s."""
    facts = _gpu_attributes()
    return 2e3 * facts["MemoryClockRate"] * facts["GlobalMemoryBusWidth"] / 8.0


def gpu_rate(dtype: Any) -> float:
    """Return the operations per second of all lanes, one per cycle (two only for fused multiply-add)."""
    facts = _gpu_attributes()
    capability = 10 * facts["ComputeCapabilityMajor"] + facts["ComputeCapabilityMinor"]
    known = max((number for number in LANES if number <= capability), default=min(LANES))
    lanes = LANES[known][0 if dtype == np.float32 else 1]
    return 1e3 * facts["ClockRate"] * facts["MultiProcessorCount"] * lanes


def _gpu_attributes() -> dict[str, int]:
    import cupy

    # getDeviceProperties does not work: CUDA 13 has removed the clocks from it.
    device = cupy.cuda.Device(0)
    major, minor = divmod(int(device.compute_capability), 10)  # not among CuPy's attributes
    return {**device.attributes, "ComputeCapabilityMajor": major, "ComputeCapabilityMinor": minor}


@cache
def _copy_bandwidth(size: int, threads: int) -> float:
    count = max(1024, size // threads // 16)  # half source, half target; 8 bytes each
    arrays = [(np.ones(count), np.zeros(count)) for _ in range(threads)]

    def copy(pair: tuple[Any, Any], times: int) -> None:
        for _ in range(times):
            np.copyto(pair[1], pair[0])

    return 16.0 * count * _per_second(copy, arrays)


@cache
def _cpu_rate(dtype: Any, threads: int) -> float:
    run = _chains()
    a, b = dtype.type(0.999), dtype.type(0.001)
    arrays = [np.ones(VECTOR, dtype) for _ in range(threads)]
    run(arrays[0], a, b, 1)

    def compute(array: Any, times: int) -> None:
        run(array, a, b, times)

    return 2.0 * CHAIN * VECTOR * _per_second(compute, arrays)


@cache
def _cpu_scalar_rate(threads: int) -> float:
    run = _scalar_chains()
    run(1.0, 0.999, 0.001, 1)

    def compute(start: float, times: int) -> None:
        run(start, 0.999, 0.001, 64 * times)

    return 64.0 * 24.0 * _per_second(compute, [1.0] * threads)


@cache
def _scalar_chains() -> Callable[..., float]:
    """Return twelve independent scalar chains: enough to hide the latency of each."""
    import numba

    @numba.njit(nogil=True)
    def run(x: float, a: float, b: float, times: int) -> float:
        c, d, e, f, g, h = x, x + 1, x + 2, x + 3, x + 4, x + 5
        i, j, k, m, n, o = x + 6, x + 7, x + 8, x + 9, x + 10, x + 11
        for _ in range(times):
            c, d, e, f = c * a + b, d * a + b, e * a + b, f * a + b
            g, h, i, j = g * a + b, h * a + b, i * a + b, j * a + b
            k, m, n, o = k * a + b, m * a + b, n * a + b, o * a + b
        return c + d + e + f + g + h + i + j + k + m + n + o

    return run


@cache
def _chains() -> Callable[..., None]:
    """Return a loop of multiplications and additions that the compiler vectorizes without fusing."""
    import numba

    @numba.njit(nogil=True)
    def run(x: Any, a: Any, b: Any, times: int) -> None:
        part = x.size // 4
        for _ in range(times):
            for i in range(part):  # four independent chains; a single one would measure latency
                p, q, r, s = x[i], x[i + part], x[i + 2 * part], x[i + 3 * part]
                for _ in range(CHAIN):
                    p, q, r, s = p * a + b, q * a + b, r * a + b, s * a + b
                x[i], x[i + part], x[i + 2 * part], x[i + 3 * part] = p, q, r, s

    return run


def _per_second(work: Callable[[Any, int], None], items: list[Any]) -> float:
    """Return how often per second all threads together do ``work``, the best of several tries."""
    with ThreadPoolExecutor(len(items)) as pool:

        def once(times: int) -> float:
            begin = time.perf_counter()
            list(pool.map(work, items, [times] * len(items)))
            return time.perf_counter() - begin

        times, spent = 1, once(1)
        while spent < 0.2 * MEASURED_FOR:
            times *= 2
            spent = once(times)
        return len(items) * times / min(spent, *(once(times) for _ in range(5)))


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
