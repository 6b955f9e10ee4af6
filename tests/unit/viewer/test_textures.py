from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, Texture, Transform
from gpusim.stage.meshes import shape_mesh
from gpusim.stage.stage import Stage
from gpusim.viewer import Offscreen, PinholeCamera
from tests.unit.mesh_files import SQUARE, TEXTURED, TRIANGLES, UV, picture
from tests.unit.viewer.drawing import require_egl

LEVEL = PinholeCamera((0.0, -4.0, 0.0), (0.0, 0.0, 0.0))
SIZE: dict[str, Any] = {"width": 160, "height": 120, "quality": "software"}
MIDDLE = (60, 80)
NAMES = {"ul": "r", "ur": "g", "ll": "b", "lr": "y"}
"""Names of the colors of the picture's quarters, see tests/unit/mesh_files.py."""


def alone(*visual: Any, xform: Transform | None = None, **more: Any) -> Model:
    """A body with one visual, and nothing around it."""
    b = ModelBuilder()
    b.add_visual(b.add_body(1.0, (1, 1, 1)), *visual, xform=xform, **more)
    return b.finalize()


def drawn(model: Model, camera: PinholeCamera = LEVEL, **more: Any) -> np.ndarray:
    with Offscreen(model, camera=camera, decoration=False, **{**SIZE, **more}) as eye:
        return eye.image()


def bright(color: np.ndarray) -> list[bool]:
    low, high = int(color.min()), int(color.max())
    return [high - low > 40 and int(c) - low > 0.5 * (high - low) for c in color]


def name(color: np.ndarray) -> str:
    names = {(True, False, False): "r", (False, True, False): "g", (False, False, True): "b", (True, True, False): "y"}
    red, green, blue = bright(color)
    return names.get((red, green, blue), "-")


def quarters(model: Model, camera: PinholeCamera = LEVEL, offset: float = 0.5) -> dict[str, str]:
    step = round(offset * SIZE["height"] / (2.0 * camera.distance * np.tan(0.5 * camera.field_of_view)))
    seen = drawn(model, camera)
    signs = {"ul": (-1, -1), "ur": (-1, 1), "ll": (1, -1), "lr": (1, 1)}
    return {key: name(seen[MIDDLE[0] + step * i, MIDDLE[1] + step * j]) for key, (i, j) in signs.items()}


@pytest.mark.parametrize("kind", TEXTURED)
def test_textures_of_files_are_upright(kind: str, tmp_path: Path) -> None:
    require_egl()
    pytest.importorskip("trimesh")
    if kind == "dae":
        pytest.importorskip("collada")
    path = TEXTURED[kind](tmp_path, **({"metallicFactor": 0.0} if kind == "glb" else {}))
    assert quarters(alone("mesh", path)) == NAMES


def test_a_texture_on_arrays_is_upright_also_in_a_mirror() -> None:
    require_egl()
    from gpusim.meshes.pieces import mesh_pieces

    pieces = mesh_pieces("m", (SQUARE, TRIANGLES), uv=UV)
    assert quarters(alone("mesh", pieces, texture=picture())) == NAMES
    mirrored = mesh_pieces("m", (SQUARE, TRIANGLES), (-1.0, 1.0, 1.0), uv=UV)
    assert quarters(alone("mesh", mirrored, texture=picture())) == {"ul": "g", "ur": "r", "ll": "y", "lr": "b"}


EYES = {
    "front": ((0, -4, 0), (0, 0, 1)),
    "right": ((4, 0, 0), (0, 0, 1)),
    "back": ((0, 4, 0), (0, 0, 1)),
    "left": ((-4, 0, 0), (0, 0, 1)),
    "top": ((0, 0, 4), (0, 1, 0)),
    "bottom": ((0, 0, -4), (0, 1, 0)),
}


@pytest.mark.parametrize(
    "side", [side if side in ("front", "top") else pytest.param(side, marks=pytest.mark.nightly) for side in EYES]
)
def test_every_side_of_a_box_shows_the_picture(side: str) -> None:
    require_egl()
    position, up = EYES[side]
    assert quarters(alone("box", (1.0, 1.0, 1.0), texture=picture()), PinholeCamera(position, (0, 0, 0), up)) == NAMES


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_round_shapes_wear_the_picture_once_around(kind: str) -> None:
    require_egl()
    model = alone(kind, *((1.0,) if kind == "sphere" else (1.0, 1.0)), texture=picture())
    back = PinholeCamera((0.0, 6.0, 0.0), (0.0, 0.0, 0.0))
    assert quarters(model, back) == {"ul": "r", "ur": "r", "ll": "b", "lr": "b"}
    left = PinholeCamera((-6.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert quarters(model, left) == NAMES
    right = PinholeCamera((6.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert quarters(model, right) == {"ul": "g", "ur": "r", "ll": "y", "lr": "b"}


def test_a_projected_texture_lies_along_x_and_y() -> None:
    require_egl()
    above = PinholeCamera((0.0, 0.0, 6.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    texture = Texture(picture(), repeat=(0.25, 0.25), mapping="projected")
    for shape in (("sphere", 1.0), ("box", (1.0, 1.0, 1.0)), ("mesh", (SQUARE[:, [0, 2, 1]], TRIANGLES))):
        assert quarters(alone(*shape, texture=texture), above) == NAMES
    twice = Texture(picture(), repeat=(0.5, 0.25), mapping="projected")
    seen = quarters(alone("box", (2.0, 2.0, 0.1), texture=twice), above, offset=1.1)
    assert seen == {"ul": "g", "ur": "r", "ll": "y", "lr": "b"}


def test_faces_of_a_cube_look_along_their_axes() -> None:
    require_egl()
    colors = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1)]
    texture = Texture(np.array([np.full((4, 4, 3), c, dtype=float) for c in colors]))
    faces = {"right": 0, "left": 1, "back": 2, "front": 3, "top": 4, "bottom": 5}
    model = alone("sphere", 1.0, texture=texture)
    for side, (position, up) in EYES.items():
        seen = bright(drawn(model, PinholeCamera(position, (0, 0, 0), up))[MIDDLE])
        assert seen == [c > 0 for c in colors[faces[side]]], side


def test_a_cube_is_stretched_to_a_shape_unless_it_is_projected() -> None:
    require_egl()
    colors = np.array([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1)], dtype=float)
    pixels = np.broadcast_to(colors[:, None, None], (6, 4, 4, 3))
    front = drawn(alone("box", (1.0, 0.2, 1.0), texture=Texture(pixels)))
    kept = drawn(alone("box", (1.0, 0.2, 1.0), texture=Texture(pixels, mapping="projected")))
    places = ((60, 80), (60, 110), (60, 50))
    assert [name(front[p]) for p in places] == ["y", "y", "y"]
    assert [name(kept[p]) for p in places] == ["y", "r", "g"]


def test_a_texture_of_one_color_looks_like_that_color() -> None:
    require_egl()
    color = (0.65, 0.4, 0.2)
    plain = drawn(alone("box", (1.0, 1.0, 1.0), color=color)).astype(int)
    textured = drawn(alone("box", (1.0, 1.0, 1.0), texture=np.full((2, 2, 3), color))).astype(int)
    tinted = drawn(alone("box", (1.0, 1.0, 1.0), color=color, texture=np.ones((2, 2, 3)))).astype(int)
    assert np.abs(plain - textured).max() <= 4 and np.abs(plain - tinted).max() <= 1


def test_a_white_mesh_is_shaded() -> None:
    require_egl()
    trimesh = pytest.importorskip("trimesh")
    seen = drawn(alone("mesh", trimesh.creation.icosphere(3), color=(1.0, 1.0, 1.0))).astype(int)
    assert seen[50, 65].min() < 250 and seen[50, 65].min() > seen[75, 105].max() + 40
    textured = drawn(alone("mesh", trimesh.creation.icosphere(3), texture=np.ones((2, 2, 3)))).astype(int)
    assert np.abs(textured - seen).max() <= 2


def test_colors_of_vertices_are_drawn(tmp_path: Path) -> None:
    require_egl()
    trimesh = pytest.importorskip("trimesh")
    colors = [[0, 0, 255], [255, 0, 0], [255, 0, 0], [0, 0, 255]]
    trimesh.Trimesh(SQUARE, TRIANGLES, vertex_colors=colors, process=False).export(tmp_path / "square.ply")
    seen = drawn(alone("mesh", tmp_path / "square.ply"))
    assert (name(seen[60, 38]), name(seen[60, 122])) == ("b", "r")
    assert name(drawn(alone("mesh", tmp_path / "square.ply", color="#00ff00"))[MIDDLE]) == "g"


def layers(alphas: dict[float, tuple[str, float]], order: int = 1) -> Model:
    b = ModelBuilder()
    for y, (color, alpha) in list(alphas.items())[::order]:
        body = b.add_body(1.0, (1, 1, 1))
        b.add_visual(body, "mesh", (SQUARE, TRIANGLES), xform=Transform((0.0, y, 0.0)), color=color, alpha=alpha)
    return b.finalize()


def test_transparent_visuals_blend_from_back_to_front() -> None:
    require_egl()
    sheets = {-1.0: ("#ff0000", 0.4), 0.0: ("#00ff00", 0.6), 1.0: ("#0000ff", 1.0)}
    one, other = drawn(layers(sheets)), drawn(layers(sheets, -1))
    assert np.array_equal(one, other)
    alone_ = {c: drawn(layers({y: (c, 1.0)}))[MIDDLE].astype(float) for y, (c, _) in sheets.items()}
    red, green, blue = alone_.values()
    expected = 0.4 * red + 0.6 * (0.6 * green + 0.4 * blue)
    assert np.abs(one[MIDDLE] - expected).max() < 3.0
    hidden = drawn(layers({-1.0: ("#ff0000", 1.0), 0.0: ("#00ff00", 0.6)}))
    assert name(hidden[MIDDLE]) == "r"


def test_an_invisible_visual_hides_its_body() -> None:
    require_egl()
    b = ModelBuilder()
    body = b.add_body()
    b.add_shape_box(body, (1.0, 1.0, 1.0))
    b.add_visual(body, "sphere", 0.5, alpha=0.0)
    assert len(Stage(b.finalize())) == 0


@pytest.mark.parametrize(("alpha", "seen"), [(0.3, False), (0.7, True)])
def test_sensors_see_through_what_is_more_clear_than_opaque(alpha: float, seen: bool) -> None:
    require_egl()
    with Offscreen(layers({0.0: ("#ff0000", alpha)}), camera=LEVEL, decoration=False, **SIZE) as eye:
        assert (eye.segmentation()[MIDDLE] == 0) == seen
        assert np.isfinite(eye.depth()[MIDDLE]) == seen


def test_holes_in_a_picture_are_holes() -> None:
    require_egl()
    pixels = np.full((2, 2, 4), 255, dtype=np.uint8)
    pixels[0, 0, 3] = 0
    b = ModelBuilder()
    front, back = b.add_body(1.0, (1, 1, 1)), b.add_body(1.0, (1, 1, 1))
    b.add_visual(front, "box", (1.0, 0.01, 1.0), color="#ff0000", texture=pixels)
    b.add_visual(back, "box", (1.0, 0.01, 1.0), color="#0000ff", xform=Transform((0.0, 0.5, 0.0)))
    seen = drawn(b.finalize())
    assert (name(seen[45, 65]), name(seen[75, 65]), name(seen[45, 95])) == ("b", "r", "r")


def test_normals_of_a_file_shade_its_surface() -> None:
    require_egl()
    from gpusim.meshes.pieces import mesh_pieces

    flat = drawn(alone("mesh", (SQUARE, TRIANGLES), color=(0.5, 0.5, 0.5))).astype(float).sum(axis=2)
    bulge = SQUARE + [0.0, -1.0, 0.0]
    pieces = mesh_pieces("m", (SQUARE, TRIANGLES), normals=bulge)
    round_ = drawn(alone("mesh", pieces, color=(0.5, 0.5, 0.5))).astype(float).sum(axis=2)
    assert abs(flat[60, 55] - flat[60, 105]) < 3.0
    assert round_[60, 55] > round_[60, 105] + 60.0


def test_roughness_widens_and_lowers_the_highlight() -> None:
    require_egl()
    models = [alone("sphere", 1.0, color=(0.1, 0.1, 0.1), roughness=r) for r in (0.2, 0.7)]
    ball = [drawn(model).astype(float).sum(axis=2)[32:88, 52:108] for model in models]
    assert ball[0].max() > ball[1].max() + 50.0
    assert (ball[0] > 0.8 * ball[0].max()).sum() < 0.5 * (ball[1] > 0.8 * ball[1].max()).sum()


def test_metal_has_no_color_but_its_reflection() -> None:
    require_egl()
    paint = drawn(alone("sphere", 1.0, color=(0.9, 0.1, 0.1)))
    metal = drawn(alone("sphere", 1.0, color=(0.9, 0.1, 0.1), metallic=1.0, roughness=0.3))
    assert name(paint[MIDDLE]) == name(metal[MIDDLE]) == "r"
    assert np.abs(paint.astype(int) - metal)[50:70, 70:90].mean() > 10.0


def checks() -> np.ndarray:
    red, blue = [220, 30, 30], [30, 30, 220]
    return np.kron(np.array([[red, blue], [blue, red]]), np.ones((16, 16, 1))).astype(np.uint8)


def test_a_plane_wears_its_picture_from_the_middle_on() -> None:
    require_egl()
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), xform=Transform((50.0, 0.0, 50.0)))
    b.add_shape_plane(-1)
    b.add_visual(-1, "plane", texture=Texture(checks(), repeat=(0.5, 0.5)))
    model = b.finalize()
    (ground,) = Stage(model, decoration=False).grounds
    assert ground.texture is not None and ground.level and ground.solid
    for x in (0.0, 30.0):
        above = PinholeCamera((x, 0.0, 6.0), (x, 0.0, 0.0), (0.0, 1.0, 0.0))
        assert quarters(model, above) == {"ul": "r", "ur": "b", "ll": "b", "lr": "r"}
    with Offscreen(model, camera=above, **SIZE) as eye:
        assert eye.depth()[MIDDLE] == pytest.approx(6.0, abs=1e-3)
    assert Stage(model, decoration=False, visuals=False).grounds[0].texture is None


def test_a_plane_wears_its_color_without_lines() -> None:
    require_egl()
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), xform=Transform((50.0, 0.0, 50.0)))
    b.add_visual(-1, "plane", color="#00ff00")
    above = PinholeCamera((0.0, 0.0, 6.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    seen = drawn(b.finalize(), above)
    assert name(seen[MIDDLE]) == "g" and np.ptp(seen[20:100, 20:140].astype(int), axis=(0, 1)).max() <= 8


def test_textured_visuals_of_one_form_are_drawn_together() -> None:
    b = ModelBuilder()
    for k in range(3):
        body = b.add_body(1.0, (1, 1, 1), xform=Transform((k, 0.0, 0.0)))
        b.add_visual(body, "box", (0.1, 0.1, 0.1), texture=picture(), color=(0.1 * k, 1.0, 1.0))
    b.add_visual(body, "box", (0.1, 0.1, 0.1), texture=Texture(picture(), repeat=(2.0, 2.0)))
    stage = Stage(b.finalize(), num_worlds=4)
    assert [batch.count for batch in stage.batches] == [12, 4]
    assert len({id(batch.mesh.texture.pixels) for batch in stage.batches if batch.mesh.texture}) == 1


def test_seams_of_round_shapes_have_no_squeezed_picture() -> None:
    b = ModelBuilder()
    b.add_visual(-1, "sphere", 1.0, texture=picture())
    mesh = shape_mesh(b.visuals[0], b.visuals[0].look.texture)[0].make(48)
    assert mesh.texcoords is not None
    spread = np.ptp(mesh.texcoords[mesh.triangles][:, :, 0], axis=1)
    assert spread.max() < 1.5 / 48.0
