from __future__ import annotations

import math
from typing import Any

import pytest

from gpusim import ModelError, Simulation, UnknownNameError
from gpusim.scene import Scene, load_scene
from gpusim.viewer.operator import Input, Operator
from tests.message_snapshot import naming
from tests.unit.viewer.operators import FRAME, arm, machine, step

# Inputs.


def test_ranges_follow_from_the_actuators() -> None:
    inputs = Operator(machine("drive", brake_force=100.0)).inputs
    assert (inputs["drive"].lower, inputs["drive"].upper, inputs["drive"].safe) == (-1.0, 1.0, 0.0)
    assert inputs["drive"].springs and not inputs["drive"].switch
    brake = inputs["jack.brake"]
    assert (brake.lower, brake.upper, brake.safe, brake.switch, brake.idle) == (0.0, 1.0, 1.0, True, False)


def test_a_brake_without_force_is_idle() -> None:
    sim = Simulation(load_scene("boom_crane").builder.finalize(), backend="numpy")
    operator = Operator(sim)
    assert operator.inputs["lift.brake"].idle and not operator.inputs["lift"].idle
    assert [binding.command for binding in operator.mapping.bindings] == ["lift"]


def test_position_servos_have_their_joints_limits_and_are_safe_where_they_are() -> None:
    (item,) = Operator(arm()).inputs.values()
    assert (item.lower, item.upper, item.initial, item.unit) == (-0.5, 1.5, 0.2, "rad")
    assert item.safe is None and not item.springs
    (fast,) = Operator(arm(mode="velocity")).inputs.values()
    assert fast.lower == -fast.upper and fast.unit == "rad/s" and fast.safe == 0.0


def test_a_scale_of_a_force_stays_where_it_is_put() -> None:
    sim = Simulation(load_scene("dc_motor_rig").builder.finalize(), backend="numpy")
    load = Operator(sim).inputs["load"]
    assert (load.lower, load.upper, load.initial, load.springs) == (0.0, 1.0, 1.0, False)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"lower": 1.0, "upper": 1.0}, "input 'x' lower 1 upper"),
        ({"initial": 2.0}, "initial 2 -1 1"),
        ({"safe": -3.0}, "safe -3"),
        ({"upper": math.nan}, "input 'x' upper nan"),
        ({"safe": None}, "input 'x' safe"),
    ],
)
def test_bad_inputs_are_reported(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=naming(f"input 'x' {words}")):
        Input(**changes, name="x")


def test_deflections_become_values() -> None:
    lopsided = Input(-2.0, 4.0, name="x")
    assert [lopsided.at(u) for u in (-1.0, -0.5, 0.0, 0.5, 1.0)] == [-2.0, -1.0, 0.0, 2.0, 4.0]
    throttle = Input(10.0, 20.0, initial=10.0, safe=10.0, name="x")
    assert [throttle.at(u) for u in (-1.0, 0.0, 0.5, 1.0)] == [10.0, 10.0, 15.0, 20.0]
    pull = Input(-1.0, 0.0, name="x")
    assert [pull.at(u) for u in (-1.0, -0.5, 0.0, 1.0)] == [-1.0, -0.5, 0.0, 0.0]
    reverse = Input(-20.0, -10.0, initial=-10.0, safe=-10.0, name="x")
    assert [reverse.at(u) for u in (-1.0, -0.5, 0.0, 1.0)] == [-20.0, -15.0, -10.0, -10.0]


# Touching.


def test_a_touch_reaches_the_simulation_and_holds_against_the_schedule() -> None:
    scene = load_scene("dc_motor_rig")
    sim = Simulation(scene.builder.finalize(), backend="numpy", config=scene.config)
    operator = Operator(sim, scene)
    step(operator)
    assert sim.control["motor"][0] == 1.0 and operator.value("motor") == 1.0 and operator.source("motor") == ""
    operator.set("motor", -0.25)
    step(operator, 3)
    assert sim.control["motor"][0] == -0.25 and operator.source("motor") == "panel"
    assert operator.free_steps() == 1
    operator.release("motor")
    step(operator)
    assert sim.control["motor"][0] == 1.0 and operator.source("motor") == ""


def test_without_a_schedule_a_released_input_has_its_first_value() -> None:
    operator = Operator(arm(num_worlds=2))
    operator.set("s0", 1.0)
    step(operator)
    assert operator.sim.control["s0"].tolist() == [1.0, 1.0]
    operator.release("s0")
    step(operator)
    assert operator.sim.control["s0"].tolist() == [0.2, 0.2]
    assert operator.free_steps() > 1000


def test_values_stay_in_their_range_and_must_be_finite() -> None:
    operator = Operator(machine("a"))
    operator.set("a", 7.0)
    assert operator.value("a") == 1.0
    with pytest.raises(ModelError, match=naming("input 'a'")):
        operator.set("a", math.nan)
    with pytest.raises(UnknownNameError, match=naming("'b'")):
        operator.set("b", 0.0)


def test_a_reset_gives_everything_back() -> None:
    operator = Operator(machine("a"))
    operator.set("a", 0.5)
    step(operator)
    operator.sim.reset()
    operator.reset()
    step(operator)
    assert operator.sim.control["a"][0] == 0.0 and operator.source("a") == ""


# Inputs of others.


def test_diagrams_add_inputs() -> None:
    operator = Operator(machine("a"))
    operator.add_input("target height", 0.0, 3.0, initial=1.0, safe=0.5, unit="m", springs=False)
    assert operator.value("target height") == 1.0
    bound = {binding.command: binding.keys for binding in operator.mapping.bindings}
    assert bound["target height"] == ("3", "4")
    operator.set("target height", 2.0)
    step(operator)
    assert operator.value("target height") == 2.0
    operator.emergency_stop()
    assert operator.value("target height") == 0.5
    operator.attach(machine("b"))
    assert "target height" in operator.inputs
    with pytest.raises(ModelError, match=naming("input 'b'")):
        operator.add_input("b")


def test_a_scene_without_commands_has_no_inputs() -> None:
    scene: Scene = load_scene("four_bar")
    operator = Operator(Simulation(scene.builder.finalize(), backend="numpy"), scene)
    operator.emergency_stop()
    operator.poll(FRAME)
    step(operator)
    assert operator.inputs == {} and operator.stopped
