"""Outlines on a rectangle: clipping, and the four points that are kept; as cuda_kernels/collide/box_polygons.cuh."""

from __future__ import annotations

import numpy as np

from gpusim.reference.collide.compiled import inner
from gpusim.typing import Array

DEEPER = 1e-6  # of the face: a point left out must be deeper by this to get in
POLYGON = 8


@inner
def clip(n: int, x: Array, y: Array, edge: Array, second: bool, sign: float, limit: float, side: int) -> int:
    """Keep what of the polygon lies within sign * (y if second else x) <= limit; the number of corners."""
    ox = np.empty(POLYGON)
    oy = np.empty(POLYGON)
    oe = np.empty(POLYGON, dtype=np.int64)
    along = y if second else x
    count = 0
    for i in range(n):
        j = 0 if i + 1 == n else i + 1
        di = limit - sign * along[i]
        dj = limit - sign * along[j]
        if di >= 0.0 and count < POLYGON:
            ox[count] = x[i]
            oy[count] = y[i]
            oe[count] = edge[i]
            count += 1
        if (di >= 0.0) != (dj >= 0.0) and count < POLYGON:
            f = di / (di - dj)
            ox[count] = x[i] + f * (x[j] - x[i]) if second else sign * limit
            oy[count] = sign * limit if second else y[i] + f * (y[j] - y[i])
            oe[count] = side if di >= 0.0 else edge[i]
            count += 1
    for i in range(count):
        x[i] = ox[i]
        y[i] = oy[i]
        edge[i] = oe[i]
    return count


@inner
def turned_area(x: Array, y: Array, i: int, j: int, k: int) -> float:
    """Twice the signed area of the triangle i, j, k."""
    return (x[j] - x[i]) * (y[k] - y[i]) - (y[j] - y[i]) * (x[k] - x[i])


@inner
def spread(x: Array, y: Array, gap: Array, n: int, size: float, pick: Array) -> None:
    """Four of n > 4 points that span the largest area, the deepest one among them; in their order.

    Which ones must not depend on gaps that are equal up to noise, so they are chosen by their place.
    """
    tie = DEEPER * size
    p0 = 0
    p1 = 0
    p2 = 0
    p3 = 0
    best = x[0] + 0.37 * y[0]
    for i in range(1, n):
        s = x[i] + 0.37 * y[i]
        if s > best + tie:
            best = s
            p0 = i
    best = -1.0
    for i in range(n):
        s = (x[i] - x[p0]) * (x[i] - x[p0]) + (y[i] - y[p0]) * (y[i] - y[p0])
        if s > best + tie * size:
            best = s
            p1 = i
    best = -1.0
    for i in range(n):
        s = abs(turned_area(x, y, p0, p1, i))
        if s > best + tie * size:
            best = s
            p2 = i
    sign = -1.0 if turned_area(x, y, p0, p1, p2) < 0.0 else 1.0
    best = -1.0
    for i in range(n):
        if i == p0 or i == p1 or i == p2:
            continue
        # Twice the area that it adds to the triangle, whichever side it lies at.
        s0 = -sign * turned_area(x, y, p0, p1, i)
        s1 = -sign * turned_area(x, y, p1, p2, i)
        s2 = -sign * turned_area(x, y, p2, p0, i)
        s = s1 if s1 > s2 else s2
        s = s0 if s0 > s else s
        if s > best + tie * size:
            best = s
            p3 = i
    pick[0] = p0
    pick[1] = p1
    pick[2] = p2
    pick[3] = p3
    deepest = 0
    for i in range(1, n):
        deepest = i if gap[i] < gap[deepest] else deepest
    nearest = 0
    bar = gap[p0]
    distance = 1e300
    for k in range(4):
        dx = x[pick[k]] - x[deepest]
        dy = y[pick[k]] - y[deepest]
        bar = gap[pick[k]] if gap[pick[k]] < bar else bar
        if dx * dx + dy * dy < distance:
            distance = dx * dx + dy * dy
            nearest = k
    if gap[deepest] < bar - tie:
        pick[nearest] = deepest
    for k in range(1, 4):
        m = k
        while m > 0 and pick[m - 1] > pick[m]:
            pick[m - 1], pick[m] = pick[m], pick[m - 1]
            m -= 1
