from __future__ import annotations

from pathlib import Path

import gpusim
from gpusim import ModelBuilder, Simulation
from gpusim.importers import load_urdf

ARM = """\
<robot name="arm"><link name="base"/>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint></robot>
"""


def pendulums(count: int, worlds: int) -> ModelBuilder:
    b = ModelBuilder()
    b.num_worlds = worlds
    for _ in range(count):
        bob = b.add_body(1.0, (1, 1, 1))
        joint = b.add_joint_revolute(-1, bob, axis=(0, 1, 0))
        b.add_joint_force(joint)
    return b


def test_builder_and_model() -> None:
    assert repr(ModelBuilder()) == "<ModelBuilder: empty>"
    assert repr(pendulums(1, 1)) == "<ModelBuilder: 1 body, 1 joint, 1 actuator>"
    assert repr(pendulums(2, 3).finalize()) == "<Model: 2 bodies, 2 joints, 2 actuators, 3 worlds>"


def test_control() -> None:
    few = Simulation(pendulums(1, 1).finalize(), backend="numpy")
    assert repr(few.control) == "<sim.control: 1 command, 1 world; 'joint_force0'>"
    many = Simulation(pendulums(5, 2).finalize(), backend="numpy")
    labels = "'joint_force0', 'joint_force1', 'joint_force2', ..."
    assert repr(many.control) == f"<sim.control: 5 commands, 2 worlds; {labels}>"
    bob = gpusim.ModelBuilder()
    bob.add_body(1.0, (1, 1, 1))
    idle = Simulation(bob.finalize(), backend="numpy")
    assert repr(idle.control) == "<sim.control: 0 commands, 1 world>"


def test_import_report(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(ARM)
    _, report = load_urdf(tmp_path / "arm.urdf")
    report.findings.clear()
    assert repr(report) == f"<ImportReport of {report.source}: 2 bodies, 1 movable joint, 0 findings>"
    report.add("look", "link 'a'", "is bare")
    report.add("info", "link 'a'", "is small")
    report.add("info", "link 'base'", "is small")
    assert repr(report).endswith(", 3 findings (1 look, 2 info)>")
