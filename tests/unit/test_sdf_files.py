from __future__ import annotations

import io
import math

import numpy as np
import pytest

import gpusim
from gpusim.errors import ModelError
from gpusim.importers import load_sdf
from tests.message_snapshot import naming
from tests.unit.sdf_text import BOX, axis, collision, inertial, joint, link, model, sdf

trimesh = pytest.importorskip("trimesh")

QUARTER = "1.5707963267948966"


def places(text, **options):
    builder, _ = load_sdf(text, **options)
    return {body.label: np.round(body.xform.position, 9).tolist() for body in builder.bodies}


def findings(report, severity):
    return [f.sentence for f in report.findings if f.severity == severity]


# frames


def test_poses_relative_to_links_joints_and_frames():
    step = f"1 0 0 0 0 {QUARTER}"
    text = sdf(model(
        f"<pose>0 0 5 0 0 {QUARTER}</pose>", link("a", pose="1 0 0 0 0 0"), link("b", "", step, "a"),
        f'<frame name="f" attached_to="b"><pose>{step}</pose></frame>', link("c", "", "1 0 0 0 0 0", "f"),
        joint("j", "revolute", "a", "b", f'<pose relative_to="a">{step}</pose>'),
        link("d", "", "1 0 0 0 0 0", "j"), link("e", "", "1 0 0 0 0 0", "__model__"),
    ))  # fmt: skip
    found = places(text)
    assert found == {"a": [0, 1, 5], "b": [0, 2, 5], "c": [-1, 1, 5], "d": [-1, 2, 5], "e": [0, 1, 5]}


def test_degrees_and_quaternions():
    for attributes, numbers in (
        ('degrees="true"', "1 0 0 0 0 90"),
        ('rotation_format="quat_xyzw"', f"1 0 0 0 0 {math.sqrt(0.5)} {math.sqrt(0.5)}"),
    ):
        text = sdf(model(f"<pose {attributes}>{numbers}</pose>", link("a", pose="2 0 0 0 0 0")))
        np.testing.assert_allclose(places(text)["a"], (1, 2, 0), atol=1e-9)


def test_models_inside_models_and_names_into_them():
    arm = model(link("base"), link("tip", pose="0 0 1 0 0 0"), joint("j", "revolute", "base", "tip"), name="arm")
    arm = arm.replace('name="arm">', 'name="arm"><pose relative_to="mount">0 0 2 0 0 0</pose>')
    text = sdf(model(link("mount", pose="3 0 0 0 0 0"), arm, joint("w", "fixed", "mount", "arm::base")))
    builder, report = load_sdf(text, merge_fixed=False)
    assert {b.label: b.xform.position.tolist() for b in builder.bodies} == {
        "mount": [3, 0, 0], "arm::base": [3, 0, 2], "arm::tip": [3, 0, 3]
    }  # fmt: skip
    assert list(report.joints) == ["w", "arm::j"]
    frame = '<frame name="f" attached_to="arm::tip"/>'
    other = text.replace("</model>\n</sdf>", frame + link("end", "", "0 0 1 0 0 0", "f") + "</model></sdf>")
    assert places(other)["end"] == [3, 0, 4]


def test_joints_between_frames_joints_and_models():
    inner = model(link("x"), link("y", pose="0 0 1 0 0 0"), name="inner", more=' canonical_link="y"')
    for end, expected in (("f", "a"), ("g", "a"), ("j", "a"), ("inner", "inner::y"), ("inner::x", "inner::x")):
        text = sdf(model(
            link("base"), link("a"), link("b"), inner, '<frame name="f" attached_to="a"/>',
            '<frame name="g" attached_to="j"/>', joint("j", "revolute", "base", "a"), joint("k", "revolute", end, "b"),
        ))  # fmt: skip
        assert load_sdf(text)[1].joints["k"].parent == expected
    circle = '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'
    with pytest.raises(ModelError, match=naming("joint 'k' 'f'")):
        load_sdf(sdf(model(link("b"), circle, joint("k", "revolute", "f", "b"))))


def test_placement_frame():
    text = model(link("a", pose="1 0 0 0 0 0"), link("tool", pose="0 0 4 0 0 0"), "<pose>10 0 0 0 0 0</pose>",
                 more=' placement_frame="tool"')  # fmt: skip
    assert places(sdf(text)) == {"a": [11, 0, -4], "tool": [10, 0, 0]}


def test_worlds_have_several_models_and_joints_between_them():
    text = sdf(
        f'<world name="w"><frame name="f"><pose>0 0 1 0 0 0</pose></frame>{model(link("l"), name="a")}'
        f"{model(link('l'), name='b')}{joint('j', 'revolute', 'a::l', 'b::l')}</world>"
    )
    text = text.replace('<model name="b">', '<model name="b"><pose relative_to="f">1 0 0 0 0 0</pose>')
    builder, report = load_sdf(text)
    assert {b.label: b.xform.position.tolist() for b in builder.bodies} == {"a::l": [0, 0, 0], "b::l": [1, 0, 1]}
    assert report.joints["j"].parent == "a::l" and report.base_link == "a::l"
    second = text.replace("</world>", '</world><world name="v"/>')
    assert "world 'v'" in findings(load_sdf(second)[1], "motion")[0]


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models" / "wheel"
    folder.mkdir(parents=True)
    (folder / "model.config").write_text(
        "<model><sdf version='1.4'>old.sdf</sdf><sdf version='1.9'>new.sdf</sdf></model>"
    )
    (folder / "old.sdf").write_text(sdf(model(link("old"), name="wheel")))
    inner = model(
        "<pose>0 0 9 0 0 0</pose>", link("hub", pose="0 0 1 0 0 0"), link("rim", "", "0 1 0 0 0 0", "hub"),
        joint("spin", "revolute", "hub", "rim"), name="wheel",
    )  # fmt: skip
    (folder / "new.sdf").write_text(sdf(inner))
    return tmp_path / "models"


def test_includes(models):
    include = "<include><uri>model://wheel</uri>{}</include>"
    text = sdf(model(link("car"), include.format("<name>left</name><pose>1 0 0 0 0 0</pose>"), include.format("")))
    found = places(text, asset_dirs=[models])
    assert found == {
        "car": [0, 0, 0], "left::hub": [1, 0, 1], "left::rim": [1, 1, 1], "wheel::hub": [0, 0, 10],
        "wheel::rim": [0, 1, 10],
    }  # fmt: skip
    path = models / "car.sdf"
    path.write_text(text)
    assert places(path) == found
    assert places(models / "wheel") == {"hub": [0, 0, 10], "rim": [0, 1, 10]}
    fuel = text.replace("model://wheel", "https://fuel.gazebosim.org/1.0/OpenRobotics/models/wheel/3")
    assert places(fuel, asset_dirs=[models]) == found
    twice = text.replace("<name>left</name>", "")
    assert "wheel_1::hub" in places(twice, asset_dirs=[models])
    changed = text.replace("<name>left</name>", "<experimental:params/>")
    assert "experimental:params" in findings(load_sdf(changed, asset_dirs=[models])[1], "motion")[0]
    lifted = text.replace("<name>left</name>", '<plugin filename="lift-drag" name="p"/>')
    assert "lift-drag" in findings(load_sdf(lifted, asset_dirs=[models])[1], "motion")[0]
    static = text.replace("<name>left</name>", "<name>left</name><static>true</static>")
    assert list(places(static, asset_dirs=[models])) == ["car", "wheel::hub", "wheel::rim"]


def test_merged_includes_and_placement(models):
    body = "<uri>model://wheel</uri><placement_frame>rim</placement_frame><pose>5 0 0 0 0 0</pose>"
    plain = sdf(model(link("car"), f"<include>{body}</include>"))
    assert places(plain, asset_dirs=[models]) == {"car": [0] * 3, "wheel::hub": [5, -1, 0], "wheel::rim": [5, 0, 0]}
    merged = sdf(model(link("car"), f'<include merge="true">{body}</include>', joint("j", "revolute", "car", "hub")))
    builder, report = load_sdf(merged, asset_dirs=[models])
    found = {b.label: np.round(b.xform.position, 9).tolist() for b in builder.bodies}
    assert found == {"car": [0] * 3, "hub": [5, -1, 0], "rim": [5, 0, 0]}
    assert set(report.joints) == {"j", "spin"}


def test_missing_includes(models):
    names = ("model://sun", "model://ground_plane", "model://nothing")
    uris = "".join(f"<include><uri>{name}</uri></include>" for name in names)
    ball = inertial() + collision("<sphere><radius>1</radius></sphere>")
    text = sdf(f'<world name="w">{uris}{model(link("ball", ball))}</world>')
    builder, report = load_sdf(text, xform=gpusim.Transform((0, 0, 2)))
    assert [(shape.kind, shape.label) for shape in builder.shapes] == [("sphere", "ball"), ("plane", "ground_plane")]
    np.testing.assert_allclose(builder.shapes[1].xform.position, (0, 0, 2))
    assert len(findings(report, "look")) == 1 and "ground_plane" in findings(report, "info")[0]
    (lost,) = findings(report, "motion")
    assert "model://nothing" in lost and "asset_dirs" in lost


# shapes

SHAPES = {
    "box": ("<box><size>1 2 3</size></box>", "box", 6.0),
    "sphere": ("<sphere><radius>0.5</radius></sphere>", "sphere", math.pi / 6),
    "cylinder": ("<cylinder><radius>0.5</radius><length>2</length></cylinder>", "cylinder", math.pi / 2),
    "capsule": ("<capsule><radius>0.5</radius><length>2</length></capsule>", "capsule", math.pi * (1 / 2 + 1 / 6)),
    "ellipsoid": ("<ellipsoid><radii>0.5 1 1.5</radii></ellipsoid>", "ellipsoid", math.pi),
    "cone": ("<cone><radius>1</radius><length>3</length></cone>", "cone", math.pi),
    "polyline": (
        "<polyline><height>2</height><point>0 0</point><point>1 0</point><point>1 3</point><point>0 3</point>"
        "</polyline>", "hull", 6.0,
    ),
    "mesh": ("<mesh><uri>a.stl</uri><scale>1 2 3</scale></mesh>", "hull", 6.0),
}  # fmt: skip
CUBE = trimesh.creation.box((1, 1, 1)).export(file_type="stl")


@pytest.mark.parametrize(("geometry", "kind", "volume"), SHAPES.values(), ids=SHAPES)
def test_shapes_have_their_volumes(geometry, kind, volume):
    content = '<inertial auto="true"><density>2</density></inertial>' + collision(geometry, pose="1 0 0 0 0 0")
    look = f'<visual name="v"><geometry>{geometry}</geometry></visual>' if kind != "hull" else ""
    builder, report = load_sdf(sdf(model(link("a", content + look))), assets={"a.stl": CUBE})
    (shape,) = builder.shapes
    assert shape.kind == kind and shape.label == "a" and not report.findings
    assert len(builder.visuals) == (1 if look else 0) and (report.triangles > 0) == bool(look)
    np.testing.assert_allclose(shape.xform.position, (1, 0, 0))
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    assert float(sim.read("body.a.mass")[0]) == pytest.approx(2.0 * volume, rel=1e-9)


def test_planes():
    plane = "<plane><normal>{}</normal><size>1 1</size></plane>"
    for normal in ((0, 0, 1), (0, 0, -1), (1, 0, 0), (0, 2, 1)):
        text = sdf(model("<static>1</static>", link("l", collision(plane.format(" ".join(map(str, normal)))))))
        (shape,) = load_sdf(text)[0].shapes
        direction = shape.xform.matrix() @ (0, 0, 1)
        np.testing.assert_allclose(direction, np.array(normal) / np.linalg.norm(normal), atol=1e-12)
    builder, report = load_sdf(sdf(model(link("l", inertial() + collision(plane.format("0 0 1"))))))
    assert not builder.shapes and "<plane> on a link that moves" in findings(report, "contact")[0]


def test_static_meshes_collide_as_triangles():
    mesh = collision("<mesh><uri>a.stl</uri><scale>4 4 4</scale></mesh>")
    ball = link("ball", inertial() + collision("<sphere><radius>0.5</radius></sphere>"), "0.1 0 -1.45 0 0 0")
    text = sdf(model("<static>1</static>", link("room", mesh), name="room"), model(ball, name="m"))
    builder, report = load_sdf(text, assets={"a.stl": CUBE})
    assert builder.shapes[0].kind == "triangle_mesh" and builder.shapes[0].body == -1 and not report.findings
    sim = gpusim.Simulation(builder.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=5e-3))
    sim.step(40)
    assert sim.read("body.m::ball.position")[0][2] == pytest.approx(-1.5, abs=2e-3)


def test_heightmaps():
    image = pytest.importorskip("PIL.Image")
    picture = io.BytesIO()
    image.fromarray(np.tile(np.array([0, 85, 170, 255], np.uint8), (4, 1))).save(picture, "PNG")
    height = "<heightmap><uri>a.png</uri><size>4 8 3</size><pos>0 0 1</pos></heightmap>"
    static = model("<static>1</static>", link("hill", collision(height)))
    builder, report = load_sdf(sdf(static), assets={"a.png": picture.getvalue()})
    (shape,) = builder.shapes
    assert shape.kind == "height_field" and not report.findings and shape.xform.position[2] == 1.0
    np.testing.assert_allclose(np.asarray(shape.params["heights"])[0], (0, 1, 2, 3), atol=1e-9)
    report = load_sdf(sdf(static.replace("a.png", "a.tif")))[1]
    assert "add_terrain" in findings(report, "contact")[0]


def test_submeshes():
    one, other = trimesh.creation.box((1, 1, 1)), trimesh.creation.box((2, 2, 2)).apply_translation((5, 0, 0))
    scene = trimesh.Scene()
    scene.add_geometry(one, geom_name="small", node_name="small")
    scene.add_geometry(other, geom_name="big", node_name="big")
    assets = {"both.glb": scene.export(file_type="glb")}
    mesh = "<mesh><uri>both.glb</uri><submesh><name>{}</name><center>{}</center></submesh></mesh>"
    for name, center, middle, half in (("small", 0, 0, 0.5), ("big", 0, 5, 1), ("big", 1, 0, 1)):
        text = sdf(model(link("l", inertial() + collision(mesh.format(name, center)))))
        (shape,) = load_sdf(text, assets=assets)[0].shapes
        low, high = (f(shape.params["vertices"], axis=0) for f in (np.min, np.max))
        np.testing.assert_allclose(0.5 * (low + high), (middle, 0, 0), atol=1e-6)
        np.testing.assert_allclose(high - low, 2 * half, atol=1e-6)
    report = load_sdf(sdf(model(link("l", inertial() + collision(mesh.format("none", 0))))), assets=assets)[1]
    assert "no submesh 'none'" in findings(report, "contact")[0]


def test_what_cannot_be_had_is_reported():
    for geometry, words in (
        ("<heightmap><uri>a.png</uri></heightmap>", "<heightmap>"),
        ("<image><uri>a.png</uri></image>", "<image>"),
        ("<box><size>0 1 1</size></box>", "no volume"),
        ("<mesh><uri>gone.stl</uri></mesh>", "gone.stl"),
        ("", "empty"),
    ):
        builder, report = load_sdf(sdf(model(link("l", inertial() + collision(geometry)))))
        assert not builder.shapes and words in findings(report, "contact")[0]
    corner = "<point>0 0</point><point>2 0</point><point>2 2</point><point>1 0.5</point>"
    report = load_sdf(sdf(model(link("l", inertial() + collision(f"<polyline>{corner}</polyline>")))))[1]
    assert "concave" in findings(report, "contact")[0]


# surfaces


def surface(content):
    builder, report = load_sdf(sdf(model(link("l", inertial() + collision(BOX, content)))))
    return builder.shapes[0].material, report


def test_friction_torsion_and_bounce():
    assert surface("")[0] == gpusim.Material(friction=1.0, combine="min")
    found, report = surface("<friction><ode><mu>0.3</mu><mu2>0.3</mu2></ode></friction>")
    assert found.friction == 0.3 and not report.findings
    found, report = surface("<friction><ode><mu>0.3</mu><mu2>0.1</mu2><slip1>0.1</slip1></ode></friction>")
    assert found.friction == 0.3 and len(findings(report, "contact")) == 2
    assert surface("<friction><ode><mu>1e9</mu></ode></friction>")[0].friction == 100.0
    torsion = "<friction><torsional><coefficient>2</coefficient><patch_radius>0.1</patch_radius></torsional></friction>"
    assert surface(torsion)[0].spinning_friction == pytest.approx(2 * 3 * math.pi / 16 * 0.1)
    bounce = "<bounce><restitution_coefficient>0.6</restitution_coefficient>{}</bounce>"
    assert surface(bounce.format("<threshold>0</threshold>"))[0].restitution == 0.6
    found, report = surface(bounce.format(""))
    assert found.restitution == 0.0 and "does not bounce" in findings(report, "info")[0]
    assert "compliance" in findings(surface("<contact><ode><kp>1e5</kp></ode></contact>")[1], "contact")[0]


def pairs(builder):
    labels = [shape.label for shape in builder.shapes]
    return {frozenset((labels[pair.shape_a], labels[pair.shape_b])) for pair in builder.pairs}


def test_self_collision():
    def three(*flags, more=""):
        return sdf(model(more, *(link(name, flag + inertial() + collision(BOX), f"{3 * k} 0 0 0 0 0")
                                 for k, (name, flag) in enumerate(zip("abc", flags, strict=True)))))  # fmt: skip

    on, none = "<self_collide>1</self_collide>", ("", "", "")
    assert len(pairs(load_sdf(three(*none))[0])) == 3
    assert pairs(load_sdf(three(*none, more=on))[0]) == set()
    assert pairs(load_sdf(three(on, on, ""))[0]) == {frozenset("ac"), frozenset("bc")}
    off = "<self_collide>0</self_collide>"
    assert pairs(load_sdf(three(off, "", "", more=on))[0]) == {frozenset("ab"), frozenset("ac")}
    assert pairs(load_sdf(three(*none), self_collisions=True)[0]) == set()
    assert len(pairs(load_sdf(three(*none, more=on), self_collisions=False)[0])) == 3
    near = three(*none, more=on).replace("3 0 0 0 0 0", "0.5 0 0 0 0 0")
    builder, report = load_sdf(near)
    assert pairs(builder) == {frozenset("ab")} and report.overlaps == {("a", "b"): pytest.approx(0.5)}


def test_bitmasks():
    mask = "<contact><collide_bitmask>{}</collide_bitmask></contact>"
    names = {"a": mask.format("0x01"), "b": mask.format("2"), "c": ""}
    text = sdf(*(model(link("l", inertial() + collision(BOX, s)), name=n) for n, s in names.items()))
    shapes = {shape.label: shape for shape in load_sdf(text)[0].shapes}

    def collide(a, b):
        a, b = shapes[f"{a}::l"], shapes[f"{b}::l"]
        return bool(a.group & b.mask) and bool(b.group & a.mask)

    assert not collide("a", "b") and collide("a", "c") and collide("b", "c")


def test_a_bitmask_is_a_whole_number():
    mask = "<contact><collide_bitmask>inf</collide_bitmask></contact>"
    with pytest.raises(ModelError, match="whole number"):
        load_sdf(sdf(model(link("l", inertial() + collision(BOX, mask)))))


def test_colors():
    def color(material):
        look = f'<visual name="v"><geometry>{BOX}</geometry><material>{material}</material></visual>'
        builder, report = load_sdf(sdf(model(link("l", inertial() + look))))
        return builder.visuals[0].color, report

    assert color("<ambient>0 0 1 1</ambient><diffuse>1 0.5 0 1</diffuse>")[0] == (1.0, 0.5, 0.0)
    assert color("<ambient>0 0 1 1</ambient>")[0] == (0.0, 0.0, 1.0)
    assert color("<script><name>Gazebo/GreenTransparent</name></script>")[0] == (0.0, 1.0, 0.0)
    found, report = color("<script><name>PR2/fingertip</name></script>")
    assert found is None and len(findings(report, "look")) == 1


def test_transparency_finish_and_texture():
    image = pytest.importorskip("PIL.Image")
    picture = io.BytesIO()
    image.new("RGB", (2, 2), (255, 0, 0)).save(picture, "PNG")
    metal = "<metal><albedo_map>{}.png</albedo_map><roughness>0.3</roughness><metalness>0.9</metalness></metal>"
    look = (
        f'<visual name="v"><geometry>{BOX}</geometry><transparency>0.5</transparency><material>'
        f"<diffuse>1 1 1 0.5</diffuse><pbr>{metal}</pbr></material></visual>"
    )
    text = sdf(model(link("l", inertial() + look)))
    builder, report = load_sdf(text.format("a"), assets={"a.png": picture.getvalue()})
    found = builder.visuals[0].look
    assert (found.alpha, found.roughness, found.metallic) == (0.25, 0.3, 0.9) and found.texture is not None
    assert not report.findings
    builder, report = load_sdf(text.format("b"))
    assert builder.visuals[0].look.texture is None and "b.png" in findings(report, "look")[0]


def test_maps_that_pictures_lack_are_reported():
    for name in ("normal_map", "roughness_map", "metalness_map", "emissive_map"):
        text = f"<material><pbr><metal><{name}>a.png</{name}></metal></pbr></material>"
        visual = f'<visual name="v"><geometry>{BOX}</geometry>{text}</visual>'
        _, report = load_sdf(sdf(model(link("a", inertial() + visual))))
        (finding,) = [finding for finding in report.findings if finding.severity == "look"]
        assert name.replace("_", " ") in finding.what


def test_lights():
    spot = (
        '<light name="lamp" type="spot"><pose>0 0 1 0 0 0</pose><direction>1 0 0</direction><diffuse>2 1 0 1</diffuse>'
        "<attenuation><constant>0.5</constant><linear>0.1</linear></attenuation><cast_shadows>1</cast_shadows>"
        "<spot><outer_angle>0.8</outer_angle><falloff>2</falloff></spot></light>"
    )
    sun = '<light name="sun" type="directional"><direction>0 1 -1</direction></light>'
    dark = '<light name="dark" type="point"><intensity>0</intensity></light>'
    turned = link("l", inertial() + spot, f"0 0 0 0 0 {QUARTER}")
    builder, report = load_sdf(sdf(f'<world name="w">{sun}{dark}{model(turned)}</world>'))
    first, second = builder.lights
    assert (first.label, first.kind, first.body) == ("sun", "directional", -1) and first.shadow
    np.testing.assert_allclose(first.xform.matrix() @ (0, 0, -1), np.array([0, 1, -1]) / math.sqrt(2), atol=1e-12)
    assert (second.label, second.kind, second.body, second.cutoff) == ("lamp", "spot", 0, 0.4)
    np.testing.assert_allclose(second.xform.position, (0, 0, 1))
    np.testing.assert_allclose(second.xform.matrix() @ (0, 0, -1), (1, 0, 0), atol=1e-12)
    assert second.intensity == 2.0 and len(findings(report, "look")) == 1


def test_cameras_look_along_x():
    camera = "<camera><horizontal_fov>{}</horizontal_fov><image><width>200</width><height>100</height></image></camera>"
    sensor = f'<sensor name="eye" type="camera"><pose>0 0 1 0 0 0</pose>{camera.format(QUARTER)}</sensor>'
    builder, report = load_sdf(sdf(model(link("l", inertial() + sensor))))
    (found,) = builder.cameras
    assert report.cameras == ["l::eye"] and found.fov_y == pytest.approx(2 * math.atan(0.5))
    np.testing.assert_allclose(found.xform.matrix() @ (0, 0, -1), (1, 0, 0), atol=1e-12)
    np.testing.assert_allclose(found.xform.matrix() @ (0, 1, 0), (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(found.xform.position, (0, 0, 1))


# findings


def test_everything_else_is_reported():
    text = sdf(
        '<world name="w"><physics type="ode"><max_step_size>0.001</max_step_size></physics><light name="s"/>'
        '<wind><linear_velocity>1 0 0</linear_velocity></wind><road name="r"/><plugin filename="scene" name="gz"/>'
        '<population name="many"/><spherical_coordinates/>'
        + model(
            '<plugin filename="gz-sim-lift-drag-system" name="ld"/>',
            link("a", "<velocity_decay><linear>0.1</linear></velocity_decay><strange/>" + inertial()
                 + '<sensor name="cam era" type="camera"><pose>0 0 1 0 0 0</pose></sensor>'),
            link("b"), joint("j", "revolute", "a", "b", axis() + '<sensor name="ft" type="force_torque"/>'),
        )
        + "</world>"
    )  # fmt: skip
    builder, report = load_sdf(text)
    assert [f.element for f in report.findings if f.severity == "motion"] == [
        "population 'many'", "plugin 'gz-sim-lift-drag-system'", "<wind>", "link 'a'",
    ]  # fmt: skip
    assert len(findings(report, "look")) == 1 and len(findings(report, "info")) == 4
    assert len(builder.lights) == 1 and not builder.cameras
    assert report.ignored == {"spherical_coordinates": 1, "strange": 1}
    (site,) = builder.sites
    assert site.label == "a::cam_era" and site.xform.position[2] == 1.0
    with pytest.raises(ModelError, match=naming("population 'many'")):
        load_sdf(text, strict=True)


BROKEN = {
    "not XML": ("<sdf", "SDF text line"),
    "entity": ('<!DOCTYPE sdf [<!ENTITY a "b">]><sdf/>', "entity"),
    "URDF": ('<robot name="a"/>', "<robot> load_urdf"),
    "no model": ("<sdf version='1.9'/>", "1 <model>"),
    "no links": (sdf('<world name="w"/>'), "<model>"),
    "model twice": (sdf(model(link("a")), model(link("a"))), "model 'bot'"),
    "link twice": (sdf(model(link("a"), link("a"))), "'a'"),
    "link without a name": (sdf(model(link(""))), "<link>"),
    "joint twice": (sdf(model(link("a"), link("b"), *(2 * [joint("j", "ball", "a", "b")]))), "'j'"),
    "old syntax": (sdf(model('<link name="a"><origin pose="0 0 1 0 0 0"/></link>'), version="1.2"), "'a' <origin>"),
    "unknown type": (sdf(model(link("a"), link("b"), joint("j", "hinge", "a", "b"))), "joint 'j' 'hinge'"),
    "unknown child": (sdf(model(link("a"), joint("j", "revolute", "a", "c"))), "joint 'j' 'c' known: a"),
    "misspelled child": (
        sdf(model(*(link(f"arm_{k}") for k in range(40)), joint("j", "revolute", "arm_1", "amr_2"))),
        "joint 'j' 'arm_2'",
    ),
    "no parent": (sdf(model(link("a"), joint("j", "revolute", "", "a"))), "joint 'j' <parent>"),
    "to itself": (sdf(model(link("a"), joint("j", "revolute", "a", "a"))), "joint 'j' 'a'"),
    "pose of five": (sdf(model(link("a", pose="1 2 3 4 5"))), "<pose> 6"),
    "pose a word": (sdf(model(link("a", pose="1 2 3 4 5 up"))), "<pose>"),
    "unknown frame": (sdf(model(link("a", "", "1 0 0 0 0 0", "b"))), "<pose> 'b'"),
    "circle": (sdf(model(link("a", "", "", "b"), link("b", "", "", "a"))), "depends"),
    "placement circle": (sdf(model(link("a"), more=' placement_frame="b"')), "'b'"),
    "zero axis": (sdf(model(link("a"), joint("j", "revolute", "world", "a", axis("0 0 0")))), "joint 'j'"),
    "limits swapped": (
        sdf(model(link("a"), joint("j", "revolute", "world", "a",
                                   axis(inside="<limit><lower>1</lower><upper>0</upper></limit>")))), "joint 'j' 1 0",
    ),
    "mass a word": (sdf(model(link("a", "<inertial><mass>big</mass></inertial>"))), "<mass>"),
    "negative mass": (sdf(model(link("a", inertial(-1.0)))), "link 'a' -1"),
    "flag": (sdf(model("<static>maybe</static>", link("a"))), "<static>"),
    "pitch 0": (sdf(model(link("a"), joint("j", "screw", "world", "a", axis() + "<thread_pitch>inf</thread_pitch>"
                                           ))), "joint 'j'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_text(text, words):
    with pytest.raises(ModelError, match=naming(words)) as caught:
        load_sdf(text)
    message = str(caught.value)
    assert "\n" not in message and message.startswith("SDF text line")
    assert caught.value.__cause__ is None


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "nowhere.sdf", tmp_path, "bad\0name", "", "  ", None, 3.0):
        with pytest.raises(ModelError):
            load_sdf(path)


def test_a_model_that_includes_itself(tmp_path):
    (tmp_path / "model.sdf").write_text(sdf(model("<include><uri>model.sdf</uri></include>", link("a"))))
    with pytest.raises(ModelError, match=naming("30")):
        load_sdf(tmp_path / "model.sdf")
