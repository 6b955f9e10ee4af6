from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.meshes.pieces import mesh_pieces
from tests.message_snapshot import naming

CORNER = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
SIDES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
"""A tetrahedron, counterclockwise seen from outside."""
SHIFTED = Transform((1.0, 2.0, 3.0))


def tumbling(visuals: bool) -> Model:
    """Two bodies on a ball joint that fall by 1 mm onto a plane."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    first = b.add_body(xform=Transform((0.0, 0.0, 0.101)))
    second = b.add_body(mass=1.0, inertia=(0.01, 0.02, 0.025), xform=Transform((0.4, 0.0, 0.201)))
    b.add_shape_box(first, (0.1, 0.1, 0.1))
    b.add_joint_ball(first, second, Transform((0.2, 0.0, 0.1)), Transform((-0.2, 0.0, 0.0)))
    if visuals:
        b.add_visual(first, "sphere", 5.0)
        b.add_visual(second, "mesh", (CORNER, SIDES), color="#ff8000")
        b.add_visual(-1, "box", (1.0, 1.0, 1.0))
    return b.finalize()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "__dict__"):
        return same(vars(a), vars(b))
    return bool(a == b)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_simulations_with_and_without_visuals_have_the_same_bits(backend: str) -> None:
    states, arrays = [], []
    for visuals in (False, True):
        model = tumbling(visuals)
        sim = Simulation(model, backend=backend, config=SolverConfig(dt=2e-3))
        sim.step(20)
        assert np.any(sim.read("sim.contacts"))
        states.append(sim.read_state())
        arrays.append((model.topology, model.contact, model.parameters))
    assert states[0].keys() == states[1].keys()
    for name, values in states[0].items():
        assert np.asarray(values).tobytes() == np.asarray(states[1][name]).tobytes(), name
    assert all(same(a, b) for a, b in zip(*arrays, strict=True))


def test_visuals_weigh_nothing() -> None:
    b = ModelBuilder()
    b.add_visual(b.add_body(label="ghost"), "box", (1.0, 1.0, 1.0))
    with pytest.raises(ModelError, match=naming("ghost")):
        b.finalize()


def test_the_model_keeps_visuals_with_labels() -> None:
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    assert b.add_visual(body, "cylinder", 0.1, half_length=0.2, xform=SHIFTED, color=(0.1, 0.2, 0.3), label="can") == 0
    assert b.add_visual(body, "capsule", radius=0.1, half_length=0.2) == 1
    model = b.finalize()
    assert model.labels("visual") == ["can", "visual1"] and model.index("visual", "can") == 0
    can, capsule = model.visuals
    assert (can.kind, can.body, can.color, can.xform) == ("cylinder", body, (0.1, 0.2, 0.3), SHIFTED)
    assert can.params == {"radius": 0.1, "half_length": 0.2}
    assert capsule.color is None
    b.add_visual(body, "sphere", 0.1)
    assert len(model.visuals) == 2


def test_builders_that_are_added_bring_their_visuals() -> None:
    arm = ModelBuilder()
    arm.add_visual(arm.add_body(1.0, (1, 1, 1)), "sphere", 0.1, xform=SHIFTED, label="tip")
    arm.add_visual(-1, "mesh", (CORNER, SIDES), label="base")
    b = ModelBuilder()
    for k in range(2):
        b.add_builder(arm, Transform((0.0, 5.0 * k, 0.0)), label_prefix=f"r{k}_")
    tip, base = b.visuals[2:]
    assert (tip.label, tip.body, base.label, base.body) == ("r1_tip", 1, "r1_base", -1)
    assert tip.xform.position == pytest.approx(SHIFTED.position)
    assert base.xform.position == pytest.approx([0.0, 5.0, 0.0])
    worlds = ModelBuilder()
    worlds.replicate(arm, 3)
    assert len(worlds.finalize().visuals) == 2
    painted = ModelBuilder()
    painted.add_visual(-1, "sphere", 0.1)
    with pytest.raises(ModelError, match=naming("ModelBuilder.replicate")):
        painted.replicate(arm, 2)


@pytest.mark.parametrize(
    ("kind", "sizes", "more", "words"),
    [
        ("box", ((0.1, 0.2),), {}, "half_extents"),
        ("sphere", (-0.1,), {}, "radius -0.1"),
        ("sphere", (), {}, "visual 'paint' 'radius'"),
        ("sphere", (0.1, Transform()), {}, "visual 'paint'"),
        ("sphere", (0.1,), {"material": None}, "visual 'paint' 'material'"),
        ("teapot", (), {}, "kind 'teapot'"),
        ("box", ((1, 1, 1),), {"color": "red"}, "color 'red'"),
        ("box", ((1, 1, 1),), {"color": (0, 0, 255)}, "0 1"),
        ("box", ((1, 1, 1),), {"xform": (0, 0, 1)}, "visual 'paint' xform 0 1"),
        ("mesh", (3,), {}, "visual 'paint'"),
        ("mesh", ("nowhere.stl",), {}, "nowhere.stl"),
        ("mesh", ((CORNER, SIDES), 0.0), {}, "scale"),
        ("mesh", ((CORNER, SIDES + 1),), {}, "triangles 4"),
        ("mesh", ((CORNER * np.nan, SIDES),), {}, "0"),
        ("mesh", ((CORNER, SIDES[:, :2]),), {}, "triangles 4 2"),
        ("mesh", ((CORNER, [[0, 0, 1]]),), {}, "visual 'paint'"),
    ],
)
def test_what_cannot_be_drawn_is_an_error_that_names_it(kind: str, sizes: tuple, more: dict, words: str) -> None:
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    with pytest.raises(ModelError, match=naming(f"visual 'paint' {words}")):
        b.add_visual(body, kind, *sizes, label="paint", **more)
    assert not b.visuals and not b.shapes
    assert b.add_visual(body, "sphere", 0.1, label="paint") == 0


def volume(vertices: np.ndarray, triangles: np.ndarray) -> float:
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


@pytest.mark.parametrize("scale", [1.0, (-2.0, 3.0, 4.0), (-1.0, -1.0, -1.0)])
@pytest.mark.parametrize("inside_out", [False, True])
def test_closed_meshes_are_right_side_out(scale: Any, inside_out: bool) -> None:
    (piece,) = mesh_pieces("m", (CORNER, SIDES[:, ::-1] if inside_out else SIDES), scale)
    assert piece.closed
    assert volume(piece.vertices, piece.triangles) == pytest.approx(abs(np.prod(np.broadcast_to(scale, 3))) / 6.0)


def test_seams_are_closed_and_open_meshes_stay_open() -> None:
    torn = CORNER[SIDES].reshape(-1, 3)
    (piece,) = mesh_pieces("m", (torn, np.arange(12).reshape(4, 3)))
    assert piece.closed and len(piece.vertices) == 4
    (sheet,) = mesh_pieces("m", (CORNER, SIDES[:3]))
    assert not sheet.closed and len(sheet.triangles) == 3


def test_colors_of_a_file_make_pieces(tmp_path) -> None:
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("collada")
    boxes = []
    for place, color in ((0.0, (255, 0, 0)), (2.0, (0, 0, 255)), (4.0, (255, 0, 0))):
        box = trimesh.creation.box((1.0, 1.0, 1.0))
        box.apply_translation((place, 0.0, 0.0))
        material = trimesh.visual.material.PBRMaterial(baseColorFactor=[*color, 255])
        box.visual = trimesh.visual.TextureVisuals(material=material)
        boxes.append(box)
    path = tmp_path / "boxes.dae"
    path.write_bytes(trimesh.exchange.dae.export_collada(boxes))
    red, blue = mesh_pieces("m", path, 0.5)
    assert red.color == pytest.approx((1.0, 0.0, 0.0)) and blue.color == pytest.approx((0.0, 0.0, 1.0))
    assert len(red.triangles) == 24 and red.closed
    assert [blue.vertices[:, 0].min(), blue.vertices[:, 0].max()] == pytest.approx([0.75, 1.25])
    trimesh.creation.box((1.0, 1.0, 1.0)).export(tmp_path / "plain.stl")
    (plain,) = mesh_pieces("m", tmp_path / "plain.stl")
    assert plain.color is None


def test_a_texture_gives_its_mean_color(tmp_path) -> None:
    pytest.importorskip("trimesh")
    image = pytest.importorskip("PIL.Image")
    checks = np.zeros((4, 4, 3), dtype=np.uint8)
    checks[::2] = (255, 0, 102)
    image.fromarray(checks).save(tmp_path / "checks.png")
    (tmp_path / "paint.mtl").write_text("newmtl paint\nKd 1 1 1\nmap_Kd checks.png\n")
    corners = "".join(f"v {x} {y} {z}\nvt {x} {y}\n" for x, y, z in CORNER)
    faces = "".join(f"f {a}/{a} {b}/{b} {c}/{c}\n" for a, b, c in SIDES + 1)
    (tmp_path / "thing.obj").write_text(f"mtllib paint.mtl\n{corners}usemtl paint\n{faces}")
    (piece,) = mesh_pieces("m", tmp_path / "thing.obj")
    assert piece.color == pytest.approx((0.5, 0.0, 0.2), abs=1e-3) and piece.closed


def test_a_copy_of_a_builder_has_visuals_of_its_own() -> None:
    b = ModelBuilder()
    b.add_visual(-1, "sphere", 0.1)
    other = copy.deepcopy(b)
    other.add_visual(-1, "sphere", 0.2)
    assert len(b.visuals) == 1
