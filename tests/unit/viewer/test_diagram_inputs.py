from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from gpusim import ModelError
from gpusim.control import Diagram
from gpusim.description.operator_names import KEYS
from gpusim.viewer.operator import Operator
from gpusim.viewer.operator.inputs import Input
from gpusim.viewer.operator.mapping import Binding
from gpusim.viewer.operator.patterns import choose_mapping
from tests.message_snapshot import naming
from tests.unit.viewer.diagrams import cart
from tests.unit.viewer.operators import FRAME, Pad, step


def test_inputs_of_diagrams_take_the_place_of_what_they_drive() -> None:
    inputs = Operator(cart()).inputs
    assert list(inputs) == ["free", "wish", "hold", "stiff"]
    wish, hold, stiff = inputs["wish"], inputs["hold"], inputs["stiff"]
    assert (wish.lower, wish.upper, wish.unit, wish.springs, wish.keys) == (-0.5, 0.5, "m", True, ("J", "L"))
    assert hold.switch and hold.initial == 0.0 and "diagram 'cart'" in hold.doc
    assert (stiff.initial, stiff.safe, stiff.springs, stiff.unit) == (20.0, 20.0, False, "-")


def test_the_operator_moves_the_machine_through_the_diagram() -> None:
    operator = Operator(cart())
    operator.set("wish", 0.4)
    step(operator, 50)
    sim = operator.sim
    assert sim.read("diagram.cart.wish")[0] == pytest.approx(0.375)
    assert sim.read("joint.rail.position")[0] > 0.1
    assert float(sim.control["push"][0]) == pytest.approx(float(sim.read("diagram.cart.choice")[0]))
    operator.release("wish")
    step(operator, 2)
    assert sim.read("diagram.cart.wish")[0] == 0.0


def test_keys_and_sticks_are_those_of_the_diagram() -> None:
    pad = Pad()
    operator = Operator(cart(), gamepad=pad)
    bound = {binding.command: binding for binding in operator.mapping.bindings}
    assert bound["wish"] == Binding("wish", keys=("J", "L"), axis="left_x", dead_zone=0.0, expo=0.0)
    assert bound["hold"].keys == ("H",)
    assert bound["free"].axis != "left_x"
    pad.axes["left_x"] = 0.5
    for _ in range(30):
        operator.poll(FRAME)
    assert operator.value("wish") == pytest.approx(0.25) and operator.source("wish") == "gamepad"
    step(operator)
    assert operator.sim.read("diagram.cart.wish")[0] == pytest.approx(0.5 * (0.5 - 0.2) / 0.8)
    assert operator.key(KEYS["H"], True)
    operator.poll(FRAME)
    assert operator.value("hold") == 1.0


def test_ready_made_patterns_leave_declared_keys_alone() -> None:
    names = ("swing", "boom", "stick", "bucket")
    inputs = {name: Input(name=name) for name in names}
    assert [b.command for b in choose_mapping(inputs).bindings] == ["swing", "stick", "boom", "bucket"]
    extra = Input(name="grip", keys=("A", "W"), axis="left_y")
    bound = {b.command: b for b in choose_mapping(inputs | {"grip": extra}).bindings}
    assert bound["grip"].keys == ("A", "W")
    assert (bound["swing"].keys, bound["swing"].axis) == ((), "left_x")
    assert "stick" not in bound
    lamp = dataclasses.replace(extra, name="lamp", switch=True, keys=("X",), axis="b")
    assert choose_mapping({"lamp": lamp}).bindings == (Binding("lamp", keys=("X",), button="b"),)


def test_wrong_keys_are_reported() -> None:
    with pytest.raises(ModelError, match=naming("input 'x' 'A'")):
        choose_mapping({"x": Input(name="x", keys=("A",))})
    with pytest.raises(ModelError, match=naming("'AA'")):
        choose_mapping({"x": Input(name="x", keys=("AA", "B"))})
    with pytest.raises(ModelError, match=naming("key 'A'")):
        choose_mapping({"x": Input(name="x", keys=("A", "B")), "y": Input(name="y", keys=("A", "C"))})


def test_the_emergency_stop_sets_the_defaults() -> None:
    operator = Operator(cart())
    operator.set("wish", 0.5)
    operator.set("stiff", 40.0)
    operator.emergency_stop()
    assert operator.value("wish") == 0.0 and operator.value("stiff") == 20.0
    step(operator, 2)
    assert operator.sim.control["wish"][0] == 0.0


def test_a_recording_replays_with_the_same_bits(tmp_path: Path) -> None:
    operator = Operator(cart())
    operator.record(tmp_path / "drive.jsonl")
    for k in range(60):
        operator.set("wish", 0.5 * np.sin(0.2 * k))
        operator.set("hold", float(k > 40))
        step(operator)
    operator.stop_recording()
    after = {name: np.array(x) for name, x in operator.sim.read_state().items() if name in ("position", "diagram.cart")}
    again = Operator(cart())
    again.replay(tmp_path / "drive.jsonl")
    step(again, 60)
    for name, values in after.items():
        np.testing.assert_array_equal(np.asarray(again.sim.read_state()[name]), values)


def test_two_diagrams_give_all_their_inputs() -> None:
    made = []
    for label, command in (("a", "push"), ("b", "free")):
        d = Diagram(label)
        d.connect(d.add("input", f"{label}_x"), f"command:{command}")
        made.append(d)
    assert list(Operator(cart(1, *made)).inputs) == ["a_x", "b_x"]
