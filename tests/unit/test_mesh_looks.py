from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Texture
from gpusim.description import looks
from gpusim.description.looks import Look
from gpusim.meshes.pieces import Piece, mesh_pieces
from tests.message_snapshot import naming
from tests.unit.mesh_files import SQUARE, TEXTURED, TRIANGLES, UV, dae_file, glb_file, obj_file, picture

pytest.importorskip("PIL")


def one(path: Path, *more: Any) -> Piece:
    pytest.importorskip("trimesh")
    (piece,) = mesh_pieces("m", path, *more)
    return piece


def uv_at(piece: Piece) -> dict[tuple[float, ...], tuple[float, ...]]:
    places = piece.vertices[piece.triangles].reshape(-1, 3).round(3) + 0.0
    assert piece.uv is not None
    return {tuple(p.tolist()): tuple(t.tolist()) for p, t in zip(places, piece.uv.reshape(-1, 2), strict=True)}


@pytest.mark.parametrize("kind", TEXTURED)
def test_a_file_keeps_its_texture_and_its_normals(kind: str, tmp_path: Path) -> None:
    if kind == "dae":
        pytest.importorskip("collada")
    piece = one(TEXTURED[kind](tmp_path))
    assert uv_at(piece) == {tuple(p): tuple(t) for p, t in zip(SQUARE.tolist(), UV.tolist(), strict=True)}
    texture = piece.look.texture
    assert texture is not None
    middles = (slice(16, 64, 32), slice(16, 64, 32))
    assert np.abs(texture.pixels[middles].astype(int) - picture()[middles]).max() <= (2 if kind == "dae" else 0)  # JPEG
    assert piece.normals == pytest.approx(np.broadcast_to([0.0, -1.0, 0.0], (2, 3, 3)), abs=1e-6)
    assert piece.color == pytest.approx(picture().reshape(-1, 3).mean(axis=0) / 255.0, abs=0.01)
    for array in (piece.vertices, piece.uv, piece.normals, texture.pixels):
        assert not array.flags.writeable


def test_mirrored_meshes_keep_texture_and_turn_normals(tmp_path: Path) -> None:
    piece = one(obj_file(tmp_path), (-1.0, -2.0, 1.0))
    assert uv_at(piece)[(1.0, 0.0, -1.0)] == (0.0, 0.0) and uv_at(piece)[(-1.0, 0.0, 1.0)] == (1.0, 1.0)
    assert piece.normals == pytest.approx(np.broadcast_to([0.0, 1.0, 0.0], (2, 3, 3)))
    corners = piece.vertices[piece.triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.all(faces[:, 1] > 0.0)  # turned by 180 degrees about z, so still counterclockwise


def test_the_unit_of_a_dae_file_applies(tmp_path: Path) -> None:
    pytest.importorskip("collada")
    path = dae_file(tmp_path)
    assert np.ptp(one(path, 0.5).vertices, axis=0) == pytest.approx([1.0, 0.0, 1.0], abs=1e-6)
    text = path.read_text().replace('meter="0.01"', 'meter="1"')
    path.write_text(text)
    assert np.ptp(one(path).vertices, axis=0)[0] == pytest.approx(200.0)


@pytest.mark.parametrize(("lines", "look"), [
    (("d 0.25",), Look(alpha=0.25)),
    (("Tr 0.25",), Look(alpha=0.75)),
    (("d 0",), Look()),
    (("Pr 0.2", "Pm 0.9"), Look(roughness=0.2, metallic=0.9)),
    (("d not_a_number",), Look()),
])  # fmt: skip
def test_numbers_of_an_mtl_file(lines: tuple[str, ...], look: Look, tmp_path: Path) -> None:
    found = one(obj_file(tmp_path, *lines)).look
    assert Look(found.alpha, found.roughness, found.metallic) == look and found.texture is not None


def test_transparency_of_a_dae_file(tmp_path: Path) -> None:
    pytest.importorskip("collada")
    assert one(dae_file(tmp_path, 0.4)).look.alpha == pytest.approx(0.4, abs=0.003)
    assert one(dae_file(tmp_path, 0.0)).look.alpha is None


def test_physical_materials_of_a_glb_file(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    plain = one(glb_file(tmp_path, roughnessFactor=0.3, metallicFactor=0.6, baseColorTexture=None,
                         baseColorFactor=[64, 128, 255, 102], alphaMode="BLEND"))  # fmt: skip
    # glTF stores linear colors
    assert plain.color == pytest.approx([(c / 255.0) ** (1.0 / 2.2) for c in (64, 128, 255)], abs=1e-3)
    assert plain.look == Look(alpha=pytest.approx(0.4), roughness=pytest.approx(0.3), metallic=pytest.approx(0.6))
    usual = one(glb_file(tmp_path, baseColorFactor=[255, 255, 255, 102]))
    assert (usual.look.alpha, usual.look.roughness, usual.look.metallic) == (None, 1.0, 1.0)  # glTF's defaults
    half = one(glb_file(tmp_path, baseColorFactor=[255, 55, 255, 255]))
    assert half.look.texture is not None
    share = (55 / 255) ** (1 / 2.2)
    assert half.look.texture.pixels[0, -1].tolist() == pytest.approx([30, 200 * share, 30], abs=1.0)


def test_colors_of_vertices(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    colors = np.array([[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255, 255, 255, 255]], dtype=np.uint8)
    mesh = trimesh.Trimesh(SQUARE, TRIANGLES, vertex_colors=colors, process=False)
    for name in ("square.ply", "square.glb", "square.obj"):
        mesh.export(tmp_path / name)
        piece = one(tmp_path / name)
        assert piece.colors is not None and piece.look == Look()
        order = {tuple(p.round(6).tolist()): k for k, p in enumerate(SQUARE)}
        expected = [colors[order[tuple(p.tolist())], :3] for p in piece.vertices[piece.triangles].reshape(-1, 3)]
        assert np.array_equal(piece.colors.reshape(-1, 3), expected), name
    colors[:] = (255, 0, 0, 128)
    trimesh.Trimesh(SQUARE, TRIANGLES, vertex_colors=colors, process=False).export(tmp_path / "red.ply")
    red = one(tmp_path / "red.ply")
    assert red.colors is None and red.color == (1.0, 0.0, 0.0) and red.look.alpha == pytest.approx(128 / 255, abs=1e-4)


def test_stl_files_have_no_looks_and_normals_by_angle(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "box.stl")
    piece = one(tmp_path / "box.stl")
    assert piece.closed and piece.look == Look() and piece.color is None
    assert piece.normals is None and piece.uv is None and piece.colors is None


def test_materials_of_one_file_stay_apart_and_share_pictures(tmp_path: Path) -> None:
    obj = obj_file(tmp_path)
    with (tmp_path / "square.mtl").open("a") as mtl:
        mtl.write("newmtl other\nmap_Kd quarters.png\nd 0.5\nnewmtl plain\nKd 1 0 0\n")
    with obj.open("a") as file:
        file.write("usemtl other\nf 1/1/1 2/2/1 3/3/1\nusemtl plain\nf 1/1/1 2/2/1 3/3/1\n")
    pytest.importorskip("trimesh")
    first, second, plain = sorted(mesh_pieces("m", obj), key=lambda p: (p.look.texture is None, p.look.alpha or 0.0))
    assert first.look.texture is not None and second.look.texture is not None
    assert first.look.texture.pixels is second.look.texture.pixels and second.look.alpha == 0.5
    assert plain.color == (1.0, 0.0, 0.0) and plain.uv is None
    again = one(glb_file(tmp_path)).look.texture
    assert again is not None and again.pixels is first.look.texture.pixels


def test_arrays_with_texture_coordinates_and_normals() -> None:
    slanted = np.broadcast_to([0.0, -2.0, 2.0], (4, 3))
    (piece,) = mesh_pieces("m", (SQUARE, TRIANGLES), (1.0, 1.0, 2.0), uv=UV, normals=slanted)
    assert uv_at(piece)[(1.0, 0.0, 2.0)] == (1.0, 1.0)
    assert piece.normals is not None
    assert piece.normals[0, 0] == pytest.approx(np.array([0.0, -2.0, 1.0]) / math.sqrt(5.0))
    (same,) = mesh_pieces("m", (SQUARE, TRIANGLES), uv=UV[TRIANGLES], normals=np.zeros((4, 3)))
    assert uv_at(same)[(1.0, 0.0, 1.0)] == (1.0, 1.0) and same.normals is None  # not usable
    with pytest.raises(ModelError, match=naming("m uv 3 2")):
        mesh_pieces("m", (SQUARE, TRIANGLES), uv=UV[:3])
    with pytest.raises(ModelError, match=naming("m normals finite")):
        mesh_pieces("m", (SQUARE, TRIANGLES), normals=np.full((4, 3), np.nan))


def test_normals_of_closed_meshes_point_outward(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(2)
    inside_out = trimesh.Trimesh(ball.vertices, ball.faces[:, ::-1], vertex_normals=-ball.vertex_normals, process=False)
    inside_out.export(tmp_path / "ball.obj", include_normals=True)
    piece = one(tmp_path / "ball.obj")
    assert piece.closed and piece.normals is not None
    assert np.einsum("mij,mij->mi", piece.normals, piece.vertices[piece.triangles]).min() > 0.9


def test_equal_pictures_share_memory_and_large_ones_are_reduced() -> None:
    first, second = Texture(picture()), Texture(picture().astype(float) / 255.0, repeat=(2.0, 1.0))
    assert first.pixels is second.pixels and first != second and first == Texture(picture())
    assert len({first, second, Texture(picture())}) == 2
    wide = np.zeros((8, 3 * looks.LARGEST + 5, 3), dtype=np.uint8)
    wide[:, 10:] = 90
    small = Texture(wide)
    assert small.pixels.shape[1] <= looks.LARGEST and small.pixels.shape[0] >= 2
    assert small.pixels[0, 0].tolist() == [0] * 3 and small.pixels[0, -1].tolist() == [90] * 3
    gray = Texture(np.array([[0, 255]], dtype=np.uint8))
    assert gray.pixels.tolist() == [[[0] * 3, [255] * 3]] and gray.mean() == (0.5, 0.5, 0.5)
    opaque, cut = np.full((2, 2, 4), 255, dtype=np.uint8), np.full((2, 2, 4), 255, dtype=np.uint8)
    cut[0, 0, 3] = 0
    assert Texture(opaque).pixels.shape[-1] == 3 and Texture(cut).pixels.shape[-1] == 4


@pytest.mark.parametrize(("arguments", "words"), [
    ({"pixels": np.zeros((2, 2, 5), dtype=np.uint8)}, "texture 2 2 5"),
    ({"pixels": np.zeros((6, 2, 3, 3), dtype=np.uint8)}, "texture 6 2 3 3"),
    ({"pixels": np.zeros((0, 2, 3), dtype=np.uint8)}, "texture 0 2 3"),
    ({"pixels": np.full((2, 2, 3), 300)}, "texture int64"),
    ({"pixels": np.full((2, 2, 3), 1.5)}, "texture float64"),
    ({"pixels": picture(), "repeat": (1.0, 0.0)}, "texture repeat"),
    ({"pixels": picture(), "mapping": "magic"}, "texture 'magic'"),
])  # fmt: skip
def test_what_is_no_texture_is_an_error(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=naming(words)):
        Texture(**arguments)


@pytest.mark.parametrize(("arguments", "words"), [
    ({"alpha": 1.5}, "alpha 1.5"),
    ({"alpha": "clear"}, "alpha 'clear'"),
    ({"roughness": -0.1}, "roughness -0.1"),
    ({"metallic": float("nan")}, "metallic nan"),
    ({"texture": "nowhere.png"}, "nowhere.png"),
    ({"texture": np.zeros((2, 2, 7))}, "texture 2 2 7"),
])  # fmt: skip
def test_a_look_that_breaks_a_rule_is_an_error_that_names_the_visual(arguments: dict[str, Any], words: str) -> None:
    b = ModelBuilder()
    with pytest.raises(ModelError, match=naming(f"visual 'paint' {words}")):
        b.add_visual(-1, "sphere", 0.1, label="paint", **arguments)
    assert not b.visuals


@pytest.mark.messages_vary  # Pillow's words
def test_a_broken_picture_is_an_error_or_no_texture(tmp_path: Path) -> None:
    path = obj_file(tmp_path)
    (tmp_path / "quarters.png").write_bytes((tmp_path / "quarters.png").read_bytes()[:60])
    piece = one(path)
    assert piece.look.texture is None and len(piece.triangles) == 2
    b = ModelBuilder()
    with pytest.raises(ModelError, match=naming("visual 'paint' quarters.png")):
        b.add_visual(-1, "sphere", 0.1, label="paint", texture=tmp_path / "quarters.png")


def test_visuals_keep_their_looks_in_copies(tmp_path: Path) -> None:
    obj_file(tmp_path)
    b = ModelBuilder()
    b.add_visual(-1, "sphere", 0.1, alpha=0.5, roughness=0.1, metallic=1, texture=tmp_path / "quarters.png")
    other = ModelBuilder()
    other.add_builder(b, label_prefix="a_")
    assert other.visuals[0].look == b.visuals[0].look == Look(0.5, 0.1, 1.0, Texture(picture()))


def test_looks_are_kept_by_dictionaries(tmp_path: Path) -> None:
    import json

    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), label="a")
    b.add_visual(0, "mesh", obj_file(tmp_path, "d 0.5"))
    b.add_visual(0, "box", (1, 1, 1), texture=Texture(picture(), repeat=(2.0, 3.0)), roughness=0.2)
    b.add_camera(0, label="eye")
    b.add_light("spot", 0, label="lamp")
    text = json.dumps(b.to_dict(), allow_nan=False)
    again = ModelBuilder.from_dict(json.loads(text))
    assert again.visuals[1].look == b.visuals[1].look and again.cameras == b.cameras and again.lights == b.lights
    (piece,), (kept,) = b.visuals[0].params["pieces"], again.visuals[0].params["pieces"]
    assert kept.look == piece.look and np.array_equal(kept.uv, piece.uv) and np.array_equal(kept.normals, piece.normals)
    assert np.array_equal(kept.look.texture.pixels, picture()) and len(text) < 60_000
