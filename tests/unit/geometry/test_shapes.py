from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import gpusim
from gpusim import ModelBuilder
from gpusim.description.shape_kinds import Faces, Mesh, shape_kinds, shape_type
from gpusim.description.specs import ShapeSpec
from gpusim.meshes.polytope import solid
from tests.message_snapshot import naming

Inside = Callable[[np.ndarray], np.ndarray]
TETRAHEDRON = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])


def shape(kind: str, *args: Any, **kwargs: Any) -> ShapeSpec:
    b = ModelBuilder()
    b.add_body()
    getattr(b, f"add_shape_{kind}")(0, *args, **kwargs)
    return b.shapes[0]


def _square(p: np.ndarray) -> np.ndarray:
    return p[:, 0] ** 2 + p[:, 1] ** 2


def _wheel(p: np.ndarray) -> np.ndarray:
    return np.maximum(np.sqrt(_square(p)) - 0.4, 0.0) ** 2 + p[:, 2] ** 2 <= 0.1**2


def _superellipsoid(p: np.ndarray) -> np.ndarray:
    x, y, z = (np.abs(p) / (0.7, 0.5, 0.9)).T
    e1, e2 = 0.6, 1.3
    return (x ** (2 / e2) + y ** (2 / e2)) ** (e2 / e1) + z ** (2 / e1) <= 1.0


def _bulge(z: np.ndarray) -> np.ndarray:
    radius: np.ndarray = np.sqrt(1.0 - np.minimum(z * z, 1.0)) - 0.4
    return radius


SOLIDS: dict[str, tuple[tuple[Any, ...], Inside]] = {
    "sphere": ((0.8,), lambda p: np.sum(p * p, axis=1) <= 0.8**2),
    "capsule": ((0.3, 0.5), lambda p: _square(p) + np.maximum(np.abs(p[:, 2]) - 0.5, 0.0) ** 2 <= 0.3**2),
    "box": (((0.5, 0.3, 0.9),), lambda p: np.all(np.abs(p) <= (0.5, 0.3, 0.9), axis=1)),
    "cylinder": ((0.4, 0.7), lambda p: (_square(p) <= 0.4**2) & (np.abs(p[:, 2]) <= 0.7)),
    "cone": ((0.8, 0.6), lambda p: (np.abs(p[:, 2]) <= 0.6) & (np.sqrt(_square(p)) <= 0.8 * (0.6 - p[:, 2]) / 1.2)),
    "ellipsoid": (((0.9, 0.5, 0.3),), lambda p: np.sum((p / (0.9, 0.5, 0.3)) ** 2, axis=1) <= 1.0),
    "superellipsoid": (((0.7, 0.5, 0.9), (0.6, 1.3)), _superellipsoid),
    "wheel": ((0.5, 0.1), _wheel),
    "barrel": ((0.6, 1.0, 0.7), lambda p: (np.sqrt(_square(p)) <= _bulge(p[:, 2])) & (np.abs(p[:, 2]) <= 0.7)),
    "hull": ((TETRAHEDRON,), lambda p: np.all(p >= 0.0, axis=1) & (p @ (1.0, 1 / 2, 1 / 3) <= 1.0)),
}


def test_numbers_are_the_contract() -> None:
    expected = (
        "plane sphere capsule box cylinder cone ellipsoid superellipsoid hull height_field wheel barrel triangle_mesh"
    ).split()
    assert [kind.name for kind in shape_kinds()] == expected
    assert [kind.number for kind in shape_kinds()] == list(range(13))
    assert [kind.name for kind in shape_kinds() if not kind.movable] == [
        "plane", "height_field", "triangle_mesh",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", SOLIDS)
def test_mass_properties_against_sampling(kind: str) -> None:
    args, inside = SOLIDS[kind]
    spec = shape(kind, *args)
    t = shape_type(kind)
    vertices, _ = t.mesh(spec.params)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    n = 100
    axes = [l + (h - l) * (np.arange(n) + 0.5) / n for l, h in zip(low, high, strict=True)]  # noqa: E741
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    points = points[inside(points)]
    cell = float(np.prod((high - low) / n))
    volume, center = len(points) * cell, points.mean(axis=0)
    second = (points - center).T @ (points - center) * cell
    inertia = np.trace(second) * np.eye(3) - second
    assert t.volume(spec.params) == pytest.approx(volume, rel=1e-2)
    np.testing.assert_allclose(t.center(spec.params), center, atol=1e-2 * float(np.ptp(vertices)))
    np.testing.assert_allclose(t.inertia(spec.params), inertia, atol=1.5e-2 * inertia.max())


@pytest.mark.parametrize("kind", SOLIDS)
def test_mesh_is_closed_and_agrees(kind: str) -> None:
    args, _ = SOLIDS[kind]
    spec = shape(kind, *args)
    t = shape_type(kind)
    vertices, triangles = t.mesh(spec.params, 128)
    edges = {(int(f[k]), int(f[(k + 1) % 3])) for f in triangles for k in range(3)}
    assert len(edges) == 3 * len(triangles) and all((b, a) in edges for a, b in edges)
    volume, center, inertia = solid(vertices, triangles)
    assert volume == pytest.approx(t.volume(spec.params), rel=2e-3)
    np.testing.assert_allclose(center, t.center(spec.params), atol=1e-3)
    np.testing.assert_allclose(inertia, t.inertia(spec.params), atol=4e-3 * inertia.max())
    farthest = float(np.linalg.norm(vertices, axis=1).max())
    assert farthest <= t.radius(spec.params) * (1.0 + 1e-12)
    assert farthest == pytest.approx(t.radius(spec.params), rel=1e-3)


@pytest.mark.parametrize("kind", SOLIDS)
def test_inside_is_inside(kind: str) -> None:
    args, inside = SOLIDS[kind]
    spec = shape(kind, *args)
    vertices, _ = shape_type(kind).mesh(spec.params, 24)
    center = shape_type(kind).center(spec.params)
    assert inside(center + (vertices - center) * (1.0 - 1e-9)).all()
    assert not inside(center + (vertices - center) * (1.0 + 1e-6)).any()


def test_sizes() -> None:
    def sizes(kind: str, *args: Any) -> list[float]:
        spec = shape(kind, *args)
        values = shape_type(kind).sizes(spec.params)
        assert values.shape == (8,) and values.dtype == np.float64
        return [float(v) for v in values[:5]]

    assert sizes("sphere", 0.5) == [0.5, 0, 0, 0, 0]
    assert sizes("capsule", 0.5, 2) == [0.5, 2, 0, 0, 0]
    assert sizes("box", (1, 2, 3)) == [1, 2, 3, 0, 0]
    assert sizes("superellipsoid", (1, 2, 3), (0.5, 1.5)) == [1, 2, 3, 0.5, 1.5]
    assert sizes("wheel", 0.5) == [0.5, 0, 0, 0, 0]
    assert sizes("barrel", 0.5, 2, 1) == [0.5, 1, 2, 0, 0]
    assert sizes("hull", TETRAHEDRON) == [0, 0, 0, 0, 0]


def test_closed_forms() -> None:
    ball, ellipsoid = shape("sphere", 0.7), shape("ellipsoid", (0.7, 0.7, 0.7))
    power = shape("superellipsoid", (0.3, 0.5, 0.7), (1.0, 1.0))
    same = shape("ellipsoid", (0.3, 0.5, 0.7))
    wheel = shape("wheel", 0.7, 0.7 * (1.0 - 1e-12))
    barrel, straight = shape("barrel", 0.7, 0.7, 0.7 * (1.0 - 1e-10)), shape("barrel", 0.2, 1e9, 0.3)
    cylinder = shape("cylinder", 0.2, 0.3)
    for a, b in ((ball, ellipsoid), (power, same), (wheel, ball), (barrel, ball), (straight, cylinder)):
        for what in ("volume", "inertia", "radius"):
            left, right = (getattr(shape_type(s.kind), what)(s.params) for s in (a, b))
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)
    assert shape_type("superellipsoid").volume(shape("superellipsoid", (1, 1, 1), (0.1, 0.1)).params) < 8.0
    assert shape_type("wheel").volume(shape("wheel", 0.5).params) == 0.0


@pytest.mark.parametrize("sizes", [(0.02, 0.1, 0.03), (0.02, 0.1, 0.0599), (0.3, 0.3, 0.1), (0.01, 100.0, 0.4)])
def test_a_barrels_mass_properties_against_integration(sizes: tuple[float, float, float]) -> None:
    r, bow, half = sizes

    def total(of: Callable[[float, float], float]) -> float:
        whole = quad(lambda z: of(math.sqrt(bow**2 - z**2) - (bow - r), z), -half, half, epsabs=0.0, epsrel=1e-11)
        return math.pi * float(whole[0])

    spec, across = shape("barrel", *sizes), total(lambda rho, z: rho**4 / 4 + rho**2 * z**2)
    t = shape_type("barrel")
    assert t.volume(spec.params) == pytest.approx(total(lambda rho, z: rho**2), rel=1e-10)
    inertia = np.diag([across, across, total(lambda rho, z: rho**4 / 2)])
    np.testing.assert_allclose(t.inertia(spec.params), inertia, rtol=1e-10, atol=0)
    assert t.curvature(spec.params) == pytest.approx((r * bow) ** -0.5)


def ground() -> gpusim.ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(label="plane")
    b.add_shape_height_field(-1, [[0, 1, 2], [3, 4, 5.5]], spacing=(0.5, 2.0), base=-1.0)
    return b


def test_plane_and_height_field() -> None:
    plane, field = ground().shapes
    t = shape_type("height_field")
    assert math.isinf(shape_type("plane").radius(plane.params))
    assert t.sizes(field.params)[:5].tolist() == [3, 2, 0.5, 2.0, -1.0]
    assert t.points(field.params).tolist() == [0, 1, 2, 3, 4, 5.5]
    assert t.radius(field.params) == pytest.approx(math.sqrt(0.5**2 + 1.0**2 + 5.5**2))
    vertices, triangles = t.mesh(field.params)
    assert vertices[5].tolist() == [0.5, 1.0, 5.5] and len(triangles) == 4
    assert {tuple(sorted(x)) for x in triangles.tolist()} == {(0, 1, 4), (0, 3, 4), (1, 2, 5), (1, 4, 5)}
    up = np.cross(*(vertices[triangles[:, k]] - vertices[triangles[:, 0]] for k in (1, 2)))[:, 2]
    assert (up > 0.0).all()


def test_height_field_default_base_lies_below() -> None:
    b = ModelBuilder()
    b.add_shape_height_field(-1, np.full((3, 5), 2.0), spacing=(1.0, 1.0))
    assert b.shapes[0].params["base"] == -2.0


def planes_of(faces: Faces, vertices: np.ndarray) -> None:
    for f, normal in enumerate(faces.normal):
        polygon = vertices[faces.polygon(f)]
        height = (vertices - polygon[0]) @ normal
        scale = float(np.ptp(vertices))
        assert height.max() < 2e-6 * scale
        edges = np.roll(polygon, -1, axis=0) - polygon
        turns = np.cross(edges, np.roll(edges, -1, axis=0)) @ normal
        assert turns.min() > 0.0


def cube_points(extra: int = 0) -> np.ndarray:
    corners = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 2.0) for z in (0.0, 3.0)])
    rng = np.random.default_rng(3)
    inside = rng.uniform(size=(extra, 3)) * (1.0, 2.0, 3.0)
    side = inside.copy()
    side[:, 0] = 0.0
    edge = side.copy()
    edge[:, 2] = 3.0
    return np.concatenate([inside, corners, side, edge])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_hull_of_a_cube_has_six_faces(turned: bool, single: bool) -> None:
    points = cube_points(20)
    if turned:
        points = gpusim.Transform.from_rpy((0.3, 0.1, -0.4), (0.3, 1.1, -0.6)).apply(points)
    if single:
        points = points.astype(np.float32)
    spec = shape("hull", points)
    faces = spec.params["faces"]
    assert len(spec.params["vertices"]) == 8
    assert sorted(np.diff(faces.first)) == [4] * 6
    planes_of(faces, spec.params["vertices"])
    assert shape_type("hull").volume(spec.params) == pytest.approx(6.0, rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_hull_of_random_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spec = shape("hull", rng.normal(size=(40, 3)) * (1.0, 0.3, 1e-3 if seed == 7 else 2.0))
    vertices, faces = spec.params["vertices"], spec.params["faces"]
    planes_of(faces, vertices)
    assert len(vertices) - len(faces.vertex) // 2 + len(faces) == 2  # Euler


def test_hull_of_a_prism_keeps_polygons() -> None:
    angle = 2.0 * np.pi * np.arange(12) / 12
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(12)], axis=1)
    faces = shape("hull", np.concatenate([ring, ring + (0, 0, 0.5)])).params["faces"]
    assert sorted(np.diff(faces.first)) == [4] * 12 + [12] * 2


def test_hull_of_too_many_points_is_thinned() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(1000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    with pytest.warns(UserWarning, match=naming("1000")) as record:
        spec = shape("hull", points, label="ball")
    assert "shape 'ball'" in str(record[0].message) and len(record) == 1
    assert len(spec.params["vertices"]) == 256
    assert shape_type("hull").volume(spec.params) == pytest.approx(4 / 3 * math.pi, rel=0.04)
    planes_of(spec.params["faces"], spec.params["vertices"])
    with pytest.warns(UserWarning, match=naming("20")):
        assert len(shape("hull", points, max_vertices=20).params["vertices"]) == 20


def test_mesh_is_its_hull(tmp_path: Any) -> None:
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.creation.box((1.0, 2.0, 3.0))
    path = tmp_path / "part.stl"
    mesh.export(path)
    for given in (path, str(path), mesh, (mesh.vertices, mesh.faces), np.asarray(mesh.vertices)):
        spec = shape("mesh", given, scale=(1.0, 1.0, -0.001))
        assert spec.kind == "hull" and len(spec.params["faces"]) == 6
        assert shape_type("hull").volume(spec.params) == pytest.approx(0.006)


def test_mesh_type_is_what_viewers_expect() -> None:
    mesh: Mesh = shape_type("plane").mesh({})
    assert mesh[0].shape == (4, 3) and mesh[1].shape == (2, 3)
