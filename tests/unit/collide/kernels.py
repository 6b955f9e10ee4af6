from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from gpusim.backends.native.compile import build_native
from gpusim.description.shape_kinds import shape_codes
from gpusim.reference.collide.pairs import runs
from gpusim.reference.contacts import contact_follow, narrow_phase
from gpusim.typing import Array

from .record import FACE_CORNERS, SHAPE_HEIGHT_FIELD, SHAPE_TRIANGLE_MESH, Shape, of_reference

UNGUESSED = (
    "plane_convex", "sphere_sphere", "sphere_capsule", "sphere_box", "sphere_cylinder", "sphere_cone",
    "capsule_capsule", "box_box", "height_field_convex", "triangle_mesh_convex",
)  # fmt: skip
GUESSED = ("collide", "convex_convex", "smooth_smooth")
_SOURCE = "\n".join(
    [
        *(f"#define {name} {number}" for name, number in shape_codes().items()),
        '#include "collide/collide.cuh"',
        *(
            f'extern "C" int test_{name}(const Shape* a, const Shape* b, double margin, double*, Manifold* out) '
            f"{{ return {name}(*a, *b, margin, *out); }}"
            for name in UNGUESSED
        ),
        *(
            f'extern "C" int test_{name}(const Shape* a, const Shape* b, double margin, double* guess, Manifold* out) '
            f"{{ {name}(*a, *b, margin, guess, *out); return out->count; }}"
            for name in GUESSED
        ),
        'extern "C" int test_manifolds(const Shape* a, const Shape* b, double margin, int most, Manifold* out) '
        "{ return any_ground_manifolds(*a, *b, margin, most, out); }",
        'extern "C" int test_support(const Shape* s, const double* d, double* point) '
        "{ int vertex; support(*s, d, point, &vertex); return vertex; }",
        'extern "C" int test_facing(const Shape* s, const double* d, double* polygon, int* ids) '
        "{ return face_polygon(*s, d, polygon, ids); }",
        'extern "C" void test_bounds(const Shape* s, double* lower, double* upper) { shape_bounds(*s, lower, upper); }',
    ]
)


class _Shape(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int), ("num_points", ctypes.c_int), ("num_faces", ctypes.c_int),
        ("size", ctypes.c_void_p), ("points", ctypes.c_void_p), ("face_first", ctypes.c_void_p),
        ("face_vertex", ctypes.c_void_p), ("face_normal", ctypes.c_void_p),
        ("center", ctypes.c_double * 3), ("turn", ctypes.c_double * 9),
    )  # fmt: skip


class _Manifold(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_int), ("normal", ctypes.c_double * 3), ("a", ctypes.c_double * 12),
        ("b", ctypes.c_double * 12), ("feature", ctypes.c_int * 4),
    )  # fmt: skip

    def points(self, count: int) -> tuple[Array, Array, Array, Array]:
        a, b = (np.array(x).reshape(4, 3)[:count] for x in (self.a, self.b))
        return np.array(self.normal), a, b, np.array(self.feature[:count], dtype=np.int64)


def _given(s: Shape) -> _Shape:
    # Of a height field a point is a height.
    points = len(s.points) if s.kind == 9 else len(s.points) // 3
    arrays = (s.size, s.points, s.face_first, s.face_vertex, s.face_normal)
    pointers = (x.ctypes.data for x in arrays)
    return _Shape(
        s.kind, points, len(s.face_first) - 1, *pointers,
        (ctypes.c_double * 3)(*s.center), (ctypes.c_double * 9)(*s.turn),
    )  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    defines = {"GPUSIM_REAL": "double", "GPUSIM_STORED": "double", "GPUSIM_SHAPES": "3"}
    return ctypes.CDLL(str(build_native("narrow_phase_tests.cu", {"narrow_phase_tests.cu": _SOURCE}, defines)))


def _routine(name: str) -> Callable[..., tuple[int, Array, Array, Array, Array]]:
    def call(a: Shape, b: Shape, margin: float, guess: Array | None = None) -> tuple[int, Array, Array, Array, Array]:
        out = _Manifold()
        start = np.zeros(4) if guess is None else guess
        given = ctypes.byref(_given(a)), ctypes.byref(_given(b)), ctypes.c_double(margin)
        count = getattr(library(), f"test_{name}")(*given, _pointer(start), ctypes.byref(out))
        return (count, *out.points(count))

    call.__name__ = name
    return call


def _pointer(array: Array) -> Any:
    return ctypes.c_void_p(array.ctypes.data)


ROUTINES = {name: _routine(name) for name in (*UNGUESSED, *GUESSED)}
plane_convex, sphere_sphere, sphere_capsule = (ROUTINES[x] for x in UNGUESSED[:3])
sphere_box, sphere_cylinder, sphere_cone = (ROUTINES[x] for x in UNGUESSED[3:6])
capsule_capsule, box_box, height_field_convex = (ROUTINES[x] for x in UNGUESSED[6:9])
collide, convex_convex, smooth_smooth = (ROUTINES[x] for x in GUESSED)


def collide_field(a: Shape, b: Shape, margin: float, most: int) -> list[tuple[Array, Array, Array, Array]]:
    swapped = b.kind in (SHAPE_HEIGHT_FIELD, SHAPE_TRIANGLE_MESH)
    found = height_field_manifolds(*((b, a) if swapped else (a, b)), margin, most)
    return [(-n, on_b, on_a, ids) if swapped else (n, on_a, on_b, ids) for n, on_a, on_b, ids in found]


def height_field_manifolds(field: Shape, b: Shape, margin: float, most: int) -> list[tuple[Array, Array, Array, Array]]:
    out = (_Manifold * most)()
    given = ctypes.byref(_given(field)), ctypes.byref(_given(b)), ctypes.c_double(margin)
    found = library().test_manifolds(*given, most, out)
    return [m.points(m.count) for m in out[:found]]


def find_all_manifolds(
    shapes: Any, position: Array, rotation: Array, world: Array, pair: Array, margin: Array, guess: Array, count: Array,
    normal: Array, points_a: Array, points_b: Array, feature: Array,
) -> None:  # fmt: skip
    count[:] = 0
    for first, most in runs(world, pair):
        sides = [of_reference(shapes[i], position[w, i], rotation[w, i]) for w in world[[first]] for i in pair[first]]
        if most == 1:
            found = [collide(*sides, margin[first], guess[first])[1:]]
        else:
            found = collide_field(*sides, margin[first], most)
        for n, (*points, ids) in enumerate(found, start=first):
            count[n] = k = len(ids)
            normal[n], points_a[n, :k], points_b[n, :k], feature[n, :k] = *points, ids


@pytest.fixture
def kernel_manifolds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow_phase, "find_all_manifolds", find_all_manifolds)
    monkeypatch.setattr(contact_follow, "find_all_manifolds", find_all_manifolds)


def support(s: Shape, direction: Array, point: Array) -> int:
    d = np.ascontiguousarray(direction, dtype=np.float64)
    return int(library().test_support(ctypes.byref(_given(s)), _pointer(d), _pointer(point)))


def face_polygon(s: Shape, direction: Array) -> tuple[Array, list[int]]:
    """Return the visible corners of the core (n, 3) in the world frame, and their numbers."""
    polygon, ids = np.full((FACE_CORNERS, 3), np.nan), np.full(FACE_CORNERS, -1, dtype=np.int32)
    d = np.ascontiguousarray(direction, dtype=np.float64)
    count = library().test_facing(ctypes.byref(_given(s)), _pointer(d), _pointer(polygon), _pointer(ids))
    return polygon[:count], ids[:count].tolist()


def shape_bounds(s: Shape, lower: Array, upper: Array) -> None:
    """Fill the lowest and highest corner (3,) of the box around a shape."""
    library().test_bounds(ctypes.byref(_given(s)), _pointer(lower), _pointer(upper))
