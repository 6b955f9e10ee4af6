from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from ci.ptx import executor as ptx
from ci.ptx.device import device_array, load_module, mark_unwritten
from ci.ptx.executor import Finding, Module, executor, why_not
from gpusim.backends.codegen.kernel_sources import reachable_sources

from .kernels import ARITHMETIC, BITS, FAULTS

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def arithmetic() -> Module:
    sources = reachable_sources("arithmetic.cu", {"arithmetic.cu": ARITHMETIC})
    return load_module(("arithmetic.cu", sources, {"GPUSIM_REAL": "double", "GPUSIM_STORED": "double"}, (), ptx.ARCH))


@pytest.fixture(scope="module")
def faults() -> Module:
    return load_module(("faults.cu", {"faults.cu": FAULTS}, {}, (), ptx.ARCH))


def run(
    module: Module, name: str, grid: int, block: int, *arrays: Any, shared: int = 0, seed: int = 1
) -> list[Finding]:
    executor().configure(seed)
    module.launch(name, grid, block, b"".join(struct.pack("<Q", a.ctypes.data) for a in arrays), shared)
    return executor().findings()


def kinds(found: list[Finding]) -> set[str]:
    return {finding.kind for finding in found}


SPECIAL = (0.0, 1.0, 1.5, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.1754943508222875e-38, 3.4e38, 1.79e308)


def numbers(kind: type) -> np.ndarray:
    random = np.random.default_rng(1)
    wide = random.standard_normal(20) * 10.0 ** random.integers(-320, 300, 20)
    narrow = random.standard_normal(20) * 10.0 ** random.integers(-45, 38, 20)
    with np.errstate(all="ignore"):
        return np.array([*SPECIAL, *(-x for x in SPECIAL), np.inf, -np.inf, np.nan, *wide, *narrow]).astype(kind)


def same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    bits = f"u{got.itemsize}"
    assert got.dtype == expected.dtype
    wrong = (got.view(bits) != expected.view(bits)) & ~(np.isnan(got) & np.isnan(expected))
    assert not wrong.any(), (got[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_arithmetic(arithmetic: Module, kind: type) -> None:
    a, b = (np.ascontiguousarray(m.ravel()) for m in np.meshgrid(numbers(kind), numbers(kind)))
    half, zero = kind(0.5), kind(0)
    with np.errstate(all="ignore"):
        expected = [a + b, a - b, a * b, a / b, np.sqrt(a), -a, np.abs(a), kind(1) / a]
        expected += [np.where(a > half, a, half), np.where(a < -half, a, -half)]
        # as the CPU's comparison has it, also of zeros of both signs
        expected += [np.where(a > zero, a, zero), np.where(a < zero, a, zero)]
        narrow = a.astype(np.float32)
    arrays = a, b, np.zeros((a.size, 12), kind), np.zeros(a.size), np.zeros(a.size, np.float32)
    out = [device_array(x) for x in arrays]
    whole = device_array(np.zeros((a.size, 12), np.int32))
    found = run(arithmetic, "doubles" if kind is np.float64 else "floats", a.size, 1, *out, whole)
    assert kinds(found) == {"conversion out of range"}
    for k, column in enumerate(expected):
        same_bits(np.ascontiguousarray(np.asarray(out[2])[:, k]), column)
    same_bits(np.asarray(out[3]), a.astype(np.float64))
    same_bits(np.asarray(out[4]), narrow)
    tests = [a < b, a <= b, a == b, a != b, ~(a < b), ~(a >= b), np.where(a > b, 3, 5)]
    tests += [~(a > b), ~(a <= b), np.isnan(a), ~(np.isnan(a) | np.isnan(b))]
    for k, test in enumerate(tests):
        np.testing.assert_array_equal(np.asarray(whole)[:, k], test, err_msg=str(k))
    # a GPU goes to the nearest limit
    limited = np.where(a > 0, 2**31 - 1, -(2**31))
    inside = np.abs(a) < 2**31
    with np.errstate(all="ignore"):
        converted = np.where(inside, a.astype(np.int32), limited)
    np.testing.assert_array_equal(np.asarray(whole)[~np.isnan(a), 11], converted[~np.isnan(a)])


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def bits_of(x: int, at: int, size: int, width: int, of_sign: bool) -> int:
    wanted = (x >> at if at < width else 0) & ((1 << min(size, width)) - 1)
    last = min(at + size - 1, width - 1)
    filled = [k for k in range(width) if k >= size or at + k >= width]
    ones = of_sign and size > 0 and x >> last & 1
    return wanted | sum(1 << k for k in filled) if ones else wanted


def test_bits_of_newer_cards() -> None:
    random, count = np.random.default_rng(3), 400
    a, wide = (random.integers(0, 2**w, count, dtype=f"u{w // 8}", endpoint=False) for w in (32, 64))
    at, size = (random.integers(0, 40, count).astype(np.uint32) for _ in range(2))
    at[:4], size[:4] = (0, 31, 255, 63), (0, 1, 64, 255)
    inputs = [device_array(x) for x in (a, at, size)]
    out, wide_out = device_array(np.zeros((count, 3), np.uint32)), device_array(np.zeros((count, 4), np.uint64))
    module = load_module(("bits.cu", {"bits.cu": BITS}, {}, (), ptx.ARCH))
    assert not run(module, "bits", count, 1, *inputs, out, device_array(wide), wide_out)
    for i in range(count):
        x, y, position, room = int(a[i]), int(wide[i]), int(at[i]), int(size[i])
        choice, both = (position * 257 + room * 4099) & 0xFFFF, (y & 0xFFFFFFFF) << 32 | x
        chosen = 0
        for k in range(4):
            digit = choice >> 4 * k & 15
            byte = both >> 8 * (digit & 7) & 255
            chosen |= (255 * (byte >> 7) if digit & 8 else byte) << 8 * k
        fields = [bits_of(x, position, room, 32, of_sign) for of_sign in (False, True)]
        assert np.asarray(out)[i].tolist() == [*fields, chosen], i
        z = (y * 6364136223846793005 + x) % 2**64
        high = [y * z >> 64, (signed(y, 64) * signed(z, 64) >> 64) % 2**64]
        fields = [bits_of(y, position, room, 64, of_sign) for of_sign in (False, True)]
        assert np.asarray(wide_out)[i].tolist() == [*fields, *high], i


def test_whole_numbers(arithmetic: Module) -> None:
    values = [0, 1, -1, 2, 3, -3, 7, 31, 32, 2**31 - 1, -(2**31) + 1, 123456789, -987654321, 65536, 255, -256]
    a, b = (m.ravel() for m in np.meshgrid(np.array(values), np.array(values)))
    out, wide = device_array(np.zeros((a.size, 14), np.int32)), device_array(np.zeros((a.size, 2), np.int64))
    assert not run(
        arithmetic, "integers", a.size, 1, *(device_array(x.astype(np.int32)) for x in (a, b)), out, wide
    )  # fmt: skip

    def divide(x: Any, y: Any) -> np.ndarray:
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        return np.array([0 if q == 0 else abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in pairs])

    shift = b & 31
    expected = [a + b, a * b, divide(a, b), np.where(b == 0, 0, a - divide(a, b) * b), a << shift, a >> shift]
    expected += [(a & 0xFFFFFFFF) >> shift, a & b, a ^ ~b, divide(a, np.full_like(a, 3)), a < b, np.maximum(a, b)]
    expected += [np.minimum(a, b), np.abs(a)]
    for k, column in enumerate(expected):
        cut = np.asarray(column, np.int64).astype(np.uint64).astype(np.uint32).view(np.int32)
        np.testing.assert_array_equal(np.asarray(out)[:, k], cut, err_msg=str(k))
    np.testing.assert_array_equal(np.asarray(wide)[:, 0], a * b)
    np.testing.assert_array_equal(np.asarray(wide)[:, 1], divide(a * 1000003, b))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_good_kernel(faults: Module, seed: int) -> None:
    x = device_array(np.arange(64.0))
    assert not run(faults, "good", 1, 64, x, shared=512, seed=seed)
    np.testing.assert_array_equal(x, np.arange(64.0)[::-1])
    counts = device_array(np.array([0, 99, -5, 0], np.int32))
    assert not run(faults, "atomics", 3, 32, counts, seed=seed)
    assert counts.tolist() == [96, 0, 31, -1]


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", ["relay", "early", "late"])
def test_blocks_that_take_turns(faults: Module, kernel: str) -> None:
    expected, kept, waited = np.cumsum(np.arange(8)).tolist(), [], set()
    for seed in range(8):
        x = device_array(np.zeros(11, np.int32))
        waited |= kinds(run(faults, kernel, 4, 1, x, seed=seed))
        kept.append(x[3:].tolist() == expected)
    assert waited == ({"blocks that wait forever"} if kernel == "late" else set())
    assert all(kept) if kernel == "relay" else not all(kept)


def test_a_trap(faults: Module) -> None:
    for reported in (0, 1):
        x = device_array(np.array([reported, 0], np.int32))
        found = run(faults, "impatient", 1, 1, x)
        assert kinds(found) == (set() if reported else {"blocks that wait forever"})
        assert x.tolist() == [reported, reported]


def test_a_missing_barrier(faults: Module) -> None:
    x = device_array(np.arange(64.0))
    found = run(faults, "no_barrier", 1, 64, x, shared=512, seed=0)
    assert kinds(found) == {"race between threads", "unwritten memory read"}
    assert all("faults.cu:" in f.position for f in found)
    assert all("no_barrier" in f.other for f in found if f.kind == "race between threads")
    assert np.isnan(np.asarray(x)).any()


RACES = ("all_write", "one_reads", "written_then_read", "read_then_written", "written_then_added", "written_and_added")


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kernel", [*RACES, "blocks_add", "blocks_read"])
def test_races(faults: Module, kernel: str, seed: int) -> None:
    blocks, threads, kind = (2, 1, "blocks") if kernel.startswith("blocks_") else (1, 32, "threads")
    found = run(faults, kernel, blocks, threads, device_array(np.zeros(4, np.int32)), seed=seed)
    assert kinds(found) == {f"race between {kind}"}
    assert kernel in found[0].position and kernel in found[0].other and "faults.cu:" in str(found[0])


def test_unwritten_memory(faults: Module) -> None:
    found = run(faults, "unwritten", 1, 32, device_array(np.zeros(1)), shared=256)
    assert kinds(found) == {"unwritten memory read"} and found[0].thread == 0
    spoiled = device_array(np.zeros(2, np.int32))
    mark_unwritten(spoiled)
    assert kinds(run(faults, "blocks_add", 1, 1, spoiled)) == {"unwritten memory read"}
    assert not run(faults, "blocks_add", 1, 1, spoiled)


def test_out_of_bounds(faults: Module) -> None:
    found = run(faults, "ones", 1, 32, device_array(np.zeros(31)))
    assert kinds(found) == {"out of bounds"} and found[0].thread == 31 and found[0].count == 1
    assert kinds(run(faults, "shared_ones", 1, 32, device_array(np.zeros(1)), shared=248)) == {"out of bounds"}
    assert kinds(run(faults, "through", 1, 1, device_array(np.zeros(1, np.int64)))) == {"out of bounds"}
    freed = device_array(np.zeros(1))
    params = struct.pack("<Q", freed.ctypes.data)
    del freed
    executor().configure()
    faults.launch("ones", 1, 1, params)
    assert kinds(executor().findings()) == {"out of bounds"}
    assert kinds(run(faults, "odd", 1, 1, device_array(np.zeros(2)))) == {"misaligned"}


@pytest.mark.parametrize("kernel", ["in_part", "two_barriers"])
def test_a_divergent_barrier(faults: Module, kernel: str) -> None:
    assert "divergent barrier" in kinds(run(faults, kernel, 1, 32, device_array(np.zeros(32, np.int32))))


def test_local_arrays(faults: Module) -> None:
    out = device_array(np.zeros(1))
    assert not run(faults, "local", 1, 1, device_array(np.array([8, 7], np.int32)), out)
    assert out[0] == 7.0
    found = run(faults, "local", 1, 1, device_array(np.array([7, 7], np.int32)), out)
    assert kinds(found) == {"unwritten local memory read"} <= set(ptx.NOTES)
    assert "out of bounds" in kinds(run(faults, "local", 1, 1, device_array(np.array([8, 8], np.int32)), out))
    assert "out of bounds" in kinds(run(faults, "local_below", 1, 1, device_array(np.array([1, -1], np.int32)), out))


def test_what_ptx_leaves_open(faults: Module) -> None:
    found = run(faults, "quotient", 1, 1, device_array(np.array([0, 1, 0], np.int32)))
    assert kinds(found) == {"whole number divided by zero"}
    out = device_array(np.zeros(1, np.int32))
    assert kinds(run(faults, "whole", 1, 1, device_array(np.array([1e12])), out)) == {"conversion out of range"}


def test_launches_that_can_not_be(faults: Module) -> None:
    with pytest.raises(ValueError, match="takes 8 bytes of parameters, not 0"):
        faults.launch("ones", 1, 32, b"")
    with pytest.raises(ValueError, match="2048 threads"):
        faults.launch("ones", 1, 2048, b"\0" * 8)
