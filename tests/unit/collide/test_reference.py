from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.spatial import ConvexHull, QhullError

from gpusim.reference.collide.manifolds import Manifold, touching_points
from gpusim.reference.collide.pairs import find_manifold, grazes
from gpusim.reference.collide.separation import Approach, Pair, Posed, approach
from gpusim.typing import Array

from .kernels import collide
from .pairs import Contact, random_rotation, touch
from .record import (
    SHAPE_BARREL,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_HEIGHT_FIELD,
    SHAPE_HULL,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    Shape,
    make_shape,
)
from .shapes import CONVEX, NAMES, random_shape

pytestmark = pytest.mark.native
PAIRS = list(combinations_with_replacement(CONVEX, 2))
FLAT = (SHAPE_SPHERE, SHAPE_CAPSULE, SHAPE_BOX, SHAPE_HULL)
MARGIN = 1.0
SHALLOW = (-0.02, -1e-3, -1e-5, 0.0, 1e-7, 2e-3, 0.02)
POSES = 24
DEEPER: dict[tuple[int, int], float] = {}


def pair_names(kinds: tuple[int, int]) -> str:
    return "-".join(NAMES[k] for k in kinds)


each_pair = pytest.mark.parametrize("kinds", PAIRS, ids=pair_names)
some_pairs_fast = pytest.mark.parametrize(
    "kinds",
    [
        pair if SHAPE_BOX in pair or pair[0] == pair[1] else pytest.param(pair, marks=pytest.mark.nightly)
        for pair in PAIRS
    ],
    ids=pair_names,
)


@dataclass
class Case:
    a: Shape
    b: Shape
    kernel: Contact
    pair: Pair
    found: Approach | None
    manifold: Manifold | None


def compared(a: Shape, b: Shape, margin: float = MARGIN) -> Case:
    pair = Pair(Posed(a.reference(), *a.pose), Posed(b.reference(), *b.pose))
    found, _ = approach(pair, margin, np.zeros(3))
    manifold = find_manifold(a.reference(), a.pose, b.reference(), b.pose, margin, np.zeros(3))
    return Case(a, b, touch(collide, a, b, margin, np.zeros(4)), pair, found, manifold)


def random_pair(kinds: tuple[int, int], rng: np.random.Generator, aligned: bool, gap: float) -> tuple[Shape, Shape]:
    a, b = random_shape(kinds[0], rng), random_shape(kinds[1], rng)
    direction = rng.normal(size=3)
    if aligned:
        quarter = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], 3)
        quarter *= np.linalg.det(quarter)
        b = b._replace(turn=(a.turn.reshape(3, 3) @ quarter).reshape(-1))
        direction = rng.choice([-1.0, 1.0]) * a.turn.reshape(3, 3)[:, rng.integers(3)]
    direction = direction / np.linalg.norm(direction)
    aside = 0.1 * rng.normal(size=3) if aligned else np.zeros(3)
    b = b._replace(center=a.center + aside)
    pair = Pair(Posed(a.reference(), *a.pose), Posed(b.reference(), *b.pose))
    return a, b._replace(center=b.center + (gap - float(pair.separation(direction[None])[0])) * direction)


@cache
def cases(kinds: tuple[int, int]) -> list[Case]:
    rng = np.random.default_rng(1000 * kinds[0] + kinds[1])
    poses = [(k % 3 == 0, SHALLOW[k % len(SHALLOW)]) for k in range(POSES)]
    return [compared(*random_pair(kinds, rng, *pose)) for pose in poses]


def gap_error(kinds: tuple[int, int]) -> float:
    if {SHAPE_CYLINDER, SHAPE_CONE, SHAPE_BARREL} & set(kinds):
        return 2e-5
    return 1e-8 if set(kinds) <= set(FLAT) else 1e-6


@pytest.mark.nightly
@each_pair
def test_gap_and_normal_are_those_of_the_reference(kinds) -> None:
    met = 0
    for case in cases(kinds):
        if case.found is None:
            assert case.kernel.count == 0
            continue
        if grazes(case.pair):
            continue
        assert case.kernel.count > 0 or case.found.gap > MARGIN - gap_error(kinds)
        met += 1
        assert abs(case.kernel.least - case.found.gap) < gap_error(kinds)
        # along the kernels' normal the shapes are as far apart as along the best one
        along = float(case.pair.separation(case.kernel.normal[None])[0])
        assert abs(along - case.found.gap) < 1e-8 + gap_error(kinds) * (kinds == (SHAPE_BOX, SHAPE_BOX))
    assert met >= POSES - 2


TOUCHING = 1e-4
SPREAD = 2e-3


def places(case: Case, points_a: Array, points_b: Array) -> Array:
    assert case.found is not None
    flat: Array = (0.5 * (points_a + points_b) - case.pair.a.center) @ case.found.axes.T
    return flat


def area(points: Array) -> float:
    try:
        return float(ConvexHull(points).volume)
    except (QhullError, ValueError):
        return 0.0


def beyond(points: Array, hull: Array) -> float:
    if area(hull) > 1e-6:
        sides = ConvexHull(hull).equations
        return float(max(0.0, (points @ sides[:, :2].T + sides[:, 2]).max()))
    far = np.linalg.norm(hull[:, None] - hull[None], axis=2)
    i, j = np.unravel_index(int(np.argmax(far)), far.shape)
    along = hull[j] - hull[i]
    share = np.clip((points - hull[i]) @ along / max(float(along @ along), 1e-30), 0.0, 1.0)
    return float(np.linalg.norm(points - hull[i] - np.outer(share, along), axis=1).max())


def test_thin_simplices_do_not_hide_a_gap() -> None:
    rng = np.random.default_rng(777 + 1000 * SHAPE_CONE + SHAPE_CONE)
    pairs = [random_pair((SHAPE_CONE,) * 2, rng, k % 3 == 0, SHALLOW[k % len(SHALLOW)]) for k in range(34)]
    case = compared(*pairs[-1])
    assert case.found is not None
    assert case.found.gap == pytest.approx(0.150543028502, abs=1e-9)


@some_pairs_fast
def test_points_span_the_part_that_touches(kinds) -> None:
    many = 0
    for case in cases(kinds):
        if case.found is None or case.kernel.count == 0 or case.manifold is None:
            continue
        region, gap, _ = touching_points(case.pair, case.found, MARGIN)
        touching = region[gap <= case.found.gap + TOUCHING]
        near = case.kernel.gap <= case.kernel.least + 0.5 * TOUCHING
        kernel = places(case, case.kernel.a, case.kernel.b)
        assert beyond(kernel[near], touching) < SPREAD
        own = places(case, case.manifold.on_a, case.manifold.on_b)
        if case.pair.a.shape.single or case.pair.b.shape.single:
            assert case.kernel.count == len(own) == 1
            assert beyond(own, touching) < SPREAD
            continue
        for chosen in (kernel, own):
            if len(touching) <= 4:
                assert beyond(touching, chosen) < SPREAD
            else:
                many += 1
                assert area(chosen) > 0.5 * area(touching)


@pytest.mark.nightly
@each_pair
def test_deep_overlaps_are_never_reported_shallower_than_they_are(kinds) -> None:
    rng = np.random.default_rng(2000 + 1000 * kinds[0] + kinds[1])
    for k in range(9):
        case = compared(*random_pair(kinds, rng, k % 3 == 0, (-0.05, -0.1, -0.2)[k // 3]))
        assert case.found is not None
        assert case.kernel.count > 0
        assert case.kernel.least < case.found.gap + gap_error(kinds)
        assert case.kernel.least > case.found.gap - DEEPER.get(kinds, gap_error(kinds))


GROUND = make_shape(SHAPE_PLANE, (), (0.1, -0.2, 0.3), random_rotation(np.random.default_rng(1)))
kind_of = pytest.mark.parametrize("kind", CONVEX, ids=NAMES.get)


@kind_of
def test_planes_do_as_those_of_the_reference(kind) -> None:
    rng = np.random.default_rng(kind)
    n = GROUND.turn[2::3]
    for k in range(POSES):
        b = random_shape(kind, rng)
        if k % 2:
            b = b._replace(turn=(GROUND.turn.reshape(3, 3) @ np.eye(3)[[k % 3, (k + 1) % 3, (k + 2) % 3]]).reshape(-1))
        kernel = touch(collide, GROUND, b, MARGIN, np.zeros(4))
        manifold = find_manifold(GROUND.reference(), GROUND.pose, b.reference(), b.pose, MARGIN, np.zeros(3))
        posed = Posed(b.reference(), *b.pose)
        least = float((posed.support(-n[None])[0] - GROUND.center) @ n) - posed.shape.radius
        assert (kernel.count > 0) == (manifold is not None) == (least <= MARGIN)
        if manifold is None:
            continue
        own = np.vecdot(manifold.on_b - manifold.on_a, n)
        assert abs(kernel.least - least) < gap_error((kind,)) and abs(own.min() - least) < gap_error((kind,))
        touching = manifold.on_b[own <= least + TOUCHING] @ np.linalg.svd(n[None])[2][1:].T
        assert (
            beyond(touching, kernel.b @ np.linalg.svd(n[None])[2][1:].T)
            < 0.2 * posed.shape.extent * (kind in (SHAPE_CYLINDER, SHAPE_CONE, SHAPE_BARREL)) + SPREAD
            or posed.shape.single
        )


def rough(rng: np.random.Generator, height: float) -> Shape:
    heights = height * rng.normal(size=(11, 13))
    size = (13, 11, 0.25, 0.25, -1.0, heights.min(), heights.max())
    return make_shape(SHAPE_HEIGHT_FIELD, size, (0.2, 0.1, -0.3), random_rotation(rng), heights)


@pytest.mark.nightly
@kind_of
@pytest.mark.parametrize("height", [0.0, 0.02])
def test_height_fields_do_as_those_of_the_reference(kind, height) -> None:
    rng = np.random.default_rng(kind)
    met = 0
    for _ in range(5):
        kernel, manifold = on_field(*over_field(kind, height, rng))
        assert (kernel.count > 0) == (manifold is not None)
        if manifold is None:
            continue
        met += 1
        own = np.vecdot(manifold.on_b - manifold.on_a, manifold.normal)
        assert abs(kernel.least - own.min()) < 1e-6
        assert np.linalg.norm(kernel.normal - manifold.normal) < 1e-5
    assert met >= 3


def over_field(kind: int, height: float, rng: np.random.Generator) -> tuple[Shape, Shape]:
    field, b = rough(rng, height), random_shape(kind, rng)
    up = field.turn.reshape(3, 3)
    posed = Posed(b.reference(), b.center, b.turn.reshape(3, 3))
    reach = float((b.center - posed.support(-up[:, 2][None])[0]) @ up[:, 2]) + posed.shape.radius
    place = np.array([*rng.uniform(-0.5, 0.5, 2), reach + rng.uniform(-0.02, 0.02) + height])
    return field, b._replace(center=field.center + up @ place)


def on_field(field: Shape, b: Shape) -> tuple[Contact, Manifold | None]:
    manifold = find_manifold(field.reference(), field.pose, b.reference(), b.pose, 0.1, np.zeros(3))
    return touch(collide, field, b, 0.1, np.zeros(4)), manifold


STEEP = [(SHAPE_CONE, 1, 0.0970431), (SHAPE_CONE, 2, 0.0874975), (SHAPE_HULL, 3, 0.0601323), (SHAPE_HULL, 4, 0.0071404)]


def steep(kind: int, number: int) -> tuple[Shape, Shape]:
    rng = np.random.default_rng(kind)
    return [over_field(kind, 0.1, rng) for _ in range(number + 1)][-1]


@pytest.mark.parametrize(("kind", "number", "gap"), STEEP)
def test_the_reference_is_right_over_steep_ridges(kind, number, gap) -> None:
    _, manifold = on_field(*steep(kind, number))
    assert manifold is not None
    assert np.vecdot(manifold.on_b - manifold.on_a, manifold.normal).min() == pytest.approx(gap, abs=1e-6)


@pytest.mark.parametrize(("kind", "number", "gap"), STEEP)
def test_the_kernels_are_right_over_steep_ridges(kind, number, gap) -> None:
    kernel, _ = on_field(*steep(kind, number))
    assert kernel.least == pytest.approx(gap, abs=1e-5)
