"""The operator's emergency stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Simulation
from gpusim.description.operator_names import KEYS
from gpusim.scene import load_scene
from gpusim.viewer.operator import Operator
from tests.backends import FASTEST
from tests.unit.viewer.diagrams import cart
from tests.unit.viewer.operators import FRAME, Pad, arm, machine, step


def test_the_emergency_stop_latches() -> None:
    pad = Pad()
    operator = Operator(machine("a", brake_force=50.0), gamepad=pad)
    operator.set("a", 0.8)
    step(operator)
    assert operator.key(KEYS["E"], True)
    pad.axes["left_y"] = 1.0
    operator.set("a", 0.5)
    operator.release("a")
    for _ in range(10):
        operator.poll(FRAME)
        step(operator)
    control = operator.sim.control
    assert operator.stopped and control["a"][0] == 0.0 and control["jack"][0] == 0.0 and control["jack.brake"][0] == 1.0
    operator.sim.reset()
    operator.reset()
    step(operator)
    assert operator.stopped and control["jack.brake"][0] == 1.0
    operator.key(KEYS["E"], True, shift=True)
    for _ in range(10):
        operator.poll(FRAME)
    assert not operator.stopped and operator.value("a") == 0.0
    pad.axes["left_y"] = 0.0
    operator.poll(FRAME)
    pad.axes["left_y"] = -1.0
    operator.poll(FRAME)
    assert operator.value("a") < 0.0


def test_the_emergency_stop_is_on_the_gamepad_too() -> None:
    pad = Pad()
    operator = Operator(machine("a"), gamepad=pad)
    pad.buttons.add("back")
    operator.poll(FRAME)
    assert operator.stopped
    operator.release_stop()
    operator.poll(FRAME)
    assert not operator.stopped
    pad.buttons.clear()
    operator.poll(FRAME)
    pad.buttons.add("back")
    operator.poll(FRAME)
    assert operator.stopped


def test_the_stop_overrides_the_schedule() -> None:
    scene = load_scene("dc_motor_rig")
    sim = Simulation(scene.builder.finalize(), backend=FASTEST, config=scene.config)
    operator = Operator(sim, scene)
    step(operator, 5)
    operator.emergency_stop()
    step(operator, 5)
    assert sim.control["motor"][0] == 0.0 and sim.control["load"][0] == 0.0
    operator.release_stop()
    operator.release("motor")
    step(operator)
    assert sim.control["motor"][0] == 1.0


def test_servos_stop_where_each_world_is() -> None:
    sim = arm(num_worlds=2)
    sim.write("joint.hinge0.position", 0.9, worlds=1)
    operator = Operator(sim)
    operator.emergency_stop()
    step(operator)
    assert np.allclose(sim.control["s0"], [0.0, 0.9], atol=1e-9)
    sim.write("joint.hinge0.position", 0.3)
    operator.emergency_stop()
    step(operator)
    assert np.allclose(sim.control["s0"], [0.0, 0.9], atol=1e-9)


def test_the_stop_survives_a_restart() -> None:
    operator = Operator(machine("a"))
    operator.emergency_stop()
    other = machine("b", brake_force=1.0)
    operator.attach(other)
    step(operator)
    assert operator.stopped and other.control["jack.brake"][0] == 1.0 and set(operator.inputs) >= {"b", "jack"}


def test_a_mapping_that_fits_no_more_gives_way(tmp_path: Any) -> None:
    (tmp_path / "mine.json").write_text('{"binding": [{"command": "a", "axis": "left_x"}]}')
    operator = Operator(machine("a"), mapping=str(tmp_path / "mine.json"))
    operator.attach(machine("b"))
    assert operator.mapping.name == "automatic" and "unknown command 'a'" in operator.note


def test_the_stop_reaches_what_a_diagram_drives_and_replays_have_it(tmp_path: Any) -> None:
    operator = Operator(cart())
    sim, path = operator.sim, tmp_path / "stop.jsonl"
    operator.record(path)
    operator.set("wish", 0.4)
    step(operator, 20)
    assert sim.control["push"][0] != 0.0
    held = float(sim.read("joint.rail.position", numpy=True)[0])
    operator.emergency_stop()
    step(operator, 10)
    assert sim.overridden.all() and sim.control["push"][0] == pytest.approx(held, abs=1e-12)
    operator.release_stop()
    step(operator, 10)
    assert not sim.overridden.any()
    operator.set("wish", 0.3)
    step(operator, 10)
    operator.stop_recording()
    end = sim.state.variables()["position"].copy()
    sim.reset()
    operator.reset()
    operator.replay(path)
    step(operator, 25)
    assert operator.stopped and sim.overridden.all()
    step(operator, 26)
    assert not operator.replaying and not operator.stopped
    sim.reset()
    operator.reset()
    operator.replay(path)
    step(operator, 50)
    assert np.array_equal(sim.state.variables()["position"], end)
