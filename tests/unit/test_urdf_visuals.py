from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder
from gpusim.importers import load_urdf
from tests.unit.test_urdf_shapes import collision
from tests.unit.urdf_text import SOLID, joint, link, robot

pytest.importorskip("yourdfpy")
trimesh = pytest.importorskip("trimesh")

QUARTER = "1.5707963267948966"


def visual(geometry: str, more: str = "") -> str:
    return f"<visual>{more}<geometry>{geometry}</geometry></visual>"


def material(name: str = "", rgba: str = "") -> str:
    color = f'<color rgba="{rgba}"/>' if rgba else ""
    return f'<material name="{name}">{color}</material>'


BALL = '<sphere radius="0.3"/>'


def world_position(builder: ModelBuilder, index: int) -> np.ndarray:
    spec = builder.visuals[index]
    body = builder.bodies[spec.body].xform
    return np.asarray(body.apply(spec.xform.position))


def test_primitives_poses_and_labels() -> None:
    looks = [
        visual('<box size="0.2 0.4 0.6"/>', f'<origin xyz="1 2 3" rpy="0 0 {QUARTER}"/>'),
        visual('<cylinder radius="0.1" length="0.5"/>'),
        visual(BALL),
        visual('<capsule radius="0.1" length="0.4"/>'),
    ]
    builder, report = load_urdf(robot(link("base", SOLID + "".join(looks))))
    assert report.visuals == {"base": [0, 1, 2, 3]} and not report.warnings and not report.ignored
    assert [v.kind for v in builder.visuals] == ["box", "cylinder", "sphere", "capsule"]
    assert [v.label for v in builder.visuals] == ["base", "base_2", "base_3", "base_4"]
    box, can, *_ = builder.visuals
    np.testing.assert_allclose(box.params["half_extents"], (0.1, 0.2, 0.3))
    np.testing.assert_allclose(box.xform.position, (1, 2, 3))
    np.testing.assert_allclose(box.xform.rotate((1, 0, 0)), (0, 1, 0), atol=1e-12)
    assert can.params == {"radius": 0.1, "half_length": 0.25}
    assert not builder.shapes
    assert "4 visuals on 1 link" in report.summary()
    without, report = load_urdf(robot(link("base", SOLID + "".join(looks))), visuals=False)
    assert not without.visuals and not report.visuals


@pytest.mark.parametrize("merged", [True, False])
def test_visuals_of_merged_links_stand_where_the_links_were(merged: bool) -> None:
    turn = f'<origin xyz="0 0 -1" rpy="0 0 {QUARTER}"/>'
    text = robot(
        link("base", SOLID) + link("foot", SOLID + visual(BALL, '<origin xyz="1 2 3"/>')) + link("toe", visual(BALL)),
        joint("weld", "base", "foot", "fixed", turn) + joint("glue", "foot", "toe", "fixed", '<origin xyz="1 0 0"/>'),
    )
    builder, report = load_urdf(text, merge_fixed=merged)
    assert [builder.bodies[v.body].label for v in builder.visuals] == (["base"] * 2 if merged else ["foot", "toe"])
    np.testing.assert_allclose(world_position(builder, report.visuals["foot"][0]), (-2, 1, 2), atol=1e-12)
    np.testing.assert_allclose(world_position(builder, report.visuals["toe"][0]), (0, 1, -1), atol=1e-12)


def test_a_root_that_is_the_world_has_visuals_there() -> None:
    text = robot(link("world", visual(BALL)) + link("arm"), joint("hinge", "world", "arm", "continuous", ""))
    builder, _ = load_urdf(text)
    assert [v.body for v in builder.visuals] == [-1]


def test_materials_by_value_and_by_name() -> None:
    looks = [
        visual(BALL, material("rust", "0.5 0.25 0.125 1")),
        visual(BALL, material("sky")),
        visual(BALL, material("rust")),
        visual(BALL, material("moss")),
        visual(BALL, material("moss", "0 0.5 0 1")),
        visual(BALL, material("", "2 0 0 1")),
        visual(BALL),
        visual(BALL, material("unknown stuff")),
    ]
    defined = material("sky", "0 0.5 1 1") + material("rust", "1 0 0 0.5")
    builder, report = load_urdf(robot(link("base", SOLID + "".join(looks)), defined))
    assert [v.color for v in builder.visuals] == [
        (0.5, 0.25, 0.125),
        (0.0, 0.5, 1.0),
        (1.0, 0.0, 0.0),
        (0.0, 0.5, 0.0),
        (0.0, 0.5, 0.0),
        (1.0, 0.0, 0.0),
        None,
        None,
    ]
    (warning,) = report.warnings
    assert "link 'base'" in warning and "'unknown stuff'" in warning and "add <color rgba=" in warning


def test_meshes_of_every_format_with_scale_and_right_side_out(tmp_path) -> None:
    cube = trimesh.creation.box((0.2, 0.2, 0.2))
    for suffix in ("stl", "obj", "dae"):
        cube.export(tmp_path / f"cube.{suffix}")
    shapes = [f'<mesh filename="cube.{suffix}" scale="1 -2 3"/>' for suffix in ("stl", "obj", "dae")]
    path = tmp_path / "bot.urdf"
    path.write_text(robot(link("base", SOLID + "".join(map(visual, shapes)))))
    builder, report = load_urdf(path)
    assert len(builder.visuals) == 3 and not report.warnings and report.triangles == 36
    for spec in builder.visuals:
        (piece,) = spec.params["pieces"]
        np.testing.assert_allclose(np.abs(piece.vertices).max(axis=0), (0.1, 0.2, 0.3), atol=1e-6)
        a, b, c = (piece.vertices[piece.triangles[:, k]] for k in range(3))
        assert piece.closed and np.all(np.einsum("ij,ij->i", np.cross(b - a, c - a), a) > 0.0)


def test_a_file_is_read_once_for_links_that_show_it(tmp_path) -> None:
    trimesh.creation.icosphere(1).export(tmp_path / "ball.stl")
    shown = visual('<mesh filename="ball.stl"/>')
    path = tmp_path / "bot.urdf"
    path.write_text(robot(link("a", SOLID + shown) + link("b", SOLID + shown), joint("hinge", "a", "b")))
    first, second = load_urdf(path)[0].visuals
    assert first.params["pieces"] is second.params["pieces"]


MISSING = visual('<mesh filename="package://bot/meshes/cover.stl"/>')


def test_a_missing_mesh_is_reported_once_and_no_error() -> None:
    content = SOLID + collision('<box size="1 1 1"/>')
    builder, report = load_urdf(robot(link("base", content + MISSING + MISSING)))
    assert not builder.visuals and len(builder.shapes) == 1
    (warning,) = report.warnings
    assert "link 'base'" in warning and "package://bot/meshes/cover.stl" in warning and "asset_dirs" in warning


def test_a_merged_link_whose_mesh_is_missing_is_drawn_by_its_shapes() -> None:
    lid = collision('<box size="0.2 0.4 0.6"/>', '<origin xyz="0 0 1"/>') + MISSING
    text = robot(
        link("base", SOLID + collision('<sphere radius="0.5"/>') + visual(BALL)) + link("lid", lid),
        joint("weld", "base", "lid", "fixed", '<origin xyz="0 0 2"/>'),
    )
    builder, report = load_urdf(text)
    assert report.visuals == {"base": [0], "lid": [1]} and len(report.warnings) == 1
    (piece,) = builder.visuals[1].params["pieces"]
    np.testing.assert_allclose(piece.vertices.max(axis=0), (0.1, 0.2, 0.3))
    np.testing.assert_allclose(world_position(builder, 1), (0, 0, 3))
    assert len(builder.shapes) == 2


@pytest.mark.parametrize(
    ("geometry", "why"),
    [
        ('<box size="1 2"/>', "3 numbers"),
        ('<box size="1 0 1"/>', "no volume"),
        ("<sphere/>", "lacks radius"),
        ("<teapot/>", "<teapot> is none of box"),
        ("", "<geometry> is empty"),
        ("<mesh/>", "no filename"),
        ('<mesh filename="broken.stl"/>', "cannot be read"),
    ],
)
def test_what_cannot_be_drawn_is_reported_and_no_error(tmp_path, geometry: str, why: str) -> None:
    (tmp_path / "broken.stl").write_text("solid nothing")
    path = tmp_path / "bot.urdf"
    path.write_text(robot(link("base", SOLID + visual(geometry) + visual(BALL, material("m", "a b c d")))))
    builder, report = load_urdf(path)
    assert [v.kind for v in builder.visuals] == ["sphere"]
    assert any("link 'base'" in w and "a <visual> is left out" in w and why in w for w in report.warnings)


def test_a_picture_of_nothing_is_no_news() -> None:
    builder, report = load_urdf(robot(link("base", SOLID + visual('<box size="0 0 0"/>'))))
    assert not builder.visuals and not report.warnings


@pytest.mark.nightly
def test_robots_of_others_have_their_colors() -> None:
    path = pytest.importorskip("jvrc_description").urdf_path
    builder, report = load_urdf(path)
    assert len(report.visuals) > 30 and not report.warnings
    # The meshes have own colors, which come before those of the links.
    colors = {piece.color for visual in builder.visuals for piece in visual.params["pieces"]}
    assert len(colors) > 10 and None not in colors


def test_huge_textures_are_skipped_quietly(tmp_path, monkeypatch, recwarn) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (12, 12), (255, 0, 0)).save(tmp_path / "paint.png")
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 100)
    (tmp_path / "paint.mtl").write_text("newmtl m\nmap_Kd paint.png\n")
    (tmp_path / "sheet.obj").write_text(
        "mtllib paint.mtl\nusemtl m\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nf 1/1 2/2 3/3\n"
    )
    b = ModelBuilder()
    b.add_visual(b.add_body(1.0, (1.0, 1.0, 1.0)), "mesh", str(tmp_path / "sheet.obj"))
    (piece,) = b.visuals[0].params["pieces"]
    assert len(piece.vertices) == 3 and piece.color != (1.0, 0.0, 0.0)
    assert not recwarn.list
