from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

import gpusim
from gpusim.backends import why_not
from gpusim.importers import add_holding_servos, load_urdf
from tests.unit.urdf_text import DATA, inertial, joint, link, robot

pytestmark = pytest.mark.nightly

yourdfpy = pytest.importorskip("yourdfpy")

FASTEST = "numpy" if why_not("native") else "native"
ROBOTS = {"upkie": ("upkie_description", "URDF_PATH", 6), "jvrc1": ("jvrc_description", "urdf_path", 44)}


@pytest.fixture(params=ROBOTS)
def robot_file(request):
    package, attribute, joints = ROBOTS[request.param]
    return getattr(pytest.importorskip(package), attribute), joints


@pytest.mark.parametrize("merged", [True, False], ids=["merged", "separate"])
def test_masses_joints_and_poses(robot_file, merged):
    path, movable = robot_file
    builder, report = load_urdf(path, merge_fixed=merged)
    in_file = sum(float(mass.get("value")) for mass in ElementTree.parse(path).iter("mass"))
    assert sum(body.mass for body in builder.bodies) - report.added_mass == pytest.approx(in_file, rel=1e-12)
    assert report.total_mass == pytest.approx(in_file + report.added_mass, rel=1e-12)

    reference = yourdfpy.URDF.load(path, load_meshes=False)
    kinds = [spec.kind for spec in builder.joints]
    assert kinds.count("revolute") == len(report.joint_limits) == movable
    fixed = 1 if merged else 1 + sum(joint.type == "fixed" for joint in reference.robot.joints)
    assert kinds.count("fixed") == fixed
    assert len(builder.couplings) == sum(joint.mimic is not None for joint in reference.robot.joints)
    assert len(builder.bodies) == (movable + 1 if merged else len(reference.robot.links))

    bodies = {body.label: body for body in builder.bodies}
    assert set(report.link_frames) == set(reference.link_map)
    for name, frame in report.link_frames.items():
        xform, pose = bodies[report.body_of(name)].xform, np.eye(4)
        pose[:3, :3], pose[:3, 3] = xform.matrix(), xform.position
        np.testing.assert_allclose(pose @ frame, reference.get_transform(name), atol=1e-12, err_msg=name)


def test_efforts_come_from_the_file():
    path = pytest.importorskip("upkie_description").URDF_PATH
    _, report = load_urdf(path)
    assert report.joint_limits["left_hip"] == (16.0, 28.8)
    assert report.joint_limits["left_wheel"].effort == pytest.approx(1.7)
    assert [text for text in report.warnings if text.startswith("joint 'left_wheel'")] == [
        "joint 'left_wheel': <limit> lacks lower and upper; read as unlimited; also 'right_wheel'"
    ]
    assert report.merged["imu"] == "base"


def total_energy(sim):
    return float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])


def test_it_swings_from_its_base_without_gaining_energy(robot_file):
    tipped = gpusim.Transform.from_rpy((0, 0, 1), (0.7, 0.9, 0.0))
    builder, report = load_urdf(robot_file[0], xform=tipped)
    sim = gpusim.Simulation(builder.finalize(), config=gpusim.SolverConfig(dt=1e-3), backend=FASTEST)
    start, greatest, moved = total_energy(sim), -np.inf, 0.0
    scale = 9.81 * report.total_mass
    for _ in range(20):
        sim.step(50)
        assert np.all(sim.health()), sim.health_report()
        greatest = max(greatest, total_energy(sim))
        moved = max(moved, *(abs(float(sim.read(f"joint.{name}.position")[0])) for name in report.joint_limits))
    assert greatest - start < 1e-3 * scale
    assert moved > 0.3
    assert float(sim.read("sim.joint_drift")[0]) < 1e-4
    for name, info in report.joints.items():
        if info.kind == "revolute":
            angle = float(sim.read(f"joint.{name}.position")[0])
            assert info.lower - 0.05 < angle < info.upper + 0.05, name


def test_servos_hold_the_zero_pose(robot_file):
    builder, report = load_urdf(robot_file[0])
    held = add_holding_servos(builder, report)
    assert held == [name for name, info in report.joints.items() if info.kind == "revolute" and info.mimic is None]
    sim = gpusim.Simulation(builder.finalize(), config=gpusim.SolverConfig(dt=1e-3), backend=FASTEST)
    sim.step(500)
    assert np.all(sim.health()), sim.health_report()
    for name in report.joint_limits:
        assert abs(float(sim.read(f"joint.{name}.position")[0])) < 0.01, name
        assert abs(float(sim.read(f"joint.{name}.velocity")[0])) < 0.01, name


def swing(path, steps=300, **options):
    builder, report = load_urdf(path, **options)
    sim = gpusim.Simulation(builder.finalize(), config=gpusim.SolverConfig(dt=1e-3), backend="numpy")
    sim.step(steps)
    assert np.all(sim.health()), sim.health_report()
    return sim, report


@pytest.mark.parametrize("fixed_base", [True, False], ids=["fixed", "floating"])
def test_merged_links_move_as_separate_ones_do(fixed_base):
    lens = link("lens", inertial("0.05", ("1e-5",) * 3 + ("0",) * 3))
    text = (DATA / "all_joints.urdf").read_text().replace('<link name="lens"/>', lens)
    merged, report = swing(text, merge_fixed=True, fixed_base=fixed_base)
    separate, _ = swing(text, merge_fixed=False, fixed_base=fixed_base)
    moved = 0.0
    for name in report.joint_limits:
        one, other = (sim.read(f"joint.{name}.position") for sim in (merged, separate))
        np.testing.assert_allclose(one, other, atol=1e-6, err_msg=name)
        moved = max(moved, float(np.abs(one).max()))
    assert moved > 0.2


def test_followers_follow_while_the_gripper_swings():
    sim, report = swing(DATA / "mimic.urdf", xform=gpusim.Transform.from_rpy((0, 0, 0), (1.2, 0.3, 0.0)))
    leader = float(sim.read("joint.left_finger.position")[0])
    assert abs(leader) > 0.05
    for name, info in report.joints.items():
        if info.mimic is not None:
            position = float(sim.read(f"joint.{name}.position")[0])
            assert position == pytest.approx(info.mimic.multiplier * leader + info.mimic.offset, abs=1e-6)


@pytest.mark.parametrize("links", [1, 2])
def test_massless_links_between_hinges_do_not_change_the_motion(links):
    tilt = '<origin xyz="0 0 0" rpy="1 0 0"/>'
    bar = inertial("1", ("0.03", "0.03", "0.001", "0", "0", "0"), '<origin xyz="0 0 -0.5"/>')
    free, axes = '<limit effort="1" velocity="1"/>', ("1 0 0", "0 1 0", "0.6 0 0.8")

    def angle(middle):
        names = ["base", *(f"cross{k}" for k in range(links)), "bar"]
        text = robot(
            link("base"), *(link(name, middle) for name in names[1:-1]), link("bar", bar),
            *(
                joint(f"hinge{k}", *names[k : k + 2], content=f'{"" if k else tilt}<axis xyz="{axes[k]}"/>{free}')
                for k in range(links + 1)
            ),
        )  # fmt: skip
        sim, report = swing(text)
        return float(sim.read("joint.hinge0.position")[0]), report

    repaired, report = angle("")
    light, _ = angle(inertial("1e-9", ("1e-12", "1e-12", "1e-12", "0", "0", "0")))
    assert report.exact and any("'cross0': has no mass" in f.sentence for f in report.findings)
    assert abs(light) > 0.3
    assert repaired == pytest.approx(light, abs=1e-5)


def test_a_massless_link_with_a_shape_rests_on_the_ground():
    ball = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    solid, free = inertial("2", ("0.01", "0.01", "0.01", "0", "0", "0")), '<limit effort="1" velocity="1"/>'
    text = robot(
        link("base"), link("shin", solid), link("ankle", ball), link("foot", solid),
        joint("slide", "base", "shin", kind="prismatic", content='<axis xyz="0 0 1"/>' + free),
        joint("first", "shin", "ankle", content='<axis xyz="1 0 0"/>' + free),
        joint("second", "ankle", "foot", content='<axis xyz="0 1 0"/>' + free),
    )  # fmt: skip
    builder, report = load_urdf(text, xform=gpusim.Transform((0, 0, 0.15)))
    assert not report.exact
    builder.add_shape_plane(-1)
    sim = gpusim.Simulation(builder.finalize(), backend=FASTEST)
    sim.step(1000)
    assert float(sim.read("body.ankle.position")[0, 2]) == pytest.approx(0.1, abs=1e-4)
