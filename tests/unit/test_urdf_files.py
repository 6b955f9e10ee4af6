from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import gpusim
from gpusim.errors import ModelError, UnknownNameError
from gpusim.importers import add_holding_servos, load_urdf
from tests.message_snapshot import naming
from tests.unit.urdf_text import LIMIT, SOLID, arm, joint, link, robot

pytest.importorskip("yourdfpy")
trimesh = pytest.importorskip("trimesh")

MESH = '<collision><geometry><mesh filename="{}"/></geometry></collision>'
BOX = '<collision><geometry><box size="1 1 1"/></geometry></collision>'


def box_bytes() -> bytes:
    return trimesh.creation.box((0.2, 0.2, 0.2)).export(file_type="stl")


HARMLESS = {
    "prefix": (arm().replace("</robot>", "<drake:soft/></robot>"), "prefix"),
    "text after": (arm() + "rubbish", "after the root"),
    "declaration after a comment": ("<!-- mine -->\n<?xml version='1.0'?>" + arm(), "declaration"),
    "lone ampersand": (arm().replace('name="bot"', 'name="b & c"'), "&"),
    "attribute twice": (arm().replace('type="revolute"', 'type="revolute" type="fixed"'), "first one is used"),
    "hyphens in a comment": (arm().replace("</robot>", "<!-- a -- b --></robot>"), "comments"),
}


@pytest.mark.parametrize(("text", "words"), HARMLESS.values(), ids=HARMLESS)
def test_xml_errors_that_lose_nothing_are_reported_with_their_line(text, words):
    _, report = load_urdf(text)
    assert list(report.joints) == ["world_to_base", "elbow"] and report.exact
    (finding,) = report.findings
    assert words in finding.sentence and finding.severity == "info"
    lines = text.splitlines()
    number = int(finding.element.split()[1])
    assert 1 <= number <= len(lines)


def test_an_undeclared_drake_joint_is_no_urdf_joint():
    text = arm().replace("</robot>", '<drake:joint name="ball" type="ball"/></robot>')
    report = load_urdf(text)[1]
    assert report.ignored == {"joint": 1} and not report.exact


def test_spherical_joints_of_pybullet():
    builder, report = load_urdf(arm('<origin xyz="1 0 0"/>' + LIMIT, "spherical"))
    assert builder.joints[1].kind == "ball" and report.joints["elbow"].kind == "spherical" and report.exact


def test_severities():
    heavy = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/></inertial>'
    assert load_urdf(arm(base=heavy))[1].exact
    assert not load_urdf(arm(base=heavy), fixed_base=False)[1].exact
    report = load_urdf(arm(tip=heavy))[1]
    assert [finding.severity for finding in report.findings] == ["motion"]
    with pytest.raises(ModelError, match=naming("link 'tip' inertia")):
        load_urdf(arm(tip=heavy), strict=True)
    load_urdf(arm(), strict=True)
    assert [f.severity for f in load_urdf(arm(tip=SOLID + MESH.format("no.stl")))[1].findings] == ["contact"]


def test_kept_links_stay_bodies():
    text = robot(
        link("base"), link("imu_left"), link("imu_right"), link("cover"),
        joint("a", "base", "imu_left", "fixed", ""), joint("b", "base", "imu_right", "fixed", ""),
        joint("c", "imu_left", "cover", "fixed", ""),
    )  # fmt: skip
    builder, report = load_urdf(text, keep=["imu_l*"])
    assert [body.label for body in builder.bodies] == ["base", "imu_left"]
    assert report.merged == {"imu_right": "base", "cover": "imu_left"}
    with pytest.raises((ModelError, UnknownNameError), match=naming("'camera*'")):
        load_urdf(text, keep=["camera*"])


# files


def test_a_mesh_under_another_package_name_is_found_by_its_tail(tmp_path):
    for folder in ("bot/urdf", "bot/meshes/visual", "other/meshes"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bot/meshes/visual/a.stl").write_bytes(box_bytes())
    (tmp_path / "other/meshes/b.stl").write_bytes(box_bytes())
    path = tmp_path / "bot/urdf/bot.urdf"
    names = ("package://bot_description/meshes/visual/a.stl", "package://gone/meshes/b.stl", "package://x/c.stl")
    path.write_text(robot(link("base", SOLID + "".join(map(MESH.format, names)))))
    builder, report = load_urdf(path)
    assert len(builder.shapes) == 2
    assert [(f.severity, f.element) for f in report.findings] == [
        ("contact", "link 'base'"), ("info", f"mesh {names[0]!r}"), ("info", f"mesh {names[1]!r}"),
    ]  # fmt: skip
    assert report.findings[1].sentence.count("a.stl") == 2
    report = gpusim.ModelBuilder().add_model(path, label_prefix="A_")
    assert [f.element for f in report.findings] == ["link 'A_base'", f"mesh {names[0]!r}", f"mesh {names[1]!r}"]


def test_names_that_are_too_long_for_a_file(tmp_path):
    name = 300 * "x" + ".stl"
    report = load_urdf(robot(link("base", SOLID + MESH.format(name))))[1]
    assert [f.severity for f in report.findings] == ["contact"]
    for load in (gpusim.load, gpusim.importers.load_mjcf):
        with pytest.raises(ModelError):
            load(name)


def test_a_repeated_attribute_prints_nothing(caplog):
    text = robot(link("base", SOLID)).replace('name="base"', 'name="base" name="other"')
    assert load_urdf(text)[0].bodies[0].label == "base" and not caplog.records


def test_files_in_memory():
    text = robot(link("base", SOLID + MESH.format("package://bot/meshes/a.stl")))
    assets = {"bot.urdf": text.encode(), "bot/meshes/a.stl": box_bytes()}
    builder, report = load_urdf("bot.urdf", assets=assets)
    assert len(builder.shapes) == 1 and report.source == "file 'bot.urdf'" and not report.findings
    for bad in ({"/etc/a.stl": b""}, {"../a.stl": b""}, {"a.stl": "text"}):
        with pytest.raises(ModelError, match=naming(repr(next(iter(bad))))):
            load_urdf(text, assets=bad)


def test_decomposed_meshes(monkeypatch: pytest.MonkeyPatch):
    coacd = pytest.importorskip("coacd")
    one, other = trimesh.creation.box((1, 0.2, 0.2)), trimesh.creation.box((0.2, 1, 0.2))
    other.apply_translation((0.4, 0.4, 0.0))  # an L
    try:
        mesh = trimesh.boolean.union([one, other])
    except Exception:
        pytest.skip("trimesh has no engine for unions")
    text = robot(link("base", SOLID + MESH.format("l.stl")))
    builder, report = load_urdf(text, assets={"l.stl": mesh.export(file_type="stl")}, meshes="decompose")
    assert len(builder.shapes) == len(report.shapes["base"]) == 2
    assert {shape.label for shape in builder.shapes} == {"base", "base_part2"}
    monkeypatch.setattr(coacd, "run_coacd", None)
    load_urdf(text, assets={"l.stl": mesh.export(file_type="stl")}, meshes="decompose")
    with pytest.raises(ModelError, match=naming("'spheres'")):
        load_urdf(text, meshes="spheres")


# starts


def test_joints_start_within_their_limits():
    limit = '<limit lower="0.5" upper="1" effort="1" velocity="1"/>'
    builder, report = load_urdf(arm('<axis xyz="0 0 1"/>' + limit))
    assert report.joints["elbow"].initial_position == 0.5 and report.exact
    assert "starts at 0.5" in report.warnings[0]
    angle = 2.0 * math.acos(builder.bodies[1].xform.rotation[3])
    assert angle == pytest.approx(0.5)
    add_holding_servos(builder, report)
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    assert sim.read("joint.elbow.position")[0] == pytest.approx(0.5)


def test_pose_by_values():
    text = robot(
        link("a"), link("b"), link("c"), joint("ab", "a", "b"), joint("bc", "b", "c", content=LIMIT + "<mimic "
        'joint="ab" multiplier="-2" offset="0.1"/>'),
    )  # fmt: skip
    builder, report = load_urdf(text, pose={"ab": 0.3})
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    assert sim.read("joint.ab.position")[0] == pytest.approx(0.3)
    assert sim.read("joint.bc.position")[0] == pytest.approx(-0.5)
    assert load_urdf(text, pose={"ab": 7.0})[1].joints["ab"].initial_position == 1.0
    for pose, words in (({"ax": 1.0}, "'ax'"), ({"ab": "up"}, "'ab'"), ("home", "'home'")):
        with pytest.raises((ModelError, UnknownNameError), match=naming(words)):
            load_urdf(text, pose=pose)


SRDF = """<robot name="bot">
  <group_state name="home" group="arm"><joint name="ab" value="0.3"/></group_state>
  <group_state name="home" group="hand"><joint name="bc" value="5"/></group_state>
  <group_state name="open" group="hand"><joint name="bc" value="0.2"/></group_state>
  <group_state name="none" group="hand"><joint name="root" value="1"/></group_state>
  <disable_collisions link1="a" link2="c" reason="Never"/>
  <disable_collisions link1="a" link2="gone" reason="Never"/>
</robot>"""
CHAIN = robot(
    link("a", SOLID + BOX), link("b", SOLID), link("c", SOLID + BOX), link("d", SOLID + BOX), link("e"),
    joint("ab", "a", "b", content='<origin xyz="2 0 0"/>' + LIMIT),
    joint("bc", "b", "c", content='<origin xyz="2 0 0"/>' + LIMIT),
    joint("cd", "c", "d", content='<origin xyz="2 0 0"/>' + LIMIT),
    joint("de", "d", "e", "fixed", ""),
)  # fmt: skip


def test_srdf_gives_poses_and_pairs_that_do_not_collide(tmp_path):
    path = tmp_path / "bot.srdf"
    path.write_text(SRDF)
    builder, report = load_urdf(CHAIN, srdf=path, pose="home", self_collisions=True)
    assert report.poses == ["home", "open"]
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    for name, expected in (("open", (0.3, 0.2)), ("home", (0.3, 1.0))):
        sim.reset(pose=name)
        found = [float(sim.read(f"joint.{joint}.position")[0]) for joint in ("ab", "bc")]
        np.testing.assert_allclose(found, expected, atol=1e-9)
    labels = add_holding_servos(builder, report)
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    sim.reset(pose="open")
    assert [float(sim.control[label][0]) for label in labels] == [0.3, 0.2, 0.0]
    assert report.joints["ab"].initial_position == 0.3 and report.joints["bc"].initial_position == 1.0
    number = {shape.label: index for index, shape in enumerate(builder.shapes)}
    assert {(pair.shape_a, pair.shape_b) for pair in builder.pairs} == {(number["a"], number["c"])}
    assert [f.element for f in report.findings if "gone" in f.what] == ["<disable_collisions>"]
    assert [f.element for f in report.findings if "'root'" in f.what] == ["pose 'none'"]
    assert report.exact


def test_a_posture_places_a_floating_base():
    root = '<joint name="root_joint" value="0 0 0.5 0 0 0.6 0.8"/><joint name="ab" value="0.3"/>'
    srdf = f'<robot name="bot"><group_state name="stand" group="all">{root}</group_state></robot>'
    up = gpusim.Transform((0, 0, 2))
    builder, report = load_urdf(CHAIN, srdf=srdf, pose="stand", fixed_base=False, xform=up)
    np.testing.assert_allclose(builder.bodies[0].xform.position, (0, 0, 2.5))
    builder, report = load_urdf(CHAIN, srdf=srdf, fixed_base=False, xform=up)
    np.testing.assert_allclose(builder.bodies[0].xform.position, (0, 0, 2))
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    sim.reset(pose="stand")
    np.testing.assert_allclose(sim.read("body.a.position")[0], (0, 0, 2.5), atol=1e-12)
    np.testing.assert_allclose(np.abs(sim.read("body.a.orientation")[0]), (0, 0, 0.6, 0.8), atol=1e-12)
    assert float(sim.read("joint.ab.position")[0]) == pytest.approx(0.3)
    fixed, report = load_urdf(CHAIN, srdf=srdf, pose="stand")
    assert report.poses == ["stand"] and not np.any(fixed.bodies[0].xform.position)


def test_srdf_errors():
    for text, words in (
        ("<robot><group_state name='up'><joint name='ab' value='x'/></group_state></robot>", "SRDF 'up' 'ab'"),
        ("<sdf/>", "SRDF <sdf>"),
        ("<robot", "SRDF"),
        ("missing.srdf", "SRDF"),
    ):
        with pytest.raises(ModelError, match=naming(words)):
            load_urdf(CHAIN, srdf=text)


# xacro

XACRO = """<robot name="bot" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="length" default="1"/>
  <xacro:property name="half" value="${float('$(arg length)') / 2}"/>
  <xacro:macro name="part" params="name">
    <link name="${name}"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  </xacro:macro>
  <xacro:part name="base"/>
  <xacro:part name="tip"/>
  <joint name="elbow" type="continuous"><parent link="base"/><child link="tip"/>
    <origin xyz="${half} 0 0"/></joint>
</robot>"""


@pytest.mark.parametrize("as_file", [True, False])
def test_xacro(tmp_path, as_file):
    pytest.importorskip("xacro")
    path = tmp_path / "bot.urdf.xacro"
    path.write_text(XACRO)
    given = path if as_file else XACRO
    builder, _ = load_urdf(given)
    np.testing.assert_allclose(builder.bodies[1].xform.position, (0.5, 0, 0))
    builder, report = load_urdf(given, mappings={"length": 4})
    np.testing.assert_allclose(builder.bodies[1].xform.position, (2, 0, 0))
    assert report.source.startswith("expanded")


def test_xacro_finds_packages_in_the_folders_of_the_search(tmp_path):
    pytest.importorskip("xacro")
    (tmp_path / "parts/urdf").mkdir(parents=True)
    (tmp_path / "parts/urdf/all.xacro").write_text(XACRO)
    text = (
        '<robot name="bot" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:include filename="$(find parts)/urdf/all.xacro"/></robot>'
    )
    (tmp_path / "bot.xacro").write_text(text)
    assert "elbow" in load_urdf(tmp_path / "bot.xacro")[1].joints
    assert "elbow" in load_urdf(text, asset_dirs=[tmp_path])[1].joints
    with pytest.raises(ModelError, match=naming("'gone' asset_dirs")):
        load_urdf(text.replace("parts", "gone"))


def test_xacro_errors(monkeypatch):
    pytest.importorskip("xacro")
    for text, words in (
        (XACRO.replace("${half}", "${halt}"), "xacro halt"),
        (XACRO.replace("$(arg length)", "$(arg size)"), "xacro size mappings"),
        (XACRO.replace("${half}", "x"), "URDF expanded"),
    ):
        with pytest.raises(ModelError, match=naming(words)) as caught:
            load_urdf(text)
        assert "\n" not in str(caught.value)
    with pytest.raises(UnknownNameError, match=naming("'lenght' 'length'")):
        load_urdf(XACRO, mappings={"lenght": 2})
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ModelError, match=naming("xacro gpusim[xacro]")):
        load_urdf(XACRO)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("9**9**9", "power"),
        ("len('a' * 10**9)", "str"),
        ("len(range(10**12))", "range"),
        ("factorial(10**8)", "factorial"),
    ],
)
def test_huge_results_in_xacro(expression, named):
    pytest.importorskip("xacro")
    with pytest.raises(ModelError, match=naming(f"xacro {named}")):
        load_urdf(XACRO.replace("${half}", f"${{{expression}}}"))


def test_sizes_in_xacro():
    pytest.importorskip("xacro")
    value = "${half * 2**3 * len('ab' * 2) / len(range(4)) / 8 + 0 * (1 << 2) * factorial(3)}"
    assert "elbow" in load_urdf(XACRO.replace("${half}", value.replace("<", "&lt;")))[1].joints


def test_merged_links_are_sites_that_carry_models():
    arm = """<robot name="arm"><link name="base"/><link name="wrist"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="tool0"/>
    <joint name="turn" type="continuous"><parent link="base"/><child link="wrist"/><axis xyz="0 0 1"/></joint>
    <joint name="flange" type="fixed"><parent link="wrist"/><child link="tool0"/>
    <origin xyz="0 0 0.3" rpy="0 1.5708 0"/></joint></robot>"""
    gripper = """<robot name="g"><link name="palm"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
    b = gpusim.ModelBuilder()
    report = b.add_model(arm, label_prefix="a_")
    assert report.merged["a_tool0"] == "a_wrist"
    b.add_model(gripper, parent="a_tool0", xform=gpusim.Transform((0.1, 0, 0)), label_prefix="g_")
    palm = next(body for body in b.bodies if body.label == "g_palm")
    np.testing.assert_allclose(palm.xform.position, (0, 0, 0.2), atol=1e-5)
    with pytest.raises(gpusim.UnknownNameError, match="tool0"):
        b.add_model(gripper, parent="a_tool", label_prefix="h_")
