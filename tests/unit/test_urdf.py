from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import gpusim
from gpusim.importers import ImportReport, JointLimits, Mimic, add_holding_servos, load_urdf
from tests.message_snapshot import naming
from tests.unit.urdf_text import DATA, LIMIT, SOLID, arm, inertial, joint, link, robot

yourdfpy = pytest.importorskip("yourdfpy")
trimesh = pytest.importorskip("trimesh")


def joint_specs(builder):
    return {spec.label: spec for spec in builder.joints}


def body_specs(builder):
    return {spec.label: spec for spec in builder.bodies}


def pose(transform):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = transform.matrix(), transform.position
    return matrix


@pytest.fixture(params=[True, False], ids=["merged", "separate"])
def all_joints(request):
    return request.param, *load_urdf(DATA / "all_joints.urdf", merge_fixed=request.param)


def test_every_joint_type_becomes_its_joint(all_joints):
    merged, builder, report = all_joints
    kinds = {label: spec.kind for label, spec in joint_specs(builder).items()}
    expected = {
        "world_to_base": "fixed",
        "shoulder": "revolute",
        "roll": "revolute",
        "lift": "prismatic",
        "tether": "free",
        "table": "planar",
    }
    if not merged:
        expected |= {"camera_mount": "fixed", "lens_mount": "fixed"}
    assert kinds == expected
    assert report.base_joint == "world_to_base"
    assert [report.joints[label].index for label in kinds] == list(range(len(kinds)))


def test_limits_damping_friction_and_efforts(all_joints):
    _, builder, report = all_joints
    params = {label: spec.params for label, spec in joint_specs(builder).items()}
    assert params["shoulder"]["limit_lower"] == -1.5
    assert params["shoulder"]["limit_upper"] == 2.0
    assert params["shoulder"]["damping"] == 0.2
    assert params["shoulder"]["friction"] == 0.1
    assert params["roll"]["limit_lower"] == -math.inf
    assert params["lift"]["damping"] == 3.0
    assert params["table"]["damping"].tolist() == [0.5] * 3
    assert params["table"]["friction"].tolist() == [0.25] * 3
    assert report.joint_limits == {
        "shoulder": JointLimits(effort=30.0, velocity=4.0),
        "roll": JointLimits(effort=5.0, velocity=20.0),
        "lift": JointLimits(effort=100.0, velocity=0.5),
        "tether": JointLimits(),
        "table": JointLimits(),
    }
    assert report.joints["shoulder"].lower == -1.5


def test_links_stand_where_yourdfpy_puts_them(all_joints):
    _, builder, report = all_joints
    check_poses(builder, report, DATA / "all_joints.urdf")


def check_poses(builder, report, path):
    reference = yourdfpy.URDF.load(str(path), load_meshes=False)
    bodies = body_specs(builder)
    assert set(report.link_frames) == set(reference.link_map)
    for name, frame in report.link_frames.items():
        body = report.body_of(name)
        here = (np.eye(4) if body == "world" else pose(bodies[body].xform)) @ frame
        expected = reference.get_transform(name, reference.base_link)
        np.testing.assert_allclose(here, expected, atol=1e-12, err_msg=name)


def test_joint_frames_coincide_with_the_child_link(all_joints):
    _, builder, _ = all_joints
    for spec in builder.joints:
        parent = gpusim.Transform() if spec.parent == -1 else builder.bodies[spec.parent].xform
        if spec.label == "world_to_base":
            continue
        here = parent * spec.parent_xform
        there = builder.bodies[spec.child].xform * spec.child_xform
        np.testing.assert_allclose(pose(here), pose(there), atol=1e-12)


def test_inertia_is_rotated_into_the_link_frame():
    builder, _ = load_urdf(DATA / "all_joints.urdf", merge_fixed=False)
    body = body_specs(builder)["upper"]
    turn = gpusim.Transform.from_rpy((0, 0, 0), (0, 0, 1.2)).matrix()
    np.testing.assert_allclose(body.inertia, turn @ np.diag([0.02, 0.03, 0.015]) @ turn.T, rtol=1e-12, atol=1e-17)
    assert body.com.tolist() == [0.0, 0.0, -0.2]
    assert body_specs(builder)["wheel"].inertia.tolist() == np.diag([0.001, 0.002, 0.001]).tolist()


def test_merging_keeps_mass_first_and_second_moments():
    def moments(builder):
        mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
        for body in builder.bodies:
            turn, com = body.xform.matrix(), body.xform.apply(body.com)
            mass += body.mass
            first += body.mass * com
            second += turn @ body.inertia @ turn.T + body.mass * (com @ com * np.eye(3) - np.outer(com, com))
        return mass, first, second

    path = DATA / "all_joints.urdf"
    text = path.read_text().replace('<link name="lens"/>', link("lens", inertial("0.05", ("1e-5",) * 3 + ("0",) * 3)))
    for one, other in zip(
        moments(load_urdf(text, merge_fixed=True)[0]), moments(load_urdf(text, merge_fixed=False)[0]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


def test_merged_links_can_be_looked_up():
    builder, report = load_urdf(DATA / "all_joints.urdf")
    assert report.merged == {"camera": "upper", "lens": "upper"}
    assert report.body_of("lens") == "upper"
    assert report.body_of("wheel") == "wheel"
    assert report.warnings == []
    with pytest.raises(gpusim.UnknownNameError, match=naming("lens")):
        report.body_of("lense")
    assert "lens" not in body_specs(builder)
    assert report.total_mass == pytest.approx(9.1)
    assert report.added_mass == 0.0


def test_a_massless_part_leaves_its_body_bit_identical():
    plain = robot(link("base"), link("tip", inertial("0.3", ("0.1", "0.2", "0.15", "0.01", "0.02", "0.03"))))
    plain = plain.replace("</robot>", joint("elbow", "base", "tip") + "</robot>")
    frame = joint("mount", "tip", "frame", "fixed", '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>')
    framed = plain.replace("</robot>", link("frame", "") + frame + "</robot>")
    one, other = (body_specs(load_urdf(text)[0])["tip"] for text in (plain, framed))
    assert one.mass == other.mass
    assert one.com.tobytes() == other.com.tobytes()
    assert one.inertia.tobytes() == other.inertia.tobytes()


def test_base_pose_gravity_and_floating_base():
    base = gpusim.Transform.from_rpy((1, 2, 3), (0.1, 0.2, 0.3))
    builder, report = load_urdf(arm(), fixed_base=False, gravity=(0, 0, -1.62), xform=base)
    assert report.base_joint == "world_to_base"
    assert joint_specs(builder)["world_to_base"].kind == "free"
    assert report.joints["world_to_base"].kind == "floating"
    assert builder.gravity.tolist() == [0, 0, -1.62]
    np.testing.assert_allclose(pose(body_specs(builder)["base"].xform), pose(base), atol=1e-15)
    fixed, _ = load_urdf(arm(), xform=base)
    np.testing.assert_allclose(pose(joint_specs(fixed)["world_to_base"].parent_xform), pose(base), atol=1e-15)


def test_mimic_and_world_root():
    builder, report = load_urdf(DATA / "mimic.urdf")
    assert report.warnings == []
    assert report.base_joint is None
    assert report.base_link == "world"
    assert set(body_specs(builder)) == {"palm", "left", "right", "tip"}
    assert joint_specs(builder)["mount"].parent == -1
    couplings = {item.label: item for item in builder.couplings}
    assert set(couplings) == {"right_finger", "tip_slide"}
    leader = report.joints["left_finger"].index
    right = couplings["right_finger"]
    assert right.terms == [(leader, 0, 2.0), (report.joints["right_finger"].index, 0, 1.0)]
    assert right.offset == 0.25
    assert report.joints["right_finger"].mimic == Mimic("left_finger", -2.0, 0.25)
    assert report.joints["right_finger"].initial_position == 0.25
    check_poses(builder, report, DATA / "mimic.urdf")


def test_the_frame_of_a_world_root_moves_with_the_model():
    place = gpusim.Transform.from_axis_angle((1.0, 2.0, 3.0), (0.0, 0.0, 1.0), 0.5)
    text = robot(link("world", ""), link("arm"), joint("hinge", "world", "arm"))
    report = load_urdf(text, xform=place)[1]
    assert report.merged == {"world": "world"}
    np.testing.assert_allclose(report.link_frames["world"], pose(place), atol=1e-15)


def test_world_root_is_a_plain_link_when_the_base_floats():
    builder, report = load_urdf(DATA / "mimic.urdf", fixed_base=False)
    assert report.base_joint == "world_to_world"
    assert report.merged == {"palm": "world"}
    assert body_specs(builder)["world"].mass == 1.0


def test_mimic_chains_and_leaders_that_cannot_move():
    text = robot(
        *(link(name) for name in "abcdef"),
        joint("ab", "a", "b", content=LIMIT + '<mimic joint="cd" multiplier="0.5" offset="0.1"/>'),
        joint("bc", "b", "c", content=LIMIT),
        joint("cd", "c", "d", content=LIMIT + '<mimic joint="bc" offset="0.4"/>'),
        joint("de", "d", "e", "fixed", ""),
        joint("ef", "e", "f", content='<axis xyz="0 0 1"/>' + LIMIT + '<mimic joint="de" offset="0.3"/>'),
    )
    builder, report = load_urdf(text, merge_fixed=False)
    assert report.joints["cd"].initial_position == 0.4
    assert report.joints["ab"].initial_position == pytest.approx(0.3)
    assert joint_specs(builder)["ef"].kind == "fixed"
    turn = joint_specs(builder)["ef"].parent_xform.matrix()
    np.testing.assert_allclose(turn[:2, 0], [math.cos(0.3), math.sin(0.3)], atol=1e-15)
    assert any("'ef'" in text and "'de'" in text for text in report.warnings)


def test_axis_defaults_to_x_and_is_normalized():
    builder, report = load_urdf(arm('<axis xyz="0 3 4"/>' + LIMIT))
    assert "length 5" in report.warnings[0]
    np.testing.assert_allclose(joint_specs(builder)["elbow"].params["columns"][:, 2], [0, 0.6, 0.8], atol=1e-15)
    builder, report = load_urdf(arm())
    assert report.warnings == []
    np.testing.assert_allclose(joint_specs(builder)["elbow"].params["columns"][:, 2], [1, 0, 0], atol=1e-15)


def test_load_inertia_is_what_the_joint_carries():
    tip = inertial("2", ("0.1", "0.2", "0.3", "0", "0", "0"), '<origin xyz="0 0.5 0"/>')
    _, report = load_urdf(arm('<axis xyz="1 0 0"/>' + LIMIT, tip=tip))
    assert report.joints["elbow"].load_inertia == pytest.approx(0.1 + 2 * 0.25)
    _, report = load_urdf(arm('<axis xyz="1 0 0"/>' + LIMIT, "prismatic", tip=tip))
    assert report.joints["elbow"].load_inertia == pytest.approx(2.0)


def test_holding_servos_go_to_leaders_within_their_limits():
    builder, report = load_urdf(DATA / "mimic.urdf")
    assert add_holding_servos(builder, report) == ["left_finger"]
    text = arm('<limit lower="0.2" upper="1" effort="7" velocity="1"/>')
    builder, report = load_urdf(text)
    assert any("outside its limits" in warning for warning in report.warnings)
    add_holding_servos(builder, report)
    params = builder.actuators[0].params
    assert params["target"] == 0.2
    assert params["effort_limit"] == 7.0
    with pytest.raises(gpusim.ModelError, match=naming("frequency")):
        add_holding_servos(builder, report, frequency=0.0)


def test_names_with_dots_and_spaces_become_labels():
    text = robot(
        link("base link"), link("arm.1"), link("base_link"), joint("j 1.x", "base link", "arm.1"),
        joint("j2", "arm.1", "base_link", content=LIMIT + '<mimic joint="j 1.x"/>'),
    )  # fmt: skip
    builder, report = load_urdf(text)
    assert set(body_specs(builder)) == {"base_link_", "arm_1", "base_link"}
    assert report.joints["j2"].mimic.leader == "j_1_x"
    (reported,) = report.warnings
    for words in ("link 'base link' is called 'base_link_'", "link 'arm.1'", "joint 'j 1.x' is called 'j_1_x'"):
        assert words in reported


def test_one_warning_for_one_fact():
    links = [link(f"l{k}.0") for k in range(13)]
    joints = [joint(f"j{k}.0", f"l{k}.0", f"l{k + 1}.0", content=LIMIT.replace('"10"', '"0"')) for k in range(12)]
    assert sorted(load_urdf(robot(*links, *joints))[1].warnings, reverse=True) == [
        "signal names have no dots and spaces: link 'l0.0' is called 'l0_0', link 'l1.0' is called 'l1_0', "
        "link 'l2.0' is called 'l2_0' and 22 more of the same",
        "joint 'j0.0': effort=\"0\" is not positive; read as unlimited; also 'j1.0', 'j2.0', 'j3.0' and 8 more",
    ]


def test_facts_that_differ_are_distinguished():
    flat = [inertial(mass, ("1", "1", "3", "0", "0", "0")) for mass in ("1", "2", "3")]
    text = robot(
        link("a", flat[0]), link("b", flat[1]), link("c", flat[2]), link("d", ""),
        joint("ab", "a", "b"), joint("bc", "b", "c"), joint("cd", "c", "d", content=LIMIT.replace("-1", "0.5")),
    )  # fmt: skip
    reported = load_urdf(text)[1].warnings
    assert len(reported) == 3
    assert "joint 'cd': position 0 is outside its limits 0.5 to 1; it starts at 0.5" in reported[0]
    assert reported[1].startswith("link 'a': inertia breaks the triangle rule") and reported[1].endswith(
        "; also 'b', 'c'"
    )
    assert reported[2].startswith("link 'd': missing <inertial>")


def test_slips_that_other_readers_pass_over(tmp_path):
    collision = (
        '<collision><origin xyz="1 2 3 4"/><geometry><mesh filename="cube.stl" scale="2 3 4 5"/></geometry></collision>'
    )
    (tmp_path / "cube.stl").write_bytes(trimesh.creation.box((1, 1, 1)).export(file_type="stl"))
    content = '<axis xyz="0 1 0"/><axis xyz="0 0 1"/><origin rpy="0.1 0.2 0.3 0.4"/>' + LIMIT
    text = arm(content, tip=SOLID + collision)
    path = tmp_path / "robot.urdf"
    path.write_text(f'<?xml version="0.0" encoding="utf-8"?>\n{text}')
    builder, report = load_urdf(path)
    elbow = joint_specs(builder)["elbow"]
    np.testing.assert_array_equal(elbow.params["columns"][:, 2], (0, 1, 0))
    turn = gpusim.Transform.from_rpy((0, 0, 0), (0.1, 0.2, 0.3)).matrix()
    np.testing.assert_allclose(elbow.parent_xform.matrix(), turn, atol=1e-12)
    np.testing.assert_array_equal(builder.shapes[0].xform.position, (1, 2, 3))
    np.testing.assert_allclose(np.ptp(builder.shapes[0].params["vertices"], axis=0), (2, 3, 4))
    for words in ('XML version "0.0"', "'elbow' has 2 <axis>", 'rpy="0.1', 'xyz="1 2', 'scale="2 3'):
        assert sum(words in warning for warning in report.warnings) == 1, words
    assert load_urdf(f"<?xml version='0.0'?>{arm()}")[1].warnings == ['there is no XML version "0.0"; read as 1.0']


def test_text_and_path_and_namespaces_give_the_same_model(tmp_path):
    text = arm()
    path = tmp_path / "arm.urdf"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    spaced = text.replace("<robot ", '<?xml version="1.0" encoding="latin-1"?>\n<robot xmlns="http://ros.org" ')
    spaced = spaced.replace("</robot>", '<x:link xmlns:x="http://other"/><gizmo/><gizmo/></robot>')
    reports = [load_urdf(source)[1] for source in (text, path, str(path), spaced)]
    assert len({tuple(report.joints) for report in reports}) == 1
    assert reports[3].ignored == {"link": 1, "gizmo": 2}
    assert "2 <gizmo>" in reports[3].summary()
    assert isinstance(reports[0], ImportReport)


def test_summary_says_what_was_read():
    _, report = load_urdf(DATA / "all_joints.urdf")
    lines = report.summary().splitlines()
    assert "all_joints" in lines[0] and "6 bodies" in lines[0] and "9.1 kg" in lines[0]
    assert lines[1] == "  1 visual on 1 link, 12 triangles"
    assert "camera, lens into 'upper'" in lines[2]


def test_a_single_link_is_a_robot():
    builder, report = load_urdf(robot(link("box")))
    assert len(builder.bodies) == 1
    assert report.joints["world_to_box"].kind == "fixed"
    assert report.joint_limits == {}


def test_base_joint_label_gives_way_to_the_file():
    text = robot(link("base", SOLID), link("tip"), joint("world_to_base", "base", "tip"))
    assert load_urdf(text)[1].base_joint == "world_to_base_"


def test_importing_gpusim_does_not_import_yourdfpy():
    code = "import sys, gpusim, gpusim.importers; sys.exit('yourdfpy' in sys.modules or 'lxml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
