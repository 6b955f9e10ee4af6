"""A half space against every convex shape: resting, tilted, deep."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gpusim.typing import Array
from tests.unit.collide.kernels import plane_convex
from tests.unit.collide.pairs import Contact, moved, random_rotation, small_rotation, touch
from tests.unit.collide.record import (
    SHAPE_BARREL,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_ELLIPSOID,
    SHAPE_HULL,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_WHEEL,
    Shape,
    make_shape,
)
from tests.unit.collide.shapes import CONVEX, CUBE, ROUND, hull_shape, outside, random_shape, surface

GROUND = make_shape(SHAPE_PLANE)
FAR = 10.0


def on_ground(b: Shape, margin: float = FAR) -> Contact:
    return touch(plane_convex, GROUND, b, margin)


def turn(axis: str, degrees: float) -> Array:
    return Rotation.from_euler(axis, degrees, degrees=True).as_matrix()


@pytest.mark.parametrize("kind", CONVEX)
def test_the_lowest_point_reports_the_gap(kind):
    rng = np.random.default_rng(kind)
    for _ in range(30):
        b = random_shape(kind, rng)
        low = surface(b)[:, 2].min()
        contact = on_ground(b)
        assert low - 1e-3 < contact.least < low + 1e-9
        assert contact.normal.tolist() == [0.0, 0.0, 1.0]
        assert np.allclose(contact.a[:, 2], 0.0, atol=1e-12)
        assert outside(b, contact.b) < 1e-9
        assert contact.count == 1 or kind not in (*ROUND, SHAPE_WHEEL)
        # the rest of the points lies over the margin
        few = on_ground(b, contact.least + 1e-3)
        assert few.count > 0 and np.all(few.gap <= contact.least + 1e-3)
        assert on_ground(b, contact.least - 1e-6).count == 0


@pytest.mark.parametrize("kind", CONVEX)
def test_tilted_planes_do_as_level_ones(kind):
    rng = np.random.default_rng(kind)
    for _ in range(20):
        b = random_shape(kind, rng)
        level = on_ground(b)
        rotation, shift = random_rotation(rng), rng.normal(size=3)
        tilted = touch(plane_convex, moved(GROUND, rotation, shift), moved(b, rotation, shift), FAR)
        assert tilted.count == level.count
        assert np.allclose(tilted.gap, level.gap, atol=1e-12)
        assert np.allclose(tilted.b, level.b @ rotation.T + shift, atol=1e-12)
        assert tilted.feature.tolist() == level.feature.tolist()


def test_a_box_on_a_corner_an_edge_and_a_face():
    size = np.array([0.1, 0.2, 0.3])
    for make in (lambda c, t: make_shape(SHAPE_BOX, size, c, t), lambda c, t: hull_shape(CUBE * size, c, t)):
        contact = on_ground(make((1.0, 2.0, 0.3 - 1e-3), np.eye(3)))
        assert contact.count == 4
        assert np.allclose(contact.gap, -1e-3)
        assert np.allclose(np.abs(contact.b[:, :2] - (1.0, 2.0)), size[:2])
        edge = turn("x", 45)
        contact = on_ground(make((0.0, 0.0, np.hypot(0.2, 0.3)), turn("x", np.degrees(np.arctan2(0.2, 0.3)))), 1e-3)
        assert contact.count == 2
        assert np.allclose(contact.gap, 0.0, atol=1e-12)
        corner = edge @ turn("y", 30)
        low = (CUBE * size @ corner.T)[:, 2].min()
        contact = on_ground(make((0.0, 0.0, 0.5 - low), corner), 0.5 + 1e-3)
        assert contact.count == 1
        assert contact.least == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "size"), [(SHAPE_CYLINDER, (0.2, 0.3)), (SHAPE_CONE, (0.2, 0.3)), (SHAPE_BARREL, (0.3, 0.3, 0.5))]
)
def test_what_stands_on_a_cap_has_four_points_fixed_in_the_shape(kind, size):
    rng = np.random.default_rng(1)
    features = set()
    for _ in range(40):
        b = make_shape(kind, size, (0.5, 0.1, 0.3), small_rotation(rng, 1e-6) @ turn("z", 20))
        contact = on_ground(b, 0.01)
        assert contact.count == 4
        features.add(tuple(contact.feature))
        local = (contact.b - b.center) @ b.turn.reshape(3, 3)
        assert np.allclose(local, [[0.2, 0, -0.3], [0, -0.2, -0.3], [-0.2, 0, -0.3], [0, 0.2, -0.3]], atol=1e-12)
    assert len(features) == 1


def test_a_tilted_cylinder_leans_on_its_lowest_point():
    for tilt in (1e-3, 0.01, 0.5, 40.0):
        b = make_shape(SHAPE_CYLINDER, (0.2, 0.3), turn=turn("z", 70) @ turn("x", tilt))
        contact = on_ground(b)
        angle = np.radians(tilt)
        assert contact.least == pytest.approx(-0.3 * np.cos(angle) - 0.2 * np.sin(angle), abs=1e-12)
        assert contact.count == (4 if tilt < 5 else 1)


def test_a_lying_cylinder_rolls_on_the_ends_of_its_side():
    for roll in np.linspace(0.0, 360.0, 13):
        b = make_shape(SHAPE_CYLINDER, (0.2, 0.3), (0, 0, 0.2), turn("z", 30) @ turn("x", 90) @ turn("z", roll))
        contact = on_ground(b, 0.01)
        assert contact.count == 2
        assert contact.feature.tolist() == [16, 17]
        assert np.allclose(contact.b @ turn("z", 30), [[0, -0.3, 0], [0, 0.3, 0]], atol=1e-12)


def test_a_lying_cone_rolls_on_its_side():
    slope = np.degrees(np.arctan2(0.2, 0.6))
    b = make_shape(SHAPE_CONE, (0.2, 0.3), turn=turn("x", 90 + slope) @ turn("z", 50))
    contact = on_ground(b)
    assert contact.count == 2
    assert abs(contact.gap[0] - contact.gap[1]) < 1e-12
    tip = make_shape(SHAPE_CONE, (0.2, 0.3), (0, 0, 0.31), turn("x", 180))
    assert on_ground(tip).count == 1
    assert on_ground(tip).least == pytest.approx(0.01)


def test_a_capsule_lies_on_both_ends_and_stands_on_one():
    lying = make_shape(SHAPE_CAPSULE, (0.1, 0.3), (0, 0, 0.1), turn("y", 90))
    contact = on_ground(lying, 0.01)
    assert contact.count == 2
    assert np.allclose(np.sort(contact.b[:, 0]), (-0.3, 0.3)) and np.allclose(contact.gap, 0.0, atol=1e-15)
    assert on_ground(make_shape(SHAPE_CAPSULE, (0.1, 0.3), (0, 0, 0.4))).count == 1


def test_round_shapes_and_wheels_have_one_point():
    ball = on_ground(make_shape(SHAPE_SPHERE, (0.1,), (1.0, 2.0, 0.3)))
    assert np.allclose(ball.b, [[1.0, 2.0, 0.2]])
    egg = on_ground(make_shape(SHAPE_ELLIPSOID, (0.1, 0.2, 0.3), (1.0, 2.0, 0.2), turn("x", 90)))
    assert np.allclose(egg.b, [[1.0, 2.0, 0.0]])
    upright = make_shape(SHAPE_WHEEL, (0.3, 0.05), (0, 0, 0.3), turn("x", 90))
    assert np.allclose(on_ground(upright).b, [[0.0, 0.0, 0.0]])
    leaning = on_ground(make_shape(SHAPE_WHEEL, (0.3, 0.05), turn=turn("x", 60)))
    assert leaning.count == 1
    assert leaning.least == pytest.approx(-0.25 * np.sin(np.radians(60)) - 0.05)
    flat = on_ground(make_shape(SHAPE_WHEEL, (0.3, 0.05)))
    assert flat.count == 1
    assert flat.least == pytest.approx(-0.05)


def test_a_hull_with_a_big_face_keeps_its_lowest_corner():
    angle = np.linspace(0.0, 2.0 * np.pi, 50, endpoint=False)
    prism = np.array([[np.cos(t), np.sin(t), h] for h in (-0.2, 0.2) for t in angle])
    rng = np.random.default_rng(2)
    standing = hull_shape(prism)
    for _ in range(20):
        b = moved(standing, small_rotation(rng, 0.02), np.zeros(3))
        contact = on_ground(b)
        assert contact.count == 4
        assert contact.least == pytest.approx(surface(b)[:, 2].min(), abs=3e-6)
        assert np.ptp(contact.b[:, 0]) > 1.0 and np.ptp(contact.b[:, 1]) > 1.0


@pytest.mark.parametrize("kind", [SHAPE_BOX, SHAPE_HULL, SHAPE_CYLINDER])
def test_deep_below_the_ground(kind):
    rng = np.random.default_rng(3)
    b = random_shape(kind, rng)._replace(center=np.array([0.0, 0.0, -50.0]))
    contact = on_ground(b)
    assert contact.count > 0
    assert contact.least == pytest.approx(surface(b)[:, 2].min(), abs=1e-3)
