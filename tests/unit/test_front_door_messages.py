from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, UnknownNameError
from tests.message_snapshot import naming

from .helpers import ball_body

HIPS = "joint.a.position, joint.b.position, joint.c.position"
MESSAGES: dict[str, tuple[Callable[[Simulation], Any], str]] = {
    "actuator's parameter": (lambda s: s.write("servo.right.stiffness", -1), "servo 'right' stiffness"),
    "no number": (lambda s: s.write("joint.a.damping", "x"), "signal 'joint.a.damping' value 'x'"),
    "command": (lambda s: s.command("*").write("a"), "value 'a'"),
    "control": (lambda s: s.control.__setitem__("left", "a"), "command 'left' value 'a'"),
    "rows of several lengths": (lambda s: s.write("sim.gravity", [[1], [1, 2]]), "signal 'sim.gravity' [[1], [1, 2]]"),
    "mask": (lambda s: s.write("joint.a.damping", 1, [True, False]), "signal 'joint.a.damping' 2 3"),
    "wildcard's width": (lambda s: s.write_state({"joint.*.position": [1, 2]}), f"2 3 {HIPS}"),
    "wildcard read": (lambda s: s.read("joint.*.position"), "sim.observe"),
    "wildcard written": (lambda s: s.write("joint.?.position", 0), "sim.write_state"),
    "observe a number": (lambda s: s.observe(3), "3"),
    "observe numbers": (lambda s: s.observe(["*", 3]), "'*' 3"),
    "observe nothing": (lambda s: s.observe([]), "[]"),
    "command nothing": (lambda s: s.command([]), "[]"),
    "state": (lambda s: s.write_state([1]), "Simulation.write_state values 1"),
    "scheme": (lambda s: SolverConfig(scheme="paper"), "'second_order' 'semi_implicit'"),
    "strict": (lambda s: SolverConfig(strict="false"), "strict 'false' True False"),
}  # fmt: skip


def three_hips() -> ModelBuilder:
    b = ModelBuilder()
    joints = [b.add_joint_revolute(-1, ball_body(b), label=label) for label in "abc"]
    for joint, label in zip(joints, ("left", "right"), strict=False):
        b.add_servo(joint, stiffness=1.0, label=label)
    return b


@pytest.mark.parametrize("what", MESSAGES)
def test_messages_name_what_is_wrong(what: str) -> None:
    call, words = MESSAGES[what]
    with pytest.raises((ModelError, UnknownNameError), match=naming(words)):
        call(Simulation(three_hips().finalize(), 3, backend="numpy"))


def test_finalize_names_the_actuator() -> None:
    b = three_hips()
    b.actuators[1].params["damping"] = -1.0
    with pytest.raises(ModelError, match=naming("servo 'right' damping")):
        b.finalize()


def test_a_parameter_is_written_for_one_actuator_in_some_worlds() -> None:
    sim = Simulation(three_hips().finalize(), 3, backend="numpy")
    sim.write("servo.right.stiffness", [5.0, 6.0], world=[0, 2])
    assert sim.read("servo.right.stiffness").tolist() == [5.0, 1.0, 6.0]
    assert sim.read("servo.left.stiffness").tolist() == [1.0] * 3
