"""Farthest points of cores, and the faces, edges or corners of shapes that face a direction.

As cuda_kernels/collide/support.cuh.
"""

from __future__ import annotations

import math

from gpusim.reference.collide.compiled import inner, outer
from gpusim.reference.collide.elementary import det_power
from gpusim.reference.collide.shape import (
    FACE_CORNERS,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_ELLIPSOID,
    SHAPE_HULL,
    SHAPE_SUPERELLIPSOID,
    SHAPE_WHEEL,
    UNBOUNDED,
    Shape,
    turned,
    turned_back,
)
from gpusim.reference.collide.vectors import Vector
from gpusim.typing import Array

FACE_COSINE = 0.995  # a face whose normal is within 5.7 degrees of a direction faces it
EDGE_SINE = 0.1  # and so does an edge that is within 5.7 degrees of square to it
CAP_UPRIGHT = 1e-4  # a cap tilted by less (rad) keeps its corners where they are
HALF_ROOT = 0.7071067811865476
TOP_RIM = 16  # ids of a cylinder's or cone's points outside of its caps, whose corners are 0 .. 15
BOTTOM_RIM = 17


@inner
def disk_support(radius: float, x: float, y: float, z: float) -> tuple[float, float]:
    """The point of a disk farthest along (x, y, z): its center where that is square to it."""
    length = math.sqrt(x * x + y * y)
    scale = radius / length if length > 1e-12 * abs(z) else 0.0
    return scale * x, scale * y


@inner
def superellipsoid_support(size: Array, dx: float, dy: float, dz: float) -> tuple[float, float, float]:
    """The gradient of the dual norm: two Lp norms, one inside the other, as the surface has."""
    q1 = 2.0 / (2.0 - size[3])
    q2 = 2.0 / (2.0 - size[4])
    x = size[0] * abs(dx)
    y = size[1] * abs(dy)
    z = size[2] * abs(dz)
    most_xy = x if x > y else y
    ring = 0.0
    share_x = 0.0
    share_y = 0.0
    if most_xy > 0.0:
        total = det_power(x / most_xy, q2) + det_power(y / most_xy, q2)
        ring = most_xy * det_power(total, 1.0 / q2)
        share_x = det_power(x / ring, q2 - 1.0)
        share_y = det_power(y / ring, q2 - 1.0)
    most = ring if ring > z else z
    share_ring = 0.0
    share_z = 0.0
    if most > 0.0:
        total = det_power(ring / most, q1) + det_power(z / most, q1)
        norm = most * det_power(total, 1.0 / q1)
        share_ring = det_power(ring / norm, q1 - 1.0)
        share_z = det_power(z / norm, q1 - 1.0)
    return (
        size[0] * share_ring * (-share_x if dx < 0.0 else share_x),
        size[1] * share_ring * (-share_y if dy < 0.0 else share_y),
        size[2] * (-share_z if dz < 0.0 else share_z),
    )


@inner
def hull_support(s: Shape, x: float, y: float, z: float) -> tuple[float, float, float, int]:
    """Farthest vertex of a hull and its number."""
    p = s.points
    best = 0
    most = -UNBOUNDED
    for i in range(len(p) // 3):
        reach = p[3 * i] * x + p[3 * i + 1] * y + p[3 * i + 2] * z
        if reach > most:
            most = reach
            best = i
    return p[3 * best], p[3 * best + 1], p[3 * best + 2], best


@inner
def core_support(s: Shape, x: float, y: float, z: float) -> tuple[float, float, float, int]:
    """Farthest point of the core along (x, y, z), both in the shape frame, and the number of the vertex.

    The number is that of a box's corner (bit k set where coordinate k is above zero) or of a hull's vertex, else 0.
    """
    size = s.size
    if s.kind == SHAPE_HULL:
        return hull_support(s, x, y, z)
    if s.kind == SHAPE_BOX:
        vertex = (0 if x < 0.0 else 1) + (0 if y < 0.0 else 2) + (0 if z < 0.0 else 4)
        return (
            -size[0] if x < 0.0 else size[0],
            -size[1] if y < 0.0 else size[1],
            -size[2] if z < 0.0 else size[2],
            vertex,
        )
    px, py, pz = 0.0, 0.0, 0.0
    if s.kind == SHAPE_CAPSULE:
        pz = -size[1] if z < 0.0 else size[1]
    elif s.kind == SHAPE_CYLINDER:
        px, py = disk_support(size[0], x, y, z)
        pz = -size[1] if z < 0.0 else size[1]
    elif s.kind == SHAPE_CONE:
        apex = 2.0 * size[1] * z >= size[0] * math.sqrt(x * x + y * y)
        if not apex:
            px, py = disk_support(size[0], x, y, z)
        pz = size[1] if apex else -size[1]
    elif s.kind == SHAPE_ELLIPSOID:
        u = size[0] * x
        v = size[1] * y
        w = size[2] * z
        length = math.sqrt(u * u + v * v + w * w)
        scale = 1.0 / length if length > 0.0 else 0.0
        px = size[0] * (u * scale)
        py = size[1] * (v * scale)
        pz = size[2] * (w * scale)
    elif s.kind == SHAPE_SUPERELLIPSOID:
        px, py, pz = superellipsoid_support(size, x, y, z)
    elif s.kind == SHAPE_WHEEL:
        px, py = disk_support(size[0] - size[1], x, y, z)
    return px, py, pz, 0


@outer
def support(s: Shape, direction: Array, point: Array) -> int:
    """Farthest point of the core along a world direction.

    Args:
        s: any shape but a plane or a height field.
        direction: (3,), world frame, of any length.
        point: (3,), filled, m, world frame.

    Returns:
        Number of the vertex for a box and a hull, else 0.
    """
    x, y, z = turned_back(s.turn, direction[0], direction[1], direction[2])
    px, py, pz, vertex = core_support(s, x, y, z)
    px, py, pz = turned(s.turn, px, py, pz)
    point[0] = s.center[0] + px
    point[1] = s.center[1] + py
    point[2] = s.center[2] + pz
    return vertex


@inner
def set3(out: Array, i: int, x: float, y: float, z: float) -> None:
    """Row i of an array of points."""
    out[i, 0] = x
    out[i, 1] = y
    out[i, 2] = z


@inner
def box_corner(size: Array, vertex: int, polygon: Array, i: int) -> None:
    """The corner of a box with this number."""
    for k in range(3):
        polygon[i, k] = size[k] if (vertex >> k) & 1 else -size[k]


@inner
def box_facing(s: Shape, dx: float, dy: float, dz: float, polygon: Array, ids: Array) -> int:
    """Face, edge or vertex of a box; here and below in the shape frame, (dx, dy, dz) a unit vector."""
    x, y, z = abs(dx), abs(dy), abs(dz)
    size = (x, y, z)
    vertex = (0 if dx < 0.0 else 1) + (0 if dy < 0.0 else 2) + (0 if dz < 0.0 else 4)
    main = 0 if x >= y and x >= z else (1 if y >= z else 2)
    least = 2 if z <= x and z <= y else (1 if y <= x else 0)
    count = 1
    ids[0] = vertex
    if size[main] >= FACE_COSINE:
        # counterclockwise seen from outside
        up = (vertex >> main) & 1
        u = 1 << ((main + (1 if up else 2)) % 3)
        v = 1 << ((main + (2 if up else 1)) % 3)
        low = 1 << main if up else 0
        count = 4
        ids[0] = low + u + v
        ids[1] = low + v
        ids[2] = low
        ids[3] = low + u
    elif size[least] <= EDGE_SINE:
        count = 2
        ids[0] = vertex & ~(1 << least)
        ids[1] = vertex | (1 << least)
    for i in range(count):
        box_corner(s.size, ids[i], polygon, i)
    return count


@inner
def hull_face(s: Shape, x: float, y: float, z: float) -> tuple[int, float]:
    """The face of a hull whose normal is closest to (x, y, z), and the cosine between the two."""
    best = 0
    cosine = -2.0
    for f in range(len(s.face_first) - 1):
        along = s.face_normal[3 * f] * x + s.face_normal[3 * f + 1] * y + s.face_normal[3 * f + 2] * z
        if along > cosine:
            cosine = along
            best = f
    return best, cosine


@inner
def hull_edge(s: Shape, vertex: int, x: float, y: float, z: float) -> int:
    """The other end of the edge at a vertex of a hull that is closest to square to (x, y, z).

    -1 where none is square enough.
    """
    p = s.points
    other = -1
    least = EDGE_SINE
    for f in range(len(s.face_first) - 1):
        first = s.face_first[f]
        last = s.face_first[f + 1]
        for i in range(first, last):
            start = s.face_vertex[i]
            end = s.face_vertex[i + 1 if i + 1 < last else first]
            if start != vertex and end != vertex:
                continue
            ex = p[3 * end] - p[3 * start]
            ey = p[3 * end + 1] - p[3 * start + 1]
            ez = p[3 * end + 2] - p[3 * start + 2]
            sine = abs(ex * x + ey * y + ez * z) / math.sqrt(ex * ex + ey * ey + ez * ez)
            if sine < least:
                least = sine
                other = end if start == vertex else start
    return other


@inner
def hull_facing(s: Shape, x: float, y: float, z: float, polygon: Array, ids: Array) -> int:
    """Face, edge or vertex of a hull; of a face with more corners than room: some, evenly."""
    face, cosine = hull_face(s, x, y, z)
    if cosine >= FACE_COSINE:
        first = s.face_first[face]
        corners = s.face_first[face + 1] - first
        count = corners if corners < FACE_CORNERS else FACE_CORNERS
        for i in range(count):
            ids[i] = s.face_vertex[first + i * corners // count]
    else:
        _, _, _, vertex = hull_support(s, x, y, z)
        other = hull_edge(s, vertex, x, y, z)
        count = 1 if other < 0 else 2
        ids[0] = vertex if other < 0 or vertex < other else other
        if other >= 0:
            ids[1] = other if vertex < other else vertex
    for i in range(count):
        for k in range(3):
            polygon[i, k] = s.points[3 * ids[i] + k]
    return count


@inner
def cap_facing(radius: float, height: float, dx: float, dy: float, dz: float, polygon: Array, ids: Array) -> int:
    """Eight corners on a cap's rim, counterclockwise seen from outside.

    Those of a tilted cap begin at its outmost point; those of an upright one stand still in the shape, so that contact
    points do not jump.
    """
    tilt = math.sqrt(dx * dx + dy * dy)
    x = radius * dx / tilt if tilt > CAP_UPRIGHT else radius
    y = radius * dy / tilt if tilt > CAP_UPRIGHT else 0.0
    side = -1.0 if dz < 0.0 else 1.0
    u, v = x, y
    p = HALF_ROOT * (x - side * y)
    q = HALF_ROOT * (y + side * x)
    for i in range(0, 8, 2):
        set3(polygon, i, u, v, height)
        set3(polygon, i + 1, p, q, height)
        ids[i] = 8 + i if dz < 0.0 else i
        ids[i + 1] = ids[i] + 1
        # a quarter turn
        u, v = -side * v, side * u
        p, q = -side * q, side * p
    return 8


@inner
def cylinder_facing(s: Shape, dx: float, dy: float, dz: float, polygon: Array, ids: Array) -> int:
    """Cap, line along the side or point of the rim."""
    radius = s.size[0]
    half = s.size[1]
    if abs(dz) >= FACE_COSINE:
        return cap_facing(radius, -half if dz < 0.0 else half, dx, dy, dz, polygon, ids)
    x, y = disk_support(radius, dx, dy, dz)
    side = abs(dz) <= EDGE_SINE
    top = side or dz >= 0.0
    set3(polygon, 0, x, y, half if top else -half)
    ids[0] = TOP_RIM if top else BOTTOM_RIM
    if not side:
        return 1
    set3(polygon, 1, x, y, -half)
    ids[1] = BOTTOM_RIM
    return 2


@inner
def cone_facing(s: Shape, dx: float, dy: float, dz: float, polygon: Array, ids: Array) -> int:
    """Base, line along the side, apex or point of the rim."""
    radius = s.size[0]
    half = s.size[1]
    if -dz >= FACE_COSINE:
        return cap_facing(radius, -half, dx, dy, dz, polygon, ids)
    across = math.sqrt(dx * dx + dy * dy)
    slant = math.sqrt(radius * radius + 4.0 * half * half)
    # above zero where the apex lies farther along the direction than the rim
    rise = (2.0 * half * dz - radius * across) / slant
    side = abs(rise) <= EDGE_SINE
    x, y = disk_support(radius, dx, dy, dz)
    if side or rise > 0.0:
        set3(polygon, 0, 0.0, 0.0, half)
        ids[0] = TOP_RIM
    else:
        set3(polygon, 0, x, y, -half)
        ids[0] = BOTTOM_RIM
    if not side:
        return 1
    set3(polygon, 1, x, y, -half)
    ids[1] = BOTTOM_RIM
    return 2


@inner
def capsule_facing(s: Shape, dz: float, polygon: Array, ids: Array) -> int:
    """The core's segment or one of its ends."""
    half = s.size[1]
    side = abs(dz) <= EDGE_SINE
    top = side or dz >= 0.0
    set3(polygon, 0, 0.0, 0.0, half if top else -half)
    ids[0] = 0 if top else 1
    if not side:
        return 1
    set3(polygon, 1, 0.0, 0.0, -half)
    ids[1] = 1
    return 2


@inner
def facing_from(s: Shape, direction: Vector, origin: Vector, polygon: Array, ids: Array) -> int:
    """As ``face_polygon``, relative to an origin: corner = origin + turn x_shape."""
    x, y, z = turned_back(s.turn, direction[0], direction[1], direction[2])
    length = math.sqrt(x * x + y * y + z * z)
    x, y, z = x / length, y / length, z / length
    count = 1
    if s.kind == SHAPE_BOX:
        count = box_facing(s, x, y, z, polygon, ids)
    elif s.kind == SHAPE_HULL:
        count = hull_facing(s, x, y, z, polygon, ids)
    elif s.kind == SHAPE_CYLINDER:
        count = cylinder_facing(s, x, y, z, polygon, ids)
    elif s.kind == SHAPE_CONE:
        count = cone_facing(s, x, y, z, polygon, ids)
    elif s.kind == SHAPE_CAPSULE:
        count = capsule_facing(s, z, polygon, ids)
    else:
        px, py, pz, vertex = core_support(s, x, y, z)
        set3(polygon, 0, px, py, pz)
        ids[0] = vertex
    for i in range(count):
        px, py, pz = turned(s.turn, polygon[i, 0], polygon[i, 1], polygon[i, 2])
        set3(polygon, i, origin[0] + px, origin[1] + py, origin[2] + pz)
    return count


@outer
def face_polygon(s: Shape, direction: Array, polygon: Array, ids: Array) -> int:
    """The face, edge or point of the core that faces a direction.

    Args:
        s: any shape but a plane or a height field.
        direction: (3,), world frame, of any length but zero.
        polygon: (FACE_CORNERS, 3), filled, m, world frame; the corners of a face, counterclockwise seen from outside.
        ids: (FACE_CORNERS,) int64, filled: numbers of the corners, which stay from step to step.

    Returns:
        How many corners: 1, 2 or those of a face.
    """
    d = (direction[0], direction[1], direction[2])
    return facing_from(s, d, (s.center[0], s.center[1], s.center[2]), polygon, ids)
