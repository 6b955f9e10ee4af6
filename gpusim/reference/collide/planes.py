"""A half space against any convex shape: the points of the shape that face it; as cuda_kernels/collide/planes.cuh."""

from __future__ import annotations

import numpy as np

from gpusim.reference.collide.clip import choose_four, set_features
from gpusim.reference.collide.compiled import inner, outer
from gpusim.reference.collide.convex import EXACT, EXACT_ROUND, has_rim
from gpusim.reference.collide.shape import (
    FACE_CORNERS,
    SHAPE_BOX,
    UNBOUNDED,
    Shape,
    core_radius,
    shape_extent,
    turned,
    turned_back,
)
from gpusim.reference.collide.support import core_support, facing_from
from gpusim.reference.collide.vectors import Vector, dot3, negate3, row3, set_row3
from gpusim.typing import Array


@inner
def plane_candidates(b: Shape, back: Vector, polygon: Array, ids: Array) -> int:
    """Corners that may touch, relative to the shape's center: a box always shows a face; of a cap four are enough."""
    zero = (0.0, 0.0, 0.0)
    if b.kind == SHAPE_BOX:
        d = turned_back(b.turn, back[0], back[1], back[2])
        x, y, z = abs(d[0]), abs(d[1]), abs(d[2])
        k = 0 if x >= y and x >= z else (1 if y >= z else 2)
        side = -1.0 if d[k] < 0.0 else 1.0
        axis = turned(b.turn, side if k == 0 else 0.0, side if k == 1 else 0.0, side if k == 2 else 0.0)
        return facing_from(b, axis, zero, polygon, ids)
    count = facing_from(b, back, zero, polygon, ids)
    if not has_rim(b) or count < 8:
        return count
    for i in range(1, 4):
        set_row3(polygon, i, row3(polygon, 2 * i))
        ids[i] = ids[2 * i]
    return 4


@outer
def plane_convex(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Contact points of a half space and a convex shape of the kinds 1 to 8 and 10.

    Args and return value as those of ``convex_convex``; a is the half space.
    """
    n = (a.turn[2], a.turn[5], a.turn[8])
    back = negate3(n)
    radius = core_radius(b)
    extent = shape_extent(b)
    shift = (b.center[0] - a.center[0], b.center[1] - a.center[1], b.center[2] - a.center[2])
    x, y, z = turned_back(b.turn, back[0], back[1], back[2])
    x, y, z, vertex = core_support(b, x, y, z)
    lowest = turned(b.turn, x, y, z)
    height = dot3(n, shift) - radius
    least = height + dot3(n, lowest)
    normal[0], normal[1], normal[2] = n
    if least > margin:
        return 0
    polygon = np.empty((FACE_CORNERS, 3))
    p = np.empty((FACE_CORNERS + 1, 3))
    gap = np.empty(FACE_CORNERS + 1)
    corners = np.empty(FACE_CORNERS, dtype=np.int64)
    ids = np.empty(FACE_CORNERS + 1, dtype=np.int64)
    count = 0
    deepest = UNBOUNDED
    for i in range(plane_candidates(b, back, polygon, corners)):
        here = height + dot3(n, row3(polygon, i))
        if here > margin:
            continue
        set_row3(p, count, row3(polygon, i))
        gap[count] = here
        ids[count] = corners[i]
        count += 1
        deepest = deepest if deepest < here else here
    if deepest > least + (EXACT_ROUND if has_rim(b) else EXACT) * extent:
        set_row3(p, count, lowest)
        gap[count] = least
        ids[count] = vertex
        count += 1
    chosen = np.empty(4, dtype=np.int64)
    features = np.empty(4, dtype=np.int64)
    count = choose_four(p, gap, count, n, chosen)
    for i in range(count):
        j = chosen[i]
        features[i] = ids[j]
        for k in range(3):
            points_b[i, k] = b.center[k] + (p[j, k] - radius * n[k])
            points_a[i, k] = points_b[i, k] - gap[j] * n[k]
    set_features(features, count, feature)
    return count
