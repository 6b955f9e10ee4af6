from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gpusim.typing import Array
from tests.unit.collide.kernels import height_field_convex, height_field_manifolds
from tests.unit.collide.pairs import moved, random_rotation, small_rotation, touch
from tests.unit.collide.record import (
    SHAPE_BARREL,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_ELLIPSOID,
    SHAPE_HEIGHT_FIELD,
    SHAPE_HULL,
    SHAPE_SPHERE,
    SHAPE_SUPERELLIPSOID,
    SHAPE_WHEEL,
    Shape,
    make_shape,
)

CORNERS = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.2, 0.2) for z in (-0.1, 0.1)])
FACES = [(0, 2, 6, 4), (1, 5, 7, 3), (0, 4, 5, 1), (2, 3, 7, 6), (0, 1, 3, 2), (4, 6, 7, 5)]
NORMALS = np.array([[0, 0, -1], [0, 0, 1], [0, -1, 0], [0, 1, 0], [-1, 0, 0], [1, 0, 0]], dtype=float)
SIZES: dict[int, list[float]] = {
    SHAPE_SPHERE: [0.2],
    SHAPE_CAPSULE: [0.1, 0.3],
    SHAPE_BOX: [0.3, 0.2, 0.1],
    SHAPE_CYLINDER: [0.2, 0.15],
    SHAPE_CONE: [0.2, 0.2],
    SHAPE_ELLIPSOID: [0.3, 0.2, 0.1],
    SHAPE_SUPERELLIPSOID: [0.3, 0.2, 0.1, 0.6, 1.2],
    SHAPE_HULL: [],
    SHAPE_WHEEL: [0.3, 0.05],
    SHAPE_BARREL: [0.2, 0.3, 0.5],
}
ROUND = (SHAPE_SPHERE, SHAPE_ELLIPSOID, SHAPE_SUPERELLIPSOID, SHAPE_WHEEL)


def field(heights: Array, spacing: tuple[float, float] = (0.25, 0.25), **pose: Array) -> Shape:
    rows, columns = heights.shape
    return make_shape(SHAPE_HEIGHT_FIELD, [columns, rows, *spacing, -1.0], points=heights, **pose)


def slope(gx: float, gy: float, columns: int = 13, rows: int = 11) -> Shape:
    x = (np.arange(columns) - 0.5 * (columns - 1)) * 0.25
    y = (np.arange(rows) - 0.5 * (rows - 1)) * 0.25
    return field(gx * x[None, :] + gy * y[:, None])


def shape(kind: int, center: tuple | Array, turn: Array | None = None) -> Shape:
    if kind == SHAPE_HULL:
        return make_shape(kind, [], center, turn, points=CORNERS, faces=FACES, normals=NORMALS)
    return make_shape(kind, SIZES[kind], center, turn)


def lowest(s: Shape, n: Array) -> float:
    down, z = -(s.turn.reshape(3, 3).T @ n), s.size
    flat = np.hypot(down[0], down[1])
    reach = {
        SHAPE_SPHERE: lambda: z[0],
        SHAPE_CAPSULE: lambda: z[0] + abs(down[2]) * z[1],
        SHAPE_BOX: lambda: np.abs(down) @ z[:3],
        SHAPE_CYLINDER: lambda: z[0] * flat + z[1] * abs(down[2]),
        SHAPE_CONE: lambda: max(z[1] * down[2], z[0] * flat - z[1] * down[2]),
        SHAPE_ELLIPSOID: lambda: np.linalg.norm(z[:3] * down),
        SHAPE_SUPERELLIPSOID: lambda: _dual(z, np.abs(z[:3] * down)),
        SHAPE_HULL: lambda: (CORNERS @ down).max(),
        SHAPE_WHEEL: lambda: (z[0] - z[1]) * flat + z[1],
        SHAPE_BARREL: lambda: _barrel(z, np.array([flat, abs(down[2])])),
    }[s.kind]()
    return float(s.center @ n - reach)


def _barrel(z: Array, d: Array) -> float:
    end = np.array([np.sqrt(z[2] ** 2 - z[1] ** 2) - (z[2] - z[0]), z[1]])
    return float(z[2] - (z[2] - z[0]) * d[0] if d[1] * z[2] <= z[1] else d @ end)


def _dual(z: Array, x: Array) -> float:
    q1, q2 = 2 / (2 - z[3]), 2 / (2 - z[4])
    return float(((x[0] ** q2 + x[1] ** q2) ** (q1 / q2) + x[2] ** q1) ** (1 / q1))


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("tilt", [(0.0, 0.0), (0.3, -0.2)])
def test_a_flat_field_is_a_plane_at_any_depth(kind: int, tilt: tuple[float, float]) -> None:
    f = slope(*tilt)
    n = np.array([-tilt[0], -tilt[1], 1.0])
    n /= np.linalg.norm(n)
    rng = np.random.default_rng(kind)
    for _ in range(30):
        s = shape(kind, rng.uniform(-0.5, 0.5, 3), random_rotation(rng))
        depth = rng.uniform(-0.04, 0.6)
        s = s._replace(center=s.center - (lowest(s, n) + depth) * n)
        c = touch(height_field_convex, f, s)
        assert c.count == 1 if kind in ROUND else c.count >= 1
        assert c.normal == pytest.approx(n, abs=1e-9)
        assert c.least == pytest.approx(-depth, abs=1e-9)


@pytest.mark.parametrize("kind", [SHAPE_BOX, SHAPE_HULL])
def test_a_box_rests_on_four_corners_with_lasting_features(kind: int) -> None:
    f = slope(0.0, 0.0)
    rng = np.random.default_rng(1)
    turn = Rotation.from_euler("z", 0.4).as_matrix()
    first = touch(height_field_convex, f, shape(kind, (0.13, 0.07, 0.099), turn))
    assert first.count == 4
    assert first.gap == pytest.approx([-0.001] * 4, abs=1e-12)
    spread = first.b[:, :2] - [0.13, 0.07]
    assert np.linalg.norm(spread, axis=1) == pytest.approx([np.hypot(0.3, 0.2)] * 4, abs=1e-9)
    for k in range(60):
        shaken = small_rotation(rng, 1e-9) @ turn
        c = touch(height_field_convex, f, shape(kind, (0.13 + 0.01 * k, 0.07, 0.099), shaken))
        assert c.feature.tolist() == first.feature.tolist()
        assert c.normal == pytest.approx([0, 0, 1], abs=1e-8)


@pytest.mark.parametrize("tilt", [(0.1, -0.06), (0.05, -0.15), (0.0, -0.07)])
def test_all_corners_below_a_slope_are_contacts(tilt: tuple[float, float]) -> None:
    gradient = np.array([0.1, 0.05])
    n = np.array([*-gradient, 1.0]) / np.sqrt(1.0 + gradient @ gradient)
    turn = Rotation.from_euler("xy", tilt).as_matrix()
    c = touch(height_field_convex, slope(*gradient), shape(SHAPE_BOX, (0.1, 0.1, 0.03), turn), margin=0.005)
    lower = CORNERS[CORNERS[:, 2] < 0.0] @ turn.T + [0.1, 0.1, 0.03]
    assert (lower @ n).max() < -0.005
    assert np.sort(c.gap) == pytest.approx(np.sort(lower @ n), abs=1e-12)


@pytest.mark.parametrize("kind", SIZES)
def test_edges_within_a_plane_kick_nothing(kind: int) -> None:
    f = slope(0.1, 0.05)
    n = np.array([-0.1, -0.05, 1.0]) / np.linalg.norm([-0.1, -0.05, 1.0])
    for k in range(80):
        turn = Rotation.from_rotvec([0.0, 0.1 * k, 0.02 * k]).as_matrix()
        s = shape(kind, (-0.6 + 0.015 * k, 0.3 - 0.007 * k, 0.0), turn)
        s = s._replace(center=s.center - (lowest(s, n) + 0.002) * n)
        c = touch(height_field_convex, f, s)
        assert c.normal == pytest.approx(n, abs=1e-9)
        assert c.least == pytest.approx(-0.002, abs=1e-9)


def test_a_ball_rolls_over_a_ridge() -> None:
    x = (np.arange(13) - 6) * 0.25
    f = field(np.repeat(-0.5 * np.abs(x)[None, :], 11, axis=0))
    side = np.array([0.5, 0.0, 1.0]) / np.hypot(0.5, 1.0)
    for position in np.linspace(-0.4, 0.4, 161):
        away = abs(position)
        # above the side, or nearest to the ridge line
        over_ridge = away < 0.2 * side[0]
        height = np.sqrt(0.04 - away**2) if over_ridge else 0.2 / side[2] - 0.5 * away
        c = touch(height_field_convex, f, make_shape(SHAPE_SPHERE, [0.2], (position, 0.05, height - 1e-4)))
        expected = np.array([position, 0.0, height]) / 0.2 if over_ridge else side * [np.sign(position), 1, 1]
        assert c.count == 1
        assert c.normal == pytest.approx(expected, abs=2e-3)
        assert c.least == pytest.approx(-1e-4, abs=5e-5)


def test_a_box_lies_on_a_ridge_and_on_peaks() -> None:
    x = (np.arange(13) - 6) * 0.25
    ridge = field(np.repeat(-0.5 * np.abs(x)[None, :], 11, axis=0))
    c = touch(height_field_convex, ridge, shape(SHAPE_BOX, (0.05, 0.02, 0.099)))
    assert c.normal == pytest.approx([0, 0, 1], abs=1e-9)
    assert c.count == 2
    assert c.gap == pytest.approx([-0.001] * 2, abs=1e-9)
    heights = np.zeros((11, 13))
    peaks = [(5, 5), (5, 7), (6, 6)]
    for row, column in peaks:
        heights[row, column] = 0.1
    c = touch(height_field_convex, field(heights), shape(SHAPE_BOX, (0.0, 0.1, 0.199)))
    assert c.normal == pytest.approx([0, 0, 1], abs=1e-9)
    assert c.count == 3
    assert c.gap == pytest.approx([-0.001] * 3, abs=1e-9)
    assert {(round(p[0] / 0.25) + 6, round(p[1] / 0.25) + 5) for p in c.b} == {(k, i) for i, k in peaks}


def manifolds(f: Shape, s: Shape, margin: float = 0.02) -> tuple[int, Array, Array, Array]:
    found = height_field_manifolds(f, s, margin, 3)
    normal, a, b = (np.array([m[i] for m in found]) for i in (0, 1, 2))
    return len(found), normal, a[:, 0], b[:, 0]


def test_a_ball_in_a_groove_touches_both_sides() -> None:
    x = (np.arange(13) - 6) * 0.25
    f = field(np.repeat(0.5 * np.abs(x)[None, :], 11, axis=0))
    height = 0.2 * np.hypot(0.5, 1.0)
    n, normal, a, b = manifolds(f, make_shape(SHAPE_SPHERE, [0.2], (0.0, 0.1, height - 1e-3)))
    assert n == 2
    assert normal[0] == pytest.approx(-normal[1] * [1, 1, -1], abs=1e-9)
    assert abs(normal[0, 0]) == pytest.approx(0.5 / np.hypot(0.5, 1.0))
    gap = np.einsum("ij,ij->i", normal, b - a)
    assert gap == pytest.approx([-1e-3 / np.hypot(0.5, 1.0)] * 2, abs=1e-9)


@pytest.mark.parametrize("kind", SIZES)
def test_rough_ground_holds_every_shape(kind: int) -> None:
    rng = np.random.default_rng(40 + kind)
    f = field(rng.normal(size=(11, 13)) * 0.04)
    for _ in range(40):
        s = shape(kind, (*rng.uniform(-0.8, 0.8, 2), rng.uniform(-0.2, 0.1)), random_rotation(rng))
        for _ in range(60):
            c = touch(height_field_convex, f, s, margin=0.01)
            if c.count == 0 or c.least > -1e-4:
                break
            assert c.normal[2] > 0.3
            s = s._replace(center=s.center - c.least * c.normal)
        assert c.least > -1e-4
        assert _deepest_sample(f, s) > -0.02


def _deepest_sample(f: Shape, s: Shape) -> float:
    columns, rows = int(f.size[0]), int(f.size[1])
    if s.kind in (SHAPE_BOX, SHAPE_HULL):
        points = CORNERS @ s.turn.reshape(3, 3).T + s.center
    else:
        points = np.array([[*s.center[:2], lowest(s, np.array([0, 0, 1.0]))]]) if s.kind == SHAPE_SPHERE else None
    if points is None:
        return 0.0
    worst = np.inf
    for p in points:
        u, v = p[0] / f.size[2] + 0.5 * (columns - 1), p[1] / f.size[3] + 0.5 * (rows - 1)
        i, j = int(u), int(v)
        h = f.points.reshape(rows, columns)[j : j + 2, i : i + 2]
        x, y = u - i, v - j
        upper = h[0, 0] + (x * (h[0, 1] - h[0, 0]) + y * (h[1, 1] - h[0, 1]) if y <= x else 0.0)
        lower = h[0, 0] + (y * (h[1, 0] - h[0, 0]) + x * (h[1, 1] - h[1, 0]))
        worst = min(worst, p[2] - (upper if y <= x else lower))
    return float(worst)


def test_moving_field_and_shape_moves_the_contact() -> None:
    rng = np.random.default_rng(60)
    f = field(rng.normal(size=(11, 13)) * 0.03)
    for kind in SIZES:
        s = shape(kind, (0.1, 0.2, 0.15), random_rotation(rng))
        turn, shift = random_rotation(rng), rng.normal(size=3)
        c, d = (
            touch(height_field_convex, f, s),
            touch(height_field_convex, moved(f, turn, shift), moved(s, turn, shift)),
        )
        assert c.count == d.count
        if c.count:
            assert d.least == pytest.approx(c.least, abs=1e-6)
            assert d.normal == pytest.approx(turn @ c.normal, abs=1e-4)


def test_next_to_and_above_the_field_there_is_nothing() -> None:
    f = slope(0.0, 0.0)
    assert touch(height_field_convex, f, shape(SHAPE_BOX, (5, 0, 0))).count == 0
    assert touch(height_field_convex, f, shape(SHAPE_BOX, (0, 0, 0.5))).count == 0
    assert touch(height_field_convex, f, shape(SHAPE_SPHERE, (0, 0, 0.26))).count == 0
