"""Clipping one facing polygon against another and choosing four of the points; as cuda_kernels/collide/clip.cuh."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpusim.reference.collide.compiled import inner
from gpusim.reference.collide.shape import UNBOUNDED
from gpusim.reference.collide.vectors import Vector, along3, cross3, divide3, dot3, norm3, row3, set_row3, subtract3
from gpusim.typing import Array

LOOP_CORNERS = 32  # 16 corners cut by 16 edges, each of which adds one at most
CLIP_SLACK = 1e-7  # relative: a corner outside by less counts as inside, so that aligned ones don't flicker
CHOICE_SLACK = 1e-6  # relative: points that differ by less are told apart by their order


class Loop(NamedTuple):
    """A polygon or a segment.

    Attributes:
        p: (LOOP_CORNERS, 3) corners.
        id: (LOOP_CORNERS,) int64, their numbers.
        number: (1,) int64, how many.
    """

    p: Array
    id: Array
    number: Array


@inner
def new_loop() -> Loop:
    """An empty loop."""
    return Loop(np.empty((LOOP_CORNERS, 3)), np.empty(LOOP_CORNERS, dtype=np.int64), np.zeros(1, dtype=np.int64))


@inner
def mix_ids(i: int, j: int, k: int) -> int:
    """A number for what came of three others."""
    return 256 + (i * 911 + j * 2749 + k * 5039) % 65280


@inner
def add_corner(loop: Loop, p: Vector, id: int) -> None:
    """One more corner, where there is room."""
    if loop.number[0] == LOOP_CORNERS:
        return
    set_row3(loop.p, loop.number[0], p)
    loop.id[loop.number[0]] = id
    loop.number[0] += 1


@inner
def clip_by_plane(source: Loop, outward: Vector, level: float, slack: float, id: int, out: Loop) -> None:
    """The part of a loop, or of a segment, with outward . p <= level."""
    out.number[0] = 0
    count = source.number[0]
    if count == 0:
        return
    here = dot3(outward, row3(source.p, 0)) - level
    first = here
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        p = row3(source.p, i)
        q = row3(source.p, j)
        there = first if j == 0 else dot3(outward, q) - level
        if here <= slack:
            add_corner(out, p, source.id[i])
        leaves = here < -slack and there > slack
        enters = here > slack and there < -slack
        if (leaves or enters) and not (count == 2 and i == 1):
            t = here / (here - there)
            add_corner(out, along3(p, t, subtract3(q, p)), mix_ids(source.id[i], source.id[j], id))
        here = there


@inner
def clip_by_polygon(
    polygon: Array, ids: Array, corners: int, n: Vector, slack: float, loop: Loop, scratch: Loop
) -> None:
    """Clip loop against the sides of a polygon, seen along the polygon's outward direction n (unit)."""
    for i in range(corners):
        p = row3(polygon, i)
        edge = subtract3(row3(polygon, i + 1 if i + 1 < corners else 0), p)
        outward = cross3(edge, n)
        length = norm3(outward)
        if not length > 0.0:
            continue
        outward = divide3(outward, length)
        clip_by_plane(loop, outward, dot3(outward, p), slack, ids[i], scratch)
        loop.number[0] = scratch.number[0]
        for k in range(scratch.number[0]):
            set_row3(loop.p, k, row3(scratch.p, k))
            loop.id[k] = scratch.id[k]


@inner
def polygon_normal(polygon: Array, corners: int) -> Vector:
    """Normal of a polygon, not a unit vector."""
    x, y, z = 0.0, 0.0, 0.0
    first = row3(polygon, 0)
    for i in range(1, corners - 1):
        m = cross3(subtract3(row3(polygon, i), first), subtract3(row3(polygon, i + 1), first))
        x += m[0]
        y += m[1]
        z += m[2]
    return x, y, z


@inner
def square_distance(p: Vector, q: Vector) -> float:
    """Squared distance of two points."""
    d = subtract3(p, q)
    return dot3(d, d)


@inner
def deepest_point(gap: Array, count: int, slack: float) -> int:
    """The deepest point; among those nearly as deep, the first."""
    least = UNBOUNDED
    for i in range(count):
        least = least if least < gap[i] else gap[i]
    best = 0
    while not gap[best] <= least + slack and best + 1 < count:
        best += 1
    return best


@inner
def widest_point(points: Array, count: int, p: Vector, q: Vector, n: Vector, sign: float, slack: float) -> int:
    """The point that makes the triangle with p and q, seen against n, greatest; sign picks the side."""
    most = slack
    best = -1
    e = subtract3(q, p)
    for i in range(count):
        area = sign * dot3(cross3(e, subtract3(row3(points, i), p)), n)
        if area > most + slack or (best < 0 and area > most):
            most = area
            best = i
    return best


@inner
def choose_four(points: Array, gap: Array, count: int, n: Vector, chosen: Array) -> int:
    """Numbers of at most four points.

    The deepest, the one farthest from it, and the widest on both sides of the line through these two. Near ties go to
    the first, so that equal points do not take turns.
    """
    if count <= 4:
        for i in range(count):
            chosen[i] = i
        return count
    extent = 0.0
    for i in range(1, count):
        square = square_distance(row3(points, 0), row3(points, i))
        extent = extent if extent > square else square
    deepest = deepest_point(gap, count, CHOICE_SLACK * math.sqrt(extent))
    p = row3(points, deepest)
    farthest = 1 if deepest == 0 else 0
    for i in range(count):
        if square_distance(p, row3(points, i)) > square_distance(p, row3(points, farthest)) + CHOICE_SLACK * extent:
            farthest = i
    q = row3(points, farthest)
    chosen[0] = deepest
    chosen[1] = farthest
    kept = 2
    for side in range(2):
        i = widest_point(points, count, p, q, n, 1.0 if side == 0 else -1.0, CHOICE_SLACK * extent)
        if i >= 0:
            chosen[kept] = i
            kept += 1
    return kept


@inner
def set_features(ids: Array, count: int, feature: Array) -> None:
    """Features from ids; no two points of a manifold have the same."""
    for i in range(count):
        id = ids[i] & 65535
        j = 0
        while j < i:
            if feature[j] == id:
                id = (id + 1) & 65535
                j = -1
            j += 1
        feature[i] = id
