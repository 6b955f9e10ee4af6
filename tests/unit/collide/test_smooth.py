"""Spheres, ellipsoids and superellipsoids: tracking of the contact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from gpusim.typing import Array
from tests.unit.collide.kernels import smooth_smooth
from tests.unit.collide.pairs import Contact, moved, random_rotation, touch
from tests.unit.collide.record import SHAPE_ELLIPSOID, SHAPE_SPHERE, SHAPE_SUPERELLIPSOID, Shape, make_shape

TABLE = Path(__file__).parents[2] / "reference/multibody/D13_ellipsoid_pairs/solution.csv"


def contact(a: Shape, b: Shape, margin: float = 10.0, guess: Array | None = None) -> Contact:
    return touch(smooth_smooth, a, b, margin, np.zeros(4) if guess is None else guess)


def random_shape(rng: np.random.Generator, kind: int, center: Array, exponents: tuple[float, float]) -> Shape:
    size = [rng.uniform(0.2, 0.5)] if kind == SHAPE_SPHERE else list(rng.uniform(0.2, 0.8, 3))
    if kind == SHAPE_SUPERELLIPSOID:
        size += list(rng.uniform(*exponents, 2))
    return make_shape(kind, size, center, random_rotation(rng))


def on_surface(s: Shape, point: Array) -> float:
    x = np.abs(s.turn.reshape(3, 3).T @ (point - s.center)) / (s.size[0] if s.kind == SHAPE_SPHERE else s.size[:3])
    if s.kind != SHAPE_SUPERELLIPSOID:
        return float(x @ x)
    e1, e2 = s.size[3:5]
    return float((x[0] ** (2 / e2) + x[1] ** (2 / e2)) ** (e2 / e1) + x[2] ** (2 / e1))


def test_reference_table_of_ellipsoid_pairs() -> None:
    table = np.genfromtxt(TABLE, delimiter=",", names=True)
    for row in table:
        turn = [Rotation.from_quat([row[f"q{s}{c}"] for c in "xyzw"]).as_matrix() for s in "AB"]
        a = make_shape(SHAPE_ELLIPSOID, [row["a1"], row["a2"], row["a3"]], (0, 0, 0), turn[0])
        b = make_shape(SHAPE_ELLIPSOID, [row["b1"], row["b2"], row["b3"]], [row[f"cB{c}"] for c in "xyz"], turn[1])
        guess = np.zeros(4)
        for _ in range(2):
            c = contact(a, b, guess=guess)
            assert c.count == 1
            assert abs(c.least - row["gap"]) < 1e-9
            assert np.linalg.norm(np.cross(c.normal, [row["nx"], row["ny"], row["nz"]])) < 1e-7
            assert c.a[0] == pytest.approx([row[f"PA{x}"] for x in "xyz"], abs=1e-7)
            assert c.b[0] == pytest.approx([row[f"PB{x}"] for x in "xyz"], abs=1e-7)


@pytest.mark.parametrize("kinds", [(1, 6), (6, 6), (1, 7), (6, 7), (7, 7)])
def test_points_lie_on_both_surfaces_with_the_normal_of_both(kinds: tuple[int, int]) -> None:
    rng = np.random.default_rng(10 * kinds[0] + kinds[1])
    for _ in range(100):
        a = random_shape(rng, kinds[0], np.zeros(3), (0.5, 1.3))
        b = random_shape(rng, kinds[1], rng.normal(size=3), (0.5, 1.3))
        c = contact(a, b)
        assert c.count == 1
        if c.least < -0.15:
            continue
        assert on_surface(a, c.a[0]) == pytest.approx(1.0, abs=1e-6)
        assert on_surface(b, c.b[0]) == pytest.approx(1.0, abs=1e-6)
        for s, point, sign in ((a, c.a[0], 1.0), (b, c.b[0], -1.0)):
            steps = 1e-6 * np.eye(3)
            slope = np.array([on_surface(s, point + d) - on_surface(s, point - d) for d in steps])
            assert slope / np.linalg.norm(slope) == pytest.approx(sign * c.normal, abs=1e-4)


@pytest.mark.parametrize("exponents", [(0.1, 0.4), (0.4, 1.0), (1.0, 1.9)])
def test_superellipsoids_of_all_exponents(exponents: tuple[float, float]) -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        a = random_shape(rng, SHAPE_SUPERELLIPSOID, np.zeros(3), exponents)
        direction = rng.normal(size=3)
        b = random_shape(rng, SHAPE_SUPERELLIPSOID, 1.8 * direction / np.linalg.norm(direction), exponents)
        c = contact(a, b)
        best = max(_gap_along(a, b, c.normal), _best_gap(a, b, c.normal))
        assert c.least == pytest.approx(best, abs=1e-6)


def _reach(s: Shape, n: Array) -> float:
    x = np.abs(s.size[:3] * (s.turn.reshape(3, 3).T @ n))
    q1, q2 = 2.0 / (2.0 - s.size[3]), 2.0 / (2.0 - s.size[4])
    return float(((x[0] ** q2 + x[1] ** q2) ** (q1 / q2) + x[2] ** q1) ** (1 / q1))


def _gap_along(a: Shape, b: Shape, n: Array) -> float:
    n = n / np.linalg.norm(n)
    return float(n @ (b.center - a.center)) - _reach(a, n) - _reach(b, n)


def _best_gap(a: Shape, b: Shape, n: Array) -> float:
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 400}
    return -minimize(lambda x: -_gap_along(a, b, x), n + 0.01, method="Nelder-Mead", options=options).fun


def test_a_superellipsoid_with_exponents_of_one_is_an_ellipsoid() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        size = rng.uniform(0.2, 0.8, 3)
        turn = random_rotation(rng)
        other = random_shape(rng, SHAPE_ELLIPSOID, rng.normal(size=3), (1, 1))
        c = contact(make_shape(SHAPE_ELLIPSOID, size, turn=turn), other)
        d = contact(make_shape(SHAPE_SUPERELLIPSOID, [*size, 1, 1], turn=turn), other)
        assert d.least == pytest.approx(c.least, abs=1e-9)


def test_spheres_as_smooth_shapes() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        d = rng.normal(size=3)
        c = contact(make_shape(SHAPE_SPHERE, [0.3]), make_shape(SHAPE_SPHERE, [0.5], d))
        assert c.least == pytest.approx(np.linalg.norm(d) - 0.8, abs=1e-12)
        assert c.normal == pytest.approx(d / np.linalg.norm(d), abs=1e-9)


def test_swapping_negates_and_moving_both_moves() -> None:
    rng = np.random.default_rng(6)
    for _ in range(100):
        a = random_shape(rng, SHAPE_ELLIPSOID, np.zeros(3), (1, 1))
        b = random_shape(rng, SHAPE_ELLIPSOID, rng.normal(size=3), (1, 1))
        c, d = contact(a, b), contact(b, a)
        turn, shift = random_rotation(rng), rng.normal(size=3)
        e = contact(moved(a, turn, shift), moved(b, turn, shift))
        assert e.least == pytest.approx(c.least, abs=1e-9)
        if c.least > -0.1:
            assert d.normal == pytest.approx(-c.normal, abs=1e-7)
            assert e.normal == pytest.approx(turn @ c.normal, abs=1e-7)
            apart = b._replace(center=b.center - c.least * c.normal)
            assert abs(contact(a, apart).least) < 1e-9


def test_out_of_the_margin_there_is_no_point() -> None:
    a, b = make_shape(SHAPE_ELLIPSOID, [1, 2, 3]), make_shape(SHAPE_ELLIPSOID, [1, 1, 1], (2.2, 0, 0))
    assert contact(a, b, margin=0.1).count == 0
    assert contact(a, b, margin=0.3).count == 1


def test_the_gap_changes_smoothly_as_an_ellipsoid_rolls_by() -> None:
    a = make_shape(SHAPE_SUPERELLIPSOID, [0.5, 0.4, 0.3, 0.5, 0.8])
    guess, before = np.zeros(4), None
    for angle in np.linspace(0.0, 2.0 * np.pi, 2001):
        turn = Rotation.from_rotvec([angle, 0.5 * angle, 0.3]).as_matrix()
        center = 0.95 * np.array([np.cos(angle), np.sin(angle), 0.4 * np.sin(3 * angle)])
        c = contact(a, make_shape(SHAPE_ELLIPSOID, [0.4, 0.3, 0.2], center, turn), guess=guess)
        if before is not None:
            assert abs(c.least - before.least) < 0.02
        before = c


@pytest.mark.parametrize("kind", [SHAPE_ELLIPSOID, SHAPE_SUPERELLIPSOID])
def test_deep_overlaps_take_a_short_way_out(kind: int) -> None:
    size = [0.5, 0.4, 0.1] + ([0.7, 1.2] if kind == SHAPE_SUPERELLIPSOID else [])
    c = contact(make_shape(kind, size), make_shape(kind, size))
    assert c.least == pytest.approx(-0.2, abs=1e-9)
    rng = np.random.default_rng(7)
    for _ in range(30):
        c = contact(make_shape(kind, size), make_shape(kind, size, rng.normal(size=3) * 0.02, random_rotation(rng)))
        assert -0.65 < c.least < -0.15
        assert np.isfinite(c.a).all()
