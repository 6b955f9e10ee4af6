"""Shapes of the narrow phase: support functions and facing features.

Every convex shape is a *core* that is inflated by ``radius`` (a Minkowski sum with a sphere). The core of a sphere is a
point. The core of a capsule is a segment along z. The core of a wheel is a disk in the plane z = 0. The core of any
other shape is the shape itself. All points and vectors in this file are in the frame of the shape, and lengths are in
m.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gpusim.compiler.contact_topology import ContactTopology
from gpusim.description.shape_kinds import Faces, shape_type
from gpusim.meshes.triangle_tree import TriangleTree, tree_of
from gpusim.typing import Array

UNBOUNDED = 1e30
FACE_COSINE = 0.995
"""Cosine of 5.7 degrees. A face faces a direction within 5.7 degrees of its normal."""
EDGE_SINE = 0.1
"""Sine of 5.7 degrees. An edge faces a direction if the angle between them is 84.3 to 95.7 degrees. EDGE_SINE also
applies to straight lines on round side faces."""
UPRIGHT = 1e-4
"""Tilt of an end cap (rad) below which the contact corners on the cap's rim are fixed to the shape."""
CAP_CORNERS = 8
TOP, BOTTOM = 16, 17
"""Feature numbers of the two end points of a straight line on a round side face. Corners on end caps have the numbers 0
to 15."""

_MAKERS: dict[int, type[Convex]] = {}
"""Class of each shape kind that has no vertices and faces. The keys are the numbers of the kinds."""
Facing = tuple[Array, list[int]]
"""Corners (n, 3) of a face, an edge or a vertex, and the feature numbers of these corners. The corners of a face are
counterclockwise seen from outside."""


@dataclass
class Convex(ABC):
    """Convex shape. ``size`` (8,) contains the sizes of the shape kind (``ShapeType.sizes``).

    Attributes:
        radius: distance by which the core is inflated, m.
        solid: True if the core has a volume.
        flat: True if the core is a point, a segment or a polytope. The contact normals of these cores are exact.
        single: True if contacts of the shape with planes and convex shapes always have one point.
        rim: True if a polygon approximates the circular rim of the shape's end caps.
    """

    size: Array
    solid: ClassVar[bool] = True
    flat: ClassVar[bool] = False
    single: ClassVar[bool] = False
    rim: ClassVar[bool] = False

    def __init_subclass__(cls, kind: str = "") -> None:
        if kind:
            cls.single = shape_type(kind).single
            _MAKERS[shape_type(kind).number] = cls

    @property
    def radius(self) -> float:
        return 0.0

    @property
    def missed(self) -> float:
        """Return the maximum position error of the corners from :meth:`facing`, divided by the extent."""
        return 1e-5 if self.rim else 1e-9 if self.flat else 1e-7

    @abstractmethod
    def support(self, d: Array) -> Array:
        """Return the support points (n, 3) of the core along n directions ``d`` (n, 3) of any length."""

    def extents(self, d: Array) -> Array:
        """Return the values of the support function of the shape (n,) along n unit vectors ``d`` (n, 3)."""
        extents: Array = np.vecdot(self.support(d), d) + self.radius
        return extents

    @cached_property
    def extent(self) -> float:
        """Return the largest absolute coordinate of the shape's points, in the frame of the shape.

        The tolerances of the narrow phase are proportional to this extent.
        """
        return float(self.extents(np.concatenate([np.eye(3), -np.eye(3)])).max())

    def facing(self, d: Array) -> Facing:
        """Return the face, edge or corner of the core that faces the unit vector d (3,)."""
        return self.support(d[None]), [0]


class Sphere(Convex, kind="sphere"):
    solid = False
    flat = True

    @property
    def radius(self) -> float:
        return float(self.size[0])

    def support(self, d: Array) -> Array:
        return np.zeros_like(d)


class Capsule(Convex, kind="capsule"):
    solid = False
    flat = True

    @property
    def radius(self) -> float:
        return float(self.size[0])

    def support(self, d: Array) -> Array:
        return _along_z(np.where(d[:, 2] < 0.0, -self.size[1], self.size[1]))

    def facing(self, d: Array) -> Facing:
        ends = _along_z(np.array([self.size[1], -self.size[1]]))
        if abs(d[2]) <= EDGE_SINE:
            return ends, [0, 1]
        return (ends[:1], [0]) if d[2] > 0.0 else (ends[1:], [1])


@dataclass
class Polytope(Convex):
    """Convex hull of vertices."""

    vertices: Array
    faces: Faces
    flat = True

    def __post_init__(self) -> None:
        loops = [self.faces.polygon(f) for f in range(len(self.faces))]
        pairs = {(min(a, b), max(a, b)) for loop in loops for a, b in zip(loop, np.roll(loop, -1), strict=True)}
        self.edges = np.array(sorted(pairs))
        along = self.vertices[self.edges[:, 1]] - self.vertices[self.edges[:, 0]]
        self.edge_direction = along / np.linalg.norm(along, axis=1, keepdims=True)

    def support(self, d: Array) -> Array:
        farthest: Array = self.vertices[np.argmax(d @ self.vertices.T, axis=1)]
        return farthest

    def facing(self, d: Array) -> Facing:
        cosine = self.faces.normal @ d
        face = int(np.argmax(cosine))
        if cosine[face] >= FACE_COSINE:
            ids = self.faces.polygon(face)
        else:
            vertex = np.argmax(self.vertices @ d)
            here = np.flatnonzero((self.edges == vertex).any(axis=1))
            sine = np.abs(self.edge_direction[here] @ d)
            best = int(np.argmin(sine))
            ids = self.edges[here[best]] if sine[best] <= EDGE_SINE else np.array([vertex])
        return self.vertices[ids], [int(i) for i in ids]


class Box(Polytope):
    """Box whose half extents are the first three sizes."""


class Cylinder(Convex, kind="cylinder"):
    rim = True

    def support(self, d: Array) -> Array:
        return _rim(d, self.size[0]) + _along_z(np.where(d[:, 2] < 0.0, -self.size[1], self.size[1]))

    def facing(self, d: Array) -> Facing:
        half = self.size[1]
        if abs(d[2]) >= FACE_COSINE:
            return _cap(d, self.size[0], half if d[2] > 0.0 else -half)
        line = _rim(d[None], self.size[0]) + _along_z(np.array([half, -half]))
        if abs(d[2]) <= EDGE_SINE:
            return line, [TOP, BOTTOM]
        return (line[:1], [TOP]) if d[2] > 0.0 else (line[1:], [BOTTOM])


class Cone(Convex, kind="cone"):
    """Cone with its base at z = -size[1] and its tip at z = size[1]."""

    rim = True

    def _rise(self, d: Array) -> Array:
        height = 2.0 * self.size[1]
        rise: Array = height * d[..., 2] - self.size[0] * np.hypot(d[..., 0], d[..., 1])
        return rise / np.hypot(height, self.size[0])

    def support(self, d: Array) -> Array:
        tip = (self._rise(d) >= 0.0)[:, None]
        base = _rim(d, self.size[0]) + _along_z(np.full(len(d), -self.size[1]))
        return np.where(tip, [0.0, 0.0, self.size[1]], base)

    def facing(self, d: Array) -> Facing:
        if -d[2] >= FACE_COSINE:
            return _cap(d, self.size[0], -self.size[1])
        line = np.stack([np.array([0.0, 0.0, self.size[1]]), _rim(d, self.size[0]) - [0.0, 0.0, self.size[1]]])
        rise = self._rise(d)
        if abs(rise) <= EDGE_SINE:
            return line, [TOP, BOTTOM]
        return (line[:1], [TOP]) if rise > 0.0 else (line[1:], [BOTTOM])


class Ellipsoid(Convex, kind="ellipsoid"):
    def support(self, d: Array) -> Array:
        u = self.size[:3] * d
        return self.size[:3] * u / np.linalg.norm(u, axis=1, keepdims=True)


class Superellipsoid(Convex, kind="superellipsoid"):
    """Superellipsoid. Its support function is a nested Lq norm. The gradient of the norm is the support point."""

    def support(self, d: Array) -> Array:
        q1, q2 = 2.0 / (2.0 - self.size[3:5])
        u = self.size[:3] * np.abs(d)
        ring, gradient_xy = _norm_and_gradient(u[:, :2], q2)
        _, gradient = _norm_and_gradient(np.stack([ring, u[:, 2]], axis=1), q1)
        x = np.concatenate([gradient[:, :1] * gradient_xy, gradient[:, 1:]], axis=1)
        return self.size[:3] * np.where(d < 0.0, -x, x)

    def extents(self, d: Array) -> Array:
        extents: Array = np.abs(d) @ self.size[:3]
        return extents


class Wheel(Convex, kind="wheel"):
    solid = False
    rim = True

    @property
    def radius(self) -> float:
        return float(self.size[1])

    def support(self, d: Array) -> Array:
        return _rim(d, self.size[0] - self.size[1])

    def facing(self, d: Array) -> Facing:
        if abs(d[2]) >= FACE_COSINE:
            return _cap(d, self.size[0] - self.size[1], 0.0)
        return super().facing(d)


class Barrel(Convex, kind="barrel"):
    """Barrel with its axis along z."""

    rim = True

    def _radius(self, angle: Array) -> Array:
        radius: Array = self.size[0] - self.size[2] * (1.0 - np.cos(angle))
        return radius

    @property
    def _opening(self) -> float:
        return float(np.arcsin(self.size[1] / self.size[2]))

    def support(self, d: Array) -> Array:
        angle = np.arctan2(d[:, 2], np.hypot(d[:, 0], d[:, 1])).clip(-self._opening, self._opening)
        return _rim(d, self._radius(angle)) + _along_z(self.size[2] * np.sin(angle))

    def facing(self, d: Array) -> Facing:
        if abs(d[2]) >= max(FACE_COSINE, np.sin(self._opening)):
            return _cap(d, float(self._radius(np.array(self._opening))), float(np.copysign(self.size[1], d[2])))
        return self.support(d[None]), [TOP]


@dataclass
class HalfSpace:
    """Half space below z = 0."""

    size: Array


@dataclass
class HeightField:
    """Height field: solid below a grid of heights (rows, columns). The center of the grid is at the origin.

    ``size`` contains columns, rows, dx, dy, base, and the minimum and maximum height.
    """

    size: Array
    heights: Array
    triangles: dict[tuple[int, int], Any] = field(default_factory=dict, repr=False, compare=False)
    """Cache of the triangles of each cell (row, column)."""


@dataclass
class TriangleMesh:
    """Triangle mesh (shapes/triangle_mesh.py)."""

    size: Array
    tree: TriangleTree

    @property
    def lower(self) -> Array:
        return self.size[:3]

    @property
    def upper(self) -> Array:
        return self.size[3:6]


Shape = Convex | HalfSpace | HeightField | TriangleMesh
HULL, BOX = shape_type("hull").number, shape_type("box").number
FIELD, PLANE = shape_type("height_field").number, shape_type("plane").number
MESH = shape_type("triangle_mesh").number
_CORNERS = np.array([[1.0 if i >> k & 1 else -1.0 for k in range(3)] for i in range(8)])
_BOX_FACES = Faces(
    first=np.arange(0, 25, 4),
    vertex=np.array([1, 3, 7, 5, 0, 4, 6, 2, 2, 6, 7, 3, 0, 1, 5, 4, 4, 5, 7, 6, 0, 2, 3, 1]),
    normal=np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float),
)


def make_shape(kind: int, size: Array, points: Array, faces: Faces) -> Shape:
    """Make a shape of the given kind.

    ``points`` contains the vertices of a hull or triangle mesh, or the heights of a height field. ``faces`` contains
    the faces of a hull, or the triangle tables of a mesh.
    """
    if kind == MESH:
        return TriangleMesh(size, tree_of(points.reshape(-1, 3), faces.vertex, int(size[6])))
    if kind == HULL:
        return Polytope(size, points.reshape(-1, 3), faces)
    if kind == BOX:
        return Box(size, _CORNERS * size[:3], _BOX_FACES)
    if kind == FIELD:
        return HeightField(size, points.reshape(int(size[1]), int(size[0])))
    return HalfSpace(size) if kind == PLANE else _MAKERS[kind](size)


def model_shapes(c: ContactTopology) -> list[Shape]:
    """Return all shapes of a model."""
    made = []
    for i, kind in enumerate(c.kind):
        # For a shape with n faces, face_first has n + 1 entries.
        first, last = c.face_start[i], c.face_start[i + 1]
        vertex = c.face_vertex[c.vertex_start[i] : c.vertex_start[i + 1]]
        faces = Faces(c.face_first[first:last].astype(int), vertex, c.face_normal[first - i : last - i - 1])
        made.append(make_shape(int(kind), c.size[i], c.points[c.point_start[i] : c.point_start[i + 1]], faces))
    return made


def _along_z(z: Array) -> Array:
    return np.stack([np.zeros_like(z), np.zeros_like(z), z], axis=-1)


def _rim(d: Array, radius: float | Array) -> Array:
    """Return the support points of a disk along directions d (..., 3).

    If d is perpendicular to the disk, the support point is the center.
    """
    length = np.hypot(d[..., 0], d[..., 1])
    tilted = length > 1e-12 * np.abs(d[..., 2])
    scale = np.where(tilted, radius / np.where(tilted, length, 1.0), 0.0)
    return np.stack([scale * d[..., 0], scale * d[..., 1], np.zeros_like(scale)], axis=-1)


def _cap(d: Array, radius: float, height: float) -> Facing:
    start = np.arctan2(d[1], d[0]) if np.hypot(d[0], d[1]) > UPRIGHT else 0.0
    side = 1.0 if d[2] > 0.0 else -1.0
    angle = start + side * np.arange(CAP_CORNERS) * (2.0 * np.pi / CAP_CORNERS)
    corners = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(CAP_CORNERS, height)], axis=1)
    return corners, list(range(CAP_CORNERS) if side > 0.0 else range(CAP_CORNERS, 2 * CAP_CORNERS))


def _norm_and_gradient(u: Array, q: float) -> tuple[Array, Array]:
    """Return the Lq norms of n nonnegative vectors ``u`` (n, k), and the gradients of the norms."""
    max_u = np.maximum(u.max(axis=1, keepdims=True), 1e-300)
    norm = max_u * np.sum((u / max_u) ** q, axis=1, keepdims=True) ** (1.0 / q)
    return norm[:, 0], (u / np.maximum(norm, 1e-300)) ** (q - 1.0)
