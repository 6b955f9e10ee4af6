"""cuda_kernels/math/detmath.cuh, compiled by the system's C++ compiler: errors in ulp, special values, pinned bits."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gpusim.cuda_kernels

HEADERS = Path(str(gpusim.cuda_kernels.__file__)).parent
STRICT = ("-std=c++17", "-O2", "-ffp-contract=off", "-fno-tree-slp-vectorize")
UNARY = ("sin", "cos", "exp", "expm1", "log", "rsqrt", "round_even")
TYPES = (np.float64, np.float32)
INF, NAN = np.inf, np.nan

DRIVER = """
#include "math/detmath.cuh"

#define LOOPS(T, tag) \\
    UNARY(sin, T, tag) UNARY(cos, T, tag) UNARY(exp, T, tag) UNARY(expm1, T, tag) UNARY(log, T, tag) \\
    UNARY(rsqrt, T, tag) UNARY(round_even, T, tag) BINARY(atan2, T, tag) BINARY(pow, T, tag) \\
    extern "C" void sincos_##tag(long n, const T* x, T* s, T* c) { \\
        for (long i = 0; i < n; ++i) det::sincos(x[i], s + i, c + i); }
#define UNARY(name, T, tag) \\
    extern "C" void name##_##tag(long n, const T* x, T* out) { for (long i = 0; i < n; ++i) out[i] = det::name(x[i]); }
#define BINARY(name, T, tag) \\
    extern "C" void name##_##tag(long n, const T* x, const T* y, T* out) { \\
        for (long i = 0; i < n; ++i) out[i] = det::name(x[i], y[i]); }

LOOPS(double, float64)
LOOPS(float, float32)
extern "C" double constant(int i) { return i == 0 ? det::PI : i == 1 ? det::HALF_PI : det::TWO_PI; }
"""


class Functions:
    def __init__(self, folder: Path, flags: tuple[str, ...]) -> None:
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            pytest.skip("no C++ compiler (g++ or c++) on the path")
        source, library = folder / "driver.cpp", folder / "driver.so"
        source.write_text(DRIVER)
        command = [compiler, *flags, "-shared", "-fPIC", f"-I{HEADERS}", str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self._library = ctypes.CDLL(str(library))

    def __call__(self, name: str, *arguments: np.ndarray, outputs: int = 1) -> np.ndarray:
        arrays = [np.ascontiguousarray(a) for a in np.broadcast_arrays(*arguments)]
        out = np.empty((outputs, arrays[0].size), dtype=arrays[0].dtype)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, *out)]
        getattr(self._library, f"{name}_{out.dtype}")(ctypes.c_long(arrays[0].size), *pointers)
        return out if outputs > 1 else out[0]

    def constants(self) -> list[float]:
        self._library.constant.restype = ctypes.c_double
        return [self._library.constant(i) for i in range(3)]


@pytest.fixture(scope="module")
def det(tmp_path_factory: pytest.TempPathFactory) -> Functions:
    return Functions(tmp_path_factory.mktemp("detmath"), STRICT)


def ulps(got: np.ndarray, reference: np.ndarray) -> float:
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("np.longdouble is no wider than a double here: no reference to count ulps against")
    rounded = np.abs(reference).astype(got.dtype)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], reference[~finite].astype(got.dtype))
    error = np.abs(got[finite].astype(np.longdouble) - reference[finite]) / np.spacing(rounded[finite])
    return float(error.max())


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.longdouble)


def spread(low: float, high: float, dtype: type, seed: int, n: int = 100_000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    tiny = 10.0 ** rng.uniform(-20, np.log10(max(abs(low), abs(high))), n // 2) * rng.choice((-1.0, 1.0), n // 2)
    x = np.concatenate((rng.uniform(low, high, n - n // 2), tiny[(tiny >= low) & (tiny <= high)]))
    return x.astype(dtype)


def positive(dtype: type, seed: int, n: int = 100_000) -> np.ndarray:
    """Positive finite numbers of random bits, denormals included."""
    rng = np.random.default_rng(seed)
    top = int(np.array(np.finfo(dtype).max).view(np.int64 if dtype is np.float64 else np.int32))
    return rng.integers(1, top, n).astype(np.int64 if dtype is np.float64 else np.int32).view(dtype)


def angles(dtype: type) -> np.ndarray:
    """Return angles up to 1e5, many of them close to a multiple of pi/2."""
    quarters = np.arange(-63_000, 63_001) * (wide(np.array(np.pi)) / 2 + np.longdouble("6.1232339957367660e-17"))
    near = quarters.astype(dtype)
    beside = [np.nextafter(near, dtype(s * INF)) for s in (-1, 1)]
    return np.concatenate((spread(-1e5, 1e5, dtype, 1), spread(-4.0, 4.0, dtype, 2), near, *beside))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name, reference", [("sin", np.sin), ("cos", np.cos)])
def test_sin_and_cos(det: Functions, name: str, reference: Callable, dtype: type) -> None:
    x = angles(dtype)
    assert ulps(det(name, x), reference(wide(x))) < 1.0


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name, reference", [("sin", np.sin), ("cos", np.cos)])
def test_sin_and_cos_of_large_angles(det: Functions, name: str, reference: Callable, dtype: type) -> None:
    x = np.concatenate((spread(-1e9, 1e9, dtype, 3), spread(-2e6, 2e6, dtype, 4)))
    assert np.abs(det(name, x) - reference(wide(x))).max() < (1e-15 if dtype is np.float64 else 1e-7)


@pytest.mark.parametrize("dtype", TYPES)
def test_sincos_is_sin_and_cos(det: Functions, dtype: type) -> None:
    x = np.concatenate((angles(dtype), np.array([0.0, -0.0, 1e-300, 1e8, 1e10, INF, NAN]).astype(dtype)))
    s, c = det("sincos", x, outputs=2)
    assert same_bits(s, det("sin", x)) and same_bits(c, det("cos", x))


@pytest.mark.parametrize("dtype", TYPES)
def test_exp(det: Functions, dtype: type) -> None:
    low, high = (-745.1, 709.78) if dtype is np.float64 else (-103.9, 88.72)
    x = np.concatenate((spread(low, high, dtype, 5), spread(-1.0, 1.0, dtype, 6)))
    assert ulps(det("exp", x), np.exp(wide(x))) < 1.0


@pytest.mark.parametrize("dtype", TYPES)
def test_expm1(det: Functions, dtype: type) -> None:
    high = 709.78 if dtype is np.float64 else 88.72
    small = positive(dtype, 9, 2000)
    x = np.concatenate((spread(-50.0, high, dtype, 7), spread(-1.5, 1.5, dtype, 8), small[small < 1]))
    assert ulps(det("expm1", x), np.expm1(wide(x))) < (1.5 if dtype is np.float64 else 1.0)


@pytest.mark.parametrize("dtype", TYPES)
def test_log(det: Functions, dtype: type) -> None:
    x = np.concatenate((positive(dtype, 10), np.random.default_rng(11).uniform(0.5, 2.0, 100_000).astype(dtype)))
    assert ulps(det("log", x), np.log(wide(x))) < 1.0


@pytest.mark.parametrize("dtype", TYPES)
def test_atan2(det: Functions, dtype: type) -> None:
    rng = np.random.default_rng(12)
    plane = rng.normal(size=(2, 200_000)).astype(dtype)
    size = 30.0 if dtype is np.float32 else 300.0
    scaled = (10.0 ** rng.uniform(-size, size, (2, 50_000)) * rng.choice((-1.0, 1.0), (2, 50_000))).astype(dtype)
    y, x = np.concatenate((plane, scaled), axis=1)
    assert ulps(det("atan2", y, x), np.arctan2(wide(y), wide(x))) < (1.5 if dtype is np.float64 else 1.0)


def test_pow_of_doubles(det: Functions) -> None:
    rng = np.random.default_rng(13)
    near_one = np.abs(1.0 + rng.normal(size=50_000) * 10.0 ** rng.uniform(-15, -1, 50_000))
    x = np.concatenate((positive(np.float64, 14), near_one[near_one != 1]))
    for range_of_log, bar in ((50.0, 2e-15), (700.0, 3e-14)):
        y = rng.uniform(-range_of_log, range_of_log, x.size) / np.log(x)
        assert np.abs(det("pow", x, y) / np.power(wide(x), wide(y)) - 1).max() < bar


def test_pow_fades_into_denormals_and_overflows(det: Functions) -> None:
    x, y = np.full(5, 2.0), np.array([1023.0, 1024.0, -1074.0, -1076.0, -1060.5])
    assert det("pow", x, y).tolist() == [2.0**1023, INF, 2.0**-1074, 0.0, np.sqrt(0.5) * 2.0**-1060]


def test_pow_of_floats(det: Functions) -> None:
    rng = np.random.default_rng(16)
    near_one = np.abs(1.0 + rng.normal(size=20_000) * 10.0 ** rng.uniform(-7, -1, 20_000)).astype(np.float32)
    x = np.concatenate((positive(np.float32, 17, 50_000), near_one))
    x = x[x != 1]
    y = (rng.uniform(-100.0, 88.0, x.size) / np.log(x.astype(float))).astype(np.float32)
    assert ulps(det("pow", x, y), np.power(wide(x), wide(y))) < 1.0


@pytest.mark.parametrize("dtype", TYPES)
def test_rsqrt(det: Functions, dtype: type) -> None:
    x = positive(dtype, 18)
    assert ulps(det("rsqrt", x), 1 / np.sqrt(wide(x))) < 1.5


@pytest.mark.parametrize("dtype", TYPES)
def test_round_even_is_rint(det: Functions, dtype: type) -> None:
    halves = np.arange(-20, 21) / 2
    big = 2.0 ** np.arange(20, 60)
    edges = np.array([-0.0, 0.49999999999999994, INF, -INF])
    x = np.concatenate((halves, big, big + 0.5, -big - 1, edges, spread(-1e6, 1e6, np.float64, 19))).astype(dtype)
    assert same_bits(det("round_even", x), np.rint(x))
    assert np.isnan(det("round_even", np.array([NAN], dtype))).all()


SPECIAL = {
    "sin": [(0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (INF, NAN), (-INF, NAN), (NAN, NAN), (3e9, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (-3e9, NAN)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (1e4, INF), (-INF, 0.0), (-1e4, 0.0), (NAN, NAN)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (INF, INF), (1e4, INF), (-1e4, -1.0), (NAN, NAN)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "rsqrt": [(4.0, 0.5), (0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(det: Functions, name: str, dtype: type) -> None:
    x, expected = np.array(SPECIAL[name]).astype(dtype).T
    assert same_bits(det(name, x), np.where(np.isnan(expected), dtype(NAN), expected)), det(name, x)


def test_exp_reaches_the_denormals_and_the_edges(det: Functions) -> None:
    x = np.array([709.782712893384, 709.7827128933841, -708.5, -744.0, -745.1332191019411, -745.1332191019412])
    with np.errstate(over="ignore"):
        np.testing.assert_array_max_ulp(det("exp", x), np.exp(wide(x)).astype(float), 1)
    assert det("exp", x)[1] == INF and det("exp", x)[-2] == 5e-324 and det("exp", x)[-1] == 0


@pytest.mark.parametrize("dtype", TYPES)
def test_atan2_of_zeros_and_infinities(det: Functions, dtype: type) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, tiny, -tiny, np.finfo(dtype).max, NAN], dtype)
    y, x = (a.ravel() for a in np.meshgrid(values, values))
    got, expected = det("atan2", y, x), np.arctan2(wide(y), wide(x)).astype(dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    number = ~np.isnan(got)
    assert same_bits(np.signbit(got[number]), np.signbit(expected[number]))
    np.testing.assert_array_max_ulp(got[number], expected[number], 1)
    assert same_bits(got[~number], np.full(np.count_nonzero(~number), NAN, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_pow_of_zeros_ones_and_infinities(det: Functions, dtype: type) -> None:
    x, y = (a.ravel() for a in np.meshgrid([0.0, 0.5, 1.0, 2.0, INF, NAN], [0.0, -0.0, 1.0, 3.0, -2.0, INF, -INF, NAN]))
    with np.errstate(divide="ignore"):
        got, expected = det("pow", x.astype(dtype), y.astype(dtype)), np.power(x, y).astype(dtype)
    np.testing.assert_array_equal(got, expected)
    assert np.isnan(det("pow", np.array([-2.0, -INF], dtype), np.array([2.0, 0.5], dtype))).all()
    some = positive(dtype, 20, 1000)
    assert same_bits(det("pow", some, np.ones_like(some)), some)


def test_constants(det: Functions) -> None:
    assert det.constants() == [np.pi, np.pi / 2, 2 * np.pi]


def lattice(low: float, high: float, dtype: type, n: int = 20_000) -> np.ndarray:
    steps = (np.arange(1, n + 1, dtype=np.uint64) * np.uint64(2654435761)) % np.uint64(2**32)
    return (low + (high - low) * (steps.astype(float) / 2.0**32)).astype(dtype)


def everything(det: Functions, name: str, dtype: type) -> bytes:
    edges = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-40, 3e38]).astype(dtype)
    x = np.concatenate((lattice(-5.0, 5.0, dtype), lattice(-1e3, 1e3, dtype), lattice(-2e9, 2e9, dtype), edges))
    if name in UNARY:
        return det(name, x).tobytes()
    return det(name, np.abs(x) if name == "pow" else x, np.roll(x, 17)).tobytes()


# The first digits of the SHA-256 of everything(), for float64 and float32.
BITS = {
    "sin": ("cd9b4c11c71a", "004662defaf4"),
    "cos": ("69ea98073f8d", "1788dc054f2e"),
    "exp": ("e914129d834c", "36b933d71a7d"),
    "expm1": ("091005b3aca7", "cbd508a85d6c"),
    "log": ("3d9ef17edbf1", "e4ca6e926654"),
    "rsqrt": ("78e94bdc86b8", "ea648597e2ed"),
    "round_even": ("6ead6e023326", "1a330149d2d4"),
    "atan2": ("ccdee526e633", "a5949b672409"),
    "pow": ("959187c2bfca", "544b4152aad8"),
}


@pytest.mark.parametrize("name", BITS)
def test_bits_are_the_same_on_every_machine(det: Functions, name: str) -> None:
    digests = tuple(hashlib.sha256(everything(det, name, dtype)).hexdigest()[:12] for dtype in TYPES)
    assert digests == BITS[name], "changed on purpose? Then every recorded run changes too"


@pytest.mark.nightly
@pytest.mark.parametrize("level", ("-O0", "-O3"))
def test_bits_do_not_depend_on_the_optimizer(det: Functions, level: str, tmp_path: Path) -> None:
    other = Functions(tmp_path, (*STRICT, level))
    for name in BITS:
        for dtype in TYPES:
            assert everything(other, name, dtype) == everything(det, name, dtype), name


def test_source_compiles_without_a_warning(tmp_path: Path) -> None:
    Functions(tmp_path, (*STRICT, "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"))
