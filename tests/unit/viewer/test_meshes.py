from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder
from gpusim.description.shape_kinds import shape_type
from gpusim.meshes.polytope import solid
from gpusim.stage.meshes import BALL, BOX, CYLINDER, MeshSource, coil, shape_mesh, smooth_mesh
from tests.unit.viewer.models import SHAPES, shape_model

ROUND = ("sphere", "ellipsoid", "superellipsoid", "capsule", "wheel")


def mesh_of(name: str, segments: int = 96):
    b = ModelBuilder()
    SHAPES[name](b, b.add_body(mass=1.0, inertia=(1, 1, 1)))
    source, stretch = shape_mesh(b.shapes[0])
    return b.shapes[0], source.make(segments), stretch


def edges(triangles: np.ndarray, positions: np.ndarray) -> dict[tuple[int, int], int]:
    _, welded = np.unique(np.round(positions, 9), axis=0, return_inverse=True)
    count: dict[tuple[int, int], int] = {}
    for triangle in welded.reshape(-1)[triangles]:
        for k in range(3):
            edge = (int(triangle[k]), int(triangle[(k + 1) % 3]))
            count[edge] = count.get(edge, 0) + 1
    return count


@pytest.mark.parametrize("name", SHAPES)
def test_meshes_are_closed_outward_and_as_large_as_the_shape(name: str) -> None:
    shape, mesh, stretch = mesh_of(name)
    count = edges(mesh.triangles, mesh.positions)
    assert all(n == 1 and count.get((b, a)) == 1 for (a, b), n in count.items())
    volume = solid(mesh.positions * stretch, mesh.triangles)[0]
    expected = shape_type(shape.kind).volume(shape.params)
    if name == "sharp_wheel":
        assert 0.0 < volume < 3e-3 * shape.params["radius"] ** 3
    else:
        # round shapes are cut into 96 segments, which takes up to half a percent
        assert volume == pytest.approx(expected, rel=1e-9 if name in ("box", "hull") else 6e-3)


@pytest.mark.parametrize("name", SHAPES)
def test_normals_are_unit_vectors_that_point_outward(name: str) -> None:
    _, mesh, _ = mesh_of(name)
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1.0)
    corners = mesh.positions[mesh.triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.all(np.einsum("ij,ikj->ik", faces, mesh.normals[mesh.triangles]) > 0.0)


def test_normals_of_a_ball_are_its_radii() -> None:
    mesh = BALL.make(32)
    assert np.abs(mesh.normals - mesh.positions).max() < 0.02


def test_flat_faces_stay_flat_and_edges_sharp() -> None:
    assert len(BOX.make(8).positions) == 24
    cylinder = CYLINDER.make(48)
    flat = np.abs(cylinder.normals[:, 2]) > 0.5
    assert np.abs(cylinder.normals[flat, 2]) == pytest.approx(1.0)
    assert cylinder.normals[~flat, 2] == pytest.approx(0.0, abs=1e-12)


def test_a_normal_does_not_depend_on_how_a_face_is_cut() -> None:
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0, -0.3]])
    one = smooth_mesh(vertices, np.array([[0, 1, 2], [0, 2, 3], [0, 4, 1]]), crease=120.0)
    two = smooth_mesh(vertices, np.array([[0, 1, 3], [1, 2, 3], [0, 4, 1]]), crease=120.0)
    for corner in vertices[:2]:
        normals = [m.normals[np.flatnonzero(np.all(m.positions == corner, axis=1))[0]] for m in (one, two)]
        assert normals[0] == pytest.approx(normals[1])


def test_height_field_looks_up_and_has_walls() -> None:
    shape = shape_model("height_field").shapes[1]
    mesh = shape_mesh(shape)[0].make(8)
    low, high = mesh.bounds()
    assert high[2] == pytest.approx(shape.params["heights"].max())
    assert low[2] == pytest.approx(shape.params["base"])
    side = np.abs(mesh.normals[:, 2]) < 1e-9
    assert np.all(mesh.normals[~side, 2] > 0.2)
    assert np.all(np.einsum("ij,ij->i", mesh.normals[side, :2], mesh.positions[side, :2]) > 0.0)


def test_coil_is_closed_and_reaches_from_0_to_1() -> None:
    mesh = coil(6.0, 7).make(24)
    count = edges(mesh.triangles, mesh.positions)
    assert all(count.get((b, a)) == n for (a, b), n in count.items())
    low, high = mesh.bounds()
    assert low[2] == pytest.approx(0.0, abs=0.02) and high[2] == pytest.approx(1.0, abs=0.02)
    assert np.hypot(mesh.positions[:, 0], mesh.positions[:, 1]).max() == pytest.approx(1.0, abs=0.01)


def test_shapes_of_one_form_share_a_mesh() -> None:
    b = ModelBuilder()
    for scale in (1.0, 2.0, 0.1):
        body = b.add_body(mass=1.0, inertia=(1, 1, 1))
        b.add_shape_capsule(body, 0.1 * scale, 0.25 * scale)
        b.add_shape_box(body, (scale, 1.0, 2.0))
        b.add_shape_hull(body, [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    sources: set[MeshSource] = {shape_mesh(shape)[0] for shape in b.shapes}
    assert len(sources) == 3
