"""Terrain from files and arrays, with holes and several materials; convex parts of concave meshes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.compile_cache import cache_folder
from gpusim.meshes.decomposition import FOLDER, decompose_mesh
from gpusim.meshes.polytope import convex_hull, solid
from gpusim.meshes.terrain_files import read_terrain
from tests.message_snapshot import naming

HEIGHTS = np.add.outer(np.linspace(0.0, 0.5, 5), np.linspace(0.0, 0.25, 7))
"""Rise along y (rows) and x; the lowest is in the south-west."""


def write(file: Path, holes: bool = False) -> Path:
    north = HEIGHTS[::-1]
    if file.suffix == ".npy":
        np.save(file, HEIGHTS)
    elif file.suffix == ".png":
        image = pytest.importorskip("PIL.Image")
        bits = 8 if "8" in file.stem else 16
        kind = np.uint8 if bits == 8 else np.uint16
        image.fromarray(np.round(north * (2**bits - 1)).astype(kind)).save(file)
    else:
        tifffile = pytest.importorskip("tifffile")
        values = (100.0 * north).astype(np.float32)
        values[1:3, 2] = -9999.0 if holes else values[1:3, 2]
        tags = [(33550, "d", 3, (2.0, 3.0, 0.0), True), (42113, "s", 0, "-9999", True)]
        tifffile.imwrite(file, values, extratags=tags)
    return file


SOIL = Material(friction=0.8)


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("a.npy", {"cell": (2.0, 3.0), "height": 100.0}, 1e-12),
        ("a16.png", {"size": (12.0, 12.0), "height": 100.0}, 1e-3),
        ("a8.png", {"size": 12.0, "height": 100.0}, 0.2),
        ("a.tif", {}, 1e-5),
    ],
)
def test_every_format_gives_the_same_field(name: str, given: dict[str, Any], error: float, tmp_path: Path) -> None:
    b = ModelBuilder()
    spec = b.shapes[b.add_terrain(write(tmp_path / name), **given)]
    assert spec.kind == "height_field"
    np.testing.assert_allclose(spec.params["spacing"], (2.0, 3.0))
    np.testing.assert_allclose(spec.params["heights"], 100.0 * HEIGHTS, atol=error)


def test_holes_stay_open_or_are_filled(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tif", holes=True)
    b = ModelBuilder()
    tree = b.shapes[b.add_terrain(file)].params["tree"]
    assert len(tree.triangles) == 2 * (24 - 6)
    middle = tree.vertices[tree.triangles].mean(axis=1)
    assert not np.any((np.abs(middle[:, 0] + 2.0) < 2.0) & (np.abs(middle[:, 1] - 1.5) < 4.5))
    heights = b.shapes[b.add_terrain(file, hole=7.0)].params["heights"]
    assert np.count_nonzero(heights == 7.0) == 2


@pytest.mark.parametrize("mark", ["-3.4028235e+38", "-3.4028234663852886e+38", "-1.7976931348623157e+308"])
def test_marks_of_holes_are_in_single_precision(mark: str, tmp_path: Path) -> None:
    values = HEIGHTS.astype(np.float32)
    with np.errstate(over="ignore"):
        values[0, 0] = np.float32(mark)
    pytest.importorskip("tifffile").imwrite(tmp_path / "a.tif", values, extratags=[(42113, "s", 0, mark, True)])
    heights, _ = read_terrain("shape 'a'", tmp_path / "a.tif")
    assert np.argwhere(np.isnan(heights)).tolist() == [[len(HEIGHTS) - 1, 0]]


def test_a_map_in_degrees_needs_a_cell_size(tmp_path: Path) -> None:
    scale = (33550, "d", 3, (2e-4, 2e-4, 0.0), True)
    for kind, stated in ((1, (2e-4, 2e-4)), (2, None)):  # projected, geographic
        keys = (34735, "H", 8, (1, 1, 0, 1, 1024, 0, 1, kind), True)
        pytest.importorskip("tifffile").imwrite(tmp_path / "a.tif", HEIGHTS.astype(np.float32), extratags=[scale, keys])
        assert read_terrain("shape 'a'", tmp_path / "a.tif")[1] == stated


@pytest.mark.native
def test_materials_of_cells_have_their_own_friction_and_no_seams() -> None:
    smooth, rough = Material(friction=0.0), Material(friction=0.5)
    index = np.add.outer(np.arange(20), np.arange(60)) % 2
    index[:, 40:] = 2
    b = ModelBuilder()
    first = b.add_terrain(
        np.zeros((21, 61)), cell=0.2, material=[smooth, smooth, rough], material_index=index, label="t"
    )
    assert first == 0 and [s.label for s in b.shapes] == ["t", "t_1", "t_2"]
    box = b.add_body(xform=Transform((-4.0, 0.03, 0.1)), linear_velocity=(2.0, 0.0, 0.0), label="box")
    b.add_shape_box(box, (0.3, 0.2, 0.1), material=rough)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=2e-3))
    heights = []
    for _ in range(1350):
        sim.step()
        heights.append(sim.read("body.box.position")[0, 2])
    x = sim.read("body.box.position")[0, 0]
    assert x == pytest.approx(-4.0 + 2.0 * 2.7, abs=2e-3) and np.ptp(heights) < 1e-4
    assert sim.read("body.box.linear_velocity")[0] == pytest.approx([2.0, 0.0, 0.0], abs=1e-3)
    sim.step(1000)
    assert sim.read("body.box.linear_velocity")[0] == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)
    # From where half of the box has passed x = 2, it takes v2 / (2 mu g) with mu = 0.5.
    assert 2.0 < sim.read("body.box.position")[0, 0] < 2.0 + 4.0 / (2 * 0.5 * 9.81) + 0.3


CASES: dict[str, tuple[Any, str]] = {
    "missing": (lambda b: b.add_terrain("nowhere.png", cell=1), "nowhere.png"),
    "kind": (lambda b: b.add_terrain(__file__, cell=1), ".png"),
    "no size": (lambda b: b.add_terrain(HEIGHTS), "cell size"),
    "both": (lambda b: b.add_terrain(HEIGHTS, cell=1, size=3), "cell size"),
    "negative": (lambda b: b.add_terrain(HEIGHTS, cell=(1, -1)), "y -1"),
    "shape": (lambda b: b.add_terrain([1, 2, 3], cell=1), "(3,)"),
    "infinite": (lambda b: b.add_terrain(np.where(HEIGHTS > 0.7, np.inf, 0.0), cell=1), "row 4"),
    "all holes": (lambda b: b.add_terrain(np.full((3, 3), np.nan), cell=1), "hole="),
    "index": (lambda b: b.add_terrain(HEIGHTS, 1, material=[SOIL], material_index=np.zeros((5, 7), int)), "(5, 7)"),
    "materials": (lambda b: b.add_terrain(HEIGHTS, 1, material=[SOIL], material_index=np.ones((4, 6), int)), "1 1"),
    "no index": (lambda b: b.add_terrain(HEIGHTS, 1, material=[SOIL]), "48"),
    "no list": (
        lambda b: b.add_shape_triangle_mesh(-1, (np.eye(3), [(0, 1, 2)]), material_index=[0]), "material_index",
    ),
    "convex": (lambda b: b.add_shape_mesh(-1, np.eye(4), convex="concave"), "'concave'"),
    "parts": (lambda b: b.add_shape_mesh(-1, (np.eye(3), [(0, 1, 2)]), convex="decompose", max_parts=0), "max_parts 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_errors(case: str) -> None:
    call, words = CASES[case]
    with pytest.raises(ModelError, match=naming(words)):
        call(ModelBuilder())


U_SHAPE = [(-0.3, 0), (0.3, 0), (0.3, 0.4), (0.2, 0.4), (0.2, 0.1), (-0.2, 0.1), (-0.2, 0.4), (-0.3, 0.4)]


def u_mesh() -> tuple[np.ndarray, np.ndarray]:
    """A closed U, 0.2 m wide, with a wall of 0.1 m."""
    n = len(U_SHAPE)
    vertices = [(x, y, z) for y in (-0.1, 0.1) for x, z in U_SHAPE]
    front = [(0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4), (0, 5, 6), (0, 6, 7)]
    sides = [t for i in range(n) for j in [(i + 1) % n] for t in ((i, i + n, j + n), (i, j + n, j))]
    return np.array(vertices), np.array([*front, *((c + n, b + n, a + n) for a, b, c in front), *sides])


def test_a_concave_mesh_is_decomposed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coacd = pytest.importorskip("coacd")
    monkeypatch.setenv("GPUSIM_CACHE", str(tmp_path))
    parts = decompose_mesh("u", u_mesh(), scale=2.0)
    volumes = [solid(v, f.triangles())[0] for v, f in map(convex_hull, parts)]
    assert len(parts) >= 3 and sum(volumes) == pytest.approx(8 * 0.024, rel=0.05)
    assert len(list((cache_folder() / FOLDER).glob("*.npz"))) == 1
    monkeypatch.setattr(coacd, "run_coacd", None)
    again = decompose_mesh("u", u_mesh(), scale=2.0)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    b = ModelBuilder()
    first = b.add_shape_mesh(b.add_body(), u_mesh(), scale=2.0, label="u", convex="decompose")
    assert first == 0 and [s.label for s in b.shapes] == ["u", *(f"u_{k}" for k in range(1, len(parts)))]
