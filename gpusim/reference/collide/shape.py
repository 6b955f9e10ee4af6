"""What the narrow phase works on: a shape in its pose, its core, its bounds; as cuda_kernels/collide/shape.cuh.

Every shape is a *core* inflated by a radius: sphere = point, capsule = segment along z, wheel = disk in the plane
z = 0; all others are their own core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpusim.reference.collide.compiled import inner, outer
from gpusim.typing import Array

SHAPE_PLANE = 0
SHAPE_SPHERE = 1
SHAPE_CAPSULE = 2
SHAPE_BOX = 3
SHAPE_CYLINDER = 4
SHAPE_CONE = 5
SHAPE_ELLIPSOID = 6
SHAPE_SUPERELLIPSOID = 7
SHAPE_HULL = 8
SHAPE_HEIGHT_FIELD = 9
SHAPE_WHEEL = 10

FACE_CORNERS = 16  # most corners of a facing polygon
UNBOUNDED = 1e30


class Shape(NamedTuple):
    """A shape in its world pose; ``make_shape`` gives every array the type that the compiled loops expect.

    Attributes:
        kind: SHAPE_...
        size: (8,) float64, m; what the numbers mean depends on the kind.
        points: float64, flat: a hull's vertices (3 n), m, shape frame; a height field's heights (rows * columns), m.
        face_first: (faces + 1,) int32: face f of a hull has ``face_vertex[face_first[f]:face_first[f + 1]]``.
        face_vertex: int32, vertex numbers, counterclockwise seen from outside.
        face_normal: (3 faces,) float64, flat: outward unit normals of the hull's faces, shape frame.
        center: (3,) float64, m: origin of the shape frame in the world.
        turn: (9,) float64: rotation matrix, row by row; x_world = center + turn x_shape.
    """

    kind: int
    size: Array
    points: Array
    face_first: Array
    face_vertex: Array
    face_normal: Array
    center: Array
    turn: Array


def make_shape(
    kind: int,
    size: Sequence[float] = (),
    center: Sequence[float] | Array = (0.0, 0.0, 0.0),
    turn: Array | None = None,
    points: Array | None = None,
    faces: Sequence[Sequence[int]] = (),
    normals: Array | None = None,
) -> Shape:
    """A shape with its arrays in the one type that the compiled loops are compiled for.

    Args:
        kind: SHAPE_...
        size: up to 8 numbers, m (exponents: no unit); the rest are zeros.
        center: (3,), m, world frame.
        turn: (3, 3) or (9,) rotation matrix; the identity where None.
        points: hull vertices (n, 3) or heights (rows, columns), m, shape frame.
        faces: vertex numbers of each face of a hull, counterclockwise seen from outside.
        normals: (faces, 3) outward unit normals, shape frame; required with faces.
    """
    sizes = np.zeros(8)
    sizes[: len(size)] = size
    first = np.zeros(len(faces) + 1, dtype=np.int32)
    first[1:] = np.cumsum([len(face) for face in faces])
    return Shape(
        int(kind),
        sizes,
        _flat(points),
        first,
        np.array([vertex for face in faces for vertex in face], dtype=np.int32),
        _flat(normals),
        _flat(center),
        _flat(np.eye(3) if turn is None else turn),
    )


def _flat(values: Sequence[float] | Array | None) -> Array:
    return np.array([] if values is None else values, dtype=np.float64).reshape(-1)


@inner
def turned(m: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """m (x, y, z) for a flat matrix m."""
    return (
        m[0] * x + m[1] * y + m[2] * z,
        m[3] * x + m[4] * y + m[5] * z,
        m[6] * x + m[7] * y + m[8] * z,
    )


@inner
def turned_back(m: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """The transpose of m times (x, y, z)."""
    return (
        m[0] * x + m[3] * y + m[6] * z,
        m[1] * x + m[4] * y + m[7] * z,
        m[2] * x + m[5] * y + m[8] * z,
    )


@outer
def core_radius(s: Shape) -> float:
    """By how much the core is inflated, m."""
    if s.kind == SHAPE_SPHERE or s.kind == SHAPE_CAPSULE:
        return s.size[0]
    if s.kind == SHAPE_WHEEL:
        return s.size[1]
    return 0.0


@outer
def shape_extent(s: Shape) -> float:
    """Length that tolerances of a pair are taken relative to: about the greatest extent from the shape's middle, m."""
    z = s.size
    if s.kind == SHAPE_SPHERE or s.kind == SHAPE_WHEEL:
        return z[0]
    if s.kind == SHAPE_CAPSULE:
        return z[0] + z[1]
    if s.kind == SHAPE_CYLINDER or s.kind == SHAPE_CONE:
        return z[0] if z[0] > z[1] else z[1]
    if s.kind == SHAPE_HULL:
        # half the distance of two vertices; a better estimate would have to look at all of them
        i = 3 * (len(s.points) // 3 // 2)
        x = s.points[i] - s.points[0]
        y = s.points[i + 1] - s.points[1]
        w = s.points[i + 2] - s.points[2]
        return 0.5 * math.sqrt(x * x + y * y + w * w)
    xy = z[0] if z[0] > z[1] else z[1]
    return xy if xy > z[2] else z[2]


@inner
def plane_bounds(s: Shape, lower: Array, upper: Array) -> None:
    """Bounds of a half space: one where its normal lies along an axis, else none."""
    for k in range(3):
        other = abs(s.turn[3 * ((k + 1) % 3) + 2]) + abs(s.turn[3 * ((k + 2) % 3) + 2])
        lower[k] = s.center[k] if other == 0.0 and s.turn[3 * k + 2] < 0.0 else -UNBOUNDED
        upper[k] = s.center[k] if other == 0.0 and s.turn[3 * k + 2] > 0.0 else UNBOUNDED


@inner
def turned_box_bounds(s: Shape, x: float, y: float, low: float, high: float, lower: Array, upper: Array) -> None:
    """Bounds of the box (+-x, +-y, low to high) of the shape frame."""
    for k in range(3):
        middle = s.turn[3 * k + 2] * (0.5 * (low + high))
        reach = abs(s.turn[3 * k]) * x + abs(s.turn[3 * k + 1]) * y + abs(s.turn[3 * k + 2]) * (0.5 * (high - low))
        lower[k] = s.center[k] + middle - reach
        upper[k] = s.center[k] + middle + reach


@inner
def hull_bounds(s: Shape, lower: Array, upper: Array) -> None:
    """Bounds of a hull's vertices."""
    for k in range(3):
        low, high = UNBOUNDED, -UNBOUNDED
        for i in range(0, len(s.points), 3):
            x = s.turn[3 * k] * s.points[i] + s.turn[3 * k + 1] * s.points[i + 1] + s.turn[3 * k + 2] * s.points[i + 2]
            x = s.center[k] + x
            low = x if x < low else low
            high = x if x > high else high
        lower[k] = low
        upper[k] = high


@inner
def height_field_bounds(s: Shape, lower: Array, upper: Array) -> None:
    """Bounds of a height field's surface and base."""
    low = s.size[4]
    high = s.size[4]
    for i in range(len(s.points)):
        low = s.points[i] if s.points[i] < low else low
        high = s.points[i] if s.points[i] > high else high
    x = 0.5 * (s.size[0] - 1.0) * s.size[2]
    y = 0.5 * (s.size[1] - 1.0) * s.size[3]
    turned_box_bounds(s, x, y, low, high, lower, upper)


@inner
def round_reach(s: Shape, k: int) -> tuple[float, float]:
    """How far the kinds with an axis along z, and the ellipsoid, reach below and above along the world axis k."""
    z = s.size
    axial = s.turn[3 * k + 2]
    square = 1.0 - axial * axial
    radial = math.sqrt(square if square > 0.0 else 0.0)
    if s.kind == SHAPE_SPHERE:
        return z[0], z[0]
    if s.kind == SHAPE_CONE:
        high = max(axial * z[1], z[0] * radial - axial * z[1])
        low = max(-axial * z[1], z[0] * radial + axial * z[1])
        return low, high
    reach = 0.0
    if s.kind == SHAPE_CAPSULE:
        reach = z[0] + abs(axial) * z[1]
    elif s.kind == SHAPE_CYLINDER:
        reach = z[0] * radial + abs(axial) * z[1]
    elif s.kind == SHAPE_WHEEL:
        reach = (z[0] - z[1]) * radial + z[1]
    elif s.kind == SHAPE_ELLIPSOID:
        x = s.turn[3 * k] * z[0]
        y = s.turn[3 * k + 1] * z[1]
        w = axial * z[2]
        reach = math.sqrt(x * x + y * y + w * w)
    return reach, reach


@outer
def shape_bounds(s: Shape, lower: Array, upper: Array) -> None:
    """The box around a shape in the world, without a margin, m; UNBOUNDED where a plane has none.

    Looks at all heights of a height field, so ask once for what cannot move. A superellipsoid gets the bounds of the
    box around it.

    Args:
        s: the shape.
        lower: (3,), filled.
        upper: (3,), filled.
    """
    if s.kind == SHAPE_PLANE:
        plane_bounds(s, lower, upper)
    elif s.kind == SHAPE_HULL:
        hull_bounds(s, lower, upper)
    elif s.kind == SHAPE_HEIGHT_FIELD:
        height_field_bounds(s, lower, upper)
    elif s.kind == SHAPE_BOX or s.kind == SHAPE_SUPERELLIPSOID:
        turned_box_bounds(s, s.size[0], s.size[1], -s.size[2], s.size[2], lower, upper)
    else:
        for k in range(3):
            below, above = round_reach(s, k)
            lower[k] = s.center[k] - below
            upper[k] = s.center[k] + above
