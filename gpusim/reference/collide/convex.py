"""Contact points of any two convex shapes; as cuda_kernels/collide/convex.cuh.

Normal and gap come from the cores (gjk.py, epa.py); the points from the part that their facing polygons share
(clip.py).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpusim.reference.collide.clip import (
    CLIP_SLACK,
    LOOP_CORNERS,
    add_corner,
    choose_four,
    clip_by_polygon,
    mix_ids,
    new_loop,
    polygon_normal,
    set_features,
)
from gpusim.reference.collide.compiled import inner, outer
from gpusim.reference.collide.epa import epa
from gpusim.reference.collide.gjk import (
    GJK_APART,
    GJK_FAR,
    GJK_OVERLAP,
    depth_along,
    gjk,
    nearest_points,
    new_simplex,
)
from gpusim.reference.collide.shape import (
    FACE_CORNERS,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_HULL,
    SHAPE_SPHERE,
    UNBOUNDED,
    Shape,
    core_radius,
    shape_extent,
    turned,
    turned_back,
)
from gpusim.reference.collide.support import facing_from
from gpusim.reference.collide.vectors import (
    Vector,
    along3,
    cross3,
    divide3,
    dot3,
    negate3,
    norm3,
    row3,
    set_row3,
    subtract3,
)
from gpusim.typing import Array

CLEARLY_APART = 1e-5  # relative: from here on the vector between the nearest points is an exact normal
TOUCHING = 1e-9  # relative: below it that vector says nothing
EPA_FLAT = 1e-10  # accuracy of the least motion that parts overlapping polytopes, relative
EPA_ROUND = 1e-4  # that of others; the polish does the rest
POLISH_GAP = 0.01  # relative: how far apart the cores are put for an exact normal
POLISH_STEPS = 6
SAME_NORMAL = 1e-11  # squared change of a normal (rad) that is not worth another step
PARALLEL_SINE = 0.02  # segments at less than 1.1 degrees touch along a line
EXACT = 1e-9  # relative error of a gap that the points from the polygons may have
EXACT_ROUND = 1e-5  # with the eight corners of an upright cap
FACE_BETTER = 1e-4  # by so much must B's face be squarer to the normal (cosine) to be preferred to A's


class Approach(NamedTuple):
    """What is known of a pair's cores, relative to A's center, m.

    Attributes:
        offset: B's center.
        extent: length that tolerances are relative to.
        normal: unit, from A to B.
        gap: of the cores along the normal.
        on_a: nearest or deepest point of A's core.
        on_b: the same of B's.
        radius_a: by how much A's core is inflated.
        radius_b: the same of B's.
    """

    offset: Vector
    extent: float
    normal: Vector
    gap: float
    on_a: Vector
    on_b: Vector
    radius_a: float
    radius_b: float


@inner
def is_polytope(s: Shape) -> bool:
    """Whether the shape has flat faces only."""
    return s.kind == SHAPE_BOX or s.kind == SHAPE_HULL


@inner
def has_rim(s: Shape) -> bool:
    """Whether the shape has a cap."""
    return s.kind == SHAPE_CYLINDER or s.kind == SHAPE_CONE


@inner
def polish_normal(
    a: Shape, b: Shape, offset: Vector, extent: float, normal: Vector, on_a: Vector, on_b: Vector
) -> tuple[Vector, Vector, Vector]:
    """Sharpen a normal that is nearly right; the normal and the points of the cores.

    With the cores put apart along it, by little, the nearest points tell a better one. The error shrinks by
    (depth + gap) / (radius of curvature + gap) each time: for flat faces to nothing.
    """
    space = POLISH_GAP * extent
    best = normal
    depth = UNBOUNDED
    s = new_simplex()
    scratch = new_simplex()
    for _ in range(POLISH_STEPS):
        now = depth_along(a, b, offset, normal)
        shift = now + space
        if not now < depth:
            break
        depth = now
        best = normal
        moved = along3(offset, shift, normal)
        status, v = gjk(a, b, moved, UNBOUNDED, TOUCHING * extent, negate3(normal), s, scratch)
        if status != GJK_APART:
            break
        on_a, q = nearest_points(s, v)
        on_b = (q[0] - shift * normal[0], q[1] - shift * normal[1], q[2] - shift * normal[2])
        better = divide3(negate3(v), norm3(v))
        step = subtract3(better, normal)
        normal = better
        if dot3(step, step) < SAME_NORMAL:
            break
    if depth_along(a, b, offset, normal) > depth:
        normal = best
    return normal, on_a, on_b


@inner
def approach(a: Shape, b: Shape, margin: float, guess: Vector) -> tuple[bool, Approach]:
    """Normal, gap and nearest points of the cores.

    False where the shapes are farther apart than margin; the normal is then a direction along which they are.

    Args:
        a: first shape.
        b: second shape.
        margin: m.
        guess: a guess of the normal; too short for a unit vector: none.
    """
    offset = (b.center[0] - a.center[0], b.center[1] - a.center[1], b.center[2] - a.center[2])
    extent = shape_extent(a) + shape_extent(b)
    radius_a = core_radius(a)
    radius_b = core_radius(b)
    most = margin + radius_a + radius_b
    v = negate3(guess)
    if not dot3(v, v) > 0.25:  # no guess
        v = negate3(offset)
        if not dot3(v, v) > 0.0:
            v = (v[0], v[1], -1.0)
    s = new_simplex()
    status, v = gjk(a, b, offset, most, TOUCHING * extent, v, s, new_simplex())
    distance = norm3(v)
    normal = divide3(negate3(v), distance)
    if status == GJK_FAR:
        return False, Approach(offset, extent, normal, UNBOUNDED, offset, offset, radius_a, radius_b)
    on_a, on_b = nearest_points(s, v)
    if status == GJK_OVERLAP or distance <= CLEARLY_APART * extent:
        if status == GJK_OVERLAP:
            accuracy = EPA_FLAT if is_polytope(a) and is_polytope(b) else EPA_ROUND
            _, normal = epa(a, b, offset, extent, accuracy, s)
        normal, on_a, on_b = polish_normal(a, b, offset, extent, normal, on_a, on_b)
    gap = -depth_along(a, b, offset, normal)
    return gap <= most, Approach(offset, extent, normal, gap, on_a, on_b, radius_a, radius_b)


@inner
def set_point(a: Shape, c: Approach, middle: Vector, gap: float, i: int, points_a: Array, points_b: Array) -> None:
    """Point i: a pair of opposite points with their middle given; on the surfaces, world frame."""
    to_a = -0.5 * gap + c.radius_a
    to_b = 0.5 * gap - c.radius_b
    for k in range(3):
        points_a[i, k] = a.center[k] + (middle[k] + to_a * c.normal[k])
        points_b[i, k] = a.center[k] + (middle[k] + to_b * c.normal[k])


@inner
def middle_of(p: Vector, q: Vector) -> Vector:
    """Half way from p to q."""
    return 0.5 * (p[0] + q[0]), 0.5 * (p[1] + q[1]), 0.5 * (p[2] + q[2])


@inner
def shows_corner(s: Shape, count: int) -> bool:
    """Whether the only corner that a shape shows is exactly where it touches: no point of a round rim or side."""
    return count == 1 and (is_polytope(s) or s.kind == SHAPE_SPHERE or s.kind == SHAPE_CAPSULE)


@inner
def segment_points(
    a: Shape,
    c: Approach,
    margin: float,
    p: Array,
    ids_p: Array,
    q: Array,
    ids_q: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """Two nearly parallel segments: the ends of what they share; 0 where they cross or pass by."""
    e = subtract3(row3(p, 1), row3(p, 0))
    f = subtract3(row3(q, 1), row3(q, 0))
    n = cross3(e, f)
    ee = dot3(e, e)
    ff = dot3(f, f)
    if dot3(n, n) > PARALLEL_SINE * PARALLEL_SINE * ee * ff:
        return 0
    t0 = dot3(subtract3(row3(q, 0), row3(p, 0)), e) / ee
    t1 = t0 + dot3(f, e) / ee
    opposite = t1 < t0
    first = t1 if opposite else t0
    last = t0 if opposite else t1
    low = 0.0 if 0.0 > first else first
    high = 1.0 if 1.0 < last else last
    if not (high - low) * math.sqrt(ee) > CLIP_SLACK * c.extent:
        return 0
    ids = np.empty(2, dtype=np.int64)
    least = UNBOUNDED
    count = 0
    for i in range(2):
        t = low if i == 0 else high
        s = (t - t0) / (t1 - t0)
        s = 0.0 if s < 0.0 else (1.0 if s > 1.0 else s)
        x = along3(row3(p, 0), t, e)
        y = along3(row3(q, 0), s, f)
        gap = dot3(subtract3(y, x), c.normal)
        least = least if least < gap else gap
        if gap - c.radius_a - c.radius_b > margin:
            continue
        if i == 0:
            ids[count] = 256 + ids_q[1 if opposite else 0] if first > 0.0 else ids_p[0]
        else:
            ids[count] = 256 + ids_q[0 if opposite else 1] if last < 1.0 else ids_p[1]
        set_point(a, c, middle_of(x, y), gap, count, points_a, points_b)
        count += 1
    set_features(ids, count, feature)
    return count if least <= c.gap + EXACT_ROUND * c.extent else 0  # else they only pass by


@inner
def clip_candidates(
    c: Approach,
    most: float,
    p: Array,
    ids_p: Array,
    corners: int,
    n: Vector,
    q: Array,
    ids_q: Array,
    count: int,
    points: Array,
    gaps: Array,
    ids: Array,
) -> int:
    """The part of the polygon q (of one shape) over the face p (of the other), with the gap of each corner.

    n points out of the face.
    """
    loop = new_loop()
    for i in range(count):
        add_corner(loop, row3(q, i), ids_q[i])
    clip_by_polygon(p, ids_p, corners, n, CLIP_SLACK * c.extent, loop, new_loop())
    face = polygon_normal(p, corners)
    scale = 1.0 / dot3(face, n)
    found = 0
    for i in range(loop.number[0]):
        x = row3(loop.p, i)
        gap = dot3(subtract3(x, row3(p, 0)), face) * scale
        if gap > most:
            continue
        set_row3(points, found, x)
        gaps[found] = gap
        ids[found] = loop.id[i]
        found += 1
    return found


@inner
def add_nearest(
    a: Shape, b: Shape, c: Approach, side: float, points: Array, gaps: Array, ids: Array, count: int
) -> int:
    """The nearest points join where those from the polygons miss them: a rim is round, its polygon is not."""
    least = UNBOUNDED
    for i in range(count):
        least = least if least < gaps[i] else gaps[i]
    if least <= c.gap + (EXACT_ROUND if has_rim(a) or has_rim(b) else EXACT) * c.extent:
        return count
    set_row3(points, count, along3(middle_of(c.on_a, c.on_b), 0.5 * side * c.gap, c.normal))
    gaps[count] = c.gap
    ids[count] = 65535
    return count + 1


@inner
def face_points(
    a: Shape,
    b: Shape,
    c: Approach,
    margin: float,
    p: Array,
    ids_p: Array,
    count_p: int,
    q: Array,
    ids_q: Array,
    count_q: int,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """A face of one shape against a face or an edge of the other."""
    most = margin + c.radius_a + c.radius_b
    back = negate3(c.normal)
    on_b = count_p < 3
    if not on_b and count_q >= 3:
        # the face that is squarer to the normal; A's where both are
        face_a = polygon_normal(p, count_p)
        face_b = polygon_normal(q, count_q)
        on_b = dot3(face_b, back) / norm3(face_b) > dot3(face_a, c.normal) / norm3(face_a) + FACE_BETTER
    side = -1.0 if on_b else 1.0
    points = np.empty((LOOP_CORNERS + 1, 3))
    gaps = np.empty(LOOP_CORNERS + 1)
    ids = np.empty(LOOP_CORNERS + 1, dtype=np.int64)
    if on_b:
        found = clip_candidates(c, most, q, ids_q, count_q, back, p, ids_p, count_p, points, gaps, ids)
    else:
        found = clip_candidates(c, most, p, ids_p, count_p, c.normal, q, ids_q, count_q, points, gaps, ids)
    found = add_nearest(a, b, c, side, points, gaps, ids, found)
    chosen = np.empty(4, dtype=np.int64)
    chosen_ids = np.empty(4, dtype=np.int64)
    count = choose_four(points, gaps, found, c.normal, chosen)
    for i in range(count):
        gap = gaps[chosen[i]]
        middle = along3(row3(points, chosen[i]), -0.5 * side * gap, c.normal)
        chosen_ids[i] = ids[chosen[i]]
        set_point(a, c, middle, gap, i, points_a, points_b)
    set_features(chosen_ids, count, feature)
    return count


@inner
def contact_points(
    a: Shape, b: Shape, c: Approach, margin: float, points_a: Array, points_b: Array, feature: Array
) -> int:
    """The manifold of a pair whose normal and gap are known."""
    p = np.empty((FACE_CORNERS, 3))
    q = np.empty((FACE_CORNERS, 3))
    ids_p = np.empty(FACE_CORNERS, dtype=np.int64)
    ids_q = np.empty(FACE_CORNERS, dtype=np.int64)
    count_p = facing_from(a, c.normal, (0.0, 0.0, 0.0), p, ids_p)
    count_q = facing_from(b, negate3(c.normal), c.offset, q, ids_q)
    if count_p >= 2 and count_q >= 2:
        if count_p > 2 or count_q > 2:
            return face_points(a, b, c, margin, p, ids_p, count_p, q, ids_q, count_q, points_a, points_b, feature)
        count = segment_points(a, c, margin, p, ids_p, q, ids_q, points_a, points_b, feature)
        if count > 0:
            return count
    # one pair of points: corners show their place better than the nearest points do
    corner_p = shows_corner(a, count_p)
    corner_q = shows_corner(b, count_q)
    middle = middle_of(row3(p, 0) if corner_p else c.on_a, row3(q, 0) if corner_q else c.on_b)
    if corner_p and not corner_q:
        middle = along3(row3(p, 0), 0.5 * c.gap, c.normal)
    if corner_q and not corner_p:
        middle = along3(row3(q, 0), -0.5 * c.gap, c.normal)
    set_point(a, c, middle, c.gap, 0, points_a, points_b)
    feature[0] = mix_ids(ids_p[0], ids_q[0], count_p + 4 * count_q) & 65535
    return 1


@outer
def convex_convex(
    a: Shape,
    b: Shape,
    margin: float,
    guess: Array,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """Contact points of two convex shapes of the kinds 1 to 8 and 10.

    Args:
        a: first shape.
        b: second shape.
        margin: points with a greater gap are left out, m.
        guess: (4,): the normal in A's frame and a spare, in and out; it only saves time.
        normal: (3,), filled: unit, from A to B.
        points_a: (4, 3), filled: points on A's surface, m, world frame.
        points_b: (4, 3), filled: points on B's; gap = normal . (b - a).
        feature: (4,), filled: numbers that stay from step to step.

    Returns:
        How many points.
    """
    near, c = approach(a, b, margin, turned(a.turn, guess[0], guess[1], guess[2]))
    guess[0], guess[1], guess[2] = turned_back(a.turn, c.normal[0], c.normal[1], c.normal[2])
    normal[0], normal[1], normal[2] = c.normal
    return contact_points(a, b, c, margin, points_a, points_b, feature) if near else 0
