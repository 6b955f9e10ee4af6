"""URDF import of robots that others wrote: masses, joints, poses, and that they swing and hold in the simulator."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

import gpusim
from gpusim.importers import add_holding_servos, load_urdf

yourdfpy = pytest.importorskip("yourdfpy")

ROBOTS = {"upkie": ("upkie_description", "URDF_PATH", 6), "jvrc1": ("jvrc_description", "urdf_path", 44)}


@pytest.fixture(params=ROBOTS)
def robot(request):
    """Path of the file and number of movable joints."""
    package, attribute, joints = ROBOTS[request.param]
    return getattr(pytest.importorskip(package), attribute), joints


@pytest.mark.parametrize("merged", [True, False], ids=["merged", "separate"])
def test_masses_joints_and_poses(robot, merged):
    path, movable = robot
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
    assert [text for text in report.warnings if "left_wheel" in text] == [
        "joint 'left_wheel': <limit> lacks lower and upper; taken as unlimited"
    ]
    assert report.merged["imu"] == "base"


def total_energy(sim):
    return float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])


def test_it_swings_from_its_base_without_gaining_energy(robot):
    """Tipped to one side, so that every limb falls; limits may take energy, nothing may give any."""
    tipped = gpusim.Transform.from_rpy((0, 0, 1), (0.7, 0.9, 0.0))
    builder, report = load_urdf(robot[0], xform=tipped)
    sim = gpusim.Simulation(builder.finalize(), config=gpusim.SolverConfig(dt=1e-3), backend="numpy")
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


def test_servos_hold_the_zero_pose(robot):
    builder, report = load_urdf(robot[0])
    held = add_holding_servos(builder, report)
    assert held == [name for name, info in report.joints.items() if info.kind == "revolute" and info.mimic is None]
    sim = gpusim.Simulation(builder.finalize(), config=gpusim.SolverConfig(dt=1e-3), backend="numpy")
    sim.step(500)
    assert np.all(sim.health()), sim.health_report()
    for name in report.joint_limits:
        assert abs(float(sim.read(f"joint.{name}.position")[0])) < 0.01, name
        assert abs(float(sim.read(f"joint.{name}.velocity")[0])) < 0.01, name
