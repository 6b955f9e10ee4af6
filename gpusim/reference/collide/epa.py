"""Penetration of two convex cores, by an expanding polytope (van den Bergen 2001); as cuda_kernels/collide/epa.cuh.

Sought is the direction along which the least motion parts the cores. The polytope lies inside the set of differences
a - b. Its face nearest to the origin (signed: the origin may still be outside) moves out to the set's own boundary
until it is there, within an accuracy. Few cores need more points than there is room for; then the best direction so far
does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpusim.reference.collide.compiled import inner
from gpusim.reference.collide.gjk import Simplex, depth_along, difference_support
from gpusim.reference.collide.shape import UNBOUNDED, Shape
from gpusim.reference.collide.vectors import (
    Vector,
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

EPA_POINTS = 32
EPA_FACES = 60  # 2 points - 4
EPA_EDGES = 40  # of the hole that a new point makes
EPA_THIN = 1e-9  # a simplex of this height, relative to the shapes, is flat


class Polytope(NamedTuple):
    """A polytope of triangles.

    Attributes:
        w: (EPA_POINTS, 3) corners.
        normal: (EPA_FACES, 3) outward; a face of no area is never chosen.
        distance: (EPA_FACES,) of the faces' planes.
        corner: (EPA_FACES, 3) int64.
        edge: (EPA_EDGES, 2) int64, of the hole while it is open.
        number: (2,) int64: corners, faces.
    """

    w: Array
    normal: Array
    distance: Array
    corner: Array
    edge: Array
    number: Array


@inner
def new_polytope() -> Polytope:
    """An empty polytope."""
    return Polytope(
        np.empty((EPA_POINTS, 3)),
        np.empty((EPA_FACES, 3)),
        np.empty(EPA_FACES),
        np.empty((EPA_FACES, 3), dtype=np.int64),
        np.empty((EPA_EDGES, 2), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@inner
def add_face(t: Polytope, i: int, j: int, k: int) -> None:
    """A triangle, counterclockwise seen from outside."""
    p = row3(t.w, i)
    e = subtract3(row3(t.w, j), p)
    f = subtract3(row3(t.w, k), p)
    n = cross3(e, f)
    length = norm3(n)
    flat = not length > 1e-12 * (dot3(e, e) + dot3(f, f))
    n = (0.0, 0.0, 0.0) if flat else divide3(n, length)
    face = t.number[1]
    set_row3(t.normal, face, n)
    t.distance[face] = UNBOUNDED if flat else dot3(n, p)
    t.corner[face, 0] = i
    t.corner[face, 1] = j
    t.corner[face, 2] = k
    t.number[1] += 1


@inner
def square_to(d: Vector) -> Vector:
    """A unit vector square to d, which need not be one."""
    x, y, z = abs(d[0]), abs(d[1]), abs(d[2])
    k = 0 if x <= y and x <= z else (1 if y <= z else 2)
    out = cross3(d, (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0))
    return divide3(out, norm3(out))


@inner
def height_over(t: Polytope, w: Vector) -> float:
    """Height of w over the point or line (squared) or plane (signed, not squared) of the polytope's first corners."""
    p = row3(t.w, 0)
    g = subtract3(w, p)
    if t.number[0] == 1:
        return dot3(g, g)
    e = subtract3(row3(t.w, 1), p)
    if t.number[0] == 2:
        n = cross3(e, g)
        return dot3(n, n) / dot3(e, e)
    n = cross3(e, subtract3(row3(t.w, 2), p))
    return dot3(n, g) / norm3(n)


@inner
def direction_from(t: Polytope, k: int) -> tuple[bool, Vector]:
    """The k-th direction to try for the next corner, square to the first ones; false where there are no more."""
    d = (1.0 if k // 2 == 0 else 0.0, 1.0 if k // 2 == 1 else 0.0, 1.0 if k // 2 == 2 else 0.0)
    if t.number[0] == 1:
        if k >= 6:
            return False, d
    elif t.number[0] == 2:
        if k >= 4:
            return False, d
        e = subtract3(row3(t.w, 1), row3(t.w, 0))
        d = square_to(e)
        if k >= 2:
            f = cross3(e, d)
            d = divide3(f, norm3(f))
    else:
        if k >= 2:
            return False, d
        p = row3(t.w, 0)
        n = cross3(subtract3(row3(t.w, 1), p), subtract3(row3(t.w, 2), p))
        d = divide3(n, norm3(n))
    return True, negate3(d) if k % 2 == 1 else d


@inner
def add_spanning_point(a: Shape, b: Shape, offset: Vector, thin: float, t: Polytope) -> tuple[bool, Vector]:
    """One more corner, as far as possible from the first ones.

    False where all differences lie in their line or plane; then the direction is square to it.
    """
    most = thin
    found = False
    d = (0.0, 0.0, 1.0)
    for k in range(6):
        more, trial = direction_from(t, k)
        if not more:
            break
        w, _ = difference_support(a, b, offset, trial)
        height = height_over(t, w)
        height = abs(height) if t.number[0] == 3 else math.sqrt(height)
        if k == 0:
            d = trial
        if height > most:
            most = height
            found = True
            set_row3(t.w, t.number[0], w)
    t.number[0] += 1 if found else 0
    return found, d


@inner
def span(a: Shape, b: Shape, offset: Vector, extent: float, s: Simplex, t: Polytope) -> tuple[bool, Vector]:
    """A tetrahedron, of the simplex's points where they do.

    False where the differences are flat; then the vector is the flat's normal.
    """
    thin = EPA_THIN * extent
    for i in range(s.number[0]):
        w = row3(s.w, i)
        height = extent if t.number[0] == 0 else abs(height_over(t, w))
        needed = 1e3 * thin  # a better point than a bad one is soon found
        if height > (needed if t.number[0] == 0 or t.number[0] == 3 else needed * needed):
            set_row3(t.w, t.number[0], w)
            t.number[0] += 1
    while t.number[0] < 4:
        found, d = add_spanning_point(a, b, offset, thin, t)
        if not found:
            return False, d
    p = row3(t.w, 0)
    m = cross3(subtract3(row3(t.w, 1), p), subtract3(row3(t.w, 2), p))
    j = 1 if dot3(m, subtract3(row3(t.w, 3), p)) < 0.0 else 2
    k = 3 - j  # the fourth corner lies below 0, j, k
    add_face(t, 0, j, k)
    add_face(t, j, 0, 3)
    add_face(t, k, j, 3)
    add_face(t, 0, k, 3)
    return True, m


@inner
def toggle_edge(t: Polytope, edges: int, i: int, j: int) -> int:
    """Edge i, j of a face that goes: in the rim of the hole, unless the face on its other side goes too.

    The number of edges then; -1 where there is no room.
    """
    for other in range(edges):
        if t.edge[other, 0] == j and t.edge[other, 1] == i:
            t.edge[other, 0] = t.edge[edges - 1, 0]
            t.edge[other, 1] = t.edge[edges - 1, 1]
            return edges - 1
    if edges == EPA_EDGES:
        return -1
    t.edge[edges, 0] = i
    t.edge[edges, 1] = j
    return edges + 1


@inner
def expand(t: Polytope, nearest: int, w: Vector, slack: float) -> bool:
    """Put a point outside of a face into the polytope.

    The faces that see it go, the rim of the hole gets new ones. False where there is no room.
    """
    edges = 0
    if t.number[0] >= EPA_POINTS:
        return False
    for f in range(t.number[1] - 1, -1, -1):
        if f != nearest and not dot3(row3(t.normal, f), w) - t.distance[f] > slack:
            continue
        for c in range(3):
            edges = toggle_edge(t, edges, t.corner[f, c], t.corner[f, (c + 1) % 3])
            if edges < 0:
                return False
        t.number[1] -= 1
        last = t.number[1]
        for c in range(3):
            t.normal[f, c] = t.normal[last, c]
            t.corner[f, c] = t.corner[last, c]
        t.distance[f] = t.distance[last]
    if t.number[1] + edges > EPA_FACES:
        return False
    point = t.number[0]
    t.number[0] += 1
    set_row3(t.w, point, w)
    for e in range(edges):
        add_face(t, t.edge[e, 0], t.edge[e, 1], point)
    return True


@inner
def epa(a: Shape, b: Shape, offset: Vector, extent: float, accuracy: float, s: Simplex) -> tuple[float, Vector]:
    """The least motion that parts the cores, and the direction from A to B of b's motion.

    Args:
        a: first shape.
        b: second shape.
        offset: b's center relative to a's.
        extent: extent of the shapes, m.
        accuracy: of the motion, relative to the extent, where the polytope has room enough; it is never too small.
        s: the simplex that gjk ended with.
    """
    t = new_polytope()
    spans, n = span(a, b, offset, extent, s, t)
    if not spans:
        # cores without a volume, such as two segments: their common plane's normal, towards b
        if dot3(n, offset) < 0.0:
            n = negate3(n)
        return depth_along(a, b, offset, n), n
    n = (0.0, 0.0, 1.0)
    depth = UNBOUNDED
    while True:
        nearest = 0
        for f in range(1, t.number[1]):
            if t.distance[f] < t.distance[nearest]:
                nearest = f
        distance = t.distance[nearest]
        if distance >= UNBOUNDED:  # nothing but faces without area
            break
        m = row3(t.normal, nearest)
        w, _ = difference_support(a, b, offset, m)
        reach = dot3(m, w)
        if reach < depth:
            depth = reach
            n = m
        if depth - distance <= accuracy * extent or not expand(t, nearest, w, 1e-13 * extent):
            break
    return depth, n
