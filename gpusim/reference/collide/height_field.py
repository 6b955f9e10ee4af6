"""Height field against convex shapes; as cuda_kernels/collide/height_field.cuh.

How triangles are met is told in field_scan.py. All cells under the shape's bounds are looked at, however many: a shape
much larger than a cell is exact and slow.
"""

from __future__ import annotations

import math

import numpy as np

from gpusim.reference.collide.compiled import inner, outer
from gpusim.reference.collide.field_scan import (
    COLUMNS,
    DEEPEST,
    DEPTH,
    DX,
    DY,
    FIRST_COLUMN,
    FIRST_ROW,
    KNOWN,
    LAST_COLUMN,
    LAST_ROW,
    LOW,
    MANIFOLDS,
    MARGIN,
    RADIUS,
    ROWS,
    SIZE,
    SPREAD,
    SUPPORT_FEATURE,
    TIE,
    WEIGHT,
    FieldScan,
    FieldTriangle,
    field_scan,
    field_take,
    field_triangle,
    plane_gap,
)
from gpusim.reference.collide.shape import (
    SHAPE_ELLIPSOID,
    SHAPE_SPHERE,
    SHAPE_SUPERELLIPSOID,
    SHAPE_WHEEL,
    Shape,
    core_radius,
    shape_bounds,
    turned,
    turned_back,
)
from gpusim.reference.collide.spheres import clamped
from gpusim.reference.collide.support import support
from gpusim.typing import Array


@inner
def field_cells(low: float, high: float, corners: int, spacing: float) -> tuple[int, int]:
    """First and last cell along one axis that [low, high] reaches; (0, -1) where it reaches none."""
    start = low / spacing + 0.5 * (corners - 1)
    end = high / spacing + 0.5 * (corners - 1)
    if end < 0.0 or start > corners - 1.0:
        return 0, -1
    return int(clamped(start, 0.0, corners - 2.0)), int(clamped(end, 0.0, corners - 2.0))


@inner
def field_begin(field: Shape, b: Shape, margin: float) -> FieldScan:
    """The shape in the field's frame, and the cells under it."""
    m = field.turn
    d = b.center - field.center
    center = np.empty(3)
    center[0], center[1], center[2] = turned_back(m, d[0], d[1], d[2])
    turn = np.empty(9)
    for i in range(3):
        for j in range(3):
            turn[3 * i + j] = m[i] * b.turn[j] + m[3 + i] * b.turn[3 + j] + m[6 + i] * b.turn[6 + j]
    body = Shape(b.kind, b.size, b.points, b.face_first, b.face_vertex, b.face_normal, center, turn)
    lower = np.empty(3)
    upper = np.empty(3)
    shape_bounds(body, lower, upper)
    count = np.zeros(8, dtype=np.int64)
    number = np.empty(8)
    count[COLUMNS] = int(field.size[0])
    count[ROWS] = int(field.size[1])
    number[DX] = field.size[2]
    number[DY] = field.size[3]
    number[MARGIN] = margin
    number[RADIUS] = core_radius(b)
    size = (upper[0] - lower[0]) + (upper[1] - lower[1]) + (upper[2] - lower[2])
    number[SIZE] = size
    number[LOW] = lower[2]
    number[DEPTH] = 2.0 * size + field.size[2] + field.size[3]
    number[WEIGHT] = 0.25 * size / (margin + 1e-3 * size)
    count[FIRST_COLUMN], count[LAST_COLUMN] = field_cells(
        lower[0] - margin, upper[0] + margin, count[COLUMNS], number[DX]
    )
    count[FIRST_ROW], count[LAST_ROW] = field_cells(lower[1] - margin, upper[1] + margin, count[ROWS], number[DY])
    return FieldScan(
        field.points,
        body,
        count,
        number,
        np.zeros((MANIFOLDS, 3)),
        np.zeros((2, 3)),
        np.zeros((5, 3)),
        np.zeros((5, 3)),
        np.zeros(5),
        np.zeros(5),
        np.full(5, -1),
    )


@inner
def field_rescue(s: FieldScan, p: Array) -> None:
    """A shape below the surface that no triangle holds (its lowest points lie over others).

    Out along the normal of the triangle over ``p``.
    """
    columns = s.counts[COLUMNS]
    rows = s.counts[ROWS]
    u = p[0] / s.number[DX] + 0.5 * (columns - 1)
    v = p[1] / s.number[DY] + 0.5 * (rows - 1)
    if not (u >= 0.0 and v >= 0.0 and u <= columns - 1.0 and v <= rows - 1.0):
        return
    column = int(min(u, columns - 2.0))
    row = int(min(v, rows - 2.0))
    t = FieldTriangle(np.empty(3, dtype=np.int64), np.empty((3, 3)), np.empty(3))
    field_triangle(s, column, row, 1 if v - row > u - column else 0, t)
    if plane_gap(t, p[0], p[1], p[2]) > 0.0:
        return
    nearest = np.empty(3)
    support(s.body, -t.n, nearest)
    for k in range(3):
        nearest[k] = nearest[k] - s.number[RADIUS] * t.n[k]
    field_take(s, nearest, t.n, plane_gap(t, nearest[0], nearest[1], nearest[2]), SUPPORT_FEATURE)


@inner
def field_axes(s: FieldScan, n: Array) -> None:
    """Two directions square to n, fixed to the body: near the diagonals of its axes, where boxes have their corners."""
    m = s.body.turn
    best = 0
    for k in range(1, 3):
        lean = m[k] * n[0] + m[3 + k] * n[1] + m[6 + k] * n[2]
        least = m[best] * n[0] + m[3 + best] * n[1] + m[6 + best] * n[2]
        if abs(lean) < abs(least) - TIE:
            best = k
    x0 = m[best]
    x1 = m[3 + best]
    x2 = m[6 + best]
    y0 = n[1] * x2 - n[2] * x1
    y1 = n[2] * x0 - n[0] * x2
    y2 = n[0] * x1 - n[1] * x0
    length = math.sqrt(y0 * y0 + y1 * y1 + y2 * y2)
    y0 = y0 / length
    y1 = y1 / length
    y2 = y2 / length
    x0 = y1 * n[2] - y2 * n[1]
    x1 = y2 * n[0] - y0 * n[2]
    x2 = y0 * n[1] - y1 * n[0]
    s.axes[0, 0] = 0.725 * x0 + 0.6887489 * y0
    s.axes[0, 1] = 0.725 * x1 + 0.6887489 * y1
    s.axes[0, 2] = 0.725 * x2 + 0.6887489 * y2
    s.axes[1, 0] = 0.725 * y0 - 0.6887489 * x0
    s.axes[1, 1] = 0.725 * y1 - 0.6887489 * x1
    s.axes[1, 2] = 0.725 * y2 - 0.6887489 * x2


@inner
def field_square(s: FieldScan, i: int, j: int) -> float:
    """Square of the distance of two points found."""
    x = s.b[i, 0] - s.b[j, 0]
    y = s.b[i, 1] - s.b[j, 1]
    z = s.b[i, 2] - s.b[j, 2]
    return x * x + y * y + z * z


@inner
def field_copy(s: FieldScan, k: int) -> None:
    """The deepest point becomes number k."""
    s.b[k] = s.b[DEEPEST]
    s.n[k] = s.n[DEEPEST]
    s.gap[k] = s.gap[DEEPEST]
    s.score[k] = s.score[DEEPEST]
    s.feature[k] = s.feature[DEEPEST]


@inner
def field_add_deepest(s: FieldScan) -> None:
    """The deepest point takes the place of the nearest one of the other four, unless it is as deep as they are."""
    nearest = 0
    bar = 1e300
    for k in range(4):
        if s.feature[k] < 0:
            continue
        bar = s.gap[k] if s.gap[k] < bar else bar
        if s.feature[nearest] < 0 or field_square(s, k, DEEPEST) < field_square(s, nearest, DEEPEST):
            nearest = k
    if s.gap[DEEPEST] < bar - TIE * s.number[SIZE]:
        field_copy(s, nearest)


@inner
def field_put(
    field: Shape, s: FieldScan, n: Array, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """A manifold of the points kept, in the world; their number."""
    normal[0], normal[1], normal[2] = turned(field.turn, n[0], n[1], n[2])
    merge = 1e-6 * s.number[SIZE] * s.number[SIZE]
    count = 0
    for k in range(4):
        if s.feature[k] < 0:
            continue
        twice = False
        for m in range(k):
            twice = twice or (s.feature[m] >= 0 and field_square(s, m, k) < merge)
        if twice:
            continue
        b = turned(field.turn, s.b[k, 0], s.b[k, 1], s.b[k, 2])
        for c in range(3):
            points_b[count, c] = field.center[c] + b[c]
            points_a[count, c] = points_b[count, c] - s.gap[k] * normal[c]
        number = s.feature[k] & 65535
        m = 0
        while m < count:
            if feature[m] == number:
                number = (number + 1) & 65535
                m = -1
            m += 1
        feature[count] = number
        count += 1
    return count


@outer
def height_field_manifolds(
    field: Shape,
    b: Shape,
    margin: float,
    most: int,
    count: Array,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """Contacts of a height field with a convex shape, a manifold for each normal.

    One for each of up to ``most`` normals that are more than 10 degrees apart (a wheel in a groove touches both
    sides), the deepest first. A manifold's points may lie on triangles with slightly different normals: each has its
    own triangle's gap, put along the one normal. Round shapes (and wheels) have one point for each normal.

    Args:
        field: A, a height field.
        b: B, any shape of the kinds 1 to 8 and 10.
        margin: m, points with a greater gap are left out.
        most: at most MANIFOLDS.
        count: (most,), filled: number of points.
        normal: (most, 3), filled, unit, from A to B, world frame.
        points_a: (most, 4, 3), filled, m, world frame.
        points_b: (most, 4, 3), filled.
        feature: (most, 4), filled.

    Returns:
        The number of manifolds.
    """
    s = field_begin(field, b, margin)
    if s.counts[LAST_COLUMN] < s.counts[FIRST_COLUMN] or s.counts[LAST_ROW] < s.counts[FIRST_ROW]:
        return 0
    single = (
        b.kind == SHAPE_SPHERE or b.kind == SHAPE_ELLIPSOID or b.kind == SHAPE_SUPERELLIPSOID or b.kind == SHAPE_WHEEL
    )
    for known in range(min(most, MANIFOLDS)):
        s.counts[KNOWN] = known
        s.counts[SPREAD] = 0
        field_scan(s)
        if known == 0 and s.feature[DEEPEST] < 0:
            down = np.zeros(3)
            down[2] = -1.0
            lowest = np.empty(3)
            support(s.body, down, lowest)
            lowest[2] = lowest[2] - s.number[RADIUS]
            field_rescue(s, lowest)
            if s.feature[DEEPEST] < 0:
                field_rescue(s, s.body.center)
        if s.feature[DEEPEST] < 0:
            return known
        deepest_b = s.b[DEEPEST].copy()
        n = s.n[DEEPEST].copy()
        gap = s.gap[DEEPEST]
        number = s.feature[DEEPEST]
        s.normals[known] = n
        if single:
            s.feature[:4] = -1
            field_copy(s, 0)
        else:
            field_axes(s, n)
            s.counts[SPREAD] = 1
            field_scan(s)
            s.b[DEEPEST] = deepest_b
            s.n[DEEPEST] = n
            s.gap[DEEPEST] = gap
            s.feature[DEEPEST] = number
            if s.feature[0] < 0:
                field_copy(s, 0)
            field_add_deepest(s)
        count[known] = field_put(field, s, n, normal[known], points_a[known], points_b[known], feature[known])
    return min(most, MANIFOLDS)


@outer
def height_field_convex(
    field: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """The deepest one of these manifolds alone; the number of points. Arguments as in spheres.py."""
    count = np.zeros(1, dtype=np.int64)
    height_field_manifolds(
        field,
        b,
        margin,
        1,
        count,
        normal.reshape(1, 3),
        points_a.reshape(1, 4, 3),
        points_b.reshape(1, 4, 3),
        feature.reshape(1, 4),
    )
    return count[0]
