"""Distance of two convex cores, after Gilbert, Johnson and Keerthi (1988); as cuda_kernels/collide/gjk.cuh.

Points are relative to A's center. The set of differences a - b of points of A and B holds the origin where the cores
overlap; else its point v nearest to the origin tells the distance, and -v/|v| is the normal from A to B.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusim.reference.collide.compiled import inner
from gpusim.reference.collide.shape import UNBOUNDED, Shape, turned, turned_back
from gpusim.reference.collide.support import core_support
from gpusim.reference.collide.vectors import Vector, along3, cross3, dot3, negate3, row3, set_row3, subtract3
from gpusim.typing import Array

GJK_STEPS = 48
GJK_ACCURACY = 1e-12  # relative, of the distance
GJK_FLAT = 1e-10  # a tetrahedron of this height relative to an edge counts as flat
GJK_APART = 0
GJK_OVERLAP = 1
GJK_FAR = 2


class Simplex(NamedTuple):
    """Up to four differences.

    Attributes:
        w: (4, 3) differences.
        a: (4, 3) the points of A that they belong to.
        weight: (4,) weights of the point nearest to the origin.
        number: (1,) int64, how many there are.
    """

    w: Array
    a: Array
    weight: Array
    number: Array


@inner
def new_simplex() -> Simplex:
    """An empty simplex."""
    return Simplex(np.empty((4, 3)), np.empty((4, 3)), np.empty(4), np.zeros(1, dtype=np.int64))


@inner
def difference_support(a: Shape, b: Shape, offset: Vector, d: Vector) -> tuple[Vector, Vector]:
    """The difference that lies farthest along d and its point of A; b's center lies at offset."""
    x, y, z = turned_back(a.turn, d[0], d[1], d[2])
    x, y, z, _ = core_support(a, x, y, z)
    point = turned(a.turn, x, y, z)
    x, y, z = turned_back(b.turn, d[0], d[1], d[2])
    x, y, z, _ = core_support(b, -x, -y, -z)
    x, y, z = turned(b.turn, x, y, z)
    w = (point[0] - (offset[0] + x), point[1] - (offset[1] + y), point[2] - (offset[2] + z))
    return w, point


@inner
def depth_along(a: Shape, b: Shape, offset: Vector, n: Vector) -> float:
    """How far b would have to move along the unit vector n for the cores to touch there."""
    w, _ = difference_support(a, b, offset, n)
    return dot3(w, n)


@inner
def weigh_segment(p: Vector, q: Vector) -> tuple[float, float, Vector]:
    """Weights of the point of the segment p, q nearest to the origin, and that point."""
    e = subtract3(q, p)
    length = dot3(e, e)
    t = 0.0
    if length > 0.0:
        t = -dot3(p, e) / length
        t = 0.0 if t < 0.0 else (1.0 if t > 1.0 else t)
    return 1.0 - t, t, along3(p, t, e)


@inner
def weigh_triangle(p: Vector, q: Vector, r: Vector) -> tuple[float, float, float, Vector]:
    """The same of a triangle.

    Ericson, Real-Time Collision Detection, 5.1.5, with the point at the origin; inside of the triangle v comes from its
    normal, and the weights from v: the usual ones are too coarse in a sliver.
    """
    e = subtract3(q, p)
    f = subtract3(r, p)
    d1, d2 = -dot3(e, p), -dot3(f, p)
    d3, d4 = -dot3(e, q), -dot3(f, q)
    d5, d6 = -dot3(e, r), -dot3(f, r)
    va = d3 * d6 - d5 * d4
    vb = d5 * d2 - d1 * d6
    vc = d1 * d4 - d3 * d2
    s, t = 0.0, 0.0  # weights of q and r
    if d1 <= 0.0 and d2 <= 0.0:
        pass
    elif d3 >= 0.0 and d4 <= d3:
        s = 1.0
    elif d6 >= 0.0 and d5 <= d6:
        t = 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        s = d1 / (d1 - d3)
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        t = d2 / (d2 - d6)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        s = 1.0 - t
    else:
        n = cross3(e, f)
        square = dot3(n, n)
        scale = dot3(n, p) / square
        v = (scale * n[0], scale * n[1], scale * n[2])
        x = subtract3(v, p)
        s = dot3(cross3(x, f), n) / square
        t = dot3(cross3(e, x), n) / square
        return (1.0 - t) - s, s, t, v
    v = (
        p[0] + (s * e[0] + t * f[0]),
        p[1] + (s * e[1] + t * f[1]),
        p[2] + (s * e[2] + t * f[2]),
    )
    return (1.0 - t) - s, s, t, v  # the first is 0 on the edge q, r


@inner
def beyond(s: Simplex, i: int, j: int, k: int, o: int) -> bool:
    """Whether triangle i, j, k has the origin on the side away from point o; true too where the four are flat."""
    p = row3(s.w, i)
    e = subtract3(row3(s.w, j), p)
    f = subtract3(row3(s.w, k), p)
    g = subtract3(row3(s.w, o), p)
    n = cross3(e, f)
    height = dot3(n, g)
    return -dot3(n, p) * height < 0.0 or height * height <= GJK_FLAT * GJK_FLAT * dot3(n, n) * dot3(g, g)


@inner
def weigh_tetrahedron(s: Simplex) -> tuple[bool, Vector]:
    """The same of a tetrahedron; false where it holds the origin."""
    least = UNBOUNDED
    v = (0.0, 0.0, 0.0)
    outside = False
    for o in range(3, -1, -1):
        i = 1 if o == 0 else 0
        j = 2 if o <= 1 else 1
        k = 2 if o == 3 else 3
        if not beyond(s, i, j, k, o):
            continue
        outside = True
        wi, wj, wk, x = weigh_triangle(row3(s.w, i), row3(s.w, j), row3(s.w, k))
        square = dot3(x, x)
        if square < least:
            least = square
            v = x
            s.weight[o] = 0.0
            s.weight[i] = wi
            s.weight[j] = wj
            s.weight[k] = wk
    return outside, v


@inner
def reduce_simplex(s: Simplex) -> tuple[bool, Vector]:
    """The point of the simplex nearest to the origin; points that it does not need go.

    False where the simplex holds the origin.
    """
    count = s.number[0]
    v = (0.0, 0.0, 0.0)
    if count == 1:
        s.weight[0] = 1.0
        v = row3(s.w, 0)
    elif count == 2:
        s.weight[0], s.weight[1], v = weigh_segment(row3(s.w, 0), row3(s.w, 1))
    elif count == 3:
        s.weight[0], s.weight[1], s.weight[2], v = weigh_triangle(row3(s.w, 0), row3(s.w, 1), row3(s.w, 2))
    else:
        outside, v = weigh_tetrahedron(s)
        if not outside:
            return False, v
    kept = 0
    for i in range(count):
        if not s.weight[i] > 0.0:
            continue
        s.weight[kept] = s.weight[i]
        set_row3(s.w, kept, row3(s.w, i))
        set_row3(s.a, kept, row3(s.a, i))
        kept += 1
    s.number[0] = kept
    return True, v


@inner
def holds_point(s: Simplex, w: Vector) -> bool:
    """Whether a difference is one of the simplex's."""
    for i in range(s.number[0]):
        if s.w[i, 0] == w[0] and s.w[i, 1] == w[1] and s.w[i, 2] == w[2]:
            return True
    return False


@inner
def copy_simplex(source: Simplex, target: Simplex) -> None:
    """Target becomes source."""
    for i in range(4):
        set_row3(target.w, i, row3(source.w, i))
        set_row3(target.a, i, row3(source.a, i))
        target.weight[i] = source.weight[i]
    target.number[0] = source.number[0]


@inner
def gjk(
    a: Shape, b: Shape, offset: Vector, most: float, least: float, v: Vector, s: Simplex, before: Simplex
) -> tuple[int, Vector]:
    """Distance of the cores.

    Args:
        a: first shape.
        b: second shape.
        offset: b's center relative to a's.
        most: distance from which on the answer is GJK_FAR.
        least: distance up to which it is GJK_OVERLAP.
        v: minus a guess of the normal, of any length.
        s: a simplex, filled.
        before: another, overwritten.

    Returns:
        GJK_..., and the difference nearest to the origin (FAR: minus a direction along which the cores are apart).
    """
    square = UNBOUNDED
    s.number[0] = 0
    for _ in range(GJK_STEPS):
        w, point = difference_support(a, b, offset, negate3(v))
        vv = dot3(v, v)
        vw = dot3(v, w)
        if vw > 0.0 and vw * vw > most * most * vv:
            return GJK_FAR, v
        if s.number[0] > 0 and (vv - vw <= GJK_ACCURACY * vv or holds_point(s, w)):
            return GJK_APART, v
        set_row3(s.w, s.number[0], w)
        set_row3(s.a, s.number[0], point)
        s.number[0] += 1
        copy_simplex(s, before)
        outside, nearest = reduce_simplex(s)
        if not outside:
            return GJK_OVERLAP, v
        now = dot3(nearest, nearest)
        if not now < square:  # rounding has the last word
            copy_simplex(before, s)
            s.number[0] -= 1
            return GJK_APART, v
        square = now
        v = nearest
        if square <= least * least:
            return GJK_OVERLAP, v
    return GJK_APART, v


@inner
def nearest_points(s: Simplex, v: Vector) -> tuple[Vector, Vector]:
    """The points of both cores, relative to A's center, that the simplex's nearest difference belongs to.

    Rounding may have taken a point of a sliver, so the weights need not add up to 1.
    """
    x, y, z = s.a[0, 0], s.a[0, 1], s.a[0, 2]
    for i in range(1, s.number[0]):
        x += s.weight[i] * (s.a[i, 0] - s.a[0, 0])
        y += s.weight[i] * (s.a[i, 1] - s.a[0, 1])
        z += s.weight[i] * (s.a[i, 2] - s.a[0, 2])
    return (x, y, z), (x - v[0], y - v[1], z - v[2])
