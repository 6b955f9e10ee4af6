from __future__ import annotations

import pytest

from gpusim import ModelBuilder, ModelError, Simulation
from gpusim.control import Diagram
from tests.message_snapshot import naming


def build(unit: str | None) -> Simulation:
    d = Diagram("d")
    d.connect(d.add("constant", "c", value=3.0, unit=unit), "command:f")
    b = ModelBuilder(gravity=(0, 0, 0))
    rail = b.add_joint_prismatic(-1, b.add_body(1, (1, 1, 1)), axis=(1, 0, 0), label="x")
    b.add_joint_force(rail, label="f")
    b.add_torque_motor(b.add_joint_revolute(-1, b.add_body(1, (1, 1, 1)), axis=(0, 0, 1)), 5.0, label="share")
    b.add_diagram(d)
    return Simulation(b.finalize(), backend="numpy")


@pytest.mark.parametrize("unit", ["N", "kg m/s2", "-", "rad", None])
def test_its_own_unit_and_none_go_to_a_force(unit: str | None) -> None:
    sim = build(unit)
    sim.step()
    assert sim.read("force.f.command")[0] == 3.0


@pytest.mark.parametrize("unit", ["m", "V", "N m", "m/s"])
def test_another_unit_is_refused(unit: str) -> None:
    with pytest.raises(ModelError, match=naming("block 'f'")):
        build(unit)
