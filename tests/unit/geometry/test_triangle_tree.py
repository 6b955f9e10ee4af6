from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Transform
from gpusim.description.shape_kinds import MANIFOLDS, shape_type
from gpusim.meshes.triangle_tree import LEAF, build_tree, grid_of, tree_of
from gpusim.meshes.welding import welded_mesh
from gpusim.shapes.mesh_casting import cast_mesh
from tests.message_snapshot import naming
from tests.parity.contact_models import rock_mesh

SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=float)
PAIR = [(0, 1, 2), (0, 2, 3)]


def test_the_tree_finds_what_a_search_of_all_finds() -> None:
    tree = build_tree(*rock_mesh(3, 40))
    corner = tree.vertices[tree.triangles]
    low, high = corner.min(axis=1), corner.max(axis=1)
    rng = np.random.default_rng(0)
    for _ in range(100):
        start = rng.uniform(-1.7, 1.7, 3) * (1, 1, 0.2)
        end = start + rng.uniform(0, 0.5, 3)
        wanted = np.flatnonzero(np.all((low <= end) & (high >= start), axis=1))
        found = tree.near(start, end)
        assert set(wanted) <= set(found) and len(found) <= 3 * len(wanted) + 20 * LEAF
        assert np.all(np.diff(found) > 0)


def test_boxes_hold_their_triangles_and_links_skip_subtrees() -> None:
    tree = build_tree(*rock_mesh(4, 30))
    lower, step = grid_of(tree.vertices)
    link, leaves = tree.nodes[:, 3], -(-len(tree.triangles) // LEAF)
    assert np.array_equal(-1 - link[link < 0], np.arange(leaves))
    for i in range(len(tree.nodes)):
        last = link[i] if link[i] >= 0 else i + 1
        inside = -1 - link[i:last][link[i:last] < 0]
        triangles = tree.triangles[LEAF * inside[0] : LEAF * (inside[-1] + 1)]
        corners = tree.vertices[triangles].reshape(-1, 3)
        assert np.all(lower + tree.sides[i, 0] * step <= corners.min(axis=0) + 1e-12)
        assert np.all(lower + tree.sides[i, 1] * step >= corners.max(axis=0) - 1e-12)


def test_neighbors_are_those_that_share_an_edge_or_a_corner() -> None:
    tree = build_tree(*rock_mesh(5, 12))
    sets = [set(t) for t in tree.triangles.tolist()]
    for i, triangle in enumerate(tree.triangles.tolist()):
        for k in range(3):
            a, b = triangle[k], triangle[(k + 1) % 3]
            others = [s for j, s in enumerate(sets) if j != i and {a, b} <= s]
            expected = (others[0] - {a, b}).pop() if others else -1
            assert tree.beyond[i, k] == expected
    for v in range(len(tree.vertices)):
        fan = tree.fan[tree.fan_start[v] : tree.fan_start[v + 1]]
        assert set(fan) == {i for i, s in enumerate(sets) if v in s}


def test_a_wall_on_a_floor_continues_neither() -> None:
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0.5, 1, 0], [0.5, -1, 0], [0.5, 0, 1]])
    for order in ([(0, 1, 2), (1, 0, 3), (0, 1, 4)], [(4, 1, 0), (3, 0, 1), (1, 0, 2)]):
        tree = build_tree(vertices, np.array(order))
        tips = {frozenset(t): b for t, b in zip(tree.triangles.tolist(), tree.beyond.max(axis=1).tolist(), strict=True)}
        assert tips[frozenset((0, 1, 2))] == 3 and tips[frozenset((0, 1, 3))] == 2


def test_tables_survive_the_round_trip() -> None:
    tree = build_tree(*rock_mesh(6, 9))
    again = tree_of(tree.vertices, tree.numbers(), len(tree.triangles))
    for name in ("triangles", "beyond", "fan_start", "fan", "nodes"):
        np.testing.assert_array_equal(getattr(again, name), getattr(tree, name))


def test_vertices_are_welded_and_bad_triangles_dropped() -> None:
    soup = SQUARE[[0, 1, 2, 0, 2, 3, 0, 1, 2, 1, 1, 2, 2, 1, 0]] + 1e-9
    soup[3] += 1e-9
    with pytest.warns(UserWarning, match="3 of 5 triangles"):
        b = ModelBuilder()
        b.add_shape_triangle_mesh(-1, (soup, np.arange(15).reshape(5, 3)))
    tree = b.shapes[0].params["tree"]
    assert len(tree.vertices) == 4 and len(tree.triangles) == 2
    assert sorted(tree.beyond.ravel().tolist()).count(-1) == 4
    vertices, triangles, whole = welded_mesh("x", (SQUARE, PAIR), scale=(2.0, 1.0, -1.0))
    assert whole.all() and vertices.max(axis=0).tolist() == [2.0, 1.0, 0.0]
    assert triangles.tolist() == [[2, 1, 0], [3, 2, 0]], "mirrored"


def test_vertices_at_distinct_places_stay_apart() -> None:
    vertices = np.random.default_rng(1).normal(size=(300, 3))
    triangles = np.arange(300).reshape(100, 3)
    kept, again, whole = welded_mesh("x", (vertices, triangles))
    assert whole.all()
    np.testing.assert_array_equal(kept[again], vertices[triangles])


CASES: dict[str, tuple[Any, str]] = {
    "NaN": (lambda b: b.add_shape_triangle_mesh(-1, (SQUARE * np.nan, PAIR)), "vertex 0"),
    "index": (lambda b: b.add_shape_triangle_mesh(-1, (SQUARE, [(0, 1, 4)])), "4 vertices"),
    "negative": (lambda b: b.add_shape_triangle_mesh(-1, (SQUARE, [(0, 1, -1)])), "4 vertices"),
    "no area": (lambda b: b.add_shape_triangle_mesh(-1, (SQUARE, [(0, 0, 1)])), "triangle area"),
    "empty": (lambda b: b.add_shape_triangle_mesh(-1, (SQUARE, np.zeros((0, 3), int))), "triangle area"),
    "shape": (lambda b: b.add_shape_triangle_mesh(-1, (SQUARE[:, :2], PAIR)), "(4, 2)"),
    "no mesh": (lambda b: b.add_shape_triangle_mesh(-1, 5), "int mesh"),
    "file": (lambda b: b.add_shape_triangle_mesh(-1, "nowhere.stl"), "nowhere.stl"),
    "scale": (lambda b: b.add_shape_triangle_mesh(-1, (SQUARE, PAIR), scale=0), "scale"),
    "moves": (lambda b: b.add_shape_triangle_mesh(0, (SQUARE, PAIR)), "'a' kinematic"),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_name_the_shape_and_the_value(case: str) -> None:
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), label="a")
    call, words = CASES[case]
    with pytest.raises(ModelError, match=naming(words)):
        call(b)


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tile.obj"
    file.write_text("v 0 0 0\nv 1000 0 0\nv 1000 1000 0\nv 0 1000 0\nf 1 2 3\nf 1 3 4\n")
    b = ModelBuilder()
    b.add_shape_triangle_mesh(-1, file, scale=0.001, xform=Transform((0, 0, 1)))
    kind, params = shape_type(b.shapes[0].kind), b.shapes[0].params
    assert kind.sizes(params).tolist() == [0, 0, 0, 1, 1, 0, 2, 4]
    assert kind.manifolds(params) == 1 and kind.radius(params) == pytest.approx(2**0.5)
    bent = {"tree": build_tree(SQUARE + np.diag([0, 0, 0.3, 0])[:, :3], np.array(PAIR))}
    assert kind.manifolds(bent) == MANIFOLDS


def test_no_ray_slips_through_an_edge_or_a_corner() -> None:
    tree = build_tree(*rock_mesh(7, 15))
    inner = tree.vertices[np.abs(tree.vertices[:, :2]).max(axis=1) < 1.2]
    middles = tree.vertices[tree.triangles[:, :2]].mean(axis=1)
    points = np.concatenate([inner, middles[np.abs(middles[:, :2]).max(axis=1) < 1.2]])
    down = np.tile([0.0, 0.0, -1.0], (len(points), 1))
    line = type("Rays", (), {"origin": points + (0, 0, 1), "direction": down, "start": np.zeros(len(points))})
    np.testing.assert_allclose(cast_mesh(tree, line)[0], 1.0, atol=1e-12)  # type: ignore[arg-type]
