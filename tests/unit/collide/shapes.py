from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
from scipy.spatial import ConvexHull

from gpusim.typing import Array
from tests.unit.collide.pairs import random_rotation
from tests.unit.collide.record import (
    SHAPE_BARREL,
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_ELLIPSOID,
    SHAPE_HULL,
    SHAPE_SPHERE,
    SHAPE_SUPERELLIPSOID,
    SHAPE_WHEEL,
    Shape,
    make_shape,
)

ROUND = (SHAPE_SPHERE, SHAPE_ELLIPSOID, SHAPE_SUPERELLIPSOID)
CONVEX = (
    SHAPE_SPHERE,
    SHAPE_CAPSULE,
    SHAPE_BOX,
    SHAPE_CYLINDER,
    SHAPE_CONE,
    SHAPE_ELLIPSOID,
    SHAPE_SUPERELLIPSOID,
    SHAPE_HULL,
    SHAPE_WHEEL,
    SHAPE_BARREL,
)
NAMES = {
    SHAPE_SPHERE: "sphere", SHAPE_CAPSULE: "capsule", SHAPE_BOX: "box", SHAPE_CYLINDER: "cylinder", SHAPE_CONE: "cone",
    SHAPE_ELLIPSOID: "ellipsoid", SHAPE_SUPERELLIPSOID: "superellipsoid", SHAPE_HULL: "hull", SHAPE_WHEEL: "wheel",
    SHAPE_BARREL: "barrel",
}  # fmt: skip
CUBE = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)], dtype=float)


def hull_shape(vertices: Array, center: Iterable[float] = (0, 0, 0), turn: Array | None = None) -> Shape:
    """The convex hull of points, with coplanar triangles merged."""
    vertices = vertices[np.sort(ConvexHull(vertices).vertices)]
    hull = ConvexHull(vertices)
    faces: list[tuple[Array, set[int]]] = []
    for corners, equation in zip(hull.simplices, hull.equations, strict=True):
        for known, members in faces:
            if np.allclose(known, equation, atol=1e-9):
                members.update(corners)
                break
        else:
            faces.append((equation, set(corners)))
    loops = [_counterclockwise(vertices, sorted(members), equation[:3]) for equation, members in faces]
    normals = np.array([equation[:3] for equation, _ in faces])
    return make_shape(SHAPE_HULL, (), np.array(list(center), dtype=float), turn, vertices, loops, normals)


def _counterclockwise(vertices: Array, members: list[int], normal: Array) -> list[int]:
    points = vertices[members] - vertices[members].mean(axis=0)
    u = points[0] / np.linalg.norm(points[0])
    angle = np.arctan2(points @ np.cross(normal, u), points @ u)
    return [int(members[i]) for i in np.argsort(angle)]


def random_shape(kind: int, rng: np.random.Generator) -> Shape:
    return _shape(kind, int(rng.integers(12)))._replace(
        turn=random_rotation(rng).reshape(-1), center=rng.normal(size=3)
    )


@cache
def _shape(kind: int, number: int) -> Shape:
    rng = np.random.default_rng(100 * kind + number)
    x, y, z = rng.uniform(0.2, 0.6, 3)
    if kind == SHAPE_HULL:
        vertices = rng.normal(size=(int(rng.integers(5, 20)), 3))
        vertices *= np.array([x, y, z]) / np.linalg.norm(vertices, axis=1, keepdims=True)
        return hull_shape(vertices - vertices.mean(axis=0))
    sizes = {
        SHAPE_SPHERE: (x,),
        SHAPE_BOX: (x, y, z),
        SHAPE_ELLIPSOID: (x, y, z),
        SHAPE_SUPERELLIPSOID: (x, y, z, *rng.uniform(0.4, 1.6, 2)),
        SHAPE_WHEEL: (x, x * rng.uniform(0.1, 0.5)),
        SHAPE_BARREL: _barrel(x, x * rng.uniform(1.0, 5.0), rng.uniform(0.3, 0.9)),
    }
    return make_shape(kind, sizes.get(kind, (x, y)))


def _barrel(radius: float, bow: float, share: float) -> tuple[float, float, float]:
    return radius, share * float(np.sqrt(radius * (2.0 * bow - radius))), bow


def surface(s: Shape, steps: int = 120) -> Array:
    z = s.size
    u = np.linspace(0.0, 2.0 * np.pi, 2 * steps, endpoint=False)
    v = np.linspace(-0.5 * np.pi, 0.5 * np.pi, steps + 1)
    ball = np.stack(
        [np.outer(np.cos(v), np.cos(u)), np.outer(np.cos(v), np.sin(u)), np.outer(np.sin(v), np.ones_like(u))], -1
    ).reshape(-1, 3)
    ring = np.stack([np.cos(u), np.sin(u), np.zeros_like(u)], -1)
    axis = np.array([0.0, 0.0, 1.0])
    points = {
        SHAPE_SPHERE: lambda: z[0] * ball,
        SHAPE_CAPSULE: lambda: np.concatenate([z[0] * ball + z[1] * axis, z[0] * ball - z[1] * axis]),
        SHAPE_BOX: lambda: CUBE * z[:3],
        SHAPE_CYLINDER: lambda: np.concatenate([z[0] * ring + z[1] * axis, z[0] * ring - z[1] * axis]),
        SHAPE_CONE: lambda: np.concatenate([z[0] * ring - z[1] * axis, z[1] * axis[None]]),
        SHAPE_ELLIPSOID: lambda: ball * z[:3],
        SHAPE_SUPERELLIPSOID: lambda: _superellipsoid(z, ball),
        SHAPE_HULL: lambda: s.points.reshape(-1, 3),
        SHAPE_WHEEL: lambda: ((z[0] - z[1]) * ring[::4, None] + z[1] * ball[None, ::7]).reshape(-1, 3),
        SHAPE_BARREL: lambda: np.concatenate([_bulge(z, h) * ring + h * axis for h in np.linspace(-z[1], z[1], steps)]),
    }[s.kind]()
    return s.center + points @ s.turn.reshape(3, 3).T


def _bulge(size: Array, height: Array) -> Array:
    radius: Array = np.sqrt(size[2] ** 2 - height**2) - (size[2] - size[0])
    return radius


def _superellipsoid(size: Array, ball: Array) -> Array:
    e1, e2 = size[3:5]
    x, y, z = np.abs(ball).T
    ring = (x ** (2 / e2) + y ** (2 / e2)) ** (e2 / e1) + z ** (2 / e1)
    return ball / (ring ** (e1 / 2))[:, None] * size[:3]


def outside(s: Shape, points: Array) -> float:
    z = s.size
    local = (points - s.center) @ s.turn.reshape(3, 3)
    radial = np.linalg.norm(local[:, :2], axis=1)
    x, y, h = np.abs(local).T
    if s.kind == SHAPE_SPHERE:
        out = np.linalg.norm(local, axis=1) - z[0]
    elif s.kind == SHAPE_CAPSULE:
        out = np.hypot(radial, np.maximum(h - z[1], 0.0)) - z[0]
    elif s.kind == SHAPE_BOX:
        out = (np.abs(local) - z[:3]).max(axis=1)
    elif s.kind == SHAPE_CYLINDER:
        out = np.maximum(radial - z[0], h - z[1])
    elif s.kind == SHAPE_CONE:
        out = np.maximum(-local[:, 2] - z[1], radial - z[0] * (z[1] - local[:, 2]) / (2.0 * z[1]))
    elif s.kind == SHAPE_ELLIPSOID:
        out = (np.linalg.norm(local / z[:3], axis=1) - 1.0) * z[:3].min()
    elif s.kind == SHAPE_SUPERELLIPSOID:
        ring = ((x / z[0]) ** (2 / z[4]) + (y / z[1]) ** (2 / z[4])) ** (z[4] / z[3]) + (h / z[2]) ** (2 / z[3])
        out = (ring ** (z[3] / 2) - 1.0) * z[:3].min()
    elif s.kind == SHAPE_WHEEL:
        out = np.hypot(np.maximum(radial - (z[0] - z[1]), 0.0), h) - z[1]
    elif s.kind == SHAPE_BARREL:
        out = np.maximum(radial - _bulge(z, np.minimum(h, z[1])), h - z[1])
    else:
        normals = s.face_normal.reshape(-1, 3)
        level = [
            s.points.reshape(-1, 3)[s.face_vertex[first]] @ n
            for first, n in zip(s.face_first[:-1], normals, strict=True)
        ]
        out = (local @ normals.T - np.array(level)).max(axis=1)
    return float(out.max())
