"""Box against box; as cuda_kernels/collide/boxes.cuh.

Separating axes (3 + 3 faces, 9 edge pairs), then the facing faces clipped against each other, or the crossing point
of two edges. Resting boxes must keep their four points from step to step. Where two axes are nearly parallel they tell
the same gap up to the square of the angle between them, so the earlier one (A's face, B's face, edges) is kept unless a
later one is better by PREFER of the size; other axes win by any difference above rounding.
"""

from __future__ import annotations

import math

import numpy as np

from gpusim.reference.collide.box_polygons import DEEPER, POLYGON, clip, spread
from gpusim.reference.collide.compiled import inner, outer
from gpusim.reference.collide.convex import convex_convex
from gpusim.reference.collide.shape import Shape
from gpusim.reference.collide.spheres import clamped
from gpusim.typing import Array

PREFER = 1e-3  # of the size: what a nearly parallel axis must be better by
TIE = 1e-9  # of the size: what any other axis must be better by
PARALLEL = 0.99999  # cosine of 0.26 degrees
EDGE_SINE2 = 1e-14  # edges more parallel than this (sine squared) span no axis
SNAP = 1e-5  # of the face: corners that stick out by less are not clipped, but moved back
GRAZE = 5e-4  # of the pair's size, and
GRAZE_THIN = 0.02  # of its smallest half extent: boxes that overlap by less along two axes only graze
EDGE_FEATURE = 4608


@inner
def faces_apart(a: Shape, b: Shape, margin: float, r: Array, q: Array, t: Array, tb: Array, face_gap: Array) -> bool:
    """Whether a face axis parts the boxes by more than the margin; fills what else is asked of the pair.

    r[3 i + j] is the cosine between axis i of A and axis j of B, q its magnitude; t and tb go from A's center to B's,
    in A's and in B's axes.
    """
    dx = b.center[0] - a.center[0]
    dy = b.center[1] - a.center[1]
    dz = b.center[2] - a.center[2]
    m = a.turn
    n = b.turn
    ha = a.size
    hb = b.size
    for i in range(3):
        t[i] = m[i] * dx + m[3 + i] * dy + m[6 + i] * dz
        for j in range(3):
            r[3 * i + j] = m[i] * n[j] + m[3 + i] * n[3 + j] + m[6 + i] * n[6 + j]
            q[3 * i + j] = abs(r[3 * i + j])
        face_gap[i] = abs(t[i]) - (ha[i] + (hb[0] * q[3 * i] + hb[1] * q[3 * i + 1] + hb[2] * q[3 * i + 2]))
        if face_gap[i] > margin:
            return True
    for j in range(3):
        tb[j] = r[j] * t[0] + r[3 + j] * t[1] + r[6 + j] * t[2]
        face_gap[3 + j] = abs(tb[j]) - (hb[j] + (ha[0] * q[j] + ha[1] * q[3 + j] + ha[2] * q[6 + j]))
        if face_gap[3 + j] > margin:
            return True
    return False


@inner
def best_face(face_gap: Array, q: Array, size: float) -> int:
    """The face axis with the greatest gap; the earlier one of ties."""
    tie = TIE * size
    i = 0
    j = 0
    for k in range(1, 3):
        if face_gap[k] > face_gap[i] + tie:
            i = k
        if face_gap[3 + k] > face_gap[3 + j] + tie:
            j = k
    slack = PREFER * size if q[3 * i + j] > PARALLEL else tie
    return 3 + j if face_gap[3 + j] > face_gap[i] + slack else i


@inner
def edges_apart(
    a: Array, b: Array, margin: float, r: Array, q: Array, t: Array, face: float
) -> tuple[bool, int, float, float]:
    """Whether an edge axis parts the boxes by more than the margin; else the best one: code, gap, sine.

    a, b: half extents; face: the gap of the best face. The code is 6 + 3 i + j, or -1 where none is better than the
    face. Sines are at most 1, so an axis with s below a negative best gap can't be better: no root and no quotient
    there.
    """
    code = -1
    best = face
    best_sine = 1.0
    bar = best if best < 0.0 else 0.0
    for i in range(3):
        i1 = 0 if i == 2 else i + 1
        i2 = 3 - i - i1
        for j in range(3):
            j1 = 0 if j == 2 else j + 1
            j2 = 3 - j - j1
            s = abs(t[i2] * r[3 * i1 + j] - t[i1] * r[3 * i2 + j]) - (
                (a[i1] * q[3 * i2 + j] + a[i2] * q[3 * i1 + j]) + (b[j1] * q[3 * i + j2] + b[j2] * q[3 * i + j1])
            )
            if not s > bar:
                continue
            sine2 = q[3 * i1 + j] * q[3 * i1 + j] + q[3 * i2 + j] * q[3 * i2 + j]
            if not sine2 > EDGE_SINE2:
                continue
            sine = math.sqrt(sine2)
            gap = s / sine
            if gap > margin:
                return True, code, best, best_sine
            if gap > best:
                code = 6 + 3 * i + j
                best = gap
                best_sine = sine
                bar = gap if gap < 0.0 else 0.0
    return False, code, best, best_sine


@inner
def edge_normal(r: Array, t: Array, i: int, j: int, sine: float, n: Array) -> None:
    """Unit normal of edge axis i, j in A's axes, from A to B."""
    i1 = 0 if i == 2 else i + 1
    i2 = 3 - i - i1
    n[i] = 0.0
    n[i1] = -r[3 * i2 + j] / sine
    n[i2] = r[3 * i1 + j] / sine
    if n[0] * t[0] + n[1] * t[1] + n[2] * t[2] < 0.0:
        n[i1] = -n[i1]
        n[i2] = -n[i2]


@inner
def edge_wins(face_gap: Array, r: Array, size: float, face: int, edge_gap: float, n: Array) -> bool:
    """Whether the best edge axis, normal n in A's axes, is to be taken instead of the best face."""
    if not edge_gap > face_gap[face] + TIE * size:
        return False
    if edge_gap > face_gap[face] + PREFER * size:
        return True
    k = face if face < 3 else face - 3
    cosine = n[k] if face < 3 else n[0] * r[k] + n[1] * r[3 + k] + n[2] * r[6 + k]
    return abs(cosine) < PARALLEL


@inner
def edge_contact(
    a: Shape,
    b: Shape,
    r: Array,
    t: Array,
    code: int,
    gap: float,
    sine: float,
    n: Array,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """The crossing point of two edges; 0 where the edges pass by each other apart."""
    ha = a.size
    hb = b.size
    i = (code - 6) // 3
    j = code - 6 - 3 * i
    on_a = np.empty(3)
    on_b = np.empty(3)
    line = np.empty(3)
    bits = 0
    for k in range(3):
        on_a[k] = 0.0 if k == i else (-ha[k] if n[k] < 0.0 else ha[k])
        if k != i:
            bits = 2 * bits + (1 if n[k] < 0.0 else 0)
        on_b[k] = t[k]
        line[k] = r[3 * k + j]
    for k in range(3):
        if k == j:
            continue
        up = n[0] * r[k] + n[1] * r[3 + k] + n[2] * r[6 + k] < 0.0
        s = hb[k] if up else -hb[k]
        bits = 2 * bits + (1 if up else 0)
        for m in range(3):
            on_b[m] = on_b[m] + s * r[3 * m + k]
    # Nearest points of the lines on_a + x e_i and on_b + y line.
    d0 = on_b[0] - on_a[0]
    d1 = on_b[1] - on_a[1]
    d2 = on_b[2] - on_a[2]
    di = on_b[i] - on_a[i]
    c = line[i]
    dl = d0 * line[0] + d1 * line[1] + d2 * line[2]
    sine2 = sine * sine
    x = (di - c * dl) / sine2
    y = (c * di - dl) / sine2
    slack = TIE * (ha[0] + ha[1] + ha[2] + hb[0] + hb[1] + hb[2])
    if gap > 0.0 and (abs(x) > ha[i] + slack or abs(y) > hb[j] + slack):
        return 0
    x = clamped(x, -ha[i], ha[i])
    y = clamped(y, -hb[j], hb[j])
    on_a[i] = x
    for k in range(3):
        on_b[k] = on_b[k] + y * line[k]
    # Both points are moved to the middle of the two, where clamping has parted them sideways.
    across = n[0] * (on_b[0] - on_a[0]) + n[1] * (on_b[1] - on_a[1]) + n[2] * (on_b[2] - on_a[2])
    m0 = 0.5 * (on_a[0] + on_b[0])
    m1 = 0.5 * (on_a[1] + on_b[1])
    m2 = 0.5 * (on_a[2] + on_b[2])
    e = a.turn
    for k in range(3):
        normal[k] = e[3 * k] * n[0] + e[3 * k + 1] * n[1] + e[3 * k + 2] * n[2]
    for k in range(3):
        middle = a.center[k] + (e[3 * k] * m0 + e[3 * k + 1] * m1 + e[3 * k + 2] * m2)
        points_a[0, k] = middle - (0.5 * across) * normal[k]
        points_b[0, k] = middle + (0.5 * across) * normal[k]
    feature[0] = EDGE_FEATURE + 16 * (code - 6) + bits
    return 1


@inner
def outline(
    h: Array, g: Array, m: Array, t: Array, k: int, j: int, up: bool, x: Array, y: Array, edge: Array
) -> tuple[int, float, float, float, float, float]:
    """Face j of the incident box clipped to face k of the reference box, in the latter's plane.

    Fills corners x, y and what follows each: an edge of the incident face (0..3) or a side of the reference face
    (4..7). Returns the number of corners, and the gap over the plane as level + slope . (point - middle).
    """
    u = 0 if k == 2 else k + 1
    v = 3 - k - u
    j1 = 0 if j == 2 else j + 1
    j2 = 3 - j - j1
    s = -1.0 if t[k] < 0.0 else 1.0
    q = g[j] if up else -g[j]
    cx = t[u] + q * m[3 * u + j]
    cy = t[v] + q * m[3 * v + j]
    level = s * (t[k] + q * m[3 * k + j]) - h[k]
    slope = -s / m[3 * k + j]
    slope_x = slope * m[3 * u + j]
    slope_y = slope * m[3 * v + j]
    px = g[j1] * m[3 * u + j1]
    py = g[j1] * m[3 * v + j1]
    qx = g[j2] * m[3 * u + j2]
    qy = g[j2] * m[3 * v + j2]
    snap = SNAP * (h[u] + h[v])
    limit_x = h[u] + snap
    limit_y = h[v] + snap
    reach_x = abs(px) + abs(qx)
    reach_y = abs(py) + abs(qy)
    if abs(cx) - reach_x > limit_x or abs(cy) - reach_y > limit_y:
        return 0, level, cx, cy, slope_x, slope_y
    x[0] = cx + px + qx
    x[1] = cx - px + qx
    x[2] = cx - px - qx
    x[3] = cx + px - qx
    y[0] = cy + py + qy
    y[1] = cy - py + qy
    y[2] = cy - py - qy
    y[3] = cy + py - qy
    for i in range(4):
        edge[i] = i
    n = 4
    if cx + reach_x > limit_x:
        n = clip(n, x, y, edge, False, 1.0, limit_x, 4)
    if reach_x - cx > limit_x:
        n = clip(n, x, y, edge, False, -1.0, limit_x, 5)
    if cy + reach_y > limit_y:
        n = clip(n, x, y, edge, True, 1.0, limit_y, 6)
    if reach_y - cy > limit_y:
        n = clip(n, x, y, edge, True, -1.0, limit_y, 7)
    return n, level, cx, cy, slope_x, slope_y


@inner
def face_contact(
    ref: Shape,
    inc: Shape,
    m: Array,
    t: Array,
    k: int,
    flipped: bool,
    apart: float,
    margin: float,
    normal: Array,
    on_ref: Array,
    on_inc: Array,
    feature: Array,
) -> int:
    """Points of the incident face over face k of the reference box.

    m[3 i + j] is the cosine between axis i of the reference box and axis j of the incident one; t goes from the
    reference box's center to the other's, in its axes. ``flipped``: the reference box is B. ``apart``: the gap along
    the normal; where no point comes near it, the nearest features lie beyond the face, and the answer is 0.
    """
    h = ref.size
    u = 0 if k == 2 else k + 1
    v = 3 - k - u
    s = -1.0 if t[k] < 0.0 else 1.0
    j = 0
    for i in range(1, 3):
        if abs(m[3 * k + i]) > abs(m[3 * k + j]) + DEEPER:
            j = i
    up = s * m[3 * k + j] < 0.0
    x = np.empty(POLYGON)
    y = np.empty(POLYGON)
    gap = np.empty(POLYGON)
    edge = np.empty(POLYGON, dtype=np.int64)
    number = np.empty(POLYGON, dtype=np.int64)
    corners, level, cx, cy, slope_x, slope_y = outline(h, inc.size, m, t, k, j, up, x, y, edge)
    base = ((2 * (k + 3 if flipped else k) + (1 if s < 0.0 else 0)) * 6 + 2 * j + (1 if up else 0)) * 64
    n = 0
    least = 1e300
    for i in range(corners):
        px = clamped(x[i], -h[u], h[u])
        py = clamped(y[i], -h[v], h[v])
        z = level + (slope_x * (x[i] - cx) + slope_y * (y[i] - cy))
        if z > margin:
            continue
        before = edge[corners - 1 if i == 0 else i - 1]
        after = edge[i]
        number[n] = base + (8 * before + after if before < after else 8 * after + before)
        x[n] = px
        y[n] = py
        gap[n] = z
        least = z if z < least else least
        n += 1
    g = inc.size
    if apart > 0.0 and least > apart + PREFER * (h[0] + h[1] + h[2] + g[0] + g[1] + g[2]):
        return 0
    pick = np.empty(4, dtype=np.int64)
    for c in range(4):
        pick[c] = c
    if n > 4:
        spread(x, y, gap, n, h[u] + h[v], pick)
        n = 4
    sign = -1.0 if flipped else 1.0
    e = ref.turn
    for i in range(3):
        along = s * e[3 * i + k]
        normal[i] = sign * along
        for c in range(n):
            o = pick[c]
            p = ref.center[i] + ((h[k] * along + x[o] * e[3 * i + u]) + y[o] * e[3 * i + v])
            on_ref[c, i] = p
            on_inc[c, i] = p + gap[o] * along
    for c in range(n):
        feature[c] = number[pick[c]]
    return n


@inner
def grazes(a: Array, b: Array, q: Array, face_gap: Array, size: float, face: int) -> bool:
    """Whether boxes overlap along two crossing axes by next to nothing, or not at all, and so pass each other.

    A box that slides over a floor of boxes, into which it has sunk by rounding or softness, must not be stopped by the
    next one's side.
    """
    thin = a[0]
    for k in range(3):
        thin = min(thin, min(a[k], b[k]))
    most = min(GRAZE * size, GRAZE_THIN * thin)
    if face_gap[face] < -most:
        return False
    for k in range(6):
        if k == face or abs(face_gap[k]) > most:
            continue
        if (k < 3) == (face < 3) or q[3 * k + face - 3 if k < 3 else 3 * face + k - 3] < 0.5:
            return True
    return False


@inner
def box_box_facing(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """As box_box; -1 for the general routine: boxes apart whose nearest features lie beyond each other's faces.

    Calling this one spares numba compiling the general routine once more.
    """
    r = np.empty(9)
    q = np.empty(9)
    t = np.empty(3)
    tb = np.empty(3)
    face_gap = np.empty(6)
    if faces_apart(a, b, margin, r, q, t, tb, face_gap):
        return 0
    size = a.size[0] + a.size[1] + a.size[2] + b.size[0] + b.size[1] + b.size[2]
    face = best_face(face_gap, q, size)
    if grazes(a.size, b.size, q, face_gap, size, face):
        return 0
    apart, code, gap, sine = edges_apart(a.size, b.size, margin, r, q, t, face_gap[face])
    if apart:
        return 0
    by_edges = False
    n = np.empty(3)
    if code >= 0:
        i = (code - 6) // 3
        edge_normal(r, t, i, code - 6 - 3 * i, sine, n)
        by_edges = edge_wins(face_gap, r, size, face, gap, n)
    if by_edges:
        count = edge_contact(a, b, r, t, code, gap, sine, n, normal, points_a, points_b, feature)
    elif face < 3:
        count = face_contact(a, b, r, t, face, False, face_gap[face], margin, normal, points_a, points_b, feature)
    else:
        m = np.empty(9)
        for i in range(3):
            tb[i] = -tb[i]
            for j in range(3):
                m[3 * i + j] = r[3 * j + i]
        count = face_contact(b, a, m, tb, face - 3, True, face_gap[face], margin, normal, points_b, points_a, feature)
    return count if count > 0 else -1


@outer
def box_box(a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array) -> int:
    """Contact of two boxes: at most 4 points, normal from A to B; see spheres.py for the arguments."""
    count = box_box_facing(a, b, margin, normal, points_a, points_b, feature)
    if count < 0:
        return convex_convex(a, b, margin, np.zeros(4), normal, points_a, points_b, feature)
    return count
