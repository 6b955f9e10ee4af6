from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from ci.cards import CARDS
from ci.ptx import executor as ptx
from ci.ptx.count import CountedModules, Counts, bounds, kind_of, limit_of, over_limits, summary
from ci.ptx.device import device_array
from ci.ptx.executor import executor, why_not
from tests.message_snapshot import naming

needs_executor = pytest.mark.skipif(bool(why_not()), reason=why_not())
SIZE = 32 * 16
KERNELS = """
#define EACH(name, i, j) \\
    extern "C" __global__ void name(const double* x, double* y) { const int t = threadIdx.x; y[j] = x[i] + 1.0; }
EACH(side_by_side, t, t)
EACH(a_line_apart, 16 * t, t)
EACH(the_same, 0, t)
EACH(across, t + 1, t)
#define SHARED(name, i)                                              \\
    extern "C" __global__ void name(const double* x, double* y) {    \\
        extern __shared__ float s[];                                 \\
        s[i] = 1.0f;                                                 \\
        __syncthreads();                                             \\
        if (threadIdx.x == 0) y[0] = s[0];                           \\
    }
SHARED(banks_apart, threadIdx.x)
SHARED(one_bank, 32 * threadIdx.x)
extern "C" __global__ void loops(const double* x, double* y) {
    double sum = x[0];
#pragma unroll 1
    for (int k = 0; k < int(x[1 + threadIdx.x]); ++k) sum = sum * 0.5 + 1.0;
    y[threadIdx.x] = sum;
}
extern "C" __global__ void twice(const double* x, double* y) {
    double sum = 0.0;
#pragma unroll 1
    for (int turn = 0; turn < 2; ++turn) {
        for (int k = threadIdx.x; k < 512; k += 32) sum += x[k];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
"""


@pytest.fixture(scope="module")
def modules() -> CountedModules:
    found = CountedModules(64, (2048, 4096, 28672))
    found.load(("fused_test.cu", {"fused_test.cu": KERNELS}, {}, (), ptx.ARCH, ptx.NVRTC_MAJOR))
    return found


def counted(modules: CountedModules, name: str, x: Any = 0.0, block: int = 32, worlds: int = 1) -> Counts:
    """Return the counts of one launch."""
    arrays = device_array(np.zeros(SIZE) + np.pad(np.atleast_1d(x), (0, SIZE - np.size(x)))), device_array(np.zeros(64))
    executor().configure()
    modules.restart()
    modules.loaded[0][0].launch(name, 1, block, b"".join(struct.pack("<Q", a.ctypes.data) for a in arrays), 4096)
    return summary(name, modules, worlds)


@needs_executor
@pytest.mark.parametrize(
    "name, lines, sectors",
    [("side_by_side", 2, 8), ("a_line_apart", 32, 32), ("the_same", 1, 1), ("across", 3, 9)],
)
def test_requests_are_lines_and_sectors(modules: CountedModules, name: str, lines: int, sectors: int) -> None:
    found = counted(modules, name).figures
    assert (found["requests"], found["lines"], found["sectors"]) == (2, lines + 2, sectors + 8)
    assert found["stored sectors"] == 8
    half = counted(modules, name, worlds=2).figures
    assert half["lines"] == 0.5 * found["lines"] and half["code"] == found["code"]


@needs_executor
def test_shared_memory_counts_passes_over_its_banks(modules: CountedModules) -> None:
    one, many = (counted(modules, name).figures["passes"] for name in ("banks_apart", "one_bank"))
    assert (one, many) == (2, 33), "a store, and a load by one thread"


@needs_executor
def test_a_warp_takes_as_long_as_its_busiest_thread(modules: CountedModules) -> None:
    def rounds(turns: Any) -> tuple[float, float]:
        found = counted(modules, "loops", np.concatenate([[0.0], turns])).figures
        return found["warp instructions"], found["active threads"]

    none, ten, alone = rounds(np.zeros(32)), rounds(np.full(32, 10.0)), rounds(np.eye(32)[5] * 10.0)
    assert ten[0] == alone[0] > none[0]
    assert ten[1] == none[1] == 32.0 and 1.0 < alone[1] < 16.0


@needs_executor
def test_two_warps_are_two_warps(modules: CountedModules) -> None:
    one, two = counted(modules, "the_same"), counted(modules, "the_same", block=64)
    assert two.figures["warp instructions"] == 2.0 * one.figures["warp instructions"]
    assert two.figures["active threads"] == 32.0 and two.shares["fp64"] == one.shares["fp64"] > 0.0


@needs_executor
def test_caches_fetch_again_what_does_not_fit(modules: CountedModules) -> None:
    found = counted(modules, "twice").figures
    assert [found[f"kB at {size}"] for size in ("2.0", "4.0", "28.0")] == pytest.approx([8.192, 4.096, 4.096])


def test_kinds_limits_and_bounds() -> None:
    names = ("add.rn.f64", "fma.rn.f32", "ld.global.v2.f64", "setp.lt.f64", "bra", "mad.lo.s32", "atom.add.u32")
    assert [kind_of(name) for name in names] == ["fp64", "fp32", "memory", "control", "control", "integer", "memory"]
    assert [limit_of(x) for x in (0, 7, 36340.2, 99.5)] == [0, 7, 37000, 100]
    counts = Counts("lying", {"warp instructions": 40000.0, "lines": 60000.0, "passes": 0.0, "kB at 6.0": 300.0})
    counts.shares = {"fp64": 20.0}
    assert over_limits([counts], {"lying": {"lines": 60000.0, "passes": 0.0}, "boom": {"lines": 1.0}}) == []
    with pytest.raises(AssertionError, match=naming("lines 60000 59000")):
        assert over_limits([counts], {"lying": {"lines": 59000.0}}) == []
    h200, rtx = (bounds(counts, CARDS[name]) for name in ("h200", "rtx4090"))
    assert h200["issue"] == pytest.approx(69.3, abs=0.1) and h200["lines"] == pytest.approx(259.7, abs=0.1)
    assert h200["memory"] == pytest.approx(62.5) and h200["fp64"] == pytest.approx(17.3, abs=0.1)
    assert rtx["fp64"] > 20.0 * h200["fp64"]
