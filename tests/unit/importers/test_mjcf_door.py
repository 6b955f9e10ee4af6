import sys

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, ModelError, Transform, UnknownNameError
from gpusim.importers import load_mjcf
from gpusim.importers.load import format_of
from tests.message_snapshot import naming

from .mjcf_tools import mjcf, mujoco, solid

HINGE = "<joint name='h' axis='0 1 0'/>"
ARM = mjcf(solid(HINGE, name="base body"))
TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MESH = mjcf(
    "<body><freejoint/><geom type='mesh' mesh='part'/></body>",
    "<compiler meshdir='meshes'/><asset><mesh name='part' file='deep/part.obj'/></asset>",
)


def test_path_text_model_and_spec_give_the_same(tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text(ARM)
    sources = [file, str(file), ARM, mujoco.MjModel.from_xml_string(ARM)]
    if hasattr(mujoco, "MjSpec"):
        sources.append(mujoco.MjSpec.from_string(ARM))
    for source in sources:
        builder, report = load_mjcf(source)
        assert [b.label for b in builder.bodies] == ["base_body"]
        assert report.robot_name == "test"
    assert load_mjcf(file)[1].source == "arm.xml"


def test_meshes_come_from_assets_or_other_folders(tmp_path):
    with pytest.raises(ModelError, match=naming("part.obj asset_dirs")):
        load_mjcf(MESH)
    assert len(load_mjcf(MESH, assets={"part.obj": TETRAHEDRON})[0].shapes) == 1
    for folder, content in (("a/wrong", b""), ("b/deep", TETRAHEDRON)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part.obj").write_bytes(content)
    builder, _ = load_mjcf(MESH, asset_dirs=[tmp_path])
    assert len(builder.shapes[0].params["vertices"]) == 4


def test_an_unknown_error_of_the_compiler_is_a_model_error(monkeypatch):
    """MuJoCo raises a RuntimeError, for example for a connect constraint with an empty anchor."""

    class Failing:
        @staticmethod
        def from_xml_string(text, files):
            raise RuntimeError("Caught an unknown exception!")

    monkeypatch.setattr(mujoco, "MjModel", Failing)
    with pytest.raises(ModelError, match=naming("MJCF text unknown exception")):
        load_mjcf(ARM)


def test_included_files_come_from_assets():
    text = "<mujoco><include file='arm.xml'/></mujoco>"
    assert len(load_mjcf(text, assets={"arm.xml": ARM.encode()})[0].bodies) == 1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("<mujoco><bodies/></mujoco>", "'bodies' line 1"),
        ("<mujoco", "MJCF"),
        ("no_such_file.xml", "no_such_file.xml"),
        ("", "load_mjcf"),
        (3, "load_mjcf 3"),
    ],
)
@pytest.mark.messages_vary
def test_bad_models_are_one_sentence(source, words):
    with pytest.raises(ModelError, match=naming(words)) as error:
        load_mjcf(source)
    assert "\n" not in str(error.value)


def test_bad_arguments_are_one_sentence():
    with pytest.raises(UnknownNameError, match=naming("'hom' 'home'")):
        load_mjcf(mjcf(solid(HINGE), "<keyframe><key name='home' qpos='1'/></keyframe>"), pose="hom")
    with pytest.raises(ModelError, match=naming("meshes 'convex'")):
        load_mjcf(ARM, meshes="convex")
    with pytest.raises(ModelError, match=naming("keep 'a'")):
        load_mjcf(ARM, keep="a")
    with pytest.raises(ModelError, match=naming("assets")):
        load_mjcf(ARM, assets={"a": "text"})
    with pytest.raises(ModelError, match=naming("xform")):
        load_mjcf(ARM, xform=(0, 0, 1))


def test_missing_mujoco_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelError, match=naming("mujoco gpusim[mjcf]")):
        load_mjcf(ARM)


def test_strict_raises_for_what_changes_the_motion():
    brake = mjcf(solid(HINGE), "<actuator><damper name='drag' joint='h' kv='3' ctrlrange='0 1'/></actuator>")
    assert not load_mjcf(brake)[1].exact
    with pytest.raises(ModelError, match=naming("drag strict=True")):
        load_mjcf(brake, strict=True)
    assert load_mjcf(ARM, strict=True)[1].exact


def test_gravity_and_xform():
    pose = Transform.from_axis_angle((1, 2, 3), (0, 0, 1), 0.5)
    builder, _ = load_mjcf(ARM, gravity=(0, 0, -1.6), xform=pose)
    np.testing.assert_array_equal(builder.gravity, (0, 0, -1.6))
    np.testing.assert_allclose(builder.bodies[0].xform.position, (1, 2, 3))
    assert load_mjcf(mjcf(solid(HINGE), option="gravity='0 0 -3'"))[0].gravity[2] == -3.0


def test_names_of_cameras_and_poses():
    more = "<keyframe><key name='k' qpos='1'/><key qpos='2'/></keyframe>"
    _, report = load_mjcf(mjcf(solid(HINGE + "<camera name='eye'/><light/>"), more))
    assert report.poses == ["k", "key1"]
    assert report.cameras == ["eye"]


# gpusim.load


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (ARM, "mjcf"),
        ("\ufeff<?xml version='1.0'?>\n<!-- <robot> -->\n<!DOCTYPE x>\n<mujoco/>", "mjcf"),
        ("<robot name='r'/>", "urdf"),
        ("<sdf version='1.9'/>", "sdf"),
        ("#usda 1.0\n", "usd"),
    ],
)
def test_content_decides_the_format(text, kind, tmp_path):
    assert format_of("load", text) == kind
    file = tmp_path / "model.xml"
    file.write_text(text)
    assert format_of("load", file) == kind


def test_load_reads_mjcf_with_its_arguments(tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text(ARM)
    builder, report = gpusim.load(file, gravity=(0, 0, 0), keep=["x"])
    assert not np.any(builder.gravity)
    assert report.source == "arm.xml"


@pytest.mark.parametrize(
    ("source", "words"),
    [("nothing.urdf", "nothing.urdf"), ("<svg/>", "svg"), ("", "path"), (7, "int"), ("<!-- -->", "XML")],
)
def test_load_refuses_what_is_no_model(source, words):
    with pytest.raises(ModelError, match=naming(words)):
        gpusim.load(source)


def test_load_refuses_unknown_arguments():
    with pytest.raises(UnknownNameError, match=naming("load_mjcf 'fixed_bas' 'fixed_base'")):
        gpusim.load(ARM, fixed_bas=True)


# ModelBuilder.add_model

GRIPPER = mjcf(
    "<body name='palm' pos='0 0 0.1'><geom name='palm' size='0.05' mass='2'/>"
    "<body name='finger' pos='0 0 0.1'><joint name='slide' type='slide' axis='1 0 0'/>"
    "<geom name='tip' size='0.02' mass='0.5'/><site name='tip'/></body></body>",
    "<actuator><position name='close' joint='slide' kp='10'/></actuator>"
    "<keyframe><key name='open' qpos='0.05' ctrl='0.05'/></keyframe>",
)


def hand():
    b = ModelBuilder()
    b.add_body(mass=1.0, inertia=(1, 1, 1), label="hand", xform=Transform((0, 0, 1)))
    return b


def test_a_model_is_mounted_on_a_body_with_its_mass():
    b = hand()
    report = b.add_model(GRIPPER, parent="hand", xform=Transform((0.2, 0, 0)), label_prefix="left_")
    assert [x.label for x in b.bodies] == ["hand", "left_palm", "left_finger"]
    assert [(j.label, j.kind, j.parent, j.child) for j in b.joints] == [
        ("left_palm_fixed", "fixed", 0, 1),
        ("left_slide", "prismatic", 1, 2),
    ]
    assert report.joints["left_slide"].index == 1
    assert report.joints["left_slide"].parent == "left_palm"
    assert report.commands["left_close"].command == "left_close"
    assert report.body_of("left_finger") == "left_finger"
    assert report.shapes == {"left_palm": [0], "left_finger": [1]}
    b.add_model(GRIPPER, parent=0, xform=Transform((-0.2, 0, 0)), label_prefix="right_")
    sim = gpusim.Simulation(b.finalize(), backend="numpy")
    assert report.poses == ["left_open"]
    sim.reset(pose="left_open")
    positions = [float(sim.read(f"joint.{side}_slide.position")[0]) for side in ("left", "right")]
    assert positions == pytest.approx([0.05, 0.0], abs=1e-12)
    sim.reset()
    sim.step(20)
    poses = [np.asarray(sim.read(f"body.{x}.position"))[0] for x in ("hand", "left_palm")]
    np.testing.assert_allclose(poses[1] - poses[0], (0.2, 0, 0.1), atol=1e-9)
    fall = 0.5 * 9.81 * 0.02**2
    assert poses[0][2] == pytest.approx(1.0 - fall, rel=1e-4)


def test_a_model_on_the_world_merges_its_base():
    b = hand()
    report = b.add_model(GRIPPER, xform=Transform((3, 0, 0)))
    assert report.merged == {"palm": "world"}
    np.testing.assert_allclose(report.link_frames["palm"][:3, 3], (3, 0, 0.1))
    np.testing.assert_allclose(b.bodies[1].xform.position, (3, 0, 0.2))


def test_sensors_cameras_and_merged_links_move_with_the_model():
    place = Transform.from_axis_angle((1, 2, 3), (0, 0, 1), 0.5)
    text = mjcf(
        "<body name='post' pos='0 0 1'><geom size='.1' mass='2'/><site name='top'/></body><camera name='eye'/>"
        + solid(
            "<joint name='h' axis='0 1 0'/><site name='tip' pos='.4 0 0' euler='0 90 0'/>", name="arm", pos="0 0 2"
        ),
        "<sensor><framepos name='at' objtype='site' objname='tip'/><gyro name='rate' site='tip'/>"
        "<framepos name='from' objtype='site' objname='tip' reftype='site' refname='top'/>"
        "<subtreecom name='com' body='world'/><jointpos name='angle' joint='h'/></sensor>",
    )

    def readings(builder, report):
        sim = gpusim.Simulation(builder.finalize(), backend="numpy")
        return {name: np.squeeze(info.read(sim)[0]) for name, info in report.sensors.items()}

    def check(found, prefix=""):
        for name, value in here.items():
            wanted = place.apply(value) if name in ("at", "com") else value
            np.testing.assert_allclose(found[prefix + name], wanted, atol=1e-9, err_msg=name)

    here = readings(*load_mjcf(text))
    moved = load_mjcf(text, xform=place)
    check(readings(*moved))
    scene = ModelBuilder()
    cart = scene.add_body(50.0, (1, 1, 1), label="cart")
    scene.add_joint_fixed(-1, cart)
    reports = [scene.add_model(text, None, place, "a_"), scene.add_model(text, "cart", place, "b_")]
    for report, prefix in zip(reports, ("a_", "b_"), strict=True):
        assert report.cameras == [f"{prefix}eye"]
        assert f"{prefix}eye" in [camera.label for camera in scene.cameras]
        check(readings(scene, report), prefix)
    np.testing.assert_allclose(moved[1].link_frames["post"][:3, 3], place.apply((0, 0, 1)))
    np.testing.assert_allclose(reports[0].link_frames["a_post"][:3, 3], place.apply((0, 0, 1)))


def test_the_gravity_of_the_builder_acts_on_the_model():
    b = ModelBuilder(gravity=(0, 0, -1.0))
    part = "<body name='part'><geom size='0.1' mass='2'/></body>"
    b.add_model(mjcf(solid(HINGE + part).replace("<body name", "<body gravcomp='1' name", 1)))
    assert b.actuators[0].params["force_z"] == pytest.approx(1.0)


def test_add_model_refuses_bad_input():
    with pytest.raises(UnknownNameError, match=naming("'hnd' 'hand'")):
        hand().add_model(GRIPPER, parent="hnd")
    with pytest.raises(ModelError, match=naming("parent 7")):
        hand().add_model(GRIPPER, parent=7)
    b = hand()
    b.add_model(GRIPPER)
    with pytest.raises(ModelError, match=naming("'finger'")):
        b.add_model(GRIPPER)


def test_models_without_a_prefix_keep_their_own_collision_rules():
    geom = "<geom size='1' contype='1' conaffinity='2'/>"
    one = f"<mujoco model='one'><worldbody><body><freejoint/>{geom}</body></worldbody></mujoco>"
    two = one.replace("one", "two").replace("<geom", "<geom name='g'").replace("<body>", "<body name='b'>")
    two = two.replace("<freejoint/>", "<freejoint name='f'/>")
    b = ModelBuilder()
    for text in (one, two):
        b.add_model(text)
    assert [s.group for s in b.shapes] == ["one_0", "two_0"]
    assert b.group_rules == {("one_0", "one_0"): False, ("two_0", "two_0"): False}


def test_urdf_is_refused():
    with pytest.raises(ModelError, match="load_urdf"):
        load_mjcf('<?xml version="1.0"?><!-- <mujoco/> --><robot name="r"><link name="a"/></robot>')


def test_a_model_with_a_floor_is_not_mounted_on_a_body():
    floor = '<geom name="floor" type="plane" size="1 1 1"/>'
    text = f'<mujoco><worldbody>{floor}<body><geom size="0.1"/></body></worldbody></mujoco>'
    b = ModelBuilder()
    cart = b.add_body(1.0, (1, 1, 1), label="cart")
    with pytest.raises(ModelError, match="collisions=False"):
        b.add_model(text, parent=cart)
    b.add_model(text, parent=cart, collisions=False)


def test_what_is_no_model_file(tmp_path):
    with pytest.raises(ModelError, match=naming("is a folder")):
        gpusim.load(tmp_path)
    with pytest.raises(ModelError, match=naming("machine.yaml gpusim.machine_files.load_machine")):
        gpusim.load("machine.yaml")
