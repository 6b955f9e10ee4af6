"""Spheres and capsules against each other and against boxes, cylinders and cones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from gpusim.typing import Array
from tests.unit.collide import kernels as spheres
from tests.unit.collide.pairs import moved, random_rotation, small_rotation, touch
from tests.unit.collide.record import (
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_SPHERE,
    Shape,
    make_shape,
)

ROUTINES: dict[int, Callable[..., int]] = {
    SHAPE_SPHERE: spheres.sphere_sphere,
    SHAPE_BOX: spheres.sphere_box,
    SHAPE_CAPSULE: spheres.sphere_capsule,
    SHAPE_CYLINDER: spheres.sphere_cylinder,
    SHAPE_CONE: spheres.sphere_cone,
}


def ball(radius: float, center: tuple | Array = (0, 0, 0)) -> Shape:
    return make_shape(SHAPE_SPHERE, [radius], center)


def capsule(radius: float, half: float, center: tuple | Array = (0, 0, 0), turn: Array | None = None) -> Shape:
    return make_shape(SHAPE_CAPSULE, [radius, half], center, turn)


def inside_by(s: Shape, x: Array) -> float:
    r, h = s.size[0], s.size[1]
    radial = np.hypot(x[0], x[1])
    if s.kind == SHAPE_SPHERE:
        return float(np.linalg.norm(x) - r)
    if s.kind == SHAPE_CAPSULE:
        return float(np.linalg.norm(x - np.array([0, 0, np.clip(x[2], -h, h)])) - r)
    if s.kind == SHAPE_CONE:
        return _to_triangle(np.array([radial, x[2]]), r, h)
    q = np.abs(x) - s.size[:3] if s.kind == SHAPE_BOX else np.array([radial - r, abs(x[2]) - h])
    return float(np.linalg.norm(np.maximum(q, 0.0)) + min(q.max(), 0.0))


def _to_triangle(p: Array, r: float, h: float) -> float:
    corners = np.array([[-r, -h], [r, -h], [0.0, h]])
    best, inside = np.inf, True
    for k in range(3):
        u, v = corners[k], corners[(k + 1) % 3]
        edge = v - u
        t = np.clip((p - u) @ edge / (edge @ edge), 0.0, 1.0)
        best = min(best, np.linalg.norm(p - u - t * edge))
        inside = inside and edge[0] * (p - u)[1] - edge[1] * (p - u)[0] >= 0.0
    return float(-best if inside else best)


@pytest.mark.parametrize("kind", ROUTINES)
def test_gap_is_the_signed_distance(kind: int) -> None:
    rng = np.random.default_rng(kind)
    touched = 0
    for _ in range(400):
        a = ball(rng.uniform(0.05, 0.5), rng.normal(size=3) * 0.6)
        b = make_shape(kind, rng.uniform(0.2, 0.8, 3), rng.normal(size=3) * 0.2, random_rotation(rng))
        exact = inside_by(b, b.turn.reshape(3, 3).T @ (a.center - b.center)) - a.size[0]
        c = touch(ROUTINES[kind], a, b)
        assert c.count == (1 if exact <= 0.05 else 0)
        if c.count:
            touched += 1
            assert c.least == pytest.approx(exact, abs=1e-12)
            assert np.linalg.norm(c.a[0] - a.center) == pytest.approx(a.size[0], abs=1e-12)
            on_b = b.turn.reshape(3, 3).T @ (c.b[0] - b.center)
            assert inside_by(b, on_b) == pytest.approx(0.0, abs=1e-12)
    assert touched > 100


@pytest.mark.parametrize("kind", ROUTINES)
def test_coincident_centers_are_parted(kind: int) -> None:
    rng = np.random.default_rng(10)
    b = make_shape(kind, (0.4, 0.5, 0.6), (1, 2, 3), random_rotation(rng))
    c = touch(ROUTINES[kind], ball(0.2, (1, 2, 3)), b)
    assert c.count == 1
    assert c.least < -0.2
    assert np.isfinite(c.a).all() and np.isfinite(c.normal).all()


@pytest.mark.parametrize("kind", ROUTINES)
def test_moving_both_moves_the_contact(kind: int) -> None:
    rng = np.random.default_rng(20 + kind)
    for _ in range(50):
        a = ball(0.4, rng.normal(size=3) * 0.4)
        b = make_shape(kind, rng.uniform(0.2, 0.8, 3), (0, 0, 0), random_rotation(rng))
        turn, shift = random_rotation(rng), rng.normal(size=3)
        c, d = touch(ROUTINES[kind], a, b), touch(ROUTINES[kind], moved(a, turn, shift), moved(b, turn, shift))
        assert c.count == d.count
        if c.count:
            assert d.normal == pytest.approx(turn @ c.normal, abs=1e-9)
            assert d.b == pytest.approx(c.b @ turn.T + shift, abs=1e-9)


def test_a_ball_rolls_around_a_box_without_a_jump() -> None:
    b = make_shape(SHAPE_BOX, (0.5, 0.3, 0.2))
    before = None
    for angle in np.linspace(0.0, 2.0 * np.pi, 4001):
        center = np.array([0.5 * np.cos(angle), 0.3 * np.sin(angle), 0.1 + 0.1 * np.cos(3 * angle)])
        center = center * (0.6 / np.abs(center / [0.5, 0.3, 0.2]).max())  # inside
        center = center * 2.0  # outside
        c = touch(spheres.sphere_box, ball(0.3, center), b, margin=1.0)
        if before is not None:
            assert np.linalg.norm(c.b[0] - before.b[0]) < 0.01
            assert abs(c.least - before.least) < 0.005
        before = c


def test_capsules_are_as_far_as_their_axes() -> None:
    rng = np.random.default_rng(30)
    for _ in range(150):
        a = capsule(rng.uniform(0.1, 0.3), rng.uniform(0.1, 1.0), rng.normal(size=3) * 0.5, random_rotation(rng))
        b = capsule(rng.uniform(0.1, 0.3), rng.uniform(0.1, 1.0), rng.normal(size=3) * 0.5, random_rotation(rng))
        u, v, d = a.turn[2::3], b.turn[2::3], b.center - a.center
        bound = np.array([a.size[1], b.size[1]])
        found = lsq_linear(np.stack([-u, v], axis=1), -d, (-bound, bound), method="bvls", tol=1e-15)
        exact = np.sqrt(2.0 * found.cost) - a.size[0] - b.size[0]
        c = touch(spheres.capsule_capsule, a, b, margin=0.1)
        assert (c.count > 0) == (exact <= 0.1)
        if c.count and exact > -0.9 * (a.size[0] + b.size[0]):
            assert c.least == pytest.approx(exact, abs=1e-9)
            d2 = touch(spheres.capsule_capsule, b, a, margin=0.1)
            assert d2.least == pytest.approx(c.least, abs=1e-9)
            assert d2.normal == pytest.approx(-c.normal, abs=1e-6)


def test_capsules_along_each_other_touch_at_both_ends() -> None:
    turn = np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])
    a, b = capsule(0.1, 1.0, (0, 0, 0), turn), capsule(0.2, 0.5, (0.8, 0, 0.29), turn)
    first = touch(spheres.capsule_capsule, a, b)
    assert first.count == 2
    assert sorted(first.a[:, 0].tolist()) == pytest.approx([0.3, 1.0])
    assert first.gap == pytest.approx([-0.01, -0.01], abs=1e-12)
    rng = np.random.default_rng(31)
    for _ in range(100):
        shaken = b._replace(turn=(small_rotation(rng, 1e-9) @ turn).reshape(-1))
        c = touch(spheres.capsule_capsule, a, shaken)
        assert c.feature.tolist() == first.feature.tolist()
        assert c.a == pytest.approx(first.a, abs=1e-6)


def test_special_capsules() -> None:
    crossing = touch(
        spheres.capsule_capsule, capsule(0.1, 1), capsule(0.2, 1, turn=np.eye(3)[[0, 2, 1]] * [[1], [1], [-1]])
    )
    assert crossing.count == 1
    assert crossing.least == pytest.approx(-0.3, abs=1e-12)
    same = touch(spheres.capsule_capsule, capsule(0.1, 1), capsule(0.2, 1))
    assert same.count == 2
    assert same.gap == pytest.approx([-0.3, -0.3], abs=1e-12)
    ends = touch(spheres.capsule_capsule, capsule(0.1, 1), capsule(0.2, 1, (0, 0, 2.29)))
    assert ends.count == 1
    assert ends.normal == pytest.approx([0, 0, 1])
    assert ends.least == pytest.approx(-0.01, abs=1e-12)
