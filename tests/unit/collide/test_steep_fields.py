from __future__ import annotations

import numpy as np
import pytest

from gpusim.description.shape_kinds import Faces
from gpusim.reference.collide.ground import Field, bounds
from gpusim.reference.collide.pairs import find_manifold
from gpusim.reference.collide.separation import Pair, Posed, approach
from gpusim.reference.collide.shapes import Polytope
from gpusim.typing import Array

from .kernels import collide
from .pairs import Contact, random_rotation, touch
from .record import (
    SHAPE_BARREL,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_ELLIPSOID,
    SHAPE_HEIGHT_FIELD,
    SHAPE_HULL,
    SHAPE_SPHERE,
    SHAPE_WHEEL,
    Shape,
    make_shape,
)
from .shapes import NAMES, random_shape

pytestmark = pytest.mark.native
KINDS = (
    SHAPE_CONE, SHAPE_HULL, SHAPE_BOX, SHAPE_CAPSULE, SHAPE_CYLINDER,
    SHAPE_SPHERE, SHAPE_WHEEL, SHAPE_BARREL, SHAPE_ELLIPSOID,
)  # fmt: skip
SLOPES = (5.0, 15.0, 30.0, 45.0)
CORNERS = 17
CELLS = ((0.25, 0.25), (0.12, 0.25), (0.25, 0.6))
GAPS = (0.001, 0.005, 0.02, 0.05)
DEPTHS = (0.001, 0.005, 0.02)
ERROR = 1e-5
MARGIN = 0.1
kind_of = pytest.mark.parametrize("kind", KINDS, ids=NAMES.get)


def steep_field(rng: np.random.Generator, degrees: float, cell: tuple[float, float]) -> Shape:
    heights = rng.normal(size=(CORNERS, CORNERS)) * np.tan(np.radians(degrees)) * min(cell) / 1.5
    size = (CORNERS, CORNERS, *cell, -9.0, heights.min(), heights.max())
    return make_shape(SHAPE_HEIGHT_FIELD, size, (0.2, 0.1, -0.3), random_rotation(rng), heights)


def placed(
    kind: int, rng: np.random.Generator, degrees: float, cell: tuple[float, float], gap: float
) -> tuple[Shape, Shape]:
    field, b = steep_field(rng, degrees, cell), random_shape(kind, rng)
    up = field.turn.reshape(3, 3)
    b = b._replace(center=field.center + up @ [*rng.uniform(-0.3, 0.3, 2), 3.0])
    for _ in range(40):
        now = touch(collide, field, b, 5.0, np.zeros(4)).least
        if now <= gap + 0.2 * abs(gap):
            break
        b = b._replace(center=b.center - max(now - gap, 1e-4) * up[:, 2])
    return field, b


def least_of_triangles(field: Shape, b: Shape, margin: float) -> float:
    ground, turn = Field(field.reference()), field.turn.reshape(3, 3)
    body = Posed(b.reference(), turn.T @ (b.center - field.center), turn.T @ b.turn.reshape(3, 3))
    (low,), (high,) = bounds(body.shape, body.center[None], body.rotation[None])
    least = np.inf
    for t in ground.triangles(low[:2] - margin, high[:2] + margin):
        if low[2] > t.corner[:, 2].max() + margin:
            continue
        found, _ = approach(Pair(prism(t.corner, 10.0), body), margin, t.normal)
        least = min(least, found.gap if found else np.inf)
    return least


def prism(corner: Array, depth: float) -> Posed:
    solid, center = np.concatenate([corner, corner - [0.0, 0.0, depth]]), corner.mean(axis=0)
    loops = [(0, 1, 2), (5, 4, 3), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0)]
    normal = np.array([np.cross(solid[x[1]] - solid[x[0]], solid[x[2]] - solid[x[0]]) for x in loops])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    faces = Faces(np.array([0, 3, 6, 10, 14, 18]), np.concatenate(loops), normal)
    return Posed(Polytope(np.zeros(8), solid - center, faces), center, np.eye(3))


def of_reference(field: Shape, b: Shape) -> tuple[float, Array]:
    m = find_manifold(field.reference(), field.pose, b.reference(), b.pose, MARGIN, np.zeros(3))
    assert m is not None
    return float(np.vecdot(m.on_b - m.on_a, m.normal).min()), m.normal


def of_kernels(field: Shape, b: Shape) -> Contact:
    return touch(collide, field, b, MARGIN, np.zeros(4))


@pytest.mark.nightly
@kind_of
@pytest.mark.parametrize("degrees", SLOPES)
def test_the_least_gap_is_that_of_all_triangles(kind: int, degrees: float) -> None:
    rng = np.random.default_rng([kind, int(degrees)])
    for i, gap in enumerate(GAPS):
        field, b = placed(kind, rng, degrees, CELLS[i % len(CELLS)], gap)
        kernel, (own, _) = of_kernels(field, b), of_reference(field, b)
        least = least_of_triangles(field, b, 0.01 + max(own, kernel.least))
        assert least > 0.0
        assert kernel.least == pytest.approx(least, abs=ERROR)
        assert own == pytest.approx(least, abs=ERROR)


@pytest.mark.nightly
@kind_of
@pytest.mark.parametrize("degrees", SLOPES)
def test_overlaps_are_as_deep_as_those_of_the_reference(kind: int, degrees: float) -> None:
    rng = np.random.default_rng([1, kind, int(degrees)])
    for i, depth in enumerate(DEPTHS):
        field, b = placed(kind, rng, degrees, CELLS[(i + SLOPES.index(degrees)) % len(CELLS)], -depth)
        kernel, (own, normal) = of_kernels(field, b), of_reference(field, b)
        assert kernel.least == pytest.approx(own, abs=ERROR)
        assert kernel.normal == pytest.approx(normal, abs=1e-2)


MISSED = [(SHAPE_CONE, 9), (SHAPE_CONE, 59), (SHAPE_WHEEL, 12), (SHAPE_WHEEL, 174), (SHAPE_HULL, 175)]


@pytest.mark.parametrize(("kind", "number"), MISSED)
def test_the_way_out_may_be_through_a_triangle_aside(kind: int, number: int) -> None:
    field, b = placed(kind, np.random.default_rng([2, kind, number]), 40.0, (0.25, 0.25), -0.005)
    own, normal = of_reference(field, b)
    kernel = of_kernels(field, b)
    assert own < -0.004
    assert kernel.least == pytest.approx(own, abs=ERROR)
    assert kernel.normal == pytest.approx(normal, abs=2e-3)
