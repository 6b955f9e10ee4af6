"""USD import: textures, finish, normals, cameras and lights."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, Texture
from gpusim.importers import load_usd
from gpusim.importers.report import ImportReport
from gpusim.viewer import Offscreen, PinholeCamera
from tests.unit.mesh_files import QUARTERS, SQUARE, UV, picture
from tests.unit.usd_text import body, prim, usd
from tests.unit.viewer.drawing import require_egl

pytest.importorskip("pxr")
image = pytest.importorskip("PIL.Image")

PAINTED = "rel material:binding = </World/paint>"
QUAD = (
    "int[] faceVertexCounts = [4]",
    "int[] faceVertexIndices = [0, 1, 2, 3]",
    f"point3f[] points = {[tuple(p) for p in SQUARE.tolist()]}",
    PAINTED,
)
ST = f"texCoord2f[] primvars:st = {[tuple(t) for t in UV.tolist()]} (interpolation = "


def png(pixels: Any) -> bytes:
    stream = io.BytesIO()
    image.fromarray(np.asarray(pixels, np.uint8)).save(stream, format="PNG")
    return stream.getvalue()


ASSETS = {"quarters.png": png(picture())}


def paint(*lines: str, image_lines: tuple[str, ...] = (), transform: str = "") -> str:
    to = "transform" if transform else "reader"
    reads = ('uniform token info:id = "UsdPrimvarReader_float2"', 'string inputs:varname = "st"')
    moves = (
        'uniform token info:id = "UsdTransform2d"',
        "float2 inputs:in.connect = </World/paint/reader.outputs:result>",
    )
    shaders = [
        prim(
            "Shader",
            "surface",
            'uniform token info:id = "UsdPreviewSurface"',
            "color3f inputs:diffuseColor.connect = </World/paint/picture.outputs:rgb>",
            *lines,
            "token outputs:surface",
        ),
        prim(
            "Shader",
            "picture",
            'uniform token info:id = "UsdUVTexture"',
            "asset inputs:file = @./quarters.png@",
            f"float2 inputs:st.connect = </World/paint/{to}.outputs:result>",
            "color4f inputs:fallback = (1, 0, 0, 1)",
            *image_lines,
            "float3 outputs:rgb",
            "float outputs:a",
        ),
        prim("Shader", "reader", *reads, "float2 outputs:result"),
        prim("Shader", "transform", *moves, transform, "float2 outputs:result"),
    ]
    return prim("Material", "paint", "token outputs:surface.connect = </World/paint/surface.outputs:surface>", *shaders)


def loaded(material: str, *mesh: str, **more: Any) -> tuple[ModelBuilder, ImportReport]:
    apis = "MaterialBindingAPI"
    text = usd(material, body("a", prim("Mesh", "m", *QUAD, *mesh, apis=apis), mass=1, inertia=(1, 1, 1)))
    return load_usd(text, **{"assets": ASSETS, **more})


def looks(report: ImportReport) -> list[str]:
    return [finding.what for finding in report.findings if finding.severity == "look"]


def piece(builder: ModelBuilder) -> Any:
    (visual,) = builder.visuals
    (only,) = visual.params["pieces"]
    return only


def uv_of(builder: ModelBuilder) -> dict[tuple[float, float], tuple[float, float]]:
    found = piece(builder)
    places = found.vertices[found.triangles].reshape(-1, 3)
    pairs = zip(places.tolist(), found.uv.reshape(-1, 2).round(5).tolist(), strict=True)
    return {(x, z): (u, v) for (x, _, z), (u, v) in pairs}


CORNERS = {(x, z): tuple(t) for (x, _, z), t in zip(SQUARE.tolist(), UV.tolist(), strict=True)}


@pytest.mark.parametrize("how", ["vertex", "faceVarying", "varying"])
def test_a_texture_lies_on_the_mesh(how: str) -> None:
    b, report = loaded(paint("float inputs:roughness = 0.3", "float inputs:opacity = 0.5"), f'{ST}"{how}")')
    texture = piece(b).look.texture
    assert isinstance(texture, Texture) and np.array_equal(texture.pixels, picture())
    assert uv_of(b) == CORNERS and not looks(report)
    assert (piece(b).look.roughness, piece(b).look.alpha, piece(b).look.metallic) == (
        pytest.approx(0.3),
        pytest.approx(0.5),
        None,
    )


def test_a_texture_is_upright_in_pictures() -> None:
    require_egl()
    b, _ = loaded(paint(), f'{ST}"vertex")')
    with Offscreen(
        b.finalize(), width=64, height=64, camera=PinholeCamera((0, -5, 0), (0, 0, 0)), decoration=False
    ) as eye:
        seen = eye.image().astype(int)
    for key, (i, j) in {"ul": (24, 24), "ur": (24, 40), "ll": (40, 24), "lr": (40, 40)}.items():
        color, wanted = seen[i, j], np.array(QUARTERS[key])
        assert [c > color.mean() for c in color] == [c > wanted.mean() for c in wanted], key


def test_texture_coordinates_can_be_moved_and_turned() -> None:
    lines = "float inputs:rotation = 90\nfloat2 inputs:scale = (2, 3)\nfloat2 inputs:translation = (0.5, 0.25)"
    b, _ = loaded(paint(transform=lines), f'{ST}"vertex")')
    assert uv_of(b) == {at: (0.5 - 3.0 * v, 0.25 + 2.0 * u) for at, (u, v) in CORNERS.items()}


def test_a_texture_is_tinted_and_has_no_holes_unless_it_is_the_opacity() -> None:
    clear = np.dstack([picture(), np.zeros((64, 64))])
    tinted = paint(image_lines=("float4 inputs:scale = (1, 0.5, 0, 1)",))
    b, _ = loaded(tinted, f'{ST}"vertex")', assets={"quarters.png": png(clear)})
    pixels = piece(b).look.texture.pixels
    assert pixels.shape[2] == 3 and tuple(pixels[0, 0]) == (220, round(30 * 0.5 ** (1 / 2.2)), 0)
    opacity = "float inputs:opacity.connect = </World/paint/picture.outputs:a>"
    b, _ = loaded(paint(opacity), f'{ST}"vertex")', assets={"quarters.png": png(clear)})
    assert piece(b).look.texture.pixels.shape[2] == 4


def test_a_texture_that_cannot_be_drawn_is_one_color_and_a_finding() -> None:
    b, report = loaded(paint())
    assert piece(b).look.texture is None and piece(b).color == pytest.approx(Texture(picture()).mean())
    assert looks(report) == ["has a texture on prim '/World/a/m' without texture coordinates"]
    b, report = loaded(paint(), f'{ST}"vertex")', assets={})
    assert piece(b).color == (1.0, 0.0, 0.0)  # its fallback
    (what,) = looks(report)
    assert what.startswith("has a texture that is left out") and "./quarters.png" in what
    b, report = loaded(paint(), f'{ST}"vertex")', assets={"quarters.png": b"no picture"})
    assert piece(b).color == (1.0, 0.0, 0.0) and "cannot be read" in looks(report)[0]


def test_textures_are_found_next_to_the_file_and_in_packages(tmp_path: Path) -> None:
    from pxr import UsdUtils

    (tmp_path / "quarters.png").write_bytes(ASSETS["quarters.png"])
    mesh = prim("Mesh", "m", *QUAD, f'{ST}"vertex")', apis="MaterialBindingAPI")
    file = tmp_path / "square.usda"
    file.write_text(usd(paint(), body("a", mesh, mass=1, inertia=(1, 1, 1))))
    assert UsdUtils.CreateNewUsdzPackage(str(file), str(tmp_path / "square.usdz"))
    for path in (file, tmp_path / "square.usdz"):
        b, report = load_usd(path)
        assert np.array_equal(piece(b).look.texture.pixels, picture()) and not looks(report), path
    text = file.read_text()
    b, report = load_usd(text, asset_dirs=[tmp_path])
    assert piece(b).look.texture is not None


def test_what_pictures_lack_is_reported() -> None:
    lines = (
        "normal3f inputs:normal.connect = </World/paint/picture.outputs:rgb>",
        "color3f inputs:emissiveColor = (1, 1, 1)",
    )
    _, report = loaded(paint(*lines), f'{ST}"vertex")')
    assert sorted(looks(report)) == ["has a normal map", "shines"]
    idle = ("normal3f inputs:normal = (0, 0, 1)", "color3f inputs:emissiveColor = (0, 0, 0)")
    assert not looks(loaded(paint(*idle), f'{ST}"vertex")')[1])


@pytest.mark.parametrize("subdivided", [False, True])
def test_normals_of_a_mesh_without_subdivision_are_kept(subdivided: bool) -> None:
    scheme = "catmullClark" if subdivided else "none"
    normals = "normal3f[] normals = [(0.6, -0.8, 0), (0.6, -0.8, 0), (0.6, -0.8, 0), (0.6, -0.8, 0)]"
    b, _ = loaded(paint(), f'{ST}"vertex")', f'uniform token subdivisionScheme = "{scheme}"', normals)
    found = piece(b).normals
    assert found is None if subdivided else found == pytest.approx(np.broadcast_to([0.6, -0.8, 0.0], (2, 3, 3)))


def test_cameras_keep_their_place_and_angle() -> None:
    lens = ("float focalLength = 10", "float verticalAperture = 20")
    quarter = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
    cameras = [
        prim("Camera", "eye", *lens, at=(0, 1, 0), turn=quarter),
        prim("Camera", "flat", 'token projection = "orthographic"'),
    ]
    text = usd(body("a", *cameras, mass=1, inertia=(1, 1, 1), at=(1, 2, 3)), up="Y", meters=0.1)
    b, report = load_usd(text)
    eye, other = b.cameras
    assert report.cameras == ["eye", "flat"] and looks(report) == ["has no perspective"]
    assert (eye.body, eye.fov_y, other.fov_y) == (0, pytest.approx(math.pi / 2), pytest.approx(math.pi / 4))
    place = b.bodies[0].xform * eye.xform
    assert place.position == pytest.approx([0.1, -0.3, 0.3])
    assert -place.matrix()[:, 2] == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)


def test_lights_keep_their_kind_color_and_share() -> None:
    cone = prim("SphereLight", "spot", "float inputs:intensity = 50", "float inputs:shaping:cone:angle = 30",
                "bool inputs:shadow:enable = 0", at=(0, 0, 4), apis="ShapingAPI ShadowAPI")  # fmt: skip
    lights = [
        prim("DistantLight", "sun", "float inputs:intensity = 3000", "color3f inputs:color = (1, 0.2140, 0)"),
        prim("SphereLight", "bulb", "float inputs:intensity = 25", "float inputs:exposure = 3", at=(1, 0, 2)),
        prim("DomeLight", "sky"),
        prim("RectLight", "off", "float inputs:intensity = 0"),
        prim("RectLight", "hidden", 'token visibility = "invisible"'),
    ]
    b, report = load_usd(usd(*lights, body("a", cone, mass=1, inertia=(1, 1, 1))))
    sun, bulb, spot = b.lights
    assert [(light.kind, light.label) for light in b.lights] == [
        ("directional", "sun"),
        ("point", "bulb"),
        ("spot", "spot"),
    ]
    assert (sun.intensity, bulb.intensity, spot.intensity) == (1.0, 1.0, pytest.approx(0.25))
    assert sun.color == pytest.approx((1.0, 0.5, 0.0), abs=1e-3) and sun.shadow and not spot.shadow
    assert -sun.xform.matrix()[:, 2] == pytest.approx([0.0, 0.0, -1.0])
    assert (bulb.body, spot.body) == (-1, 0) and spot.xform.position == pytest.approx([0.0, 0.0, 4.0])
    assert spot.cutoff == pytest.approx(math.radians(30.0)) and looks(report) == ["is a DomeLight"]


def test_a_plain_collider_with_a_finish_is_drawn_as_a_visual() -> None:
    surface = prim("Shader", "surface", 'uniform token info:id = "UsdPreviewSurface"', "float inputs:metallic = 1",
                   "color3f inputs:diffuseColor = (1, 0, 0)", "token outputs:surface")  # fmt: skip
    steel = prim("Material", "paint", "token outputs:surface.connect = </World/paint/surface.outputs:surface>", surface)
    cube = prim("Cube", "c", PAINTED, apis="PhysicsCollisionAPI MaterialBindingAPI")
    b, _ = load_usd(usd(steel, body("a", cube, mass=1, inertia=(1, 1, 1))))
    (visual,) = b.visuals
    assert (visual.kind, visual.color, visual.look.metallic) == ("box", (1.0, 0.0, 0.0), 1.0)


def test_opacity_of_a_prim() -> None:
    cube = prim(
        "Cube", "c", "color3f[] primvars:displayColor = [(0, 0, 1)]", "float[] primvars:displayOpacity = [0.25]"
    )
    b, _ = load_usd(usd(body("a", cube, mass=1, inertia=(1, 1, 1))))
    assert b.visuals[0].look.alpha == 0.25 and b.visuals[0].color == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("values", ["[]", "[(0, 0)]", "[(nan, 0), (1, 0), (1, 1), (0, 1)]"])
def test_texture_coordinates_that_do_not_fit_are_a_finding(values: str) -> None:
    line = f'texCoord2f[] primvars:st = {values} (interpolation = "vertex")'
    b, report = loaded(paint(), line)
    assert piece(b).look.texture is None and "without texture coordinates" in looks(report)[0]


def test_cameras_and_lights_with_odd_numbers_are_findings_or_left_out() -> None:
    odd = [
        prim("Camera", "far", "float focalLength = inf"),
        prim("Camera", "lost", at=(math.nan, 0, 0)),
        prim("SphereLight", "gone", at=(math.inf, 0, 0)),
        prim("SphereLight", "bright", "float inputs:exposure = 1e9"),
        prim("DistantLight", "none", "float inputs:intensity = nan"),
        prim("DistantLight", "black", "color3f inputs:color = (0, 0, 0)"),
    ]
    b, report = load_usd(usd(*odd, body("a", mass=1, inertia=(1, 1, 1))))
    assert b.cameras[0].fov_y == pytest.approx(math.pi / 4) and [light.label for light in b.lights] == ["bright"]
    assert sorted(f.element for f in report.findings if f.severity == "look") == [
        "camera '/World/far'",
        "camera '/World/lost'",
        "light '/World/gone'",
    ]
