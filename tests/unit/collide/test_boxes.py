from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gpusim.typing import Array
from tests.unit.collide.kernels import box_box
from tests.unit.collide.pairs import (
    Contact,
    box_distance,
    box_separation,
    moved,
    random_rotation,
    small_rotation,
    touch,
)
from tests.unit.collide.record import SHAPE_BOX, Shape, make_shape


def box(
    size: tuple[float, float, float] | Array, center: tuple | Array = (0, 0, 0), turn: Array | None = None
) -> Shape:
    return make_shape(SHAPE_BOX, size, center, turn)


def random_pair(rng: np.random.Generator, apart: float) -> tuple[Shape, Shape]:
    """Two boxes whose gap along the line of centers is about ``apart``."""
    a = box(rng.uniform(0.2, 1.0, 3), rng.normal(size=3), random_rotation(rng))
    b = box(rng.uniform(0.2, 1.0, 3), a.center, random_rotation(rng))
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    low, high = 0.0, 6.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        if box_separation(a, b._replace(center=a.center + middle * direction)) < apart:
            low = middle
        else:
            high = middle
    return a, b._replace(center=a.center + high * direction)


@pytest.mark.parametrize("gap", [-0.01, 0.0, 0.02])
@pytest.mark.parametrize("small_below", [False, True])
def test_flat_boxes_touch_at_the_corners_of_the_smaller(gap: float, small_below: bool) -> None:
    small, large = (0.3, 0.2, 0.1), (1.0, 1.0, 0.5)
    sizes = (small, large) if small_below else (large, small)
    a, b = box(sizes[0]), box(sizes[1], (0.1, 0.0, 0.6 + gap))
    c = touch(box_box, a, b)
    assert c.count == 4
    assert c.normal == pytest.approx([0, 0, 1], abs=1e-15)
    assert c.gap == pytest.approx([gap] * 4, abs=1e-15)
    middle = (0.0, 0.0) if small_below else (0.1, 0.0)
    corners = {(round(x - middle[0], 9), round(y - middle[1], 9)) for x, y, _ in c.a}
    assert corners == {(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)}


def test_eight_points_become_four_that_span_the_overlap() -> None:
    turn = Rotation.from_euler("z", 0.6).as_matrix()
    c = touch(box_box, box((1, 1, 1)), box((1, 1, 1), (0, 0, 1.99), turn))
    assert c.count == 4
    x, y = c.a[:, 0], c.a[:, 1]
    area = 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
    assert area > 0.6 * 3.3  # the octagon's
    assert np.all(np.abs(c.gap + 0.01) < 1e-12)


def test_crossing_edges_touch_in_one_point() -> None:
    terms_a = Rotation.from_euler("x", np.pi / 4).as_matrix()
    terms_b = Rotation.from_euler("y", np.pi / 4).as_matrix()
    root = np.sqrt(2.0)
    for gap in (-0.02, 0.03):
        c = touch(box_box, box((1, 1, 1), turn=terms_a), box((1, 1, 1), (0.2, 0.3, 2 * root + gap), terms_b))
        assert c.count == 1
        assert c.normal == pytest.approx([0, 0, 1], abs=1e-12)
        assert c.least == pytest.approx(gap, abs=1e-12)
        assert c.a[0] == pytest.approx([0.2, 0.3, root], abs=1e-12) or c.a[0, 2] == pytest.approx(root, abs=1e-12)


@pytest.mark.nightly
def test_overlapping_boxes_are_as_deep_as_the_best_of_all_axes() -> None:
    rng = np.random.default_rng(1)
    close = 0
    for _ in range(100):
        a, b = random_pair(rng, -rng.uniform(0.0, 0.3))
        c = touch(box_box, a, b)
        assert c.count > 0
        exact = box_separation(a, b)
        assert c.least == pytest.approx(exact, abs=1e-6)
        close += abs(c.least - exact) < 1e-12
    assert close > 95


def test_boxes_apart_are_as_far_as_their_nearest_points() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        a, b = random_pair(rng, rng.uniform(0.0, 0.2))
        c = touch(box_box, a, b, margin=1.0)
        assert c.count > 0
        # a face's points may all lie a little farther than the nearest corner beyond its rim
        assert box_distance(a, b) - 1e-8 < c.least < box_distance(a, b) + 0.01


def test_moving_along_the_normal_closes_the_gap() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        a, b = random_pair(rng, -rng.uniform(0.01, 0.1))
        c = touch(box_box, a, b)
        apart = b._replace(center=b.center - c.least * c.normal)
        assert abs(box_separation(a, apart)) < 1e-6


def test_points_farther_than_the_margin_are_left_out() -> None:
    turn = Rotation.from_euler("y", 0.05).as_matrix()
    a, b = box((1, 1, 1)), box((1, 1, 1), (0, 0, 2.05), turn)
    assert touch(box_box, a, b, margin=0.02).count == 2
    assert touch(box_box, a, b, margin=0.2).count == 4
    assert touch(box_box, a, box((1, 1, 1), (0, 0, 2.3)), margin=0.2).count == 0
    assert touch(box_box, a, box((1, 1, 1), (5, 0, 0)), margin=0.2).count == 0


def test_swapping_negates_and_moving_both_moves() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        a, b = random_pair(rng, rng.uniform(-0.1, 0.02))
        c, d = touch(box_box, a, b), touch(box_box, b, a)
        assert c.least == pytest.approx(d.least, abs=2e-9)
        assert c.normal == pytest.approx(-d.normal, abs=1e-6)
        turn, shift = random_rotation(rng), rng.normal(size=3)
        e = touch(box_box, moved(a, turn, shift), moved(b, turn, shift))
        assert e.count == c.count
        assert e.feature.tolist() == c.feature.tolist()
        assert e.a == pytest.approx(c.a @ turn.T + shift, abs=1e-9)
        assert e.normal == pytest.approx(turn @ c.normal, abs=1e-9)


RESTS = {
    "same box": (box((0.5, 0.5, 0.5)), box((0.5, 0.5, 0.5), (0, 0, 1.0))),
    "half off": (box((0.5, 0.5, 0.5)), box((0.5, 0.5, 0.5), (0.5, 0.5, 1.0))),
    "small on large": (box((1.0, 1.0, 0.1)), box((0.3, 0.2, 0.1), (0.2, 0.1, 0.2))),
    "turned by 45 degrees": (box((1, 1, 1)), box((1, 1, 1), (0, 0, 2), Rotation.from_euler("z", 45, True).as_matrix())),
    "edge on face": (
        box((1, 1, 1)),
        box((1, 1, 1), (0, 0, 1 + 2**0.5), Rotation.from_euler("x", 45, True).as_matrix()),
    ),
    "edge across edge": (
        box((1, 1, 1), turn=Rotation.from_euler("x", 45, True).as_matrix()),
        box((1, 1, 1), (0, 0, 8**0.5), Rotation.from_euler("y", 45, True).as_matrix()),
    ),
}


@pytest.mark.parametrize("name", RESTS)
def test_shaking_a_resting_box_keeps_its_features(name: str) -> None:
    a, b = RESTS[name]
    rng = np.random.default_rng(5)
    first = touch(box_box, a, b)
    assert first.count == (4 if "edge" not in name else 2 if "face" in name else 1)
    for _ in range(100):
        shaken = moved(b, np.eye(3), rng.normal(size=3) * 1e-9)
        shaken = shaken._replace(turn=(small_rotation(rng, 1e-9) @ b.turn.reshape(3, 3)).reshape(-1))
        c = touch(box_box, a, shaken)
        assert c.feature.tolist() == first.feature.tolist()
        assert c.normal == pytest.approx(first.normal, abs=1e-7)
        assert c.a == pytest.approx(first.a, abs=1e-3)


def test_the_gap_changes_smoothly_as_a_box_rolls_over_another() -> None:
    a = box((1.0, 1.0, 0.5))
    before: Contact | None = None
    step = 1e-3
    for i in range(2000):
        turn = Rotation.from_rotvec([0.3 * i * step, i * step, 0.2 * i * step]).as_matrix()
        lowest = np.abs(turn[2]) @ np.array([0.5, 0.3, 0.4])
        c = touch(box_box, a, box((0.5, 0.3, 0.4), (0.2 + 0.1 * i * step, 0.1, 0.5 + lowest - 0.01), turn))
        assert c.least == pytest.approx(-0.01, abs=1e-4)
        if before is not None:
            assert np.linalg.norm(c.normal - before.normal) < 0.05
        before = c


@pytest.mark.parametrize("thin", [False, True])
def test_deep_overlaps_have_a_normal_and_a_depth(thin: bool) -> None:
    rng = np.random.default_rng(6)
    size = (1.0, 1.0, 1e-3) if thin else (0.5, 0.4, 0.3)
    for k in range(50):
        turn = np.eye(3) if k == 0 else random_rotation(rng)
        c = touch(box_box, box(size), box(size, (0, 0, 0), turn))
        assert c.count > 0
        assert np.isfinite(c.a).all() and np.isfinite(c.b).all()
        assert c.least == pytest.approx(box_separation(box(size), box(size, (0, 0, 0), turn)), abs=2e-3)
