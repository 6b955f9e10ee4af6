from __future__ import annotations

from typing import Any

import pytest

from gpusim import ModelBuilder, ModelError, Simulation, UnknownNameError
from gpusim.builder.commands import command_hints
from gpusim.control import Diagram
from gpusim.scene import load_scene
from gpusim.viewer.operator import Operator
from tests.message_snapshot import naming

from .machine import machine

ALL = ["lift", "lift.brake", "motor", "servo", "push"]


def simulation(b: ModelBuilder) -> Simulation:
    return Simulation(b.finalize(), backend="numpy")


def shown(sim: Simulation) -> list[str]:
    return [item.name for item in Operator(sim).inputs.values() if not item.idle]


def test_unmarked_are_all_that_change_something() -> None:
    sim = simulation(machine())
    assert sorted(sim.model.operator_commands) == sorted(ALL)
    assert sim.command("*").names == sim.model.operator_commands == shown(sim)


def test_marked_ones() -> None:
    b = machine()
    b.set_operator_commands(["lift", "m*"])
    late = b.add_body(1.0, (1, 1, 1), label="late")
    b.add_force(late, (1, 0, 0), label="later")
    sim = simulation(b)
    assert sorted(sim.model.operator_commands) == ["later", "lift", "motor"]
    assert sorted(sim.command("*").names) == sorted(shown(sim)) == ["later", "lift", "motor"]
    assert sim.command("l*").names == sim.command(["lift", "l*"]).names and "lift.brake" not in sim.command("l*").names
    assert sim.command("lift.brake").names == sim.command("lift.b*").names == ["lift.brake"]
    assert sim.command(["servo", "motor"]).names == ["servo", "motor"]
    sim.control["servo"] = 0.1
    operator = Operator(sim)
    operator.set("push", 0.5)
    operator.before_steps(0.0)
    assert sim.control["push"][0] == 0.5
    with pytest.raises(UnknownNameError, match=naming("command 'x*'")):
        sim.command("x*")


@pytest.mark.parametrize(("names", "reported"), [(["lift", "boat"], "command 'boat'"), ("q*", "command 'q*'")])
def test_unknown_names(names: Any, reported: str) -> None:
    b = machine()
    with pytest.raises(UnknownNameError, match=naming(reported)):
        b.set_operator_commands(names)
    assert sorted(simulation(b).model.operator_commands) == sorted(ALL)


@pytest.mark.parametrize("names", [3, [3], ["lift", None]])
def test_other_things_than_names(names: Any) -> None:
    b = machine()
    with pytest.raises(ModelError, match=naming("set_operator_commands")):
        b.set_operator_commands(names)


def test_diagrams_and_copies() -> None:
    part = machine()
    part.set_operator_commands(["lift", "motor"])
    b = ModelBuilder()
    b.add_builder(part, label_prefix="left_")
    d = Diagram("d")
    d.connect(d.add("input", "lever"), "command:left_motor")
    b.add_diagram(d)
    sim = simulation(b)
    assert sim.model.operator_commands == ["left_lift", "lever"]
    assert sim.command("*").names == ["left_lift", "lever"] == shown(sim)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "control", "count"),
    [("excavator", "schedule", 8), ("excavator", "diagram", 7), ("rtk_m", "schedule", 14), ("rtk_m", "diagram", 9)],
)
def test_machines_offer_what_their_operator_has(name: str, control: str, count: int) -> None:
    model = load_scene(name, control=control).builder.finalize()
    assert len(model.operator_commands) == count and len(model.controls) >= 44
    if control == "diagram":
        inputs = [item.label for diagram in model.diagrams for item in diagram.operator_inputs]
        assert model.operator_commands == inputs


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["rtk_m", "biped_walk"])
def test_panels_reach_what_the_schedule_commands(name: str) -> None:
    """rtk_m drives its sprockets with 3.49 rad/s, and the biped is pushed with 40 N."""
    scene = load_scene(name)
    sim = Simulation(scene.builder.finalize(), config=scene.config)
    hints = command_hints(sim.model)
    assert scene.schedule is not None
    for k in range(200):
        scene.schedule(sim, k * scene.duration / 200)
        for label in sim.model.operator_commands:
            assert hints[label].lower <= sim.control[label][0] <= hints[label].upper, label
