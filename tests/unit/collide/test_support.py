from __future__ import annotations

import numpy as np
import pytest

from gpusim.typing import Array
from tests.unit.collide.kernels import face_polygon, shape_bounds, support
from tests.unit.collide.pairs import moved, random_rotation, small_rotation
from tests.unit.collide.record import (
    FACE_CORNERS,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_HEIGHT_FIELD,
    SHAPE_PLANE,
    SHAPE_SUPERELLIPSOID,
    UNBOUNDED,
    Shape,
    core_radius,
    make_shape,
)
from tests.unit.collide.shapes import CONVEX, CUBE, hull_shape, outside, random_shape, surface


def farthest(s: Shape, direction: Array) -> tuple[Array, int]:
    point = np.full(3, np.nan)
    vertex = support(s, direction, point)
    return point, vertex


def facing(s: Shape, direction: Array) -> tuple[Array, list[int]]:
    return face_polygon(s, direction)


def bounds(s: Shape) -> tuple[Array, Array]:
    lower, upper = np.full(3, np.nan), np.full(3, np.nan)
    shape_bounds(s, lower, upper)
    return lower, upper


@pytest.mark.parametrize("kind", CONVEX)
def test_support_is_the_farthest_point_of_the_surface(kind):
    rng = np.random.default_rng(1)
    for _ in range(4):
        s = random_shape(kind, rng)
        points = surface(s, 80)
        for direction in [*rng.normal(size=(15, 3)), *s.turn.reshape(3, 3).T, *-s.turn.reshape(3, 3).T]:
            n = direction / np.linalg.norm(direction)
            point, _ = farthest(s, 3.0 * direction)
            point = point + core_radius(s) * n
            assert outside(s, point[None]) < 1e-12
            reach = (points @ n).max()
            assert reach - 1e-12 < point @ n < reach + 1e-3


def test_support_names_the_vertex():
    cube = hull_shape(CUBE * (0.1, 0.2, 0.3))
    box = make_shape(SHAPE_BOX, (0.1, 0.2, 0.3))
    for number, corner in enumerate(CUBE):
        point, vertex = farthest(box, corner * (1.0, 2.0, 0.5))
        assert vertex == number
        assert np.array_equal(point, farthest(cube, corner * (1.0, 2.0, 0.5))[0])


@pytest.mark.parametrize("exponents", [(0.1, 0.1), (1.9, 1.9), (0.1, 1.9), (1.0, 1.0)])
def test_support_of_extreme_superellipsoids(exponents):
    rng = np.random.default_rng(2)
    s = make_shape(SHAPE_SUPERELLIPSOID, (0.3, 0.2, 0.5, *exponents))
    points = surface(s, 200)
    for direction in [*rng.normal(size=(30, 3)), *np.eye(3), *-np.eye(3), np.array([1.0, 1.0, 0.0])]:
        point, _ = farthest(s, direction)
        assert np.isfinite(point).all()
        assert outside(s, point[None]) < 1e-12
        assert point @ direction > (points @ direction).max() - 1e-9


@pytest.mark.parametrize("kind", CONVEX)
def test_bounds_hold_the_surface_tightly(kind):
    rng = np.random.default_rng(3)
    for _ in range(5):
        s = random_shape(kind, rng)
        lower, upper = bounds(s)
        points = surface(s, 60)
        assert np.all(points.min(axis=0) > lower - 1e-12)
        assert np.all(points.max(axis=0) < upper + 1e-12)
        if kind != SHAPE_SUPERELLIPSOID:
            assert np.abs(points.min(axis=0) - lower).max() < 5e-3
            assert np.abs(points.max(axis=0) - upper).max() < 5e-3


def test_bounds_of_planes():
    level = make_shape(SHAPE_PLANE, (), (1.0, 2.0, 3.0))
    lower, upper = bounds(level)
    assert lower.tolist() == [-UNBOUNDED] * 3
    assert upper.tolist() == [UNBOUNDED, UNBOUNDED, 3.0]
    wall = make_shape(SHAPE_PLANE, (), (1.0, 2.0, 3.0), [[0, 0, -1], [0, 1, 0], [1, 0, 0]])
    assert bounds(wall)[0].tolist() == [1.0, -UNBOUNDED, -UNBOUNDED]
    tilted = moved(level, random_rotation(np.random.default_rng(0)), np.zeros(3))
    assert bounds(tilted)[1].tolist() == [UNBOUNDED] * 3


def test_bounds_of_a_height_field():
    heights = np.array([[0.0, 0.3, 0.1], [0.2, -0.1, 0.4]])
    s = make_shape(SHAPE_HEIGHT_FIELD, (3, 2, 0.5, 0.25, -1.0), (1.0, 0.0, 0.0), points=heights)
    lower, upper = bounds(s)
    assert np.allclose(lower, [0.5, -0.125, -1.0])
    assert np.allclose(upper, [1.5, 0.125, 0.4])


@pytest.mark.parametrize("kind", CONVEX)
def test_facing_polygons_hold_the_support_and_turn_with_the_shape(kind):
    rng = np.random.default_rng(4)
    # where a superellipsoid is nearly flat, its farthest point is no matter of rounding alone
    shakes = [0.02, 0.5] if kind == SHAPE_SUPERELLIPSOID else [0.0, 0.02, 0.5]
    for _ in range(30):
        s = random_shape(kind, rng)
        axes = s.turn.reshape(3, 3).T
        direction = rng.choice([1.0, -1.0]) * axes[rng.integers(3)] + rng.choice(shakes) * rng.normal(size=3)
        polygon, ids = facing(s, direction)
        n = direction / np.linalg.norm(direction)
        assert len(set(ids)) == len(ids)
        reach = farthest(s, n)[0] @ n
        assert abs((polygon @ n).max() - reach) < 1e-5
        assert (polygon @ n).min() > reach - 0.15 * 2.0
        turn = random_rotation(rng)
        again, same = facing(moved(s, turn, np.ones(3)), turn @ direction)
        assert same == ids
        assert np.allclose(again, polygon @ turn.T + 1.0, atol=1e-9)


def test_faces_are_counterclockwise_seen_from_outside():
    box = make_shape(SHAPE_BOX, (0.1, 0.2, 0.3))
    cylinder = make_shape(SHAPE_CYLINDER, (0.1, 0.2))
    cone = make_shape(SHAPE_CONE, (0.1, 0.2))
    hull = hull_shape(CUBE)
    up = np.array([0.0, 0.0, 1.0])
    faces = [*((s, sign * n) for s in (box, hull) for sign in (1, -1) for n in np.eye(3))]
    for s, n in [*faces, (cylinder, up), (cylinder, -up), (cone, -up)]:
        for shake in (0.0, 0.01):
            polygon, _ = facing(s, n + shake * np.ones(3))
            assert len(polygon) == (8 if s in (cylinder, cone) else 4)
            for i in range(len(polygon)):
                p, q, r = polygon[i - 2], polygon[i - 1], polygon[i]
                assert np.cross(q - p, r - q) @ n > 0.0


@pytest.mark.parametrize(
    "direction, corners", [((0, 0, 1), 4), ((0.05, 0.02, 1), 4), ((0, 1, 1), 2), ((0.05, 1, -1), 2), ((1, 1, 1), 1)]
)
def test_a_box_and_its_hull_show_the_same(direction, corners):
    size = np.array([0.1, 0.2, 0.3])
    polygon, _ = facing(make_shape(SHAPE_BOX, size), direction)
    other, _ = facing(hull_shape(CUBE * size), direction)
    assert len(polygon) == corners
    assert {tuple(p) for p in polygon.round(9)} == {tuple(p) for p in other.round(9)}


def test_a_face_with_many_corners_is_thinned_out():
    angle = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
    prism = np.array([[np.cos(t), np.sin(t), h] for h in (-1.0, 1.0) for t in angle])
    polygon, ids = facing(hull_shape(prism), (0, 0, 1))
    assert len(polygon) == FACE_CORNERS
    assert len(set(ids)) == FACE_CORNERS
    assert np.ptp(polygon[:, 0]) > 1.9 and np.ptp(polygon[:, 1]) > 1.9


def test_round_sides_and_tips():
    cylinder, cone = make_shape(SHAPE_CYLINDER, (0.1, 0.2)), make_shape(SHAPE_CONE, (0.1, 0.2))
    capsule = make_shape(SHAPE_CAPSULE, (0.1, 0.2))
    assert np.allclose(facing(cylinder, (1, 0, 0.05))[0], [[0.1, 0, 0.2], [0.1, 0, -0.2]])
    assert np.allclose(facing(cylinder, (1, 0, -1))[0], [[0.1, 0, -0.2]])
    assert np.allclose(facing(cone, (4, 0, 1))[0], [[0, 0, 0.2], [0.1, 0, -0.2]])
    assert np.allclose(facing(cone, (0, 0, 1))[0], [[0, 0, 0.2]])
    assert np.allclose(facing(capsule, (0, 1, 0))[0], [[0, 0, 0.2], [0, 0, -0.2]])
    assert np.allclose(facing(capsule, (0, 1, 1))[0], [[0, 0, 0.2]])


def test_corners_of_an_upright_cap_stand_still():
    rng = np.random.default_rng(5)
    cylinder = make_shape(SHAPE_CYLINDER, (0.1, 0.2))
    still, ids = facing(cylinder, (0, 0, -1))
    for _ in range(20):
        polygon, same = facing(cylinder, small_rotation(rng, 1e-5) @ np.array([0.0, 0.0, -1.0]))
        assert same == ids
        assert np.array_equal(polygon, still)
    tilted, _ = facing(cylinder, (0.006, 0.008, -1))
    assert np.allclose(tilted[0], [0.06, 0.08, -0.2])
