from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpusim.description.shape_kinds import Faces, shape_type
from gpusim.reference.collide import shapes as reference
from gpusim.typing import Array

_KINDS = (
    "plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "superellipsoid", "hull", "height_field",
    "wheel", "barrel", "triangle_mesh",
)  # fmt: skip
(
    SHAPE_PLANE, SHAPE_SPHERE, SHAPE_CAPSULE, SHAPE_BOX, SHAPE_CYLINDER, SHAPE_CONE, SHAPE_ELLIPSOID,
    SHAPE_SUPERELLIPSOID, SHAPE_HULL, SHAPE_HEIGHT_FIELD, SHAPE_WHEEL, SHAPE_BARREL, SHAPE_TRIANGLE_MESH,
) = (shape_type(kind).number for kind in _KINDS)  # fmt: skip
FACE_CORNERS, UNBOUNDED = 16, 1e30


class Shape(NamedTuple):
    """Arrays of a shape, as in the kernels.

    Attributes:
        kind: SHAPE_... constant.
        size: (8,) float64, m. The meaning depends on the type of the shape.
        points: float64, flat: vertices of a hull (3 n), or heights of a height field (rows * columns), m.
        face_first: (faces + 1,) int32: face f of a hull has ``face_vertex[face_first[f]:face_first[f + 1]]``.
        face_vertex: int32, vertex indices, counterclockwise seen from outside.
        face_normal: (3 faces,) float64, flat: outward unit normals of the hull's faces, shape frame.
        center: (3,) float64, m: origin of the shape frame in the world.
        turn: (9,) float64: rotation matrix, row by row; x_world = center + turn x_shape.
    """

    kind: int
    size: Array
    points: Array
    face_first: Array
    face_vertex: Array
    face_normal: Array
    center: Array
    turn: Array

    @property
    def pose(self) -> tuple[Array, Array]:
        return self.center, self.turn.reshape(3, 3)

    def reference(self) -> reference.Shape:
        faces = Faces(self.face_first, self.face_vertex, self.face_normal.reshape(-1, 3))
        return reference.make_shape(self.kind, self.size, self.points, faces)


def of_reference(s: reference.Shape, center: Array, turn: Array) -> Shape:
    names = {reference.HalfSpace: "plane", reference.Polytope: "hull", reference.HeightField: "height_field",
             reference.TriangleMesh: "triangle_mesh"}  # fmt: skip
    kind = shape_type(names.get(type(s), type(s).__name__.lower())).number
    posed = make_shape(kind, s.size, center, turn)
    if isinstance(s, reference.HeightField):
        return posed._replace(points=np.ascontiguousarray(s.heights).reshape(-1))
    if isinstance(s, reference.TriangleMesh):
        return posed._replace(points=s.tree.vertices.reshape(-1), face_vertex=s.tree.numbers())
    if kind != SHAPE_HULL:
        return posed
    return posed._replace(
        points=s.vertices.reshape(-1),
        face_first=s.faces.first.astype(np.int32),
        face_vertex=s.faces.vertex.astype(np.int32),
        face_normal=np.ascontiguousarray(s.faces.normal).reshape(-1),
    )


def core_radius(s: Shape) -> float:
    place = {SHAPE_SPHERE: 0, SHAPE_CAPSULE: 0, SHAPE_WHEEL: 1}.get(s.kind)
    return 0.0 if place is None else float(s.size[place])


def make_shape(
    kind: int,
    size: Sequence[float] | Array = (),
    center: Sequence[float] | Array = (0.0, 0.0, 0.0),
    turn: Array | None = None,
    points: Array | None = None,
    faces: Sequence[Sequence[int]] = (),
    normals: Array | None = None,
) -> Shape:
    sizes = np.zeros(8)
    sizes[: len(size)] = size
    first = np.cumsum([0, *(len(face) for face in faces)]).astype(np.int32)
    vertex = np.array([vertex for face in faces for vertex in face], dtype=np.int32)
    turn = np.eye(3) if turn is None else turn
    return Shape(int(kind), sizes, _flat(points), first, vertex, _flat(normals), _flat(center), _flat(turn))


def _flat(values: Sequence[float] | Array | None) -> Array:
    return np.array([] if values is None else values, dtype=np.float64).reshape(-1)
