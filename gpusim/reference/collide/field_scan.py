"""The triangles of a height field against a convex shape: where they touch, and with which normals.

As cuda_kernels/collide/field_scan.cuh; all in the field's frame.

A triangle's own face: what of the shape lies over the triangle (straight up and down), measured along the triangle's
normal, at any depth, so that a shape below the surface is pushed out of it. Ridges and peaks: nearest points of the
shape and the triangle made a prism, kept only where the normal is one that the surface has there (between the normals
of the triangles around). Edges between triangles in one plane, and in valleys, so give no normal of their own, and
what slides over them is not kicked.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpusim.reference.collide.compiled import inner
from gpusim.reference.collide.convex import convex_convex
from gpusim.reference.collide.shape import FACE_CORNERS, SHAPE_HULL, Shape
from gpusim.reference.collide.support import face_polygon, support
from gpusim.typing import Array

MANIFOLDS = 3  # most normals that one shape may touch a field with
CONE = 0.985  # cosine of 10 degrees: contacts with normals closer than this make one manifold
TIE = 1e-6  # of the shape's size: gaps and places that differ by less count as equal
FLAT = 1e-6  # of a spacing: how far the next triangle must fall away to make a ridge
LEAN = 1e-3  # sine by which a normal may miss the ones that the surface has
INSIDE = 1e-9  # share of a triangle by which a point over its rim still is over it
CORNERS = FACE_CORNERS + 4
SUPPORT_FEATURE = 480  # features: corners of the shape below, cells from CELL_FEATURE
CELL_FEATURE = 512

# entries of FieldScan.counts and FieldScan.number
COLUMNS, ROWS, FIRST_COLUMN, LAST_COLUMN, FIRST_ROW, LAST_ROW, KNOWN, SPREAD = 0, 1, 2, 3, 4, 5, 6, 7
DX, DY, MARGIN, RADIUS, SIZE, LOW, DEPTH, WEIGHT = 0, 1, 2, 3, 4, 5, 6, 7
DEEPEST = 4


class FieldScan(NamedTuple):
    """What is looked for, and what has been found.

    The deepest contact whose normal is not near the first KNOWN normals (entry DEEPEST), or, where SPREAD is set, those
    nearest to normal number KNOWN that lie farthest out in four directions (entries 0 to 3).

    Attributes:
        heights: flat, m.
        body: the shape in the field's frame.
        counts: (8,) int64.
        number: (8,) float64.
        normals: (MANIFOLDS, 3), normals found.
        axes: (2, 3), the directions along and across.
        b, n: (5, 3), points on the shape and normals of what is found; gap, score: (5,); feature: (5,), -1: nothing.
    """

    heights: Array
    body: Shape
    counts: Array
    number: Array
    normals: Array
    axes: Array
    b: Array
    n: Array
    gap: Array
    score: Array
    feature: Array


class FieldTriangle(NamedTuple):
    """Corners (3, 3) counterclockwise from above, the first one at the cell; place (3,): column, row, half; normal."""

    place: Array
    corner: Array
    n: Array


@inner
def field_corner(s: FieldScan, column: int, row: int) -> tuple[float, float, float]:
    """A corner of the grid."""
    x = (column - 0.5 * (s.counts[COLUMNS] - 1)) * s.number[DX]
    y = (row - 0.5 * (s.counts[ROWS] - 1)) * s.number[DY]
    return x, y, s.heights[row * s.counts[COLUMNS] + column]


@inner
def field_step(half: int, k: int) -> tuple[int, int]:
    """Columns and rows from corner 0 of a triangle to its corner k."""
    if k == 0:
        return 0, 0
    if half == 0:
        return 1, 1 if k == 2 else 0
    return 1 if k == 1 else 0, 1


@inner
def field_beyond(half: int, k: int) -> tuple[int, int]:
    """The same to the far corner of the triangle beyond edge k (corner k to k + 1)."""
    if half == 0:
        return 2 if k == 1 else 0, -1 if k == 0 else 1
    return -1 if k == 2 else 1, 2 if k == 1 else 0


@inner
def field_triangle(s: FieldScan, column: int, row: int, half: int, t: FieldTriangle) -> None:
    """Fill t."""
    t.place[0] = column
    t.place[1] = row
    t.place[2] = half
    for k in range(3):
        i, j = field_step(half, k)
        t.corner[k, 0], t.corner[k, 1], t.corner[k, 2] = field_corner(s, column + i, row + j)
    c = t.corner
    gx = (c[1, 2] - c[0, 2] if half == 0 else c[1, 2] - c[2, 2]) / s.number[DX]
    gy = (c[2, 2] - c[1, 2] if half == 0 else c[2, 2] - c[0, 2]) / s.number[DY]
    length = math.sqrt(gx * gx + gy * gy + 1.0)
    t.n[0] = -gx / length
    t.n[1] = -gy / length
    t.n[2] = 1.0 / length


@inner
def field_share(s: FieldScan, t: FieldTriangle, x: float, y: float, k: int) -> float:
    """Share of corner k at a point seen from above; all three are >= 0 over the triangle."""
    u = (x - t.corner[0, 0]) / s.number[DX]
    v = (y - t.corner[0, 1]) / s.number[DY]
    if t.place[2] == 0:
        return 1.0 - u if k == 0 else (u - v if k == 1 else v)
    return 1.0 - v if k == 0 else (u if k == 1 else v - u)


@inner
def plane_gap(t: FieldTriangle, x: float, y: float, z: float) -> float:
    """Height over the triangle's plane, along its normal."""
    return (x - t.corner[0, 0]) * t.n[0] + (y - t.corner[0, 1]) * t.n[1] + (z - t.corner[0, 2]) * t.n[2]


@inner
def field_keep(s: FieldScan, k: int, b: Array, n: Array, gap: float, score: float, feature: int) -> None:
    """What is found in entry k."""
    for i in range(3):
        s.b[k, i] = b[i]
        s.n[k, i] = n[i]
    s.gap[k] = gap
    s.score[k] = score
    s.feature[k] = feature


@inner
def field_take(s: FieldScan, b: Array, n: Array, gap: float, feature: int) -> None:
    """A contact at the point b of the shape with normal n: kept where it is what is looked for."""
    if gap > s.number[MARGIN]:
        return
    known = s.counts[KNOWN]
    for m in range(known):
        if n[0] * s.normals[m, 0] + n[1] * s.normals[m, 1] + n[2] * s.normals[m, 2] > CONE:
            return
    tie = TIE * s.number[SIZE]
    if s.counts[SPREAD] == 0:
        if s.feature[DEEPEST] < 0 or -gap > s.score[DEEPEST] + tie:
            field_keep(s, DEEPEST, b, n, gap, -gap, feature)
        return
    if n[0] * s.normals[known, 0] + n[1] * s.normals[known, 1] + n[2] * s.normals[known, 2] < CONE:
        return
    x = b[0] * s.axes[0, 0] + b[1] * s.axes[0, 1] + b[2] * s.axes[0, 2]
    y = b[0] * s.axes[1, 0] + b[1] * s.axes[1, 1] + b[2] * s.axes[1, 2]
    far = s.number[WEIGHT] * gap
    for k in range(4):
        score = (x if k == 0 else (y if k == 1 else (-x if k == 2 else -y))) - far
        if s.feature[k] < 0 or score > s.score[k] + tie:
            field_keep(s, k, b, n, gap, score, feature)


@inner
def field_feature(s: FieldScan, t: FieldTriangle, k: int) -> int:
    """Number of a contact that belongs to a triangle."""
    cell = (t.place[1] * s.counts[COLUMNS] + t.place[0]) % 4096
    return CELL_FEATURE + (2 * cell + t.place[2]) * 7 + k


@inner
def field_clip(s: FieldScan, t: FieldTriangle, polygon: Array, ids: Array, n: int) -> int:
    """What of the polygon (n corners) lies over the triangle; ids of new corners are -1 - edge."""
    old = np.empty((CORNERS, 3))
    old_ids = np.empty(CORNERS, dtype=np.int64)
    for side in range(3):
        for i in range(n):
            old[i, 0] = polygon[i, 0]
            old[i, 1] = polygon[i, 1]
            old[i, 2] = polygon[i, 2]
            old_ids[i] = ids[i]
        count = 0
        for i in range(n):
            j = 0 if i + 1 == n else i + 1
            di = field_share(s, t, old[i, 0], old[i, 1], side) + INSIDE
            dj = field_share(s, t, old[j, 0], old[j, 1], side) + INSIDE
            if di >= 0.0 and count < CORNERS:
                for k in range(3):
                    polygon[count, k] = old[i, k]
                ids[count] = old_ids[i]
                count += 1
            if (di >= 0.0) != (dj >= 0.0) and count < CORNERS:
                f = di / (di - dj)
                for k in range(3):
                    polygon[count, k] = old[i, k] + f * (old[j, k] - old[i, k])
                ids[count] = -1 - side
                count += 1
        n = count
    return n


@inner
def field_face(s: FieldScan, t: FieldTriangle) -> int:
    """Contacts with the triangle's own face.

    Returns 0: the shape is out of reach; 1: its nearest point lies over the triangle, which has nothing nearer then;
    2: over another one.
    """
    down = np.empty(3)
    nearest = np.empty(3)
    polygon = np.empty((CORNERS, 3))
    ids = np.empty(CORNERS, dtype=np.int64)
    for k in range(3):
        down[k] = -t.n[k]
    support(s.body, down, nearest)
    for k in range(3):
        nearest[k] = nearest[k] - s.number[RADIUS] * t.n[k]
    gap = plane_gap(t, nearest[0], nearest[1], nearest[2])
    if gap > s.number[MARGIN]:
        return 0
    n = face_polygon(s.body, down, polygon, ids)
    for i in range(n):
        for k in range(3):
            polygon[i, k] = polygon[i, k] - s.number[RADIUS] * t.n[k]
    n = field_clip(s, t, polygon, ids, n)
    for i in range(n):
        feature = field_feature(s, t, -1 - ids[i]) if ids[i] < 0 else ids[i]
        field_take(s, polygon[i], t.n, plane_gap(t, polygon[i, 0], polygon[i, 1], polygon[i, 2]), feature)
    for k in range(3):
        if field_share(s, t, nearest[0], nearest[1], k) < -INSIDE:
            return 2
    field_take(s, nearest, t.n, gap, SUPPORT_FEATURE)
    return 1


@inner
def field_has(s: FieldScan, column: int, row: int) -> bool:
    """Whether the grid has this corner."""
    return column >= 0 and row >= 0 and column < s.counts[COLUMNS] and row < s.counts[ROWS]


@inner
def field_falls(s: FieldScan, p: Array, n: Array, column: int, row: int) -> bool:
    """Whether the surface falls away from a point p of it towards a corner, seen along n. True past the rim."""
    if not field_has(s, column, row):
        return True
    x, y, z = field_corner(s, column, row)
    x = x - p[0]
    y = y - p[1]
    z = z - p[2]
    return x * n[0] + y * n[1] + z * n[2] <= LEAN * math.sqrt(x * x + y * y + z * z)


@inner
def field_has_normal(s: FieldScan, t: FieldTriangle, k: int, edge: bool, n: Array) -> bool:
    """Whether n is a normal that the surface has at corner or edge k of the triangle."""
    p = t.corner[k]
    half = t.place[2]
    i, j = field_step(half, k)
    column = t.place[0] + i
    row = t.place[1] + j
    if edge:
        last_i, last_j = field_step(half, 2 if k == 0 else k - 1)
        i, j = field_beyond(half, k)
        return field_falls(s, p, n, t.place[0] + i, t.place[1] + j) and field_falls(
            s, p, n, t.place[0] + last_i, t.place[1] + last_j
        )
    return (
        field_falls(s, p, n, column + 1, row)
        and field_falls(s, p, n, column - 1, row)
        and field_falls(s, p, n, column, row + 1)
        and field_falls(s, p, n, column, row - 1)
        and field_falls(s, p, n, column + 1, row + 1)
        and field_falls(s, p, n, column - 1, row - 1)
    )


@inner
def field_has_ridge(s: FieldScan, t: FieldTriangle) -> bool:
    """Whether an edge of the triangle is a ridge, or the rim of the field."""
    for k in range(3):
        i, j = field_beyond(t.place[2], k)
        if not field_has(s, t.place[0] + i, t.place[1] + j):
            return True
        x, y, z = field_corner(s, t.place[0] + i, t.place[1] + j)
        if plane_gap(t, x, y, z) < -FLAT * (s.number[DX] + s.number[DY]):
            return True
    return False


@inner
def field_prism(s: FieldScan, t: FieldTriangle) -> Shape:
    """The triangle, made a prism of the scan's depth."""
    points = np.empty(18)
    normals = np.empty(15)
    first = np.empty(6, dtype=np.int32)
    vertex = np.empty(18, dtype=np.int32)
    turn = np.zeros(9)
    for k in range(3):
        following = 0 if k == 2 else k + 1
        x = t.corner[following, 0] - t.corner[k, 0]
        y = t.corner[following, 1] - t.corner[k, 1]
        length = math.sqrt(x * x + y * y)
        for c in range(3):
            points[3 * k + c] = t.corner[k, c]
            points[9 + 3 * k + c] = t.corner[k, c] - s.number[DEPTH] if c == 2 else t.corner[k, c]
        normals[k] = t.n[k]
        normals[3 + k] = -t.n[k]
        normals[6 + 3 * k] = y / length
        normals[7 + 3 * k] = -x / length
        normals[8 + 3 * k] = 0.0
        vertex[k] = k
        vertex[3 + k] = 5 - k
        vertex[6 + 4 * k] = k
        vertex[7 + 4 * k] = 3 + k
        vertex[8 + 4 * k] = 3 + following
        vertex[9 + 4 * k] = following
        turn[4 * k] = 1.0
    first[0] = 0
    first[1] = 3
    for k in range(4):
        first[2 + k] = 6 + 4 * k
    return Shape(int(SHAPE_HULL), np.zeros(8), points, first, vertex, normals, np.zeros(3), turn)


@inner
def field_ridge(s: FieldScan, t: FieldTriangle) -> None:
    """Contacts with the triangle's edges and corners where they are ridges and peaks."""
    guess = np.zeros(4)
    guess[:3] = t.n
    normal = np.empty(3)
    points_a = np.empty((4, 3))
    points_b = np.empty((4, 3))
    feature = np.empty(4, dtype=np.int64)
    count = convex_convex(field_prism(s, t), s.body, s.number[MARGIN], guess, normal, points_a, points_b, feature)
    for i in range(count):
        a = points_a[i]
        b = points_b[i]
        if abs(plane_gap(t, a[0], a[1], a[2])) > TIE * (s.number[DX] + s.number[DY]):
            continue
        large = 0
        low = 0
        high = 0
        for k in range(3):
            if field_share(s, t, a[0], a[1], k) > TIE:
                large += 1
                high = k
            else:
                low = k
        if large == 3 or large == 0:
            continue
        # The edge opposite to corner `low` starts at the next one.
        k = high if large == 1 else (0 if low == 2 else low + 1)
        if not field_has_normal(s, t, k, large == 2, normal):
            continue
        gap = 0.0
        for c in range(3):
            gap = gap + normal[c] * (b[c] - a[c])
        field_take(s, b, normal, gap, field_feature(s, t, 3 + i))


@inner
def field_scan(s: FieldScan) -> None:
    """All triangles under the shape's bounds."""
    s.feature[:] = -1
    t = FieldTriangle(np.empty(3, dtype=np.int64), np.empty((3, 3)), np.empty(3))
    columns = s.counts[COLUMNS]
    for row in range(s.counts[FIRST_ROW], s.counts[LAST_ROW] + 1):
        for column in range(s.counts[FIRST_COLUMN], s.counts[LAST_COLUMN] + 1):
            i = row * columns + column
            low = max(s.heights[i], s.heights[i + 1])
            high = max(s.heights[i + columns], s.heights[i + columns + 1])
            if s.number[LOW] > max(low, high) + s.number[MARGIN]:
                continue
            for half in range(2):
                field_triangle(s, column, row, half, t)
                if field_face(s, t) == 2 and field_has_ridge(s, t):
                    field_ridge(s, t)
