from __future__ import annotations

import itertools

import numpy as np
import pytest

from gpusim import exact_math
from tests.unit.test_detmath import STRICT, Functions, angles, positive, spread

SPECIAL = np.array([
    0.0, 1.0, 2.0, 0.5, 3.0, np.pi / 2, np.pi, 1e-9, 1e-16, 1e-300, 5e-324, 2.2250738585072014e-308, 0.4375, 0.6875,
    1e6, np.nextafter(1e6, 2e6), 2147483648.0, np.nextafter(2147483648.0, 1e300), 709.78, 709.79, 710.0, 710.1,
    745.2, 746.0, 746.1, 800.0, 1e150, 1e300, np.finfo(float).max, np.inf, np.nan, np.sqrt(0.5), np.sqrt(2.0),
])  # fmt: skip
SIGNED = np.concatenate((SPECIAL, -SPECIAL, np.nextafter(1.0, [0.0, 2.0])))


@pytest.fixture(scope="module")
def det(tmp_path_factory: pytest.TempPathFactory) -> Functions:
    return Functions(tmp_path_factory.mktemp("detmath"), STRICT)


def any_bits(seed: int, n: int = 200_000) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, n).view(np.float64)


def assert_same(det: Functions, name: str, *arguments: np.ndarray) -> None:
    here, there = getattr(exact_math, name)(*arguments), det(name, *arguments)
    different = here.view(np.int64) != there.view(np.int64)
    worst = [(tuple(float(x[k]) for x in arguments), here[k], there[k]) for k in np.flatnonzero(different)[:5]]
    assert not different.any(), f"{name}: {different.sum()} of {here.size} differ: {worst}"


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles(det: Functions, name: str) -> None:
    given = (angles(np.float64), spread(-2.2e9, 2.2e9, np.float64, 11), any_bits(12), SIGNED)
    assert_same(det, name, np.concatenate(given))


def test_exp(det: Functions) -> None:
    given = (spread(-750.0, 720.0, np.float64, 13), spread(-1.0, 1.0, np.float64, 14), any_bits(15), SIGNED)
    assert_same(det, "exp", np.concatenate(given))


def test_log(det: Functions) -> None:
    near = 1.0 + spread(-0.4, 0.4, np.float64, 16)
    assert_same(det, "log", np.concatenate((near, positive(np.float64, 17), any_bits(18), SIGNED)))


def pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    crossed = np.array(list(itertools.product(SIGNED, SIGNED))).T
    sizes = spread(-5.0, 5.0, np.float64, seed), np.flip(spread(-5.0, 5.0, np.float64, seed + 1))
    count = min(map(len, sizes))
    a = np.concatenate((any_bits(seed + 2), sizes[0][:count], crossed[0]))
    return a, np.concatenate((any_bits(seed + 3), sizes[1][:count], crossed[1]))


def test_atan2(det: Functions) -> None:
    y, x = pairs(20)
    assert_same(det, "atan2", y, x)
    ratio = np.linspace(0.0, 2.0, 20_001)
    for sign, turn in itertools.product((1.0, -1.0), repeat=2):
        assert_same(det, "atan2", sign * ratio, np.full_like(ratio, turn))


def test_pow(det: Functions) -> None:
    assert_same(det, "pow", *pairs(30))
    base = positive(np.float64, 34)
    share = np.random.default_rng(35).uniform(-1.3, 1.3, base.size)
    assert_same(det, "pow", base, share)
    small = np.random.default_rng(36).uniform(0.0, 4.0, base.size)
    assert_same(det, "pow", small, np.random.default_rng(37).uniform(-600.0, 600.0, base.size))


def test_numbers_and_any_shape() -> None:
    x = np.linspace(0.1, 3.0, 12).reshape(3, 4)
    for name in ("sin", "cos", "exp", "log"):
        function = getattr(exact_math, name)
        assert function(x).shape == (3, 4) and float(function(0.7)) == function(np.array([0.7]))[0]
    for name in ("atan2", "pow"):
        function = getattr(exact_math, name)
        assert function(x, x[0]).shape == (3, 4) and float(function(0.7, 2.5)) == function(np.array([0.7]), 2.5)[0]
