"""Two smooth round shapes (sphere, ellipsoid, superellipsoid): tracking of the contact; as smooth.cuh.

Nearest points solve the equations (1) of Kosenko, Gerasimov and Stavrovskiy 2015: both points lie on their surfaces
and both gradients along the line that joins them. Written in the unit normal n instead of the points, they say that

    f(n) = h_A(n) + h_B(n) - n.d,   h: support functions (the shapes are symmetric), d: from A's center to B's,

is stationary on the sphere of directions; -f is the gap. Two unknowns instead of eight, and every n gives a lower
bound of the gap. Newton's method, started from the last step's normal, safeguarded by falling f. What does not
converge (superellipsoids with nearly flat sides or sharp tips) goes to the general routine.
"""

from __future__ import annotations

import math

import numpy as np

from gpusim.reference.collide.compiled import inner, outer
from gpusim.reference.collide.convex import convex_convex
from gpusim.reference.collide.elementary import det_power
from gpusim.reference.collide.shape import (
    SHAPE_SPHERE,
    SHAPE_SUPERELLIPSOID,
    Shape,
    shape_extent,
    turned,
    turned_back,
)
from gpusim.typing import Array

STEPS = 40
TURN = 1e-9  # converged: the next step would turn the normal by less,
APART = 1e-9  # and the points are off the normal by less than this share of the size
STUCK = 1e-14  # a step that turns the normal by less changes nothing
LONGEST = 0.7  # of a step, rad
DEEP = 0.05  # of the size: deeper overlaps are tried in other directions too
FLOOR = 1e-6  # a superellipsoid's second derivatives are not finite where a coordinate is 0

# Rows of the work array of one normal, (9, 3); the last one: f and Newton's next step along the tangents T1, T2.
NORMAL, GRADIENT, ON_A, ON_B, T1, T2, FORM_A, FORM_B, VALUE = 0, 1, 2, 3, 4, 5, 6, 7, 8

Triple = tuple[float, float, float]


@inner
def larger(a: float, b: float) -> float:
    """The larger one; b where they don't compare."""
    return a if a > b else b


@inner
def dot(a: Triple, b: Triple) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner
def tangents(n: Array, t1: Array, t2: Array) -> None:
    """Two unit vectors square to n and to each other."""
    s = -1.0 if n[2] < 0.0 else 1.0
    a = -1.0 / (s + n[2])
    b = n[0] * n[1] * a
    t1[0] = 1.0 + s * (n[0] * n[0]) * a
    t1[1] = s * b
    t1[2] = -s * n[0]
    t2[0] = b
    t2[1] = s + n[1] * n[1] * a
    t2[2] = -n[1]


@inner
def ellipsoid_support(size: Array, ball: bool, n: Triple, t: Triple, u: Triple, form: Array) -> Triple:
    """Point (gradient of the support function) and second derivatives along t and u, all in the shape's frame."""
    a = size[0]
    b = size[0] if ball else size[1]
    c = size[0] if ball else size[2]
    m = (a * n[0], b * n[1], c * n[2])
    p = (a * t[0], b * t[1], c * t[2])
    q = (a * u[0], b * u[1], c * u[2])
    h = math.sqrt(dot(m, m))
    pm = dot(p, m) / h
    qm = dot(q, m) / h
    form[0] = (dot(p, p) - pm * pm) / h
    form[1] = (dot(p, q) - pm * qm) / h
    form[2] = (dot(q, q) - qm * qm) / h
    return a * m[0] / h, b * m[1] / h, c * m[2] / h


@inner
def power_norm(x: float, y: float, q: float) -> tuple[float, float, float, float, float]:
    """Lq norm of (x, y): norm, first derivatives s, and weights w = (x/norm)^(q - 2) of the second ones."""
    most = larger(x, y)
    if not most > 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    norm = most * det_power(det_power(x / most, q) + det_power(y / most, q), 1.0 / q)
    u = x / norm
    v = y / norm
    wu = det_power(larger(u, FLOOR), q - 2.0)
    wv = det_power(larger(v, FLOOR), q - 2.0)
    return norm, wu * u, wv * v, wu, wv


@inner
def superellipsoid_form(size: Array, n: Triple, t: Triple, u: Triple, form: Array) -> Triple:
    """The same for the dual of the superellipsoid's norm: ((a|x|, b|y|) in L_q2, c|z|) in L_q1, q = 2/(2 - e)."""
    q1 = 2.0 / (2.0 - size[3])
    q2 = 2.0 / (2.0 - size[4])
    a = -size[0] if n[0] < 0.0 else size[0]
    b = -size[1] if n[1] < 0.0 else size[1]
    c = -size[2] if n[2] < 0.0 else size[2]
    m = (a * n[0], b * n[1], c * n[2])
    p = (a * t[0], b * t[1], c * t[2])
    q = (a * u[0], b * u[1], c * u[2])
    ring, rx, ry, vx, vy = power_norm(m[0], m[1], q2)
    norm, sr, sz, wr, wz = power_norm(ring, m[2], q1)
    pr = rx * p[0] + ry * p[1]
    qr = rx * q[0] + ry * q[1]
    ph = sr * pr + sz * p[2]
    qh = sr * qr + sz * q[2]
    outer = (q1 - 1.0) / norm
    inner = (q2 - 1.0) * sr / larger(ring, FLOOR * norm)
    form[0] = outer * (wr * pr * pr + wz * p[2] * p[2] - ph * ph) + inner * (
        vx * p[0] * p[0] + vy * p[1] * p[1] - pr * pr
    )
    form[1] = outer * (wr * pr * qr + wz * p[2] * q[2] - ph * qh) + inner * (
        vx * p[0] * q[0] + vy * p[1] * q[1] - pr * qr
    )
    form[2] = outer * (wr * qr * qr + wz * q[2] * q[2] - qh * qh) + inner * (
        vx * q[0] * q[0] + vy * q[1] * q[1] - qr * qr
    )
    return a * (sr * rx), b * (sr * ry), c * sz


@inner
def smooth_support(s: Shape, n: Array, t: Array, u: Array, form: Array) -> Triple:
    """Point and second derivatives of a shape's support function; n, t, u, point in the world, from its center."""
    m = s.turn
    local_n = turned_back(m, n[0], n[1], n[2])
    local_t = turned_back(m, t[0], t[1], t[2])
    local_u = turned_back(m, u[0], u[1], u[2])
    if s.kind == SHAPE_SUPERELLIPSOID:
        x, y, z = superellipsoid_form(s.size, local_n, local_t, local_u, form)
    else:
        x, y, z = ellipsoid_support(s.size, s.kind == SHAPE_SPHERE, local_n, local_t, local_u, form)
    return turned(m, x, y, z)


@inner
def smooth_at(a: Shape, b: Shape, d: Array, x: float, y: float, z: float, p: Array) -> None:
    """Fill p with f at the normal along (x, y, z): its gradient, points from A's center, second derivatives."""
    length = math.sqrt(x * x + y * y + z * z)
    n = p[NORMAL]
    n[0] = x / length
    n[1] = y / length
    n[2] = z / length
    tangents(n, p[T1], p[T2])
    on_a = smooth_support(a, n, p[T1], p[T2], p[FORM_A])
    on_b = smooth_support(b, n, p[T1], p[T2], p[FORM_B])
    for k in range(3):
        p[ON_A, k] = on_a[k]
        p[ON_B, k] = d[k] - on_b[k]
        p[GRADIENT, k] = p[ON_A, k] - p[ON_B, k]
    p[VALUE, 0] = n[0] * p[GRADIENT, 0] + n[1] * p[GRADIENT, 1] + n[2] * p[GRADIENT, 2]


@inner
def smooth_step(p: Array, g1: float, g2: float) -> tuple[float, float]:
    """The safeguarded Newton step along the tangents: where f is not convex, as if it were."""
    f = p[VALUE, 0]
    m11 = p[FORM_A, 0] + p[FORM_B, 0] - f
    m12 = p[FORM_A, 1] + p[FORM_B, 1]
    m22 = p[FORM_A, 2] + p[FORM_B, 2] - f
    middle = 0.5 * (m11 + m22)
    half = 0.5 * (m11 - m22)
    spread = math.sqrt(half * half + m12 * m12)
    least = middle - spread
    scale = p[FORM_A, 0] + p[FORM_B, 0] + p[FORM_A, 2] + p[FORM_B, 2] + abs(f)
    if least < 1e-10 * scale:
        # Eigenvalues give way to their magnitudes: along a convex axis the step stays Newton's.
        low = larger(-least, 1e-3 * scale)
        high = larger(abs(middle + spread), 1e-3 * scale)
        x = half / spread if spread > 0.0 else 1.0
        y = m12 / spread if spread > 0.0 else 0.0
        m11 = 0.5 * (low + high) + 0.5 * (high - low) * x
        m12 = 0.5 * (high - low) * y
        m22 = 0.5 * (low + high) - 0.5 * (high - low) * x
    det = m11 * m22 - m12 * m12
    s1 = (m12 * g2 - m22 * g1) / det
    s2 = (m12 * g1 - m11 * g2) / det
    length = math.sqrt(s1 * s1 + s2 * s2)
    if length > LONGEST:
        s1 = s1 * (LONGEST / length)
        s2 = s2 * (LONGEST / length)
    return s1, s2


@inner
def smooth_descend(a: Shape, b: Shape, d: Array, margin: float, size: float, p: Array) -> int:
    """Follow f down from p: 1 converged, 0 not, -1 apart by more than the margin."""
    q = np.empty((9, 3))
    for k in range(STEPS):
        if -p[VALUE, 0] > margin:
            return -1
        g1 = p[T1, 0] * p[GRADIENT, 0] + p[T1, 1] * p[GRADIENT, 1] + p[T1, 2] * p[GRADIENT, 2]
        g2 = p[T2, 0] * p[GRADIENT, 0] + p[T2, 1] * p[GRADIENT, 1] + p[T2, 2] * p[GRADIENT, 2]
        s1, s2 = smooth_step(p, g1, g2)
        p[VALUE, 1] = s1
        p[VALUE, 2] = s2
        turn = math.sqrt(s1 * s1 + s2 * s2)
        if turn < TURN and g1 * g1 + g2 * g2 < (APART * size) * (APART * size):
            return 1
        slope = g1 * s1 + g2 * s2
        # Next to a flat side points run far while f hardly falls: then f counts, and the last step moves the points.
        settled = 1 if -slope < APART * size else 0
        if k == STEPS - 1 or not turn > STUCK:
            return settled
        share = 1.0
        fell = False
        for _trial in range(12):
            x = p[NORMAL, 0] + share * (s1 * p[T1, 0] + s2 * p[T2, 0])
            y = p[NORMAL, 1] + share * (s1 * p[T1, 1] + s2 * p[T2, 1])
            z = p[NORMAL, 2] + share * (s1 * p[T1, 2] + s2 * p[T2, 2])
            smooth_at(a, b, d, x, y, z, q)
            # close to the end f changes by less than rounding
            fell = q[VALUE, 0] <= p[VALUE, 0] + 1e-4 * share * slope + 4e-16 * size
            if fell:
                break
            share = 0.3 * share
        if not fell:
            return settled
        p[:] = q
    return 0


@inner
def smooth_other_way(a: Shape, b: Shape, d: Array, size: float, p: Array) -> bool:
    """A deep overlap has several ways out: start anew from a principal axis where that is shorter."""
    better = False
    best = p[VALUE, 0] - 1e-9 * size
    q = np.empty((9, 3))
    for k in range(6):
        m = a.turn if k < 3 else b.turn
        i = k if k < 3 else k - 3
        x = m[i] * d[0] + m[3 + i] * d[1] + m[6 + i] * d[2]
        sign = -1.0 if x < 0.0 else 1.0
        smooth_at(a, b, d, sign * m[i], sign * m[3 + i], sign * m[6 + i], q)
        if q[VALUE, 0] < best:
            best = q[VALUE, 0]
            p[:] = q
            better = True
    return better


@inner
def smooth_track(
    a: Shape,
    b: Shape,
    margin: float,
    guess: Array,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """As smooth_smooth; -1 for the general routine: not converged. It spares the compiler that routine."""
    d = np.empty(3)
    for k in range(3):
        d[k] = b.center[k] - a.center[k]
    size = shape_extent(a) + shape_extent(b)
    x, y, z = turned(a.turn, guess[0], guess[1], guess[2])
    if not x * x + y * y + z * z > 0.5:
        near = not d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > 1e-24 * size * size
        x = a.turn[2] if near else d[0]
        y = a.turn[5] if near else d[1]
        z = a.turn[8] if near else d[2]
    p = np.empty((9, 3))
    smooth_at(a, b, d, x, y, z, p)
    state = smooth_descend(a, b, d, margin, size, p)
    if state == 1 and p[VALUE, 0] > DEEP * size:
        kept = p.copy()
        if smooth_other_way(a, b, d, size, p):
            state = smooth_descend(a, b, d, margin, size, p)
        if state != 1 or p[VALUE, 0] > kept[VALUE, 0]:
            p[:] = kept
            state = 1
    if state == 0:
        return -1
    n = p[NORMAL]
    guess[0], guess[1], guess[2] = turned_back(a.turn, n[0], n[1], n[2])
    if state < 0:
        return 0
    # The next step would move the points by this.
    s1 = p[VALUE, 1]
    s2 = p[VALUE, 2]
    a1 = p[FORM_A, 0] * s1 + p[FORM_A, 1] * s2
    a2 = p[FORM_A, 1] * s1 + p[FORM_A, 2] * s2
    b1 = p[FORM_B, 0] * s1 + p[FORM_B, 1] * s2
    b2 = p[FORM_B, 1] * s1 + p[FORM_B, 2] * s2
    for k in range(3):
        p[ON_A, k] = p[ON_A, k] + (a1 * p[T1, k] + a2 * p[T2, k])
        p[ON_B, k] = p[ON_B, k] - (b1 * p[T1, k] + b2 * p[T2, k])
        normal[k] = n[k]
        middle = a.center[k] + 0.5 * (p[ON_A, k] + p[ON_B, k])
        points_a[0, k] = middle + 0.5 * p[VALUE, 0] * n[k]
        points_b[0, k] = middle - 0.5 * p[VALUE, 0] * n[k]
    feature[0] = 0
    return 1


@outer
def smooth_smooth(
    a: Shape,
    b: Shape,
    margin: float,
    guess: Array,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """Contact of two shapes out of sphere, ellipsoid and superellipsoid: one point.

    ``guess`` (4,): the last normal in A's frame, zeros at first; filled. It only speeds things up, except in deep
    overlaps, where it decides among ways out of about the same depth. Other arguments as in spheres.py.
    """
    count = smooth_track(a, b, margin, guess, normal, points_a, points_b, feature)
    if count < 0:
        return convex_convex(a, b, margin, guess, normal, points_a, points_b, feature)
    return count
