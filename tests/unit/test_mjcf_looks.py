from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError
from gpusim.importers.report import ImportReport
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.viewer import Offscreen, PinholeCamera
from tests.message_snapshot import naming
from tests.unit.mesh_files import QUARTERS, SQUARE, TRIANGLES, UV, picture
from tests.unit.viewer.drawing import require_egl

mujoco = pytest.importorskip("mujoco")
image = pytest.importorskip("PIL.Image")

SIDES = {"right": (1, 0, 0), "left": (0, 1, 0), "up": (0, 0, 1), "down": (1, 1, 0)}
SIDES |= {"front": (0, 1, 1), "back": (1, 0, 1)}


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    image.fromarray(pixels.astype(np.uint8)).save(stream, format="PNG")
    return stream.getvalue()


def obj() -> bytes:
    back = [f"v {x} 1 {z}" for x, _, z in SQUARE]
    text = [f"v {x} {y} {z}" for x, y, z in SQUARE] + back + [f"vt {u} {v}" for u, v in UV] + ["vn 0.6 -0.8 0"]
    text += ["f " + " ".join(f"{k}/{k}/1" for k in t) for t in TRIANGLES + 1]
    text += ["f " + " ".join(f"{k + 4}/{k}/1" for k in t[::-1]) for t in TRIANGLES + 1]
    return "\n".join(text).encode()


ASSETS = {"quarters.png": png(picture()), "square.obj": obj()}
ASSETS |= {f"{name}.png": png(np.full((8, 8, 3), 255) * color) for name, color in SIDES.items()}
FILES = " ".join(f'file{name}="{name}.png"' for name in SIDES)
ASSET = f"""<asset>
  <texture name="quarters" type="2d" file="quarters.png"/>
  <texture name="cube" type="cube" {FILES}/>
  <texture name="sky" type="skybox" builtin="flat" width="8" height="48"/>
  <material name="paint" texture="quarters" texrepeat="2 1"/>
  <material name="uniform" texture="quarters" texrepeat="2 1" texuniform="true"/>
  <material name="cube" texture="cube" rgba="0.5 1 1 1"/>
  <material name="metal" metallic="0.9" roughness="0.2" reflectance="0.3"/>
  <mesh name="square" file="square.obj"/>
</asset>"""


def loaded(body: str = "", world: str = "", **more: Any) -> tuple[ModelBuilder, ImportReport]:
    from gpusim.importers import load_mjcf

    text = f'<mujoco>{ASSET}<worldbody>{world}<body name="b" pos="0 0 1"><freejoint/>{body}</body></worldbody></mujoco>'
    return load_mjcf(text, assets=ASSETS, **more)


def test_a_mesh_keeps_normals_and_texture_coordinates() -> None:
    b, report = loaded('<geom type="mesh" mesh="square" material="paint"/>')
    (visual,) = b.visuals
    (piece,) = visual.params["pieces"]
    assert piece.uv is not None and piece.normals is not None
    places = visual.xform.apply(piece.vertices[piece.triangles].reshape(-1, 3)).round(5)
    uv = {(x, z): tuple(t) for (x, _, z), t in zip(places.tolist(), piece.uv.reshape(-1, 2).tolist(), strict=True)}
    assert uv == {(x, z): tuple(t) for (x, _, z), t in zip(SQUARE.tolist(), UV.tolist(), strict=True)}
    normals = visual.xform.rotate(piece.normals.reshape(-1, 3))
    assert normals[:3] == pytest.approx(np.broadcast_to([0.6, -0.8, 0.0], (3, 3)), abs=1e-6)
    texture = visual.look.texture
    assert texture is not None and np.array_equal(texture.pixels, picture()) and texture.repeat == (2.0, 1.0)
    assert b.shapes and not [f for f in report.findings if "texture" in f.what and "sky" not in f.what]


def test_transparent_and_hidden_geoms() -> None:
    b, _ = loaded(
        '<geom size="0.1" rgba="1 0 0 0.3"/><geom size="0.2" rgba="0 1 0 0"/>',
        '<geom type="box" size="1 1 1" rgba="0 0 1 0.5"/><geom name="wall" type="box" size="1 1 2" group="3"/>',
    )
    red, blue = sorted(b.visuals, key=lambda v: v.color or (), reverse=True)
    assert (red.look.alpha, red.color, blue.look.alpha) == (pytest.approx(0.3), (1.0, 0.0, 0.0), pytest.approx(0.5))
    stage = Stage(b.finalize(), decoration=False)
    assert sorted(stage.alpha.tolist()) == pytest.approx([0.3, 0.5])
    assert len(Stage(b.finalize(), decoration=False, visuals=False)) == len(b.shapes) == 4


def test_plain_colliding_geoms_are_drawn_by_their_shapes() -> None:
    b, _ = loaded('<geom size="0.1" rgba="1 0 0 1"/><geom type="box" size="1 1 1" material="metal"/>')
    assert [(v.kind, v.look.metallic, v.look.roughness) for v in b.visuals if v.kind == "box"] == [
        ("box", pytest.approx(0.9), pytest.approx(0.2))
    ]
    plain, _ = loaded('<geom size="0.1" rgba="1 0 0 1"/>')
    assert not plain.visuals and plain.shapes[0].color == (1.0, 0.0, 0.0)


HIDDEN = '<geom size="0.1" group="3"/><body name="arm"><joint/><geom size="0.2" rgba="1 0 0 1"/></body>'


def drawn(b: ModelBuilder, **more: Any) -> list[int]:
    return sorted(Stage(b.finalize(), decoration=False, **more).body.tolist())


def test_hidden_groups_are_not_drawn_unless_they_are_chosen() -> None:
    b, _ = loaded(HIDDEN)
    assert drawn(b) == [1] and drawn(b, visuals=False) == [0, 1]
    assert drawn(loaded(HIDDEN, visual_groups=(0, 3))[0]) == [0, 1]
    assert drawn(loaded(HIDDEN, visual_groups=[3])[0]) == [0]
    assert drawn(loaded('<geom size="0.1" group="3"/>')[0]) == [0]


@pytest.mark.parametrize("groups", [(6,), (-1,), (0.5,), 2, "geoms"])
def test_groups_that_do_not_exist_are_an_error(groups: Any) -> None:
    with pytest.raises(ModelError, match=naming(f"load_mjcf visual_groups {groups!r} 5")):
        loaded(HIDDEN, visual_groups=groups)


def test_geoms_below_a_skin_are_drawn_in_its_place() -> None:
    from gpusim.importers import load_mjcf

    skin = """<deformable><skin vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">
      <bone body="b" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></deformable>"""
    b, report = load_mjcf(f'<mujoco><worldbody><body name="b"><freejoint/>{HIDDEN}</body></worldbody>{skin}</mujoco>')
    assert drawn(b) == [0, 1] and "skin" in report.summary()


def test_sites_are_drawn_as_in_mujoco() -> None:
    sites = """<site name="goal" type="box" size="0.1 0.2 0.3" pos="1 2 3" rgba="1 0 0 0.5"/><site name="p"/>
      <site group="4"/><site rgba="0 0 0 0"/>"""
    b, report = loaded(f'<geom size="0.1" rgba="0 1 0 1"/>{sites}')
    ball, goal, point = b.visuals
    assert (ball.kind, ball.color, ball.label) == ("sphere", (0.0, 1.0, 0.0), "geom0")
    assert (goal.kind, goal.color, goal.look.alpha, goal.body) == ("box", (1.0, 0.0, 0.0), 0.5, 0)
    assert goal.params["half_extents"] == pytest.approx([0.1, 0.2, 0.3]) and goal.xform.position.tolist() == [1, 2, 3]
    assert (point.label, point.params["radius"]) == ("p", 0.005) and len(b.sites) == 4
    assert report.visuals["b"] == [0, 1, 2] and drawn(b) == [0, 0, 0]


def test_a_plane_has_the_color_of_its_geom() -> None:
    b, _ = loaded('<geom size="0.1"/>', '<geom type="plane" size="1 1 1" rgba="0 0.5 0 1"/>')
    (ground,) = Stage(b.finalize()).grounds
    assert ground.finish is not None and ground.finish.color == (0.0, 0.5, 0.0)
    (plain,) = Stage(loaded('<geom size="0.1"/>', '<geom type="plane" size="1 1 1"/>')[0].finalize()).grounds
    assert plain.finish is None


def test_what_pictures_lack_is_reported() -> None:
    _, report = loaded('<geom size="0.1" material="metal"/>')
    found = {f.what for f in report.findings if f.severity == "look"}
    assert found == {"a reflecting surface", "1 sky texture"}


def test_maps_that_pictures_lack_are_reported() -> None:
    from gpusim.importers import load_mjcf

    layers = "".join(f'<layer role="{role}" texture="t"/>' for role in ("rgb", "normal", "roughness"))
    assets = (
        '<texture name="t" type="2d" builtin="flat" width="8" height="8"/>' + f'<material name="m">{layers}</material>'
    )
    geom = '<body><freejoint/><geom size="0.1" material="m"/></body>'
    _, report = load_mjcf(f"<mujoco><asset>{assets}</asset><worldbody>{geom}</worldbody></mujoco>")
    assert {f.what for f in report.findings if f.severity == "look"} == {"a normal map", "a roughness map"}


PLANES = {
    ("2 1 1", "paint"): (0.5, 0.5, "y", "b"),
    ("2 1 1", "uniform"): (1.0, 0.5, "y", "b"),
    ("0 0 1", "paint"): (1.0, 0.5, "b", "y"),
    ("4 2 1", "paint"): (0.25, 0.25, "y", "b"),
}


@pytest.mark.parametrize(("size", "material"), PLANES)
def test_pictures_on_planes_lie_as_in_mujoco(size: str, material: str) -> None:
    b, _ = loaded('<geom size="0.01"/>', f'<geom type="plane" size="{size}" material="{material}"/>')
    u, v, left, right = PLANES[size, material]
    (plane,) = [visual for visual in b.visuals if visual.kind == "plane"]
    texture = plane.look.texture
    assert texture is not None and texture.repeat == pytest.approx((u, v)) and texture.mapping == "projected"
    height, width = texture.pixels.shape[:2]
    names = {QUARTERS[k]: name for k, name in (("ul", "r"), ("ur", "g"), ("ll", "b"), ("lr", "y"))}
    below = [tuple(texture.pixels[height // 2 + 3, width // 2 + k].tolist()) for k in (-4, 3)]
    assert [names[color] for color in below] == [left, right]  # type: ignore[index]


def test_cubes_have_the_faces_of_mujoco() -> None:
    require_egl()
    b, _ = loaded('<geom type="box" size="0.3 0.2 0.4" material="cube"/>')
    (visual,) = b.visuals
    assert visual.look.texture is not None and visual.look.texture.is_cube
    # MuJoCo 4.0 shows "right" at +x, "up" at +y and "front" at +z. The material's color takes half of the red.
    eyes = {(3, 0, 1): "right", (-3, 0, 1): "left", (0, 3, 1): "up", (0, -3, 1): "down", (0, 0.01, 4): "front"}
    with Offscreen(b.finalize(), width=64, height=64, quality="software", decoration=False) as eye:
        for position, side in eyes.items():
            eye.look(PinholeCamera(position, (0.0, 0.0, 1.0)))
            color = eye.image()[32, 32].astype(int)
            low, high = color.min(), color.max()
            bright = [c - low > 0.35 * (high - low) for c in color]
            assert bright == [c > 0 for c in SIDES[side]], (side, color)


def test_cameras_see_what_they_see_in_mujoco() -> None:
    cameras = """<camera name="eye" pos="0.1 0.2 0.3" xyaxes="0 1 0 0.3 0 1" fovy="50"/>
      <camera name="aimed" mode="targetbody" target="other" pos="0.5 0 0"/>
      <camera name="sensor" pos="0 0 1" resolution="640 480" sensorsize="0.004 0.003" focal="0.003 0.003"/>"""
    text = f"""<mujoco><worldbody><camera name="room" pos="1 2 3" euler="40 10 20"/>
      <body name="other" pos="3 1 0"><geom size="0.1"/></body>
      <body name="base" pos="1 2 3" euler="10 20 30"><freejoint/><geom size="0.1"/>
      <body name="link" pos="0 0 0.2" euler="0 30 0">{cameras}<geom size="0.1"/></body></body></worldbody></mujoco>"""
    from gpusim.importers import load_mjcf

    b, report = load_mjcf(text)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    model = b.finalize()
    stage, poses = Stage(model), Poses.from_model(model)
    from gpusim.viewer.camera.mounted import mounted_camera

    assert report.cameras == model.labels("camera") == ["room", "eye", "aimed", "sensor"]
    for c, spec in enumerate(model.cameras):
        camera = mounted_camera(stage, poses, spec)
        assert camera.position == pytest.approx(d.cam_xpos[c], abs=1e-9)
        assert camera.axes() == pytest.approx(d.cam_xmat[c].reshape(3, 3).T, abs=1e-6)
    angles = [math.degrees(spec.fov_y) for spec in model.cameras]
    assert angles == pytest.approx([45.0, 50.0, 45.0, math.degrees(2.0 * math.atan(0.5))])
    assert [f.element for f in report.findings if "camera" in f.what] == ["camera 'aimed'"]


def test_lights_keep_kind_place_and_numbers() -> None:
    lights = """<light name="lamp" pos="0 0 2" dir="0 1 -1" diffuse="0.8 0.4 0" attenuation="1 0 0.5" cutoff="30"
      exponent="5"/><light name="off" active="false"/><light name="dark" diffuse="0 0 0"/>
      <light name="sun" directional="true" dir="1 0 -1" castshadow="false"/>"""
    b, report = loaded(f'<geom size="0.1"/>{lights}')
    lamp, sun, head = b.lights
    assert (head.kind, head.shadow, head.intensity) == ("headlight", False, pytest.approx(0.4**2.2))
    assert (lamp.kind, lamp.label, lamp.intensity) == ("spot", "lamp", pytest.approx(0.8))
    assert lamp.color == pytest.approx((1.0, 0.5, 0.0)) and lamp.attenuation == (1.0, 0.0, 0.5)
    assert lamp.cutoff == pytest.approx(math.radians(30.0)) and lamp.exponent == 5.0 and lamp.shadow
    assert lamp.body == 0 and lamp.xform.position == pytest.approx([0.0, 0.0, 2.0])
    assert -lamp.xform.matrix()[:, 2] == pytest.approx([0.0, math.sqrt(0.5), -math.sqrt(0.5)])
    assert (sun.kind, sun.shadow) == ("directional", False)
    assert not [f for f in report.findings if "light" in f.what]
    assert not loaded('<geom size="0.1"/>')[0].lights
    _, tracking = loaded('<geom size="0.1"/><light name="t" mode="trackcom" pos="0 0 2"/>')
    assert [f.element for f in tracking.findings if "light" in f.what] == ["light 't'"]
