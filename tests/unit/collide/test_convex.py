from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from gpusim import ModelBuilder
from gpusim.reference.collide.shapes import model_shapes
from gpusim.typing import Array
from tests.unit.collide.kernels import collide, convex_convex, support
from tests.unit.collide.pairs import Contact, moved, random_rotation, small_rotation, touch
from tests.unit.collide.record import (
    SHAPE_BARREL,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_HULL,
    SHAPE_PLANE,
    SHAPE_SUPERELLIPSOID,
    SHAPE_WHEEL,
    Shape,
    core_radius,
    make_shape,
    of_reference,
)
from tests.unit.collide.shapes import CONVEX, CUBE, ROUND, hull_shape, outside, random_shape, surface

FAR = 10.0
PAIRS = list(combinations_with_replacement(CONVEX, 2))
POSES = 200


def generic(a: Shape, b: Shape, margin: float = FAR) -> Contact:
    return touch(convex_convex, a, b, margin, np.zeros(4))


def separation(a: Shape, b: Shape, n: Array) -> float:
    p, q = np.empty(3), np.empty(3)
    support(a, n, p)
    support(b, -n, q)
    return float(n @ (q - p) - core_radius(a) - core_radius(b))


def random_pair(kind_a: int, kind_b: int, rng: np.random.Generator, depths: tuple[float, ...]) -> tuple[Shape, Shape]:
    a, b = random_shape(kind_a, rng), random_shape(kind_b, rng)
    if rng.random() < 0.1:
        b = b._replace(turn=a.turn.copy())
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    gap = separation(a, b._replace(center=a.center), direction)
    return a, b._replace(center=a.center + (rng.choice(depths) - gap) * direction)


def slack(kinds: tuple[int, int], count: int = 4) -> float:
    if {SHAPE_CYLINDER, SHAPE_CONE, SHAPE_BARREL} & set(kinds):
        return 2e-5 if count > 1 else 1e-7
    return 2e-6 if count == 4 else 1e-9


@pytest.mark.nightly
@pytest.mark.parametrize("kinds", PAIRS)
def test_invariants(kinds):
    rng = np.random.default_rng(100 * kinds[0] + kinds[1])
    for number in range(POSES // 4 if SHAPE_SUPERELLIPSOID in kinds else POSES):
        a, b = random_pair(*kinds, rng, (-0.03, -1e-3, 0.0, 1e-7, 2e-3, 0.1))
        contact = generic(a, b)
        assert contact.count > 0
        assert contact.count == 1 or not (SHAPE_WHEEL in kinds or set(kinds) & set(ROUND))
        error = slack(kinds, contact.count)
        # the gap is that along the normal; the points lie on the shapes, so no direction has a greater one where it is
        # above zero
        assert abs(contact.least - separation(a, b, contact.normal)) < error
        aside = 1e-2 if contact.count == 2 else 1e-6
        assert outside(a, contact.a) < aside and outside(b, contact.b) < aside
        if number % 5 == 0:
            # moved apart by the gap, they touch
            apart = generic(a, b._replace(center=b.center - contact.least * contact.normal))
            assert abs(apart.least) < 1e-7 + slack(kinds, apart.count)
            swapped = generic(b, a)
            assert abs(swapped.least - contact.least) < 1e-8 + slack(kinds)
            assert np.abs(swapped.normal + contact.normal).max() < 1e-4 or contact.least < -1e-2
            turn, shift = random_rotation(rng), rng.normal(size=3)
            again = generic(moved(a, turn, shift), moved(b, turn, shift))
            assert abs(again.least - contact.least) < 1e-8 + slack(kinds)
            assert np.abs(again.normal - turn @ contact.normal).max() < 1e-4 or contact.least < -1e-2


@pytest.mark.nightly
@pytest.mark.parametrize("kinds", PAIRS)
def test_no_direction_parts_overlapping_shapes_with_less_motion(kinds):
    rng = np.random.default_rng(100 * kinds[0] + kinds[1])
    for _ in range(8):
        a, b = random_pair(*kinds, rng, (-0.03, -1e-3, -1e-5))
        contact = generic(a, b)
        best = separation(a, b, contact.normal)
        for size in (1e-4, 1e-2, 0.3, 2.0):
            for other in contact.normal + size * rng.normal(size=(12, 3)):
                assert separation(a, b, other / np.linalg.norm(other)) < best + 1e-9


@pytest.mark.parametrize("kinds", [(SHAPE_BOX, SHAPE_BOX), (SHAPE_BOX, SHAPE_HULL), (SHAPE_HULL, SHAPE_HULL)])
def test_depth_of_polytopes_is_that_of_their_differences(kinds):
    rng = np.random.default_rng(7)
    for _ in range(60):
        a, b = random_pair(*kinds, rng, (-0.2, -0.05, -1e-3, -1e-6))
        differences = (surface(a)[:, None] - surface(b)[None]).reshape(-1, 3)
        faces = ConvexHull(differences).equations
        contact = generic(a, b)
        depth = -faces[:, 3].max() if faces[:, 3].max() < 0.0 else 0.0
        if depth > 0.0:
            assert abs(contact.least + depth) < 1e-9 + slack(kinds, contact.count)
            assert np.abs(faces[faces[:, 3].argmax(), :3] - contact.normal).max() < 1e-6


@pytest.mark.parametrize("kinds", PAIRS)
def test_deep_overlaps_end_with_a_finite_depth(kinds):
    rng = np.random.default_rng(100 * kinds[0] + kinds[1])
    for _ in range(10):
        a, b = random_shape(kinds[0], rng), random_shape(kinds[1], rng)
        for turn in (a.turn, b.turn):
            for shift in (0.0, 1e-12, 0.05):
                contact = generic(a, b._replace(center=a.center + shift * rng.normal(size=3), turn=turn.copy()))
                assert contact.count > 0
                assert contact.least < 0.0
                assert np.isfinite(contact.a).all() and np.isfinite(contact.b).all()


@pytest.mark.parametrize("kinds", PAIRS)
def test_a_guess_changes_nothing_but_the_time(kinds):
    rng = np.random.default_rng(100 * kinds[0] + kinds[1])
    for _ in range(10):
        a, b = random_pair(*kinds, rng, (-1e-3, 0.0, 2e-3))
        guess = np.zeros(4)
        cold = touch(convex_convex, a, b, FAR, guess)
        warm = touch(convex_convex, a, b, FAR, guess)
        wrong = touch(convex_convex, a, b, FAR, np.array([*random_rotation(rng)[0], 0.0]))
        for other in (warm, wrong):
            assert abs(other.least - cold.least) < 1e-9 + slack(kinds)
            assert np.abs(other.normal - cold.normal).max() < 1e-4
        assert touch(convex_convex, a, b, cold.least - 1e-3, guess).count == 0
        # what parted them once, in A's frame
        assert abs(separation(a, b, a.turn.reshape(3, 3) @ guess[:3]) - cold.least) < 1e-3


@pytest.mark.parametrize("gap", [-1e-3, -1e-9, 0.0, 1e-9, 1e-3])
def test_a_box_on_a_box(gap):
    a = make_shape(SHAPE_BOX, (0.5, 0.4, 0.1))
    for b in (make_shape(SHAPE_BOX, (0.1, 0.2, 0.3)), hull_shape(CUBE * (0.1, 0.2, 0.3))):
        b = b._replace(center=np.array([0.05, 0.03, 0.4 + gap]))
        contact = generic(a, b)
        assert contact.count == 4
        assert np.allclose(contact.normal, (0, 0, 1), atol=1e-9)
        assert np.allclose(contact.gap, gap, atol=1e-12)
        assert np.allclose(np.sort(contact.a[:, 0]), [-0.05, -0.05, 0.15, 0.15])
        assert np.allclose(np.sort(contact.a[:, 1]), [-0.17, -0.17, 0.23, 0.23])
        assert np.allclose(contact.a[:, 2], 0.1) and np.allclose(contact.b[:, 2], 0.1 + gap)


def test_stacked_boxes_touch_where_they_overlap():
    a = make_shape(SHAPE_BOX, (0.1, 0.1, 0.1))
    b = make_shape(SHAPE_BOX, (0.1, 0.1, 0.1), (0.15, 0.12, 0.2), np.eye(3))
    contact = generic(a, b)
    assert contact.count == 4
    assert contact.a[:, :2].min(axis=0) == pytest.approx((0.05, 0.02))
    assert contact.a[:, :2].max(axis=0) == pytest.approx((0.1, 0.1))


def test_crossing_edges_touch_in_a_point():
    turn = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    a = make_shape(SHAPE_BOX, (0.5, 0.1, 0.1), turn=turn)
    b = make_shape(SHAPE_BOX, (0.5, 0.1, 0.1), (0.2, 0.1, 0.2 * np.sqrt(2) - 1e-3))
    b = b._replace(turn=(Rotation.from_euler("z", 70, degrees=True).as_matrix() @ turn).reshape(-1))
    contact = generic(a, b)
    assert contact.count == 1
    assert np.allclose(contact.normal, (0, 0, 1), atol=1e-12)
    assert contact.least == pytest.approx(-1e-3, abs=1e-12)
    x = 0.2 - 0.1 / np.tan(np.radians(70))
    assert np.allclose(contact.a[0], (x, 0.0, 0.1 * np.sqrt(2)), atol=1e-9)


def test_parallel_edges_touch_along_a_line():
    turn = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    a = make_shape(SHAPE_BOX, (0.5, 0.1, 0.1), turn=turn)
    contact = generic(a, a._replace(center=np.array([0.3, 0.0, 0.2 * np.sqrt(2) + 1e-3])))
    assert contact.count == 2
    assert np.allclose(np.sort(contact.a[:, 0]), (-0.2, 0.5))
    assert np.allclose(contact.gap, 1e-3, atol=1e-12)


def test_hulls_of_boxes_do_as_boxes():
    rng = np.random.default_rng(8)
    for _ in range(100):
        a, b = random_pair(SHAPE_BOX, SHAPE_BOX, rng, (-0.02, -1e-4, 1e-4, 0.02))
        boxes = generic(a, b)
        hulls = [hull_shape(CUBE * s.size[:3], s.center, s.turn.reshape(3, 3)) for s in (a, b)]
        for pair in ((hulls[0], b), (a, hulls[1]), (hulls[0], hulls[1])):
            other = generic(*pair)
            assert other.count == boxes.count
            assert np.abs(other.normal - boxes.normal).max() < 1e-9
            assert np.abs(np.sort(other.gap) - np.sort(boxes.gap)).max() < 1e-9


def test_a_standing_cylinder_has_four_points_that_stay():
    rng = np.random.default_rng(9)
    ground = make_shape(SHAPE_BOX, (1.0, 1.0, 0.1))
    features, places = set(), []
    for _ in range(30):
        center = np.array([0.2, 0.1, 0.4 - 1e-5]) + 1e-9 * rng.normal(size=3)
        contact = generic(ground, make_shape(SHAPE_CYLINDER, (0.2, 0.3), center, small_rotation(rng, 1e-9)))
        assert contact.count == 4
        features.add(tuple(contact.feature))
        places.append(contact.b)
        assert np.allclose(contact.gap, -1e-5, atol=1e-8)
    assert len(features) == 1
    assert np.ptp(places, axis=0).max() < 1e-7
    spread = contact.b[:, :2] - (0.2, 0.1)
    assert np.allclose(np.linalg.norm(spread, axis=1), 0.2)
    assert np.linalg.norm(spread.sum(axis=0)) < 1e-7


def test_lying_cylinders_and_capsules_touch_at_both_ends():
    ground = make_shape(SHAPE_BOX, (1.0, 1.0, 0.1))
    lying = Rotation.from_euler("xz", (90, 30), degrees=True).as_matrix()
    for kind, ends in ((SHAPE_CYLINDER, 0.3), (SHAPE_CAPSULE, 0.3)):
        for roll in (0.0, 0.7, 3.0):
            turn = lying @ Rotation.from_euler("z", roll).as_matrix()
            contact = generic(ground, make_shape(kind, (0.2, 0.3), (0.1, 0.0, 0.301), turn))
            assert contact.count == 2
            assert np.allclose(contact.gap, 1e-3, atol=1e-9)
            assert np.linalg.norm(contact.b[1] - contact.b[0]) == pytest.approx(2.0 * ends)


def test_cylinders_side_by_side_and_crossed():
    a = make_shape(SHAPE_CYLINDER, (0.1, 0.3))
    contact = generic(a, make_shape(SHAPE_CYLINDER, (0.2, 0.3), (0.301, 0.0, 0.2)))
    assert contact.count == 2
    assert np.allclose(contact.gap, 1e-3, atol=1e-9)
    assert np.allclose(np.sort(contact.a[:, 2]), (-0.1, 0.3))
    turn = Rotation.from_euler("x", 90, degrees=True).as_matrix()
    contact = generic(a, make_shape(SHAPE_CYLINDER, (0.2, 0.3), (0.299, 0.1, 0.2), turn))
    assert contact.count == 1
    assert np.allclose(contact.normal, (1, 0, 0), atol=1e-9)
    assert np.allclose(contact.b[0], (0.099, 0.0, 0.2), atol=1e-6)


def test_a_cone_stands_on_its_tip():
    ground = make_shape(SHAPE_BOX, (1.0, 1.0, 0.1))
    down = Rotation.from_euler("x", 180, degrees=True).as_matrix()
    contact = generic(ground, make_shape(SHAPE_CONE, (0.2, 0.3), (0.1, 0.2, 0.399), down))
    assert contact.count == 1
    assert np.allclose(contact.b[0], (0.1, 0.2, 0.099))
    assert contact.least == pytest.approx(-1e-3, abs=1e-12)
    assert generic(ground, make_shape(SHAPE_CONE, (0.2, 0.3), (0.1, 0.2, 0.4))).count == 4


@pytest.mark.parametrize("kind", [SHAPE_BOX, SHAPE_HULL, SHAPE_CYLINDER, SHAPE_CONE, SHAPE_CAPSULE])
def test_a_wheel_has_one_point(kind):
    rng = np.random.default_rng(10)
    other = random_shape(kind, rng)
    for _ in range(20):
        wheel = random_shape(SHAPE_WHEEL, rng)
        assert generic(other, wheel._replace(turn=other.turn.copy())).count == 1


def test_a_resting_box_does_not_flicker():
    rng = np.random.default_rng(11)
    ground = hull_shape(CUBE * (0.5, 0.5, 0.1))
    features = set()
    for _ in range(50):
        center = np.array([0.1, 0.2, 0.3]) + 1e-9 * rng.normal(size=3)
        contact = generic(ground, make_shape(SHAPE_BOX, (0.2, 0.2, 0.2), center, small_rotation(rng, 1e-9)))
        assert contact.count == 4
        assert np.abs(contact.normal - (0, 0, 1)).max() < 1e-8
        features.add(tuple(contact.feature))
    assert len(features) == 1


def test_the_margin_leaves_points_out():
    ground = make_shape(SHAPE_BOX, (0.5, 0.5, 0.1))
    tilted = make_shape(SHAPE_BOX, (0.2, 0.2, 0.2), (0, 0, 0.3), Rotation.from_euler("y", 0.02).as_matrix())
    assert generic(ground, tilted, 0.05).count == 4
    assert generic(ground, tilted, 1e-3).count == 2
    assert generic(ground, tilted._replace(center=np.array([0.0, 0.0, 0.5])), 0.05).count == 0


@pytest.mark.parametrize("kind", CONVEX)
def test_every_pair_of_kinds_goes_through_one_door(kind):
    rng = np.random.default_rng(12)
    for other in (SHAPE_PLANE, *CONVEX):
        for _ in range(5):
            a = make_shape(SHAPE_PLANE) if other == SHAPE_PLANE else random_shape(other, rng)
            b = random_shape(kind, rng)
            here = touch(collide, a, b, FAR, np.zeros(4))
            back = touch(collide, b, a, FAR, np.zeros(4))
            assert here.count == back.count > 0
            assert abs(here.least - back.least) < 1e-5
            if other != kind:
                assert np.array_equal(here.normal, -back.normal)
                assert np.array_equal(here.a, back.b) and np.array_equal(here.feature, back.feature)
            if other != SHAPE_PLANE and here.least > -1e-2:
                assert abs(here.least - generic(a, b).least) < 1e-5


def test_points_of_slivers_lie_on_the_shapes() -> None:
    b = ModelBuilder()
    b.add_shape_hull(-1, [(x, y, z) for x in (-0.25, 0.25) for y in (-1, 1) for z in (-0.2, 0)])
    b.add_shape_cylinder(b.add_body(), 0.2, 0.2)
    shapes = model_shapes(b.finalize().contact)
    rng = np.random.default_rng(5)
    hull = of_reference(shapes[0], np.zeros(3), np.eye(3).ravel())
    for _ in range(1000):
        center = [-0.45, 0.0, 0.2] + rng.uniform(-1, 1, 3) * [5e-5, 1e-5, 1e-5] - [5e-5, 0, 0]
        x, y, z = rng.uniform(-1e-5, 1e-5, 3)
        turn = np.array([[1, -z, y], [z, 1, -x], [-y, x, 1]])
        cylinder = of_reference(shapes[1], center, turn.ravel())
        guess = np.array([-1.0, 0.0, rng.uniform(0, 0.1), 0.0]) + rng.normal(size=4) * [1e-3, 1e-3, 1e-3, 0]
        _, _, on_a, _, _ = convex_convex(hull, cylinder, 0.02, guess)
        assert np.all(np.abs(on_a[:, 1]) < 0.2)


def test_a_wheel_along_the_side_of_a_box_touches_its_edge() -> None:
    box, rng = make_shape(SHAPE_BOX, (6.0, 1.0, 0.2), (0.0, -1.0, -0.2)), np.random.default_rng(0)
    for _ in range(3000):
        x, y, z = rng.uniform(-5, 5), rng.choice([1e-6, 1e-5, 3e-4, 0.02]), 0.3 - rng.uniform(0, 4e-3)
        turn = Rotation.from_euler("y", rng.uniform(0, 6)) * Rotation.from_euler("x", 0.5 * np.pi)
        wheel = make_shape(SHAPE_WHEEL, (0.3, 0.03), (x, y, z), turn.as_matrix())
        _, normal, *_ = collide(box, wheel, 0.02, np.zeros(4))
        np.testing.assert_allclose(normal, np.array([0.0, y, z - 0.27]) / np.hypot(y, z - 0.27), rtol=0, atol=1e-6)
