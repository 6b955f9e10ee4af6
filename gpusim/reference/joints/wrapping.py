"""Paths of ropes that wrap around spheres and cylinders: geometry, lengths and length rates.

A path has three parts: a straight line from the first end to the surface, an arc on the surface, and a straight line to
the second end. On a sphere, the arc is in the plane through both ends and the center of the sphere. On a cylinder, the
arc is a helix. MuJoCo uses the same paths.

*Inside wrapping:* if the side point is inside the surface, the path touches the circular cross section from inside, at
one point. Both straight lines form the angle t with the circle at this point. r is the radius of the circle. d_a and
d_b are the distances of the ends from the center. G is the angle between the ends, seen from the center. Newton's
method starts at t = pi/2 and solves the equation

    2 t - asin(r/d_a sin t) - asin(r/d_b sin t) = G
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpusim import rotations
from gpusim.compiler.topology import WrapTable
from gpusim.description.specs import WORLD, BodySpec
from gpusim.description.wraps import CYLINDER, WrappedPath
from gpusim.exact_math import atan2, cos, sin
from gpusim.transform import Transform
from gpusim.typing import Array

cross, dot, norm, matvec = rotations.cross, rotations.dot, rotations.norm, rotations.matvec
MAX_NEWTON = 20
SETTLED = 1e-14
"""Change of the angle (rad) below which Newton's method ends."""
MIN_RADIUS = 1e-15
ROUNDING = 1e-9
"""Round-off of arc angles (rad). Negative angles above -ROUNDING count as 0."""
TWO_PI = 2.0 * np.pi
_Side = tuple[Array, Array, Array]


@dataclass
class Paths:
    """Paths of n ropes in the world frame (m). Ends and contact points are (worlds, n, 3), and arcs are (worlds, n)."""

    end_a: Array
    contact_a: Array
    contact_b: Array
    end_b: Array
    arc: Array
    center: Array
    arc_axis: Array
    """Unit normals of the arcs' circles. Arcs are counterclockwise from ``contact_a`` to ``contact_b``."""

    @property
    def length(self) -> Array:
        """Return the lengths of the paths (m), (worlds, n)."""
        return np.asarray(norm(self.contact_a - self.end_a) + self.arc + norm(self.end_b - self.contact_b))


def find_paths(t: WrapTable, position: Array, rotation: Array, i: Array | slice = slice(None)) -> Paths:
    """Return the rope paths with the indices ``i``.

    ``position`` (worlds, bodies, 3) contains the positions of the bodies, and ``rotation`` their rotation matrices.
    """

    def world_point(body: Array, point: Array) -> Array:
        return np.asarray(position[:, body] + matvec(rotation[:, body], point))

    center = world_point(t.body[i], t.center[i])
    a, b = world_point(t.body_a[i], t.vector_a[i]) - center, world_point(t.body_b[i], t.vector_b[i]) - center
    frame = np.matmul(rotation[:, t.body[i]], t.frame[i])
    side = world_point(np.maximum(t.side_body[i], 0), t.side[i]) - center
    sided, cylinder, radius = t.side_body[i] >= 0, t.cylinder[i] == 1, t.radius[i]
    first, second, arc, normal = around(cylinder, sided, radius, a, b, frame, side)
    return Paths(a + center, first + center, second + center, b + center, arc, center, normal)


def start_length(path: WrappedPath, bodies: Sequence[BodySpec]) -> float:
    """Return the length (m) of a rope path in the initial poses of the bodies."""

    def pose(body: int) -> Transform:
        return Transform() if body == WORLD else bodies[body].xform

    wrap, frame = path.wrap, pose(path.wrap.body) * path.wrap.xform
    sided = wrap.body if wrap.side_body is None else wrap.side_body
    side = frame.position if wrap.side is None else pose(sided).apply(wrap.side)
    one, two, last = (
        np.asarray(point)[None, None] - frame.position
        for point in (pose(path.body_a).apply(path.point_a), pose(path.body_b).apply(path.point_b), side)
    )
    kind = np.array([wrap.shape == CYLINDER]), np.array([wrap.side is not None]), np.array([wrap.radius])
    first, second, arc, _ = around(*kind, one, two, frame.matrix()[None, None], last)
    return float((norm(first - one) + arc + norm(two - second))[0, 0])


def around(
    cylinder: Array, sided: Array, radius: Array, a: Array, b: Array, frame: Array, side: Array
) -> tuple[Array, Array, Array, Array]:
    """Return both contact points relative to the center (worlds, n, 3), and the length and the normal of each arc.

    Args:
        cylinder: (n,) True for a cylinder, False for a sphere.
        sided: (n,) True for a path with a side point (``sidesite`` in MuJoCo).
        radius: (n,) radius of the surface, m.
        a, b, side: (worlds, n, 3) both ends and the side point, relative to the center of the surface, m.
        frame: (worlds, n, 3, 3) axes of the surface as columns.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = _plane(cylinder, a, b, frame)
        z = cross(x, y)
        flat = [np.stack([dot(v, x), dot(v, y)], axis=-1) for v in (a, b, side)]
        inner = sided & (norm(side) < radius)
        wraps, contact, angle, direction = _outside(sided, radius, *flat)
        if inner.any():
            wraps_in, point = _inside(radius, *flat[:2])
            wraps = np.where(inner, wraps_in, wraps)
            contact = [np.where(inner[..., None], point, p) for p in contact]
        wraps = wraps & (np.minimum(norm(a), norm(b)) >= MIN_RADIUS) & (radius > MIN_RADIUS)
        arc = np.where(wraps & ~inner, radius * angle, 0.0)
        points = [p[..., :1] * x + p[..., 1:] * y for p in contact]
        # on a cylinder, the axial position is proportional to the path length (helix)
        legs = [norm(flat[k] - contact[k]) for k in range(2)]
        total, low = legs[0] + arc + legs[1], dot(a, z)
        climb = (dot(b, z) - low) / total
        points[0] = np.where(cylinder[:, None], points[0] + (low + climb * legs[0])[..., None] * z, points[0])
        points[1] = np.where(cylinder[:, None], points[1] + (low + climb * (legs[0] + arc))[..., None] * z, points[1])
        rise = np.where(cylinder, climb * arc, 0.0)
        arc = np.where(wraps, np.sqrt(arc * arc + rise * rise), 0.0)
        middle = 0.5 * (a + b)
        first, second = (np.where(wraps[..., None], p, middle) for p in points)
        return first, second, arc, direction[..., None] * z


def _plane(cylinder: Array, a: Array, b: Array, frame: Array) -> tuple[Array, Array]:
    """Return two unit vectors that span the plane of the circle, in the world frame."""
    x = a / norm(a)[..., None]
    normal = cross(a, b)
    # If the ends and the center are on one line, any plane works.
    helper = np.where((np.abs(dot(x, frame[..., 0])) < 0.9)[..., None], frame[..., 0], frame[..., 1])
    normal = np.where((norm(normal) < MIN_RADIUS)[..., None], cross(x, helper), normal)
    y = cross(normal, x)
    y = y / norm(y)[..., None]
    on = cylinder[:, None]
    return np.where(on, frame[..., 0], x), np.where(on, frame[..., 1], y)


def _cross2(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _dot2(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1])


def _nearest(a: Array, b: Array) -> Array:
    along = b - a
    square = _dot2(along, along)
    fraction = np.clip(-_dot2(along, a) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
    return np.asarray(a + fraction[..., None] * along)


def _outside(sided: Array, radius: Array, a: Array, b: Array, side: Array) -> tuple[Array, list[Array], Array, Array]:
    """Return whether each path wraps around its circle, both contact points, and the arc angle with its sign."""
    square, near, sense = radius * radius, _nearest(a, b), _cross2(a, b)
    room_a, room_b = _dot2(a, a) - square, _dot2(b, b) - square
    behind = sided & (_cross2(a, side) * sense < 0.0) & (_cross2(side, b) * sense < 0.0)
    wraps = (room_a >= 0.0) & (room_b >= 0.0) & (behind | (_dot2(near, near) <= square))
    direction = np.where((sense >= 0.0) ^ behind, 1.0, -1.0)
    touch = [_tangent(a, square, direction * radius, room_a), _tangent(b, square, -direction * radius, room_b)]
    angle = atan2(direction * _cross2(*touch), _dot2(*touch))
    angle = np.where(angle < -ROUNDING, angle + TWO_PI, np.maximum(angle, 0.0))
    return wraps, touch, angle, direction


def _tangent(end: Array, square: Array, radius: Array, room: Array) -> Array:
    """Return the point at which a tangent from ``end`` touches the circle."""
    across = np.stack([-end[..., 1], end[..., 0]], axis=-1)
    offset = radius * np.sqrt(np.maximum(room, 0.0))
    return np.asarray((square[:, None] * end + offset[..., None] * across) / _dot2(end, end)[..., None])


def _arcsine(x: Array) -> Array:
    return atan2(x, np.sqrt(np.maximum(1.0 - x * x, 0.0)))


def _inside(radius: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Return whether each path touches its circle from inside, and the contact point."""
    near, length_a, length_b = _nearest(a, b), np.sqrt(_dot2(a, a)), np.sqrt(_dot2(b, b))
    wraps = (length_a > radius) & (length_b > radius) & (_dot2(near, near) > radius * radius)
    ratio_a, ratio_b = (
        radius / np.where(wraps, length_a, 2.0 * radius),
        radius / np.where(wraps, length_b, 2.0 * radius),
    )
    direction = np.where(_cross2(a, b) > 0.0, 1.0, -1.0)
    between = atan2(np.abs(_cross2(a, b)), _dot2(a, b))
    angle, active = np.full(wraps.shape, 0.5 * np.pi), wraps.copy()
    for _ in range(MAX_NEWTON):
        sine, cosine = sin(angle), cos(angle)
        sine_a, sine_b = ratio_a * sine, ratio_b * sine
        value = 2.0 * angle - _arcsine(sine_a) - _arcsine(sine_b) - between
        slope = (
            2.0 - ratio_a * cosine / np.sqrt(1.0 - sine_a * sine_a) - ratio_b * cosine / np.sqrt(1.0 - sine_b * sine_b)
        )
        active = active & (value > 0.0) & (slope > 0.0)
        change = np.where(active, value / np.where(active, slope, 1.0), 0.0)
        angle = angle - change
        active = active & (change > SETTLED)
        if not active.any():
            break
    rotated = direction * (angle - _arcsine(ratio_a * sin(angle)))
    c, s, unit = cos(rotated), sin(rotated), a / length_a[..., None]
    point = np.stack([c * unit[..., 0] - s * unit[..., 1], s * unit[..., 0] + c * unit[..., 1]], axis=-1)
    return wraps, radius[:, None] * point


def rows(
    paths: Paths, t: WrapTable, position: Array, i: Array | slice = slice(None)
) -> list[tuple[Array, Array, Array]]:
    """Return the Jacobians of the lengths of n paths, as a list with one entry for each end of both straight lines.

    Each entry contains the body indices (n,), the linear part (worlds, n, 3) and the angular part (worlds, n, 3).
    """
    jacobians = []
    lines = (
        (paths.end_a, t.body_a[i], paths.contact_a, t.body[i]),
        (paths.contact_b, t.body[i], paths.end_b, t.body_b[i]),
    )
    for start, body_a, end, body_b in lines:
        apart = end - start
        length = norm(apart)[..., None]
        unit = np.where(length > 1e-12, apart / np.where(length > 1e-12, length, 1.0), [0.0, 0.0, 1.0])
        jacobians.append((body_a, -unit, -cross(start - position[:, body_a], unit)))
        jacobians.append((body_b, unit, cross(end - position[:, body_b], unit)))
    return jacobians


def rates(jacobians: list[_Side], twist: Callable[[Array], Array]) -> Array:
    """Return the rates of path lengths (m/s).

    ``jacobians`` comes from :func:`rows`. The function ``twist`` returns the twists of bodies.
    """
    total: Array = np.zeros(jacobians[0][1].shape[:-1])
    for body, linear, angular in jacobians:
        v = twist(body)
        total += dot(linear, v[..., :3]) + dot(angular, v[..., 3:])
    return total


def polyline(paths: Paths, count: int) -> Array:
    """Return points along each path, (worlds, n, count + 3, 3): both ends, and ``count`` + 1 points on the arc."""
    start, end = paths.contact_a - paths.center, paths.contact_b - paths.center
    z = paths.arc_axis
    low, high = dot(start, z)[..., None] * z, dot(end, z)[..., None] * z
    out, last = start - low, end - high
    angle = atan2(dot(z, cross(out, last)), dot(out, last))
    angle = np.where(paths.arc > 0.0, np.where(angle < -ROUNDING, angle + TWO_PI, angle), 0.0)
    points = [paths.end_a]
    for fraction in np.linspace(0.0, 1.0, count + 1):
        c, s = np.cos(fraction * angle)[..., None], np.sin(fraction * angle)[..., None]
        arc = paths.center + c * out + s * cross(z, out) + (1.0 - fraction) * low + fraction * high
        straight = (1.0 - fraction) * paths.contact_a + fraction * paths.contact_b
        points.append(np.where((paths.arc > 0.0)[..., None], arc, straight))
    return np.stack([*points, paths.end_b], axis=2)
