"""Spheres and capsules against each other and against boxes, cylinders and cones: closed forms, exact at any depth.

As cuda_kernels/collide/spheres.cuh. Every routine ``f(a, b, margin, normal, points_a, points_b, feature)`` returns the
number of points and fills normal (3,), points_a (4, 3), points_b (4, 3) and feature (4,): world frame, m, normal from
A to B. Points farther apart than ``margin`` are left out.
"""

from __future__ import annotations

import math

import numpy as np

from gpusim.reference.collide.compiled import inner, outer
from gpusim.reference.collide.shape import SHAPE_CONE, Shape, turned, turned_back
from gpusim.typing import Array

ROUND_NEAR = 1e-10  # of the size: nearer than this a difference of points tells no direction
CAPSULE_PARALLEL_SINE2 = 1e-4  # capsules more parallel than this (sine squared) touch in two points


@inner
def clamped(x: float, low: float, high: float) -> float:
    """x within low and high."""
    return low if x < low else (high if x > high else x)


@inner
def put_point(
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
    k: int,
    on_a: tuple[float, float, float],
    gap: float,
    number: int,
) -> None:
    """Point k of the manifold: where it lies on A, and its gap along the normal."""
    for i in range(3):
        points_a[k, i] = on_a[i]
        points_b[k, i] = on_a[i] + gap * normal[i]
    feature[k] = number


@inner
def ball_ball(
    center_a: Array,
    p: float,
    center_b: Array,
    q: float,
    spare: tuple[float, float, float],
    margin: float,
    number: int,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """Two balls of radii p and q; ``spare`` is the unit normal where the centers coincide."""
    x = center_b[0] - center_a[0]
    y = center_b[1] - center_a[1]
    z = center_b[2] - center_a[2]
    square = x * x + y * y + z * z
    reach = p + q + margin
    if square > reach * reach:
        return 0
    distance = math.sqrt(square)
    if distance > ROUND_NEAR * (p + q):
        normal[0] = x / distance
        normal[1] = y / distance
        normal[2] = z / distance
    else:
        normal[0], normal[1], normal[2] = spare
    on_a = (center_a[0] + p * normal[0], center_a[1] + p * normal[1], center_a[2] + p * normal[2])
    put_point(normal, points_a, points_b, feature, 0, on_a, distance - (p + q), number)
    return 1


@outer
def sphere_sphere(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Two spheres."""
    up = (0.0, 0.0, 1.0)
    return ball_ball(a.center, a.size[0], b.center, b.size[0], up, margin, 0, normal, points_a, points_b, feature)


@inner
def sphere_contact(
    a: Shape,
    b: Shape,
    x: float,
    y: float,
    z: float,
    gap: float,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """Put the one contact of sphere A; (x, y, z) is the unit normal in B's frame."""
    normal[0], normal[1], normal[2] = turned(b.turn, x, y, z)
    r = a.size[0]
    on_a = (a.center[0] + r * normal[0], a.center[1] + r * normal[1], a.center[2] + r * normal[2])
    put_point(normal, points_a, points_b, feature, 0, on_a, gap, 0)
    return 1


@inner
def center_in_frame(a: Shape, b: Shape) -> tuple[float, float, float]:
    """A's center in B's frame."""
    x = a.center[0] - b.center[0]
    y = a.center[1] - b.center[1]
    z = a.center[2] - b.center[2]
    return turned_back(b.turn, x, y, z)


@outer
def sphere_box(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Sphere A, box B."""
    c = center_in_frame(a, b)
    h = b.size
    reach = a.size[0] + margin
    x = clamped(c[0], -h[0], h[0]) - c[0]
    y = clamped(c[1], -h[1], h[1]) - c[1]
    z = clamped(c[2], -h[2], h[2]) - c[2]
    square = x * x + y * y + z * z
    if square > reach * reach:
        return 0
    distance = math.sqrt(square)
    if distance > ROUND_NEAR * (h[0] + h[1] + h[2]):
        gap = distance - a.size[0]
        return sphere_contact(a, b, x / distance, y / distance, z / distance, gap, normal, points_a, points_b, feature)
    # The center is inside: out through the nearest face.
    best = 0
    for k in range(1, 3):
        if h[k] - abs(c[k]) < h[best] - abs(c[best]):
            best = k
    out = 1.0 if c[best] < 0.0 else -1.0
    gap = abs(c[best]) - h[best] - a.size[0]
    x = out if best == 0 else 0.0
    y = out if best == 1 else 0.0
    z = out if best == 2 else 0.0
    return sphere_contact(a, b, x, y, z, gap, normal, points_a, points_b, feature)


@inner
def cylinder_outline(radial: float, z: float, radius: float, half: float) -> tuple[float, float, float]:
    """From (radial, z) to a cylinder's outline in the half-plane: unit direction (radial, z) and gap."""
    x = (radial if radial < radius else radius) - radial
    y = clamped(z, -half, half) - z
    distance = math.sqrt(x * x + y * y)
    if distance > ROUND_NEAR * (radius + half):
        return x / distance, y / distance, distance
    side = radius - radial
    cap = half - abs(z)
    if side < cap:
        return -1.0, 0.0, -side
    return 0.0, (1.0 if z < 0.0 else -1.0), -cap


@inner
def cone_outline(radial: float, z: float, radius: float, half: float) -> tuple[float, float, float]:
    """The same for a cone: base at z = -half, apex at +half."""
    slant = math.sqrt(radius * radius + 4.0 * half * half)
    nx = 2.0 * half / slant  # outward normal of the side
    nz = radius / slant
    side = (radial - radius) * nx + (z + half) * nz
    along = (radius - radial) * nz + (z + half) * nx  # from the rim to the apex
    base = -half - z
    if side <= 0.0 and base <= 0.0:
        if side > base:
            return -nx, -nz, side
        return 0.0, 1.0, base
    x = -side * nx
    y = -side * nz
    if base > 0.0 and radial <= radius:
        x = 0.0
        y = base
    elif along > slant or along < 0.0:
        x = radius - radial if along < 0.0 else -radial
        y = -half - z if along < 0.0 else half - z
    distance = math.sqrt(x * x + y * y)
    if distance > ROUND_NEAR * (radius + half):
        return x / distance, y / distance, distance
    return -nx, -nz, distance


@inner
def sphere_round(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Sphere A, cylinder or cone B."""
    c = center_in_frame(a, b)
    radial = math.sqrt(c[0] * c[0] + c[1] * c[1])
    if b.kind == SHAPE_CONE:
        x, z, apart = cone_outline(radial, c[2], b.size[0], b.size[1])
    else:
        x, z, apart = cylinder_outline(radial, c[2], b.size[0], b.size[1])
    gap = apart - a.size[0]
    if gap > margin:
        return 0
    on_axis = not radial > ROUND_NEAR * b.size[0]
    nx = x if on_axis else x * (c[0] / radial)
    ny = 0.0 if on_axis else x * (c[1] / radial)
    return sphere_contact(a, b, nx, ny, z, gap, normal, points_a, points_b, feature)


@outer
def sphere_cylinder(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Sphere A, cylinder B."""
    return sphere_round(a, b, margin, normal, points_a, points_b, feature)


@outer
def sphere_cone(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Sphere A, cone B."""
    return sphere_round(a, b, margin, normal, points_a, points_b, feature)


@outer
def sphere_capsule(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Sphere A, capsule B."""
    m = b.turn
    spare = (m[0], m[3], m[6])
    x = a.center[0] - b.center[0]
    y = a.center[1] - b.center[1]
    z = a.center[2] - b.center[2]
    s = clamped(x * m[2] + y * m[5] + z * m[8], -b.size[1], b.size[1])
    nearest = np.empty(3)
    for k in range(3):
        nearest[k] = b.center[k] + s * m[3 * k + 2]
    return ball_ball(a.center, a.size[0], nearest, b.size[0], spare, margin, 0, normal, points_a, points_b, feature)


@inner
def capsule_stretch(
    a: Shape,
    b: Shape,
    d: tuple[float, float, float],
    c: float,
    margin: float,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> int:
    """Two points at the ends of the stretch that both capsules share, with the given normal; 0 where there is none."""
    m = a.turn
    middle = d[0] * m[2] + d[1] * m[5] + d[2] * m[8]
    reach = b.size[1] * abs(c)
    low = -a.size[1] if -a.size[1] > middle - reach else middle - reach
    high = a.size[1] if a.size[1] < middle + reach else middle + reach
    if not high - low > ROUND_NEAR * (a.size[1] + b.size[1]):
        return 0
    n = 0
    for k in range(2):
        s = low if k == 0 else high
        t = clamped((s - middle) / c, -b.size[1], b.size[1])
        apart = 0.0
        for i in range(3):
            apart = apart + normal[i] * (d[i] + t * b.turn[3 * i + 2] - s * m[3 * i + 2])
        on_a = (
            a.center[0] + s * m[2] + a.size[0] * normal[0],
            a.center[1] + s * m[5] + a.size[0] * normal[1],
            a.center[2] + s * m[8] + a.size[0] * normal[2],
        )
        gap = apart - a.size[0] - b.size[0]
        if gap <= margin:
            put_point(normal, points_a, points_b, feature, n, on_a, gap, k)
            n += 1
    return n


@inner
def nearest_on_segments(du: float, dv: float, c: float, half_a: float, half_b: float) -> tuple[float, float]:
    """Parameters of the nearest points of two segments along unit axes u (A) and v (B) from their centers.

    du, dv: components of the difference of centers B - A; c = u.v.
    """
    sine2 = 1.0 - c * c
    x = clamped((du - c * dv) / sine2, -half_a, half_a) if sine2 > 1e-14 else clamped(du, -half_a, half_a)
    y = c * x - dv
    if y > half_b or y < -half_b:
        y = clamped(y, -half_b, half_b)
        x = clamped(c * y + du, -half_a, half_a)
    return x, y


@outer
def capsule_capsule(
    a: Shape, b: Shape, margin: float, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Two capsules: one point, or two where they lie along each other."""
    u = (a.turn[2], a.turn[5], a.turn[8])
    v = (b.turn[2], b.turn[5], b.turn[8])
    d = (b.center[0] - a.center[0], b.center[1] - a.center[1], b.center[2] - a.center[2])
    c = u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
    du = d[0] * u[0] + d[1] * u[1] + d[2] * u[2]
    dv = d[0] * v[0] + d[1] * v[1] + d[2] * v[2]
    s, t = nearest_on_segments(du, dv, c, a.size[1], b.size[1])
    on_a = np.empty(3)
    on_b = np.empty(3)
    for k in range(3):
        on_a[k] = a.center[k] + s * u[k]
        on_b[k] = b.center[k] + t * v[k]
    # Axes that cross: out along their common normal; axes in one line: sideways.
    x = u[1] * v[2] - u[2] * v[1]
    y = u[2] * v[0] - u[0] * v[2]
    z = u[0] * v[1] - u[1] * v[0]
    sine2 = x * x + y * y + z * z
    sine = math.sqrt(sine2)
    spare = (x / sine, y / sine, z / sine) if sine2 > 1e-12 else (a.turn[0], a.turn[3], a.turn[6])
    if ball_ball(on_a, a.size[0], on_b, b.size[0], spare, margin, 2, normal, points_a, points_b, feature) == 0:
        return 0
    # Capsules end to end have a normal along the axis and so one point.
    lean = normal[0] * u[0] + normal[1] * u[1] + normal[2] * u[2]
    if sine2 < CAPSULE_PARALLEL_SINE2 and lean * lean < CAPSULE_PARALLEL_SINE2:
        n = capsule_stretch(a, b, d, c, margin, normal, points_a, points_b, feature)
        if n > 0:
            return n
    return 1
